"""The searches of the tasks, through fairseq's commands."""

from __future__ import annotations

import contextlib
import io
import json
import math
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.data import Dictionary
from fairseq_cli import generate, interactive, preprocess, train

import fairseq_stack
from fairseq_stack.search import LengthNormalizedBeamSearchGenerator
from fairseq_stack.tasks import (
    StackLanguageModelingConfig,
    StackLanguageModelingTask,
    StackTranslationConfig,
    StackTranslationTask,
)
from tests.commands.running import Server
from tests.search.reference import (
    BOS,
    EOS,
    PAD,
    Tokens,
    reference_search,
)

USER_DIR = str(Path(fairseq_stack.__file__).parent)
SEARCH = ["--beam-search", "length-normalized"]


def run(main: Callable[[], None], *arguments: Any) -> list[str]:
    """Run the main function of a fairseq command in this process; returns the lines that it printed."""
    output = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(output):
        patch.setattr(sys, "argv", ["fairseq", *map(str, arguments)])
        for function in (checkpoint_utils.save_checkpoint, train.should_stop_early):
            patch.delattr(function, "best", raising=False)  # fairseq keeps these between runs in one process
        main()
    return output.getvalue().splitlines()


def hypotheses(lines: list[str]) -> dict[int, list[tuple[str, float]]]:
    """The H- lines of a command: for each sentence the outputs, and their scores to base e."""
    result: dict[int, list[tuple[str, float]]] = {}
    for line in lines:
        if line.startswith("H-"):
            name, score, text = line.split("\t")
            result.setdefault(int(name[2:]), []).append((text, float(score) * math.log(2)))
    return result


def expected_hypotheses(
    next_log_probs: Callable[[Tokens], list[float]], dictionary: Dictionary, beam_size: int, max_len: int
) -> list[tuple[str, float]]:
    items = reference_search(next_log_probs, beam_size, max_len)
    return [(dictionary.string(torch.tensor(item.tokens)), item.score) for item in items]


def assert_same(actual: list[tuple[str, float]], expected: list[tuple[str, float]]) -> None:
    assert [text for text, _ in actual] == [text for text, _ in expected]
    assert [score for _, score in actual] == pytest.approx([score for _, score in expected], abs=1e-4)


def forbid(log_probs: torch.Tensor, num_tokens: int) -> list[float]:
    """fairseq's defaults: no pad, and no empty output."""
    log_probs[PAD] = -math.inf
    if num_tokens == 0:
        log_probs[EOS] = -math.inf
    return log_probs.tolist()


def write_corpus(folder: Path) -> None:
    """Strings of letters (source) and the same in capitals backwards (target)."""
    rng = random.Random(0)
    folder.mkdir()
    for split, size in [("train", 60), ("valid", 5), ("test", 5)]:
        strings = [rng.choices("abc", k=rng.randint(1, 5)) for _ in range(size)]
        (folder / f"{split}.src").write_text("".join(" ".join(x) + "\n" for x in strings))
        (folder / f"{split}.tgt").write_text("".join(" ".join(x[::-1]).upper() + "\n" for x in strings))


SMALL = ["--cpu", "--optimizer", "adam", "--lr", 0.01, "--batch-size", 10, "--max-update", 25]
SMALL += ["--no-epoch-checkpoints", "--user-dir", USER_DIR, "--num-workers", 0]
LIMITS = ["--beam", 3, "--nbest", 3, "--max-len-b", 7, "--cpu", "--user-dir", USER_DIR]
LIMITS += ["--num-workers", 0]


@pytest.fixture(scope="module")
def translation(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Binarised data, and a checkpoint that was translation with BLEU of the paper's search as criterion."""
    folder = tmp_path_factory.mktemp("translation")
    write_corpus(folder / "text")
    prefixes = [f"--{split}pref" for split in ("train", "valid", "test")]
    paths = [folder / "text" / split for split in ("train", "valid", "test")]
    arguments = [x for pair in zip(prefixes, paths, strict=True) for x in pair]
    data, save = folder / "data", folder / "save"
    run(preprocess.cli_main, "-s", "src", "-t", "tgt", *arguments, "--destdir", data)
    sizes = ["--encoder-embed-dim", 16, "--decoder-embed-dim", 16, "--encoder-layers", 1]
    sizes += ["--encoder-ffn-embed-dim", 16, "--decoder-ffn-embed-dim", 16, "--decoder-layers", 1]
    with pytest.MonkeyPatch.context() as patch:
        generate_calls: list[Any] = []
        original = LengthNormalizedBeamSearchGenerator.generate

        def spy(self: Any, *args: Any, **kwargs: Any) -> Any:
            generate_calls.append(self.beam_size)
            return original(self, *args, **kwargs)

        patch.setattr(LengthNormalizedBeamSearchGenerator, "generate", spy)
        bleu = ["--eval-bleu", "--eval-bleu-args", json.dumps({"beam": 2, "max_len_b": 7})]
        bleu += ["--best-checkpoint-metric", "bleu", "--maximize-best-checkpoint-metric"]
        task = ["--task", "stack_translation", "--arch", "transformer", *SEARCH]
        run(train.cli_main, data, "--save-dir", save, *task, *sizes, *bleu, *SMALL)
        assert set(generate_calls) == {2}
    return data, save / "checkpoint_best.pt"


@pytest.fixture(scope="module")
def translations(translation: tuple[Path, Path]) -> dict[int, list[tuple[str, float]]]:
    """The outputs for the test set by the slow search, from whole prefixes."""
    data, checkpoint = translation
    task = StackTranslationTask.setup_task(StackTranslationConfig(data=str(data), source_lang="src", target_lang="tgt"))
    (model,), _ = checkpoint_utils.load_model_ensemble([str(checkpoint)], task=task)
    model.eval()
    result = {}
    for i, line in enumerate((data.parent / "text" / "test.src").read_text().splitlines()):
        source = task.source_dictionary.encode_line(line, add_if_not_exist=False)[None].long()

        def next_log_probs(tokens: Tokens, source: torch.Tensor = source) -> list[float]:
            with torch.no_grad():
                previous = torch.tensor([[EOS, *tokens]])
                output = model(source, torch.tensor([source.size(1)]), previous)
            log_probs = model.get_normalized_probs(output, log_probs=True)[0, -1]
            return forbid(log_probs, len(tokens))

        result[i] = expected_hypotheses(next_log_probs, task.target_dictionary, 3, 7)
    return result


class TestTranslation:
    def generate(self, translation: tuple[Path, Path], *options: Any) -> list[str]:
        data, checkpoint = translation
        return run(generate.cli_main, data, "--path", checkpoint, "--task", "stack_translation", *LIMITS, *options)

    def test_generate(self, translation: tuple[Path, Path], translations: dict[int, Any]) -> None:
        actual = hypotheses(self.generate(translation, *SEARCH, "--batch-size", 3))
        assert actual.keys() == translations.keys()
        for i in translations:
            assert_same(actual[i], translations[i])

    def test_ensemble(self, translation: tuple[Path, Path], translations: dict[int, Any]) -> None:
        data, checkpoint = translation
        actual = hypotheses(self.generate((data, f"{checkpoint}:{checkpoint}"), *SEARCH))  # type: ignore
        for i in translations:
            assert_same(actual[i], translations[i])

    def test_interactive(self, translation: tuple[Path, Path], translations: dict[int, Any]) -> None:
        data, checkpoint = translation
        text = ["--input", data.parent / "text" / "test.src", "--buffer-size", 10, "--max-tokens", 20]
        task = ["--task", "stack_translation", "-s", "src", "-t", "tgt", "--path", checkpoint, *SEARCH]
        actual = hypotheses(run(interactive.cli_main, data, *task, *text, *LIMITS))
        for i in translations:
            assert_same(actual[i], translations[i])

    def test_prefix_size(self, translation: tuple[Path, Path]) -> None:
        data, _ = translation
        actual = hypotheses(self.generate(translation, *SEARCH, "--prefix-size", 2))
        for i, reference in enumerate((data.parent / "text" / "test.tgt").read_text().splitlines()):
            assert {tuple(text.split()[:2]) for text, _ in actual[i]} == {tuple(reference.split()[:2])}
            if len(reference.split()) == 1:  # the prefix has EOS
                assert len(actual[i]) == 1 and actual[i][0][0] == reference

    def test_score_reference(self, translation: tuple[Path, Path]) -> None:
        data, _ = translation
        actual = hypotheses(self.generate(translation, *SEARCH, "--score-reference"))
        references = (data.parent / "text" / "test.tgt").read_text().splitlines()
        assert [actual[i][0][0] for i in range(len(references))] == references

    def test_default_is_the_search_of_fairseq(self, translation: tuple[Path, Path]) -> None:
        """It returns as many hypotheses as the beam has slots, where the paper's has fewer for some."""
        assert {len(found) for found in hypotheses(self.generate(translation)).values()} == {3}

    def test_option_that_would_be_ignored(self, translation: tuple[Path, Path]) -> None:
        with pytest.raises(ValueError, match=r"cannot be combined with: --lenpen 0\.6, --print-alignment hard"):
            self.generate(translation, *SEARCH, "--lenpen", 0.6, "--print-alignment")

    def test_unknown_search(self, translation: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as error:
            self.generate(translation, "--beam-search", "papers")
        assert error.value.code == 2
        assert "--beam-search: invalid choice: 'papers'" in capsys.readouterr().err

    def test_user_dir_in_a_new_process(
        self, server: Server, translation: tuple[Path, Path], translations: dict[int, Any], tmp_path: Path
    ) -> None:
        data, checkpoint = translation
        arguments = [data, "--path", checkpoint, "--task", "stack_translation", *LIMITS, *SEARCH]
        ending = server.run(["fairseq-generate", *map(str, arguments)], tmp_path)
        assert ending.code == 0, ending.errors
        actual = hypotheses(ending.printed.splitlines())
        for i in translations:
            assert_same(actual[i], translations[i])


@pytest.fixture(scope="module")
def language_modeling(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("language_modeling")
    write_corpus(folder / "text")
    paths = [x for split in ("train", "valid") for x in (f"--{split}pref", folder / "text" / f"{split}.src")]
    data, save = folder / "data", folder / "save"
    run(preprocess.cli_main, "--only-source", *paths, "--destdir", data)
    sizes = ["--decoder-embed-dim", 16, "--decoder-ffn-embed-dim", 16, "--decoder-layers", 1]
    sizes += ["--decoder-input-dim", 16, "--decoder-output-dim", 16, "--decoder-attention-heads", 2]
    task = ["--task", "stack_language_modeling", "--arch", "transformer_lm", "--tokens-per-sample", 20]
    task += ["--sample-break-mode", "eos"]
    run(train.cli_main, data, "--save-dir", save, *task, *sizes, *SMALL)
    return data, save / "checkpoint_best.pt"


class TestLanguageModeling:
    @pytest.mark.parametrize("add_bos", [False, True], ids=["eos", "bos"])
    def test_interactive_continues_prefixes(
        self, language_modeling: tuple[Path, Path], tmp_path: Path, add_bos: bool
    ) -> None:
        data, checkpoint = language_modeling
        lines = ["a b", "c", "a a c b"]
        (tmp_path / "prefixes").write_text("\n".join(lines) + "\n")
        options = ["--input", tmp_path / "prefixes", "--buffer-size", 10, "--batch-size", 3, *SEARCH]
        options += ["--add-bos-token"] if add_bos else []
        task_name = ["--task", "stack_language_modeling", "--path", checkpoint]
        actual = hypotheses(run(interactive.cli_main, data, *task_name, *options, *LIMITS))

        task = StackLanguageModelingTask.setup_task(StackLanguageModelingConfig(data=str(data)))
        (model,), _ = checkpoint_utils.load_model_ensemble([str(checkpoint)], task=task)
        model.eval()
        assert actual.keys() == set(range(len(lines)))
        for i, line in enumerate(lines):
            prefix = task.dictionary.encode_line(line, append_eos=False, add_if_not_exist=False).tolist()

            def next_log_probs(tokens: Tokens, prefix: list[int] = prefix) -> list[float]:
                with torch.no_grad():
                    output = model(torch.tensor([[BOS if add_bos else EOS, *tokens]]))
                log_probs = model.get_normalized_probs(output, log_probs=True)[0, -1]
                if len(tokens) < len(prefix):
                    forced = torch.full_like(log_probs, -math.inf)
                    forced[prefix[len(tokens)]] = log_probs[prefix[len(tokens)]]
                    return forced.tolist()
                return forbid(log_probs, len(tokens))

            assert_same(actual[i], expected_hypotheses(next_log_probs, task.dictionary, 3, 7))
            assert all(text.startswith(line) for text, _ in actual[i])
