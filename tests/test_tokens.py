"""Tokens are shown so that nothing is invisible and nothing moves the text around."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.records.rendering import visible_token


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        ("rain", "rain"),
        ("##ing", "##ing"),
        ("▁the", "▁the"),
        ("Ġthe", "Ġthe"),
        ("", "∅"),
        (" a", "␣a"),
        ("\n", "↵"),
        ("\t\r", "⇥␍"),
        ("\x1b[2J", "⟨001b⟩[2J"),
        ("a\u202eb", "a⟨202e⟩b"),
        ("\u200b", "⟨200b⟩"),
        ("\u00a0", "⟨00a0⟩"),
        ("\ud800", "⟨d800⟩"),
        ("🙂", "🙂"),
        ("שלום", "שלום"),
        ("é", "é"),
    ],
)
def test_tokens_as_people_see_them(token: str, shown: str) -> None:
    assert visible_token(token) == shown


@given(st.text())
def test_nothing_shown_is_invisible_or_commands_the_terminal(token: str) -> None:
    shown = visible_token(token)
    assert shown
    assert all(unicodedata.category(sign)[0] not in "CZ" for sign in shown)
