"""Checkpoints of untrained models."""

from __future__ import annotations

from pathlib import Path


def write_translation_model(data: Path, checkpoint: Path, layers: str, *options_of_model: str) -> None:
    """A checkpoint of an untrained translation model with the symbols w0 and w1, as fairseq writes it."""
    from fairseq import checkpoint_utils, options
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf
    from fairseq.tasks import setup_task
    from omegaconf import OmegaConf

    import fairseq_stack.models  # noqa: F401  (registers the architectures)

    data.mkdir()
    for language in ("de", "en"):
        (data / f"dict.{language}.txt").write_text("w0 1\nw1 1\n", encoding="utf-8")
    sizes = [
        f"--{side}-{what}={value}"
        for side in ("encoder", "decoder")
        for what, value in {"embed-dim": 8, "ffn-embed-dim": 8, "attention-heads": 2}.items()
    ]
    flags = [
        f"--stack-encoder-layers={layers}",
        f"--stack-decoder-layers={layers}",
        "--stack-init=fairseq",
        *sizes,
        *options_of_model,
    ]
    languages = ["--source-lang", "de", "--target-lang", "en"]
    parser = options.get_training_parser(default_task="translation")
    arguments = [str(data), "--task", "translation", *languages, "--arch", "stack_transformer_nd_small", *flags]
    cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, arguments))
    model = setup_task(cfg.task).build_model(cfg.model)
    state = {
        "args": None,
        "cfg": OmegaConf.to_container(OmegaConf.create(cfg)),
        "model": model.state_dict(),
        "optimizer_history": [{"optimizer_name": "FairseqAdam", "lr_scheduler_state": {}, "num_updates": 0}],
        "extra_state": {"train_iterator": {}},
    }
    checkpoint_utils.torch_persistent_save(state, str(checkpoint))
