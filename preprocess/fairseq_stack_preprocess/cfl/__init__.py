"""The corpus ``cfl``: strings of formal languages with exact probabilities, after DuSell and Chiang (2020, 2022, 2023).

===================== =====================================================================================
module                what
===================== =====================================================================================
:mod:`.pcfg`          probabilistic context-free grammars; removal of empty and unary rules; binary rules
:mod:`.notation`      grammars as text
:mod:`.lengths`       probabilities of lengths, and strings of a given length drawn from a grammar
:mod:`.inside`        the probability of a given string, summed over its derivations
:mod:`.distributions` a grammar's or another language's strings of each length: one interface
:mod:`.languages`     the twelve languages, with their parameters
:mod:`.corpus`        training, validation and test sets as files
===================== =====================================================================================

Everything that decides a drawn symbol or a printed number is computed by operations with one right result
(element-wise IEEE arithmetic in a fixed order, :func:`math.fsum`, :class:`decimal.Decimal`), so that the same
seed gives the same bytes on every machine.
"""
