"""Corpora of strings of formal languages with exact probabilities.

The corpus ``cfl``, after DuSell and Chiang (2020, 2022, 2023). This package imports ``text`` and the shared modules;
numpy is loaded by :mod:`.scaled`, :mod:`.lengths` and :mod:`.inside` alone. Begin with :mod:`.languages` and
:mod:`.language_corpus`, then follow a grammar: :mod:`.normal_form`, :mod:`.lengths` (Appendix C of the 2020 paper,
Algorithm 1), :mod:`.inside`.

======================== ===============================================================================
module                   what
======================== ===============================================================================
:mod:`.normal_form`      removal of empty and unary rules; binary rules
:mod:`.scaled`           numbers of any magnitude
:mod:`.lengths`          probabilities of lengths, and strings of a given length drawn from a grammar
:mod:`.inside`           the probability of a given string, summed over its derivations
:mod:`.distributions`    a grammar's or another language's strings of each length: one interface
:mod:`.languages`        the twelve languages, with their parameters
:mod:`.recognisers`      whether a string is in one of them
:mod:`.string_sets`      strings with their probabilities, and their files
:mod:`.language_options` the options of ``cfl``
:mod:`.language_corpus`  ``cfl``: training, validation and test sets as files
:mod:`.bounded_dyck`     balanced brackets of bounded depth with their parses, after Murty et al. (2023)
======================== ===============================================================================

Everything that decides a drawn symbol or a printed number is computed by operations with one right result
(element-wise IEEE arithmetic in a fixed order, :func:`math.fsum`, :class:`decimal.Decimal`), so that the same
seed gives the same bytes on every machine.
"""
