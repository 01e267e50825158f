"""The README of an exported folder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_README = """\
# {name}

{title} with {parameters:,} parameters, written by `fairseq-stack export` for
[transformers](https://huggingface.co/docs/transformers). Its layers: `{layers}`.

It needs this package (`pip install '.[huggingface]'` in a clone of fairseq_stack), and no fairseq. The first line
registers the classes of the model:

```python
import fairseq_stack.huggingface

{code}```

Without that line, give `trust_remote_code=True` to each `from_pretrained`: the folder's only code is an import of the
same package.

{notes}"""

_LANGUAGE_MODEL = """\
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("{name}")
model = AutoModelForCausalLM.from_pretrained("{name}")
inputs = tokenizer([{text!r}], return_tensors="pt", padding=True)
outputs = model.generate(**inputs, max_new_tokens=20)
print(tokenizer.batch_decode(outputs, skip_special_tokens=True))
"""

_NOTES = """\
- `{end}` begins and ends every text. The tokenizer writes the first one; append `{end}` for the probability of the end.
- Beam search finds what fairseq's finds with `length_penalty=0.0, early_stopping=True` here and `lenpen=0` there. With
  other penalties, transformers divides by the length of the continuation, and fairseq by the length of the text.
"""

_CLASSES = """\
- In the training text, rare words are classes, such as `{classes}`. The tokenizer reads a word that the
  dictionary lacks as `<unk>`, which the model has never seen: write the class of the word instead.
"""

_TRANSLATION = """\
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("{name}")
target_tokenizer = AutoTokenizer.from_pretrained("{name}/target_tokenizer")
model = AutoModelForSeq2SeqLM.from_pretrained("{name}")
inputs = tokenizer([{text!r}], return_tensors="pt", padding=True)
outputs = model.generate(**inputs)
print(target_tokenizer.batch_decode(outputs, skip_special_tokens=True))
"""

_TRANSLATION_NOTES = """\
- `tokenizer` is that of the source language. For training, `target_tokenizer` makes the labels.
- `generation_config.json` has the defaults of `fairseq-generate`: a beam of 5, and at most 200 tokens.
"""


def readme(name: str, model: Any, text: str, end: str, classes: Sequence[str] = ()) -> str:
    """The README of a folder.

    Args:
        name: of the folder.
        model: of :mod:`.modeling` or :mod:`.seq2seq`.
        text: an example of what the model reads.
        end: the token that ends a text.
        classes: examples of classes of rare words, if the training text has such classes.
    """
    config, translates = model.config, model.config.is_encoder_decoder
    code, notes = (_TRANSLATION, _TRANSLATION_NOTES) if translates else (_LANGUAGE_MODEL, _NOTES)
    if translates:
        title, layers = "A transformer that translates", f"{config.stack_encoder_layers}` and `{config.stack_layers}"
    elif config.model_type == "stack_lstm_lm":
        title, layers = "An LSTM language model", config.stack
    else:
        title, layers = "A transformer language model", config.stack_layers
    return _README.format(
        name=name,
        title=title,
        layers=layers,
        parameters=model.num_parameters(),
        code=code.format(name=name, text=text),
        notes=notes.format(end=end) + (_CLASSES.format(classes="`, `".join(classes)) if classes else ""),
    )
