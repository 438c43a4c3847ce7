"""Checkpoints that are whole or not there: a digest written last says that one is complete."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import safetensors.torch
from torch import Tensor

from headcount.records.files import write_bytes

__all__ = ["load_last", "save"]

_KEPT = 2


def save(folder: Path, step: int, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
    """Write the tensors aside, then the state with their digest; then drop the oldest ones."""
    folder.mkdir(parents=True, exist_ok=True)
    copies = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    data = safetensors.torch.save(copies)
    note = {**state, "step": step, "sha256": hashlib.sha256(data).hexdigest()}
    write_bytes(folder / f"step-{step:08d}.safetensors", data)
    write_bytes(folder / f"step-{step:08d}.json", json.dumps(note).encode())
    for note_path in _notes(folder)[_KEPT:]:
        note_path.unlink()
        note_path.with_suffix(".safetensors").unlink(missing_ok=True)


def load_last(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """The newest whole checkpoint, or None; broken ones are named and passed over."""
    for path in _notes(folder):
        try:
            return _load(path)
        except (OSError, ValueError) as error:
            print(f"{path.stem} is not whole ({error}); looking for the one before it", flush=True)
    return None


def _notes(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-*.json"), reverse=True)


def _load(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    state = json.loads(path.read_bytes())
    data = path.with_suffix(".safetensors").read_bytes()
    if hashlib.sha256(data).hexdigest() != state["sha256"]:
        raise ValueError("its digest does not match")
    return safetensors.torch.load(data), state
