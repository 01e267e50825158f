"""Figures from plain data, in one style: nothing here knows torch, fairseq or the other packages of fairseq_stack.

Begin with :mod:`.style`: the colours and markers, and ``figure``, in which every picture is drawn and written whole.
The other modules draw what is in one panel, on matplotlib's ``axes``:

- :mod:`.panels`: curves, bands, points, matrices of weights, legends and logarithmic scales;
- :mod:`.stack_drawings`: what a stack holds over time;
- :mod:`.parse_drawings`: trees, stack tapes and attention over words (Figs. 5 and 6 of Murty et al., 2023).

matplotlib is imported inside functions: it is an optional dependency, and takes long to load.
"""
