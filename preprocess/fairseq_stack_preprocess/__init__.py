"""Corpora for fairseq_stack: text, side files, a manifest and fairseq's binary format.

There is one package for each family of corpora: :mod:`.cfl`, :mod:`.lm`, :mod:`.mt`, :mod:`.trees`, :mod:`.nested`,
:mod:`.transduction`, :mod:`.transformations` and :mod:`.classification`. They share :mod:`.text`, and three modules
that ``fairseq_stack`` also uses: :mod:`.errors`, :mod:`.progress`, and the names of what a corpus folder holds
(:mod:`.layout`). A package imports only what is shared, and no other package of corpora; only :mod:`.classification`
cuts text as :mod:`.trees` does. Neither torch nor fairseq is imported: binarising runs fairseq's own command in a
separate process.

A corpus is a module of one shape:

- ``CORPUS``: its name on the command line, and in its manifest;
- ``Options``: a frozen dataclass that checks itself and holds all defaults, with ``binarise`` as the last field;
- ``generate(options)``, if the corpus is generated and not read: its content, without files;
- ``prepare(options, folder, *, force=False)``: writes the folder, complete or not at all.

A new corpus needs such a module in a package, and a subcommand in ``fairseq_stack/cli/prepare``. Begin reading with
:mod:`.nested.nested_corpus`, the shortest corpus that is generated, or with :mod:`.lm.text_corpus`, the shortest one
that is read.
"""
