"""A file of scripts/ as a module: the folder is no package."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

__all__ = ["script"]


def script(name: str) -> Any:
    """The script of that name, run once."""
    file = Path(__file__).parents[1] / "scripts" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"{name}_script", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
