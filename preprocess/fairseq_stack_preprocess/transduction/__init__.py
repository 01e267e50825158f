"""The corpus ``transduction``: pairs of strings of equal length, after Hao et al. (2018), Section 4.

This package imports ``text`` and the shared modules. Begin with :mod:`.pairs` and :mod:`.tasks`; a new task is a
function that makes a source of pairs, and an entry of :data:`.tasks.TASKS`.

==================== ==================================================================================
module               what
==================== ==================================================================================
:mod:`.pairs`        a pair, the alphabet of a task, and what pairs are drawn from
:mod:`.strings`      tasks on strings of given lengths: reversal, copy, reverse deletion, XOR, counting
:mod:`.chomsky`      tasks of Delétang et al. (2023) for one stack: stack manipulation, arithmetic, equations
:mod:`.answers`      the answers of further tasks of that family, as functions of the question
:mod:`.questions`    random questions of a given length
:mod:`.problems`     the further tasks of Delétang et al., and those of DeltaStack (2026)
:mod:`.derivations`  the derivations of a grammar by depth: counts, uniform draws, ambiguity
:mod:`.grammars`     tasks on strings of a grammar: parentheses, formulas, agreement
:mod:`.tasks`        all tasks, with the lengths and depths of the papers
:mod:`.python2`      the order of sets and the shuffling of Python 2
:mod:`.authors`      the six test sets that the paper's authors drew
:mod:`.task_options` the options of the corpus
:mod:`.pair_files`   the files that every task has
:mod:`.task_corpus`  training, validation and test sets as files
==================== ==================================================================================
"""
