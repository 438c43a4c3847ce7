"""The call of transformers 4: in place, by layer."""

from __future__ import annotations

import re

import pytest
import torch
from surgery import answer
from tiny import TINY, tiny_inputs

from headcount.errors import UnknownHead, UsageError
from headcount.models.subject import Subject
from headcount.pruning.remove import prune, prune_heads


def test_the_model_itself_is_cut() -> None:
    model, twin = TINY["bert"](), TINY["bert"]()
    assert prune_heads(model, {0: [1, 2], 1: [3]}) is model
    small = prune(Subject(twin), "enc.0.1-2,enc.1.3")
    inputs = tiny_inputs(model, pad=2)
    with torch.no_grad():
        assert torch.equal(answer(model(**inputs)), answer(small.model(**inputs)))
    assert Subject(model).heads == small.heads


def test_numbers_stay_when_heads_are_removed_again() -> None:
    model = prune_heads(prune_heads(TINY["bert"](), {0: [1]}), {0: [3]})
    assert [head.index for head in Subject(model).heads if head.layer == 0] == [0, 2]


def test_a_head_that_is_gone_is_told_with_what_its_layer_has() -> None:
    model = prune_heads(TINY["bert"](), {"0": {1}})  # as JSON writes it
    with pytest.raises(UnknownHead, match=r"no head enc\.0\.1; enc\.0 has the heads 0, 2, 3\."):
        prune_heads(model, {0: [1]})


def test_three_stacks() -> None:
    model = prune_heads(TINY["t5"](), {"enc": {0: [1]}, "cross": {2: [0, 3]}})
    assert len(Subject(model).heads) == 4 * (2 + 3 + 3) - 3


def test_a_refusal_leaves_the_model_alone() -> None:
    model = TINY["llama"]()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(UsageError, match="cannot go alone"):
        prune_heads(model, {0: [1]})
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not hasattr(model.config, "headcount")


@pytest.mark.parametrize(
    ("family", "heads", "said"),
    [
        ("marian", {0: [1]}, "The model has the stacks enc, dec, cross; say which is meant"),
        ("bert", {0: 1}, "{0: 1} is no mapping of layers to heads; write it as {0: [1, 2]}."),
        ("bert", ["enc.0.1"], "prune_heads takes layers with their heads, {0: [1, 2]}, not"),
        ("bert", {"encoder": {0: [1]}}, "There is no stack 'encoder'; stacks are enc, dec, cross."),
        ("bert", {0: [7]}, "There is no head enc.0.7"),
        ("bert", {"dec": {0: [1]}}, "There is no head dec.0.1"),
    ],
)
def test_wrong_heads_are_refused(family: str, heads: dict[object, object], said: str) -> None:
    with pytest.raises((UsageError, UnknownHead), match=re.escape(said)):
        prune_heads(TINY[family](), heads)  # type: ignore[arg-type]


def test_a_config_that_another_model_has_marked_is_started_anew() -> None:
    config = prune_heads(TINY["bert"](), {0: [1]}).config
    with pytest.warns(UserWarning, match="numbered afresh"):
        small = prune(Subject(type(TINY["bert"]())(config).eval()), "enc.1.0")
    assert small.model.config.headcount["heads"] == {"enc.0": [0, 1, 2, 3], "enc.1": [1, 2, 3]}
    assert len(small.heads) == 7
