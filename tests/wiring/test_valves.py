"""The mask of transformers 4: a number a head, for a block."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from surgery import answer
from tiny import TINY, tiny_inputs

from headcount.errors import UnknownHead, UsageError
from headcount.models.subject import Subject
from headcount.pruning.remove import prune
from headcount.records.heads import Head
from headcount.rooms.transformers4.masks import head_mask
from headcount.wiring import valve
from headcount.wiring.valves import read_scales


def run(model: torch.nn.Module) -> torch.Tensor:
    return answer(model(**tiny_inputs(model, pad=2)))  # type: ignore[arg-type]


def test_one_mask_by_layer_equals_a_valve() -> None:
    subject = Subject(TINY["bert"]())
    mask = torch.rand(2, 4, generator=torch.Generator().manual_seed(0))
    with valve(subject, mask.flatten()):
        wanted = run(subject.model)
    with head_mask(subject.model, mask):
        assert torch.equal(run(subject.model), wanted)


def test_one_mask_for_all_layers() -> None:
    model, mask = TINY["bert"](), torch.tensor([1.0, 0.0, 0.5, 1.0])
    with head_mask(model, mask):
        once = run(model)
    with head_mask(model, mask.expand(2, 4)):
        assert torch.equal(run(model), once)


def test_a_mask_for_one_of_three_stacks() -> None:
    model = TINY["marian"]()
    subject, mask = Subject(model), torch.ones(3, 4)
    mask[2, 1] = 0
    with valve(subject, {"cross.2.1": 0.0}):
        wanted = run(model)
    with head_mask(model, {"cross": mask}):
        assert torch.equal(run(model), wanted)


def test_gradients_flow_to_the_mask() -> None:
    model, mask = TINY["bert"](), torch.ones(2, 4, requires_grad=True)
    with head_mask(model, mask):
        run(model).square().sum().backward()
    assert mask.grad is not None
    assert (mask.grad != 0).all()


def test_a_small_model_is_masked_by_the_old_numbers() -> None:
    subject = Subject(TINY["bert"]())
    small = prune(subject, "enc.0.1")
    mask = torch.ones(2, 4)
    mask[0, 2] = 0
    with valve(small, {"enc.0.2": 0.0}):
        wanted = run(small.model)
    with head_mask(small, mask):
        assert torch.equal(run(small.model), wanted)


def test_no_mask_and_the_shapes_that_models_gave_a_mask_in_version_4() -> None:
    model, mask = TINY["bert"](), torch.tensor([[1.0, 0.0, 0.5, 1.0], [1.0, 1.0, 1.0, 1.0]])
    plain = run(model)
    with head_mask(model, mask):
        wanted = run(model)
    for same in (mask[:, None, :, None, None], [mask[0], None], list(mask), mask.tolist()):
        with head_mask(model, same):
            assert torch.equal(run(model), wanted)
    for none in (None, [None, None]):
        with head_mask(model, none):
            assert torch.equal(run(model), plain)


def test_a_layer_without_heads_still_has_its_row() -> None:
    small = prune(Subject(TINY["bert"]()), "enc.1")
    with head_mask(small, torch.ones(2, 4)):
        assert torch.isfinite(run(small.model)).all()
    with pytest.raises(UsageError, match="here 2 layers"), head_mask(small, torch.ones(1, 4)):
        pass


@pytest.mark.parametrize(
    ("family", "mask", "said"),
    [
        ("bert", torch.ones(3), r"here 2 layers of 4 heads, not \[3\]"),
        ("bert", torch.ones(2, 3), r"not \[2, 3\]"),
        ("bert", torch.ones(2, 5), r"not \[2, 5\]"),
        ("bert", torch.ones(3, 4), r"not \[3, 4\]"),
        ("bert", [None, None, None], r"not \[3\]"),
        ("marian", torch.ones(4), "has the stacks enc, dec, cross; give a head mask for each"),
        ("bert", {"dec": torch.ones(4)}, "has no stack 'dec'; it has enc."),
    ],
)
def test_a_wrong_mask_is_refused(family: str, mask: torch.Tensor, said: str) -> None:
    with pytest.raises(UsageError, match=said), head_mask(TINY[family](), mask):
        pass


# --- Scales -------------------------------------------------------------------------------------


HEADS = [Head("enc", 0, 0), Head("enc", 0, 1), Head("cross", 1, 0)]


@pytest.mark.parametrize(
    ("scales", "expected"),
    [
        ({}, [1, 1, 1]),
        ({"enc.0.1": 0.0}, [1, 0, 1]),
        ({Head("cross", 1, 0): 2}, [1, 1, 2]),
        ({"enc.0.0": 0.5, "cross.1.0": -1}, [0.5, 1, -1]),
        ({"enc.0.0": True}, [1, 1, 1]),
        (torch.tensor([1, 0, 3]), [1, 0, 3]),
        ({"enc.0.1": torch.tensor([0.0, 0.5])}, [[1, 0, 1], [1, 0.5, 1]]),
        ({"enc.0.1": [0, 1], "enc.0.0": 3.0}, [[3, 0, 1], [3, 1, 1]]),
        (torch.zeros(2, 3), [[0, 0, 0], [0, 0, 0]]),
    ],
)
def test_scales_in_the_order_of_the_heads(scales: Any, expected: list[Any]) -> None:
    found = read_scales(scales, HEADS)
    assert found.is_floating_point()
    assert found.tolist() == expected


def test_gradients_reach_the_values_that_were_given() -> None:
    gate = torch.tensor(0.5, requires_grad=True)
    read_scales({"enc.0.1": gate}, HEADS).sum().backward()
    assert gate.grad == 1
    scales = torch.ones(3, requires_grad=True)
    assert read_scales(scales, HEADS) is scales


@pytest.mark.parametrize(
    ("scales", "error", "message"),
    [
        (
            {"enc.0.7": 0.0},
            UnknownHead,
            r"There is no head enc\.0\.7; this model has enc\.0\.0 to enc\.0\.1, cross\.1\.0 to",
        ),
        ({"layer 3": 0.0}, UsageError, "'layer 3' is not a head's name; write stack.layer.head"),
        (
            {"enc.0.0": torch.ones(2, 2)},
            UsageError,
            r"The scale of enc\.0\.0 has shape \(2, 2\); give one number, or one a sentence of the",
        ),
        (
            torch.ones(4),
            UsageError,
            r"A tensor of scales has shape \[3\] or \[batch, 3\] for this model's 3 heads, not \(4",
        ),
        (torch.ones(1, 1, 3), UsageError, r"not \(1, 1, 3\)"),
        (torch.ones(0, 3), UsageError, r"not \(0, 3\)"),
        ({"enc.0.0": []}, UsageError, r"The scale of enc\.0\.0 has shape \(0,\); give one number"),
        ({"enc.0.0": "off"}, UsageError, r"The scale of enc\.0\.0 is 'off'; give a number"),
        ({"enc.0.0": None}, UsageError, r"The scale of enc\.0\.0 is None; give a number"),
        ([0.0, 1.0, 1.0], UsageError, r"Scales are a mapping such as .* or a tensor .* not a list"),
    ],
)
def test_what_is_no_scale(scales: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read_scales(scales, HEADS)


def test_examples_that_do_not_fit_each_other() -> None:
    with pytest.raises(UsageError, match=r"scales for 2 examples and enc\.0\.1 for 3; give"):
        read_scales({"enc.0.0": torch.ones(2), "enc.0.1": torch.ones(3)}, HEADS)
