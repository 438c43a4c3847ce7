"""A model for a worker in another process: a copy, read again, or spread over devices."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from subjects import save, subject_of

import headcount as hc
from headcount.errors import ModelError
from headcount.models import Subject
from headcount.rooms.ray import engine as module
from headcount.rooms.ray.engine import carried, spread_over


def pack(thing: object) -> Callable[[], Any]:
    """As an engine of other processes, with a plain pickle in between."""
    packed = pickle.dumps(thing)
    return lambda: pickle.loads(packed)


def test_elsewhere_it_is_a_copy() -> None:
    subject = subject_of("bert", "wordpiece")
    copy = carried(subject, pack)()
    assert copy is not subject
    assert copy.weights_hash == subject.weights_hash
    texts = ["The cat sat.", "It rained on the mat."]
    assert hc.survey(copy, texts).frame.equals(hc.survey(subject, texts).frame)


def test_a_large_model_is_read_again_and_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SENT", 0)
    folder = save(tmp_path / "model", "bert", "wordpiece")
    subject = hc.load(folder, device="cpu")
    there = carried(subject, pack)
    assert there().weights_hash == subject.weights_hash
    other = hc.load(folder, device="cpu")
    other.model.pooler.dense.bias.data += 1
    other.model.save_pretrained(folder)
    with pytest.raises(ModelError, match="has other weights where a worker reads it"):
        there()


def test_a_worker_without_its_gpus_says_so() -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(ModelError, match=r"was given 1 GPUs and torch sees none there; install"):
        carried(subject_of("bert", "wordpiece"), pack, 1)()


def test_a_device_map_changes_no_number_and_refuses_what_does_not_fit() -> None:
    subject: Subject = subject_of("bert", "wordpiece")
    before = hc.survey(subject, ["The cat sat."]).frame
    spread_over(subject, {"cpu": "1GB"})
    assert hc.survey(subject, ["The cat sat."]).frame.equals(before)
    with pytest.raises(ModelError, match="does not fit into the devices of a worker; give it more"):
        spread_over(subject_of("bert", "wordpiece"), {"cpu": 10})
