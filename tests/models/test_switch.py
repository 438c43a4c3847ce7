"""Attention renamed for a block, and given back its own name in whatever order blocks end."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from tiny import TINY
from transformers import AttentionInterface

from headcount.errors import UnsupportedModel
from headcount.models import switch
from headcount.models.switch import attention_configs, register, switched


def names(model: object) -> set[str | None]:
    return {config._attn_implementation for config in attention_configs(model)}


def test_the_last_block_to_end_gives_the_own_name_back() -> None:
    model = TINY["t5"]()
    (own,) = names(model)
    first, second = ExitStack(), ExitStack()
    first.enter_context(switched(model, lambda name: f"a-{name}"))
    second.enter_context(switched(model, lambda name: f"b-{name}"))
    assert names(model) == {f"b-a-{own}"}
    first.close()
    assert names(model) == {f"b-{own}"}
    second.close()
    assert names(model) == {own}
    assert not switch._RENAMED


def test_a_rename_that_fails_changes_nothing() -> None:
    model = TINY["t5"]()
    before, seen = names(model), []

    def fail_second(name: str) -> str:
        seen.append(name)
        if len(seen) > 1:
            raise LookupError(name)
        return "changed"

    with pytest.raises(LookupError), switched(model, fail_second):
        pass
    assert names(model) == before
    assert not switch._RENAMED


def test_an_implementation_without_a_mask_function_is_refused() -> None:
    message = "The attention implementation 'mine' has no mask function"
    with pytest.raises(UnsupportedModel, match=message):
        register("headcount-mine", lambda *_: (None, None), mask_like="mine")
    assert "headcount-mine" not in AttentionInterface()
