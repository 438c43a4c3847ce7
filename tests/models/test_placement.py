"""Devices and dtypes: the words that are allowed, and what auto means."""

from __future__ import annotations

import pytest
import torch

from headcount.errors import UsageError
from headcount.models.load import pick_device, pick_dtype


def machine(monkeypatch: pytest.MonkeyPatch, cuda: int, mps: bool) -> None:
    """Pretend that this machine has so many CUDA devices, and Apple's or not."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)


@pytest.mark.parametrize(
    ("cuda", "mps", "best"),
    [(0, False, "cpu"), (0, True, "mps"), (2, False, "cuda"), (1, True, "cuda")],
)
def test_auto_takes_the_best(
    cuda: int, mps: bool, best: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(monkeypatch, cuda, mps)
    assert pick_device("auto").type == best


def test_a_device_may_be_numbered(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, 2, mps=False)
    assert pick_device("cuda:1") == torch.device("cuda", 1)
    with pytest.raises(UsageError, match="no device 'cuda:2'; allowed: auto, cpu, cuda"):
        pick_device("cuda:2")


@pytest.mark.parametrize("word", ["gpu", "cuda", "mps", "meta", "", "cpu:x"])
def test_what_is_not_there_is_refused(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, 0, mps=False)
    with pytest.raises(UsageError, match=rf"no device '{word}'; allowed: auto, cpu\."):
        pick_device(word)


def test_auto_dtype_depends_on_the_device() -> None:
    assert pick_dtype("auto", torch.device("cpu")) == torch.float32
    assert pick_dtype("auto", torch.device("cuda")) == "auto"


@pytest.mark.parametrize("word", ["bfloat16", torch.bfloat16, "torch.bfloat16"])
def test_a_dtype_may_be_a_word_or_the_thing(word: str | torch.dtype) -> None:
    assert pick_dtype(word, torch.device("cpu")) == torch.bfloat16


@pytest.mark.parametrize("word", ["half", "int8", torch.int64])
def test_other_dtypes_are_refused(word: str | torch.dtype) -> None:
    with pytest.raises(UsageError, match="allowed: auto, float32, bfloat16, float16, float64"):
        pick_dtype(word, torch.device("cpu"))
