"""Text for language modelling: see :mod:`.text_corpus`."""
