"""The LSTMs of the papers as presets.

``_cfl``: Table 5 of DuSell & Chiang (2024). ``_2020``: the models of DuSell & Chiang (2020), with 20 hidden units;
vectors have size 20, one of the three sizes that were searched. ``_ptb``: the models of the Penn Treebank of DuSell &
Chiang (2022, 2023), as the authors' scripts build them: embeddings of the size of the hidden state, which the output
layer does not share, no dropout, and all parameters from [-0.05, 0.05]; the nondeterministic stacks remember 35 steps.
"""

from __future__ import annotations

from fairseq_stack.models.options import Settings

_AS_IN_PAPER: Settings = {"output_bias": True, "stack_init": "paper", "stack_init_scale": 0.1}


def _context_free(hidden_size: int, stack: str) -> Settings:
    return {"stack": stack, "decoder_hidden_size": hidden_size, **_AS_IN_PAPER}


def _penn_treebank(stack: str, hidden_size: int = 256) -> Settings:
    return {
        "stack": stack,
        "decoder_hidden_size": hidden_size,
        "decoder_embed_dim": hidden_size,
        "output_bias": True,
        "stack_init": "uniform",
        "stack_init_scale": 0.05,
    }


PRESETS: dict[str, Settings] = {
    "stack_lstm_lm_lstm_cfl": _context_free(100, "none"),
    "stack_lstm_lm_sup_cfl": _context_free(93, "sup-10"),
    "stack_lstm_lm_nd_cfl": _context_free(64, "nd-2-3-5"),
    "stack_lstm_lm_lstm_2020": _context_free(20, "none"),
    "stack_lstm_lm_sup_2020": _context_free(20, "sup-20"),
    "stack_lstm_lm_strat_2020": _context_free(20, "strat-20"),
    "stack_lstm_lm_ns_2020": {
        **_context_free(20, "ns-2-2"),
        "normalize_transitions": True,
        "no_states_in_reading": True,
        "original_bottom": True,
    },
    "stack_lstm_lm_lstm_256_ptb": _penn_treebank("none"),
    "stack_lstm_lm_sup_hidden_247_ptb": {
        **_penn_treebank("sup-247", 247),
        "push_hidden_state": True,
        "stack_depth_limit": 10,
    },
    "stack_lstm_lm_sup_22_ptb": {**_penn_treebank("sup-22"), "stack_depth_limit": 10},
    **{
        f"stack_lstm_lm_rns_{states}_{symbols}_ptb": _penn_treebank(f"ns-{states}-{symbols}@35")
        for states, symbols in ((1, 29), (2, 13), (4, 5))
    },
    **{
        f"stack_lstm_lm_vrns_{states}_{symbols}_{size}_ptb": _penn_treebank(f"nd-{states}-{symbols}-{size}@35")
        for states, symbols, size in ((1, 1, 256), (1, 1, 32), (1, 5, 20), (2, 3, 10), (3, 3, 5))
    },
}
