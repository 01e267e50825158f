"""The networks of Table 1 of Hao et al. (2018) as presets.

``_xor``: for the two XOR tasks, with vectors of size 6 instead of 2. The buffered network of reversal takes as many
steps as the padded input has symbols, and the one of XOR twice as many.
"""

from __future__ import annotations

from fairseq_stack.models.options import Settings

_XOR: Settings = {"vector_size": 6}


def _network(controller: str, memory: str = "stack") -> Settings:
    return {"controller": controller, "memory": memory, "vector_size": 2, "hidden_size": 10}


def _buffered(time_steps: str) -> Settings:
    return {**_network("linear"), "time_steps": time_steps, "output_reading": "dequeue-first"}


PRESETS: dict[str, Settings] = {
    "neural_stack_linear_2018": _network("linear"),
    "neural_stack_lstm_2018": _network("lstm"),
    "neural_stack_linear_none_2018": _network("linear", memory="none"),
    "neural_stack_lstm_none_2018": _network("lstm", memory="none"),
    "neural_stack_linear_xor_2018": {**_network("linear"), **_XOR},
    "neural_stack_lstm_xor_2018": {**_network("lstm"), **_XOR},
}

BUFFERED_PRESETS: dict[str, Settings] = {
    "neural_stack_buffered_linear_2018": _buffered("n"),
    "neural_stack_buffered_linear_xor_2018": {**_buffered("2n"), **_XOR},
}
