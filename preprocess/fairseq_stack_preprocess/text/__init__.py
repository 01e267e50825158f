"""What all corpora share. It imports the shared modules (errors, layout, progress), and no corpus.

Begin with :mod:`.output`, by which every corpus is written, and :mod:`.streams`, by which every text is read.

======================= ========================================================================
module                  what
======================= ========================================================================
:mod:`.streams`         reading text of any size, strictly, in bounded memory
:mod:`.fairseq_words`   words that fairseq would misread
:mod:`.splits`          train, valid and test: sizes, random streams, drawing without repetition
:mod:`.pcfg`            probabilistic context-free grammars
:mod:`.notation`        grammars as text
:mod:`.output`          folders that appear complete or not at all
:mod:`.manifest`        ``manifest.json``
:mod:`.binarise`        fairseq's binary format, by fairseq-preprocess in a child process
:mod:`.child`           that process
:mod:`.sentence_pieces` BPE by SentencePiece
:mod:`.byte_pieces`     the pieces of GPT-2
:mod:`.penn`            words as in the Penn Treebank
======================= ========================================================================
"""
