"""The presets have the parameter counts that Tables 2, 3 and 5 of DuSell & Chiang (2024) print."""

from __future__ import annotations

import pytest

from tests.models.building import (
    build_language_model,
    build_translation_model,
    count_parameters,
    make_dictionary,
)

TABLE_2 = {"tf": 10_051_072, "sup": 10_050_304, "nd": 9_861_898}

TABLE_3 = {
    ("small", "tf"): 4_595_200,
    ("small", "sup"): 4_492_480,
    ("small", "nd"): 4_465_610,
    ("medium", "tf"): 9_580_800,
    ("medium", "sup"): 9_349_920,
    ("medium", "nd"): 9_232_810,
    ("large", "tf"): 20_419_200,
    ("large", "sup"): 19_900_080,
    ("large", "nd"): 19_551_610,
}

# Symbols of the alphabet; the nondeterministic stack; LSTM, LSTM+Sup, LSTM+Nd; Tf, Tf+Sup, Tf+Nd.
TABLE_5 = {
    "marked-reversal": (3, "nd-2-3-5", (42_004, 41_402, 31_138), (43_044, 40_964, 33_273)),
    "unmarked-reversal": (2, "nd-2-3-5", (41_503, 40_936, 30_817), (42_979, 40_899, 33_216)),
    "padded-reversal": (2, "nd-3-3-5", (41_503, 40_936, 41_482), (42_979, 40_899, 36_576)),
    "dyck": (4, "nd-2-3-5", (42_505, 41_868, 31_459), (43_109, 41_029, 33_330)),
    "hardest-cfl": (7, "nd-3-3-5", (44_008, 43_266, 43_087), (43_304, 41_224, 36_861)),
}


EACH_LANGUAGE = pytest.mark.parametrize("language", TABLE_5)
PADDING = 8
"""What sizes of dictionaries are rounded up to multiples of; ``--compact-vocab`` counts no symbol that pads them."""


@pytest.mark.parametrize(("kind", "expected"), TABLE_2.items(), ids=TABLE_2)
def test_table_2_penn_treebank(kind: str, expected: int) -> None:
    model = build_language_model(f"stack_transformer_lm_{kind}_ptb", make_dictionary(23_832), "--compact-vocab")
    assert count_parameters(model) == expected


@pytest.mark.parametrize(("cell", "expected"), TABLE_3.items(), ids=map("-".join, TABLE_3))
def test_table_3_translation(cell: tuple[str, str], expected: int) -> None:
    size, kind = cell
    model = build_translation_model(f"stack_transformer_{kind}_{size}", make_dictionary(6_152))
    assert count_parameters(model) == expected


# With the sizes of Tf, or for the last three of Tf+Sup, of about as many parameters.
DELTA_RULE = {
    "2xsdpa,deltastack-2-14-14-64,2xsdpa": 43_011,
    "5xdeltastack-2-14-14-64": 42_879,
    "2xsdpa,delta-2-15-15,2xsdpa": 43_099,
    "2xsdpa,gdelta-2-14-15,2xsdpa": 43_023,
    "5xproduct-2-9-10-2": 42_734,
    "2xsdpa,deltastack-2-7-6-64,2xsdpa": 40_907,
    "2xsdpa,delta-2-8-7,2xsdpa": 40_995,
    "2xsdpa,product-1-10-10-2,2xsdpa": 41_014,
}


@pytest.mark.parametrize(("layers", "expected"), DELTA_RULE.items(), ids=DELTA_RULE)
def test_the_delta_rule(layers: str, expected: int) -> None:
    options = "--compact-vocab", "--stack-layers", layers
    model = build_language_model("stack_transformer_lm_tf_cfl", make_dictionary(3), *options)
    assert count_parameters(model) == expected


@pytest.mark.parametrize("kind", ["lstm", "sup", "nd"])
@EACH_LANGUAGE
def test_table_5_lstms(language: str, kind: str) -> None:
    num_symbols, nondeterministic, expected, _ = TABLE_5[language]
    flags = ["--compact-vocab"] + ["--stack", nondeterministic] * (kind == "nd")
    model = build_language_model(f"stack_lstm_lm_{kind}_cfl", make_dictionary(num_symbols, PADDING), *flags)
    assert count_parameters(model) == dict(zip(("lstm", "sup", "nd"), expected, strict=True))[kind]


@pytest.mark.parametrize("kind", ["tf", "sup", "nd"])
@EACH_LANGUAGE
def test_table_5_transformers(language: str, kind: str) -> None:
    num_symbols, nondeterministic, _, expected = TABLE_5[language]
    flags = ["--compact-vocab"]
    if kind == "nd":
        flags += ["--stack-layers", f"2xsdpa,{nondeterministic},2xsdpa"]
    dictionary = make_dictionary(num_symbols, PADDING)
    model = build_language_model(f"stack_transformer_lm_{kind}_cfl", dictionary, *flags)
    assert count_parameters(model) == dict(zip(("tf", "sup", "nd"), expected, strict=True))[kind]


# DuSell & Cotterell (2025): question formation and tense reinflection, whose vocabularies have 68 and 98 types.
HIERARCHICAL = {
    "stack_transformer_lm_tf": (193_596, 195_636),
    "stack_transformer_lm_sup": (202_896, 205_056),
    "stack_transformer_lm_nd": (191_085, 193_125),
    "stack_transformer_lm_sup_x2": (209_532, 191_448),
    "stack_transformer_lm_nd_x2": (208_882, 190_614),
    "stack_lstm_lm_rnn": (199_056, 199_926),
    "stack_lstm_lm_rnn_sup": (199_301, 199_917),
    "stack_lstm_lm_rnn_sup_r": (200_081, 199_883),
    "stack_lstm_lm_rnn_nd": (199_595, 199_879),
    "stack_lstm_lm_rnn_nd_r": (200_886, 200_199),
    "stack_lstm_lm_lstm": (201_960, 200_250),
    "stack_lstm_lm_lstm_sup": (202_098, 200_225),
    "stack_lstm_lm_lstm_sup_r": (200_063, 199_580),
    "stack_lstm_lm_lstm_nd": (199_131, 201_591),
    "stack_lstm_lm_lstm_nd_r": (199_084, 198_386),
}


@pytest.mark.parametrize(("model", "counts"), HIERARCHICAL.items(), ids=HIERARCHICAL)
def test_hierarchical_generalisation(model: str, counts: tuple[int, int]) -> None:
    for task, num_types, expected in zip(("qf", "tr"), (68, 98), counts, strict=True):
        built = build_language_model(f"{model}_{task}", make_dictionary(num_types, PADDING), "--compact-vocab")
        assert count_parameters(built) == expected
