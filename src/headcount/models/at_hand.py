"""The models that can be named shortly, and whether they are at hand."""

from __future__ import annotations

from importlib import resources
from typing import Any

from headcount.models.cache import PACKAGES, is_model, model_dir

__all__ = ["models_at_hand"]

_ABOUT = {
    "minilm": "all-MiniLM-L6-v2: BERT, 6 layers x 12 heads",
    "e5-small": "e5-small: BERT, 12 layers x 12 heads",
    "smollm2": "SmolLM2-135M-Instruct: Llama, 30 layers x 9 heads (3 KV heads)",
    "translator": "the bundled English-German translator: 6 + 6 layers x 8 heads",
}


def models_at_hand() -> list[dict[str, Any]]:
    """Each short name with what it is, whether it is here, and how to get it otherwise."""
    rows = [
        {
            "name": name,
            "about": _ABOUT[name],
            "here": is_model(model_dir(name)),
            "how": f"make models (package {package})",
        }
        for name, package in PACKAGES.items()
    ]
    if _has_translator():
        rows.insert(
            0, {"name": "translator", "about": _ABOUT["translator"], "here": True, "how": ""}
        )
    return rows


def _has_translator() -> bool:
    return resources.files("headcount.bundle").joinpath("translator", "config.json").is_file()
