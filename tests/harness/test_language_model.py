"""A trained model behind the interface of lm-evaluation-harness, and the tasks of the page about it, offline."""

from __future__ import annotations

import json
import math
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack.cli import main
from fairseq_stack.errors import UserError
from fairseq_stack.harness import __main__ as harness
from fairseq_stack.hub.interface import LanguageModelHub, load
from fairseq_stack.hub.surprisals import surprisals
from tests.commands.without import FAIRSEQ, run_without
from tests.documents import REPOSITORY, Document

pytest.importorskip("lm_eval", reason="lm-eval is not installed")

MODEL = "examples/models/tf-sup-marked-reversal"
STRINGS = ["0 1 1 # 1 1 0", "1 0 # 0 0 1", "0"]
PAGE = Document("docs/lm-eval.md")


def requests(method: str, *arguments: tuple[Any, ...]) -> list[Any]:
    from lm_eval.api.instance import Instance

    return [Instance(request_type=method, doc={}, arguments=one, idx=0) for one in arguments]


def model(checkpoint: Path | str = REPOSITORY / MODEL, **options: Any) -> Any:
    from fairseq_stack.harness.language_model import FairseqStackLM

    return FairseqStackLM(str(checkpoint), **{"batch_size": "auto", "device": "cuda:0", **options})


@pytest.fixture(scope="module")
def hub() -> LanguageModelHub:
    loaded = load(REPOSITORY / MODEL)
    assert isinstance(loaded, LanguageModelHub)
    return loaded


@pytest.mark.parametrize("batch_size", ["auto", 1, "2"])
@pytest.mark.parametrize("add_end", [False, True])
def test_log_probabilities_are_those_of_the_hub(hub: LanguageModelHub, batch_size: Any, add_end: bool) -> None:
    """Of whole strings, and of continuations of every context."""
    lm = model(batch_size=batch_size, add_end=add_end)
    of_tokens = [score["positional_scores"].tolist() for score in hub.score(STRINGS)]
    kept = [scores if add_end else scores[:-1] for scores in of_tokens]
    rolling = lm.loglikelihood_rolling(requests("loglikelihood_rolling", *((string,) for string in STRINGS)))
    assert rolling == pytest.approx([sum(scores) for scores in kept], abs=1e-5)
    words = STRINGS[0].split()
    parts = [(" ".join(words[:n]), " " + " ".join(words[n:])) for n in range(len(words) + 1)]
    actual = lm.loglikelihood(requests("loglikelihood", *parts))
    assert [score for score, _ in actual] == pytest.approx([sum(kept[0][n:]) for n in range(len(parts))], abs=1e-5)


def test_the_best_continuation_is_greedy(hub: LanguageModelHub) -> None:
    lm = model()
    (best,) = lm.generate_until(requests("generate_until", ("0 1 1 #", {"max_gen_toks": 3})))
    other = "1 1 1" if best != "1 1 1" else "0 0 0"
    pairs = [("0 1 1 #", f" {best}"), ("0 1 1 #", f" {other}")]
    assert [is_greedy for _, is_greedy in lm.loglikelihood(requests("loglikelihood", *pairs))] == [True, False]


def test_generation_is_that_of_the_hub(hub: LanguageModelHub) -> None:
    """Each prompt has its own length and its own limit, and the empty one is among them."""
    prompts = ["0 1 1 #", "1 0 0 1 0 1 #", "", "1 #", "0 1"]
    limits = [20, 20, 4, 1, 4]
    asked = [(prompt, {"max_gen_toks": limit, "until": ["\n"]}) for prompt, limit in zip(prompts, limits, strict=True)]
    expected = []
    for prompt, limit in zip(prompts, limits, strict=True):
        text = hub.sample(prompt, beam=1, max_len_a=0, max_len_b=len(prompt.split()) + limit)
        assert text.startswith(prompt)
        expected.append(text[len(prompt) :].strip())
    assert model().generate_until(requests("generate_until", *asked)) == expected
    assert len(expected[4].split()) == 4 and len(expected[3].split()) == 1


def test_generation_ends_before_the_first_of_the_ends() -> None:
    lm = model()
    (whole,) = lm.generate_until(requests("generate_until", ("0 1 1 0 #", {"until": []})))
    assert whole == "0 1 1 0"
    cut = lm.generate_until(requests("generate_until", *(("0 1 1 0 #", {"until": x}) for x in ("1 0", ["0 1", "1"]))))
    assert cut == ["0 1 ", ""]


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        ("generate_until", ("0", {"do_sample": True, "temperature": 0.5}), "generation is greedy"),
        ("generate_until", ("0", {"num_beams": 3}), "generation is greedy"),
        ("generate_until", ("0", {"max_gen_toks": 0}), "max_gen_toks: expected at least 1, got 0"),
        ("loglikelihood", ("0", " 7"), "lacks '7', and the model was trained without <unk>"),
        ("loglikelihood_rolling", ("0 " * 5000,), r"5,001 tokens with its end; the model accepts"),
    ],
)
def test_refusals(method: str, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        getattr(model(), method)(requests(method, arguments))


def test_a_context_that_ends_within_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it may where tokens are pieces of words."""
    lm = model()
    monkeypatch.setattr(lm._hub, "cut", lambda text: text.replace("0 11", "# 1").split())
    with pytest.raises(UserError, match="request 2: the context ends within a token"):
        lm.loglikelihood(requests("loglikelihood", ("0 1", " 1"), ("0 1", "1")))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pushdown-dyck", "holds a model that parses"),
        ("tf-nd-nested-translation", "holds no language model"),
        ("none", "does not exist"),
    ],
)
def test_models_that_do_not_fit(name: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        model(REPOSITORY / "examples" / "models" / name)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tasks of the page, with their data, in the current folder."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(REPOSITORY / "examples")
    for block in PAGE.blocks("bash")[:-1]:
        files, *_ = block.partition("for end in" if "for end in" in block else "HF_HUB_OFFLINE")
        subprocess.run(["bash", "-euc", files], check=True)


@pytest.fixture
def tasks(files: None) -> Any:
    from lm_eval.tasks import TaskManager

    return TaskManager(include_path="lm-eval/tasks")


def evaluate(task: str, tasks: Any, **options: Any) -> dict[str, float]:
    from lm_eval import simple_evaluate

    answer = simple_evaluate(model(MODEL, **options), tasks=[task], task_manager=tasks, bootstrap_iters=0)
    assert answer is not None
    return dict(answer["results"][task])


def test_the_tasks_of_the_page(tasks: Any, hub: LanguageModelHub, capsys: pytest.CaptureFixture[str]) -> None:
    texts = [json.loads(line)["text"] for line in Path("lm-eval/strings.jsonl").read_text().splitlines()]
    words = list(surprisals(hub, texts))
    nats = math.fsum(word.surprisal for sentence in words for word in sentence[:-1])
    expected = math.exp(nats / sum(len(sentence) - 1 for sentence in words))
    assert evaluate("strings", tasks)["word_perplexity,none"] == pytest.approx(expected, rel=1e-5)
    assert evaluate("prompts", tasks)["exact_match,none"] == 1
    assert evaluate("pairs", tasks)["acc,none"] == pytest.approx(2 / 3)
    assert evaluate("pairs", tasks, add_end=True)["acc,none"] == 1
    for option, right in (([], 3), (["--without-end"], 2)):
        command = ["evaluate-blimp", MODEL, "--blimp", "lm-eval/pairs", *option, "--json", "blimp.json", "--cpu"]
        assert main(command) == 0
        assert json.loads(Path("blimp.json").read_text())["overall"]["accuracy"]["value"] == pytest.approx(right / 3)


@pytest.mark.hostile
def test_the_exported_folder_without_fairseq(tasks: Any, tmp_path: Path) -> None:
    """The commands of the page, through lm-eval's own class; lm-eval itself needs sacrebleu."""
    pytest.importorskip("transformers")
    export, *commands = PAGE.blocks("bash")[-1].replace("\\\n", "").splitlines()
    assert main(export.split()[1:]) == 0
    run = "from lm_eval.__main__ import cli_evaluate; sys.argv = sys.stdin.read().split(); cli_evaluate()"
    actual: dict[str, Any] = {}
    for command in commands:
        arguments = command.removeprefix("HF_HUB_OFFLINE=1 ") + " --output_path out.json"
        run_without(sorted({*FAIRSEQ} - {"sacrebleu"}), run, folder=tmp_path, stdin=arguments)
        (results,) = tmp_path.glob("out*.json")
        actual |= json.loads(results.read_text())["results"]
        results.unlink()
    assert actual["pairs"]["acc,none"] == pytest.approx(2 / 3)
    assert actual["prompts"]["exact_match,none"] == 1
    expected = evaluate("strings", tasks)["word_perplexity,none"]
    assert actual["strings"]["word_perplexity,none"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.usefixtures("files")
def test_the_command_of_the_page(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = [block for block in PAGE.blocks("bash") if "strings.yaml" in block]
    words = shlex.split(block[block.index("HF_HUB_OFFLINE") :].replace("\\\n", ""))
    arguments = words[words.index("fairseq_stack.harness") :]
    monkeypatch.setattr(sys, "argv", arguments)
    assert harness.main() == 0
    assert "|word_perplexity|" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", [x.replace("checkpoint=", "checkpoint=no/") for x in arguments])
    assert harness.main() == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("error: no/examples")
