"""What `import headcount as hc` offers, whatever else was imported before."""

from __future__ import annotations

from importlib import import_module
from types import FunctionType, ModuleType

import pytest

import headcount as hc


@pytest.mark.parametrize("name", ["survey", "compare", "report"])
def test_a_module_never_hides_the_verb_of_its_name(name: str) -> None:
    module = import_module(f"headcount.{name}")
    vars(hc).pop(name, None)  # as before its first use
    setattr(
        hc, name, module
    )  # as Python does after the first import of the package headcount.survey
    assert isinstance(getattr(hc, name), FunctionType)
    assert isinstance(import_module(f"headcount.{name}"), ModuleType)


def test_a_room_is_a_module() -> None:
    assert hc.tasks is import_module("headcount.tasks")


def test_other_names_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hc, "survey", print)
    assert hc.survey is print


def test_an_unknown_name_says_what_there_is() -> None:
    with pytest.raises(AttributeError, match="headcount has no 'surveys'; it has Column, Head"):
        _ = hc.surveys  # type: ignore[attr-defined]
    assert hc.__version__
