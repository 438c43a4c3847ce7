"""What `import headcount as hc` offers, whatever else was imported before."""

from __future__ import annotations

from importlib import import_module

import pytest

import headcount as hc


def test_a_room_is_a_module() -> None:
    assert hc.tasks is import_module("headcount.tasks")


def test_other_names_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hc, "survey", print)
    assert hc.survey is print


def test_an_unknown_name_says_what_there_is() -> None:
    with pytest.raises(AttributeError, match="headcount has no 'surveyed'; it has Clip, Column"):
        _ = hc.surveyed  # type: ignore[attr-defined]
    assert hc.__version__
