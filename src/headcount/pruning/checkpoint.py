"""A checkpoint of training: weights, gates, what Adam remembers and where the texts stand.

One safetensors file, replaced in one step: whenever the process is killed, the file is whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from headcount.atomic import write_bytes
from headcount.errors import RunError
from headcount.exact_json import decode, encode

__all__ = ["FILE", "Checkpoint", "pack_adam", "unpack_adam"]

FILE = "training.safetensors"
_KEY = "headcount"


class Checkpoint:
    """The file of one training run; `fingerprint` is what must be the same to go on."""

    def __init__(self, folder: str | Path, fingerprint: Mapping[str, Any]) -> None:
        self.path = Path(folder) / FILE
        self.fingerprint = decode(encode(fingerprint))

    def read(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Tensors and the rest, or None where nothing was saved yet."""
        if not self.path.exists():
            return None
        try:
            with safetensors.safe_open(self.path, framework="pt") as file:
                told = decode(file.metadata()[_KEY])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  a file is no dict
        except (OSError, KeyError, TypeError, ValueError, safetensors.SafetensorError) as error:
            raise RunError(
                f"{self.path} is not a checkpoint that headcount wrote; delete it to begin "
                "afresh, or choose another folder."
            ) from error
        self._check(told["fingerprint"])
        return tensors, told

    def write(self, tensors: Mapping[str, Tensor], told: Mapping[str, Any]) -> None:
        """Put everything on the disk; the old file stays whole until then."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        here = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        meta = {_KEY: encode({**told, "fingerprint": self.fingerprint})}
        write_bytes(self.path, safetensors.torch.save(here, meta))

    def _check(self, before: Mapping[str, Any]) -> None:
        """Refuse to go on with something else: name what differs, and both values."""
        for key in [*before, *(key for key in self.fingerprint if key not in before)]:
            was, now = before.get(key), self.fingerprint.get(key)
            if encode(was, sort_keys=True) != encode(now, sort_keys=True):
                raise RunError(
                    f"{self.path} was begun with {key} = {_short(was)}, and now {key} = "
                    f"{_short(now)}; train as before to go on, choose another folder, or delete "
                    "that file to begin afresh."
                )


def pack_adam(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """What an optimiser remembers of each weight, by the weight's place."""
    return {
        f"adam.{place}.{what}": value
        for place, weight in enumerate(_weights(optimizer))
        for what, value in optimizer.state.get(weight, {}).items()
    }


def unpack_adam(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Give an optimiser its memory back."""
    weights = _weights(optimizer)
    for name, value in tensors.items():
        kind, _, rest = name.partition(".")
        if kind != "adam":
            continue
        place, what = rest.split(".")
        weight = weights[int(place)]
        # Adam counts its steps on the CPU.
        kept = value if what == "step" else value.to(weight.device)
        optimizer.state[weight][what] = kept


def _weights(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [weight for group in optimizer.param_groups for weight in group["params"]]


def _short(value: Any) -> str:
    told = encode(value)
    return told if len(told) <= 80 else f"{told[:77]}..."
