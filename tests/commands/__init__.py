"""Commands as a user runs them, each in a fork of one process that has imported fairseq: a tenth of the time."""
