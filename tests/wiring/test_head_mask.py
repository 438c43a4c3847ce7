"""The mask of transformers 4: a number a head, for a block."""

from __future__ import annotations

import pytest
import torch
from surgery import answer
from tiny import TINY, tiny_inputs

from headcount.errors import UsageError
from headcount.models.subject import Subject
from headcount.pruning.remove import prune
from headcount.wiring import valve
from headcount.wiring.valves import head_mask


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
