"""The backflow: head outputs with their gradients, and a model that is as before."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from surgery import answer
from tiny import INTERFACE, tiny_inputs
from torch import Tensor

from headcount.models.site import Site
from headcount.models.subject import Subject
from headcount.wiring.gradients import backflow


def subject_of(family: str) -> Subject:
    return Subject(INTERFACE[family](), name=family)


@pytest.mark.parametrize("family", ["bert", "albert", "t5", "marian"])
def test_every_site_is_shown_once_with_its_shape(family: str) -> None:
    subject = subject_of(family)
    shown: list[tuple[Site, torch.Size, torch.Size]] = []
    inputs = tiny_inputs(subject.model)
    with backflow(subject, lambda site, o, g: shown.append((site, o.shape, g.shape))) as flow:
        flow.backward(answer(subject.model(**inputs)).square().sum())
    assert {site for site, *_ in shown} == set(subject.anatomy.sites)
    assert len(shown) == len(subject.anatomy.sites)
    for site, output, gradient in shown:
        assert output == gradient
        assert (output[0], *output[2:]) == (2, site.heads, site.head_dim)


def test_the_forward_is_the_plain_one() -> None:
    subject = subject_of("bert")
    inputs = tiny_inputs(subject.model, pad=2)
    with torch.no_grad():
        plain = answer(subject.model(**inputs))
    with backflow(subject, lambda *_: None):
        assert torch.equal(answer(subject.model(**inputs)).detach(), plain)


def test_a_forward_without_a_backward_is_forgotten() -> None:
    subject = subject_of("bert")
    shown: list[Tensor] = []
    inputs = tiny_inputs(subject.model)
    with backflow(subject, lambda site, o, g: shown.append(g)) as flow:
        subject.model(**inputs)
        flow.backward(answer(subject.model(**inputs)).sum())
        assert len(shown) == len(subject.anatomy.sites)


def test_nothing_is_kept_after_a_batch() -> None:
    subject = subject_of("bert")
    outputs: list[weakref.ref[Tensor]] = []
    with backflow(subject, lambda site, o, g: outputs.append(weakref.ref(o))) as flow:
        gc.disable()  # a cycle would hide behind the collector
        try:
            flow.backward(answer(subject.model(**tiny_inputs(subject.model))).sum())
            assert outputs
            assert all(output() is None for output in outputs)
        finally:
            gc.enable()
