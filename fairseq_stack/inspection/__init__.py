"""What the stacks of a trained model do, in numbers and pictures, and what its parses look like: nothing here trains.

A model reads a sentence (:mod:`.sentences`: text, or lines of a data set), and each of its stacks says what it does
meanwhile: begin with :func:`.stacks.inspect_stacks`. What a stack can say is
:class:`fairseq_stack.modules.InspectedStack`, and its kind decides what it says. Over many sentences there are the mean
of its :mod:`.operations` at each symbol, and its :mod:`.readings` in principal components. :mod:`.texts` and
:mod:`.pictures` show all of this.

Two models are not read through their layers: a :mod:`.neural_stack` (Figs. 5 and 6 of Hao et al., 2018), and a model
that parses (:mod:`.parses`; in brackets, :mod:`.brackets`; Figs. 5 and 6 of Murty et al., 2023).

It imports ``modules`` and ``ops``, ``hub`` for trained models, and ``plots`` for drawing.
"""
