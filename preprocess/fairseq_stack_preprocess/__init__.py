"""Corpora for fairseq_stack: text, side files, a manifest and fairseq's binary format.

One module a corpus, each with an ``Options`` dataclass, a pure ``generate(options)`` and
``prepare(options, target, force=False)`` that writes a folder. Neither torch nor fairseq is imported:
binarising runs fairseq's own command in a process of its own.
"""

from fairseq_stack import __version__

__all__ = ["__version__"]
