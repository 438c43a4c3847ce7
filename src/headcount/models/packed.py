"""A folder whose weights are packed in int8, as the bundled translator's are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import GenerationConfig, PreTrainedModel

from headcount.bundle.packed import unpacked

__all__ = ["open_packed"]


def open_packed(
    folder: Path, model_class: Any, config: Any, how: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """The model with its weights unpacked, and what transformers says of their names."""
    concrete = _concrete(model_class, config)
    weights = unpacked(folder)
    model, info = concrete.from_pretrained(None, config=config, state_dict=weights, **how)
    if (folder / "generation_config.json").is_file():
        model.generation_config = GenerationConfig.from_pretrained(folder)
    return model, info


def _concrete(model_class: Any, config: Any) -> Any:
    """The class behind an Auto class, which itself takes no weights from memory."""
    if issubclass(model_class, PreTrainedModel):
        return model_class
    return type(model_class.from_config(config))
