"""A trained model in Python, with everything it needs: what ``from_pretrained`` and the command ``fairseq-stack`` load.

Begin with ``load`` in ``interface.py``: checkpoints and dictionaries are found, and the model is wrapped as
fairseq's hub interface, which translates, samples and scores raw text. Built on it are

- strings of symbols: their log-probabilities, and strings drawn from a model;
- sentences: split into tokens, the surprisals of their words (Pimentel & Meister, 2024), and of regions of words;
- parses: a beam of parses for each sentence, and gold parses (Murty et al., 2023, Eq. 7);
- answers: their log-probabilities after a source, and whether a greedy search writes them;
- transductions: how much of each string a model writes correctly.

``language_model.py`` says what surprisals need of a model. They need fairseq only for checkpoints.

This package imports ``evaluation``, ``modules`` and ``ops``, and of models only what they do, never their classes.
"""
