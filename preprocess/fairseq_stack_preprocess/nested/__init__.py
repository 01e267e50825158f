"""The corpus ``nested-translation``: generated pairs of sentences with nested relative clauses.

This package imports ``text`` and the shared modules. Begin with the tables of :mod:`.grammar`;
:mod:`.synchronous_grammar` knows nothing of the two languages.

=========================== ==================================================================
module                      what
=========================== ==================================================================
:mod:`.synchronous_grammar` weighted synchronous grammars, and exact sampling by nesting depth
:mod:`.rule_table`          tables of rules with features
:mod:`.grammar`             the tables of the two languages
:mod:`.nested_corpus`       pairs of sentences as files
=========================== ==================================================================
"""
