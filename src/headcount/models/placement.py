"""Where a model is put and in which numbers: the words of ``--device`` and ``--dtype``."""

from __future__ import annotations

import torch

from headcount.errors import UsageError

__all__ = ["DEVICES", "DTYPES", "pick_device", "pick_dtype"]

DEVICES = ("auto", "cpu", "cuda", "mps")
DTYPES = ("auto", "float32", "bfloat16", "float16", "float64")


def pick_device(wanted: str | torch.device) -> torch.device:
    """The device for a word: ``auto`` takes a CUDA device, else Apple's, else the CPU.

    >>> pick_device("cpu")
    device(type='cpu')
    """
    if str(wanted) == "auto":
        return torch.device(_available()[-1])
    try:
        device = torch.device(wanted)
    except RuntimeError:
        raise UsageError(f"There is no device '{wanted}'; allowed: {_words()}.") from None
    _check_there(device)
    return device


def pick_dtype(wanted: str | torch.dtype, device: torch.device) -> torch.dtype | str:
    """The type for a word: ``auto`` is float32 on the CPU, the checkpoint's own elsewhere.

    >>> pick_dtype("auto", torch.device("cpu"))
    torch.float32
    """
    word = str(wanted).removeprefix("torch.")
    if word not in DTYPES:
        raise UsageError(f"There is no dtype '{wanted}'; allowed: {', '.join(DTYPES)}.")
    if word == "auto":
        return torch.float32 if device.type == "cpu" else "auto"
    chosen: torch.dtype = getattr(torch, word)
    return chosen


def _available() -> list[str]:
    """The kinds of device that this machine has, the best one last."""
    there = {"mps": torch.backends.mps.is_available(), "cuda": torch.cuda.is_available()}
    return ["cpu", *(kind for kind, present in there.items() if present)]


def _check_there(device: torch.device) -> None:
    """Raise unless this machine has the device."""
    known = device.type in _available()
    counted = device.type != "cuda" or (device.index or 0) < torch.cuda.device_count()
    if not (known and counted):
        raise UsageError(f"This machine has no device '{device}'; allowed: {_words()}.")


def _words() -> str:
    """The device words that work on this machine."""
    return ", ".join(["auto", *_available()])
