"""Every role has a colour and a glyph, and no two look alike to anybody."""

from __future__ import annotations

from io import StringIO
from itertools import combinations
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console
from scripts_of import script

from headcount.records import Head
from headcount.reports.parts.look import looks, ramps, terminal_signs
from headcount.reports.parts.verdicts import kind_part
from headcount.surveys.roles.role import KINDS, RolesText, Verdict

NAMED = [role for role in looks() if role not in ("none", "other")]


@pytest.fixture(scope="module")
def colours() -> Any:
    return script("role_colours")


def test_the_page_knows_exactly_the_roles_that_are_there() -> None:
    assert [role for role in looks() if role != "none"] == list(KINDS)
    assert [kind["id"] for kind in kind_part()] == list(looks())


def test_glyphs_and_titles_are_all_different() -> None:
    assert len({look.glyph for look in looks().values()}) == len(looks())
    assert len({look.title for look in looks().values()}) == len(looks())


def test_a_role_is_called_the_same_on_the_page_and_in_the_terminal() -> None:
    assert {kind["id"]: kind["title"].lower() for kind in kind_part()} == {
        role: "no role found" if role == "none" else role for role in looks()
    }


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_stand_out_from_the_paper(colours: Any, theme: str) -> None:
    ground = colours.linear(colours.GROUND[theme])
    for role in NAMED:
        assert colours.contrast(colours.linear(getattr(looks()[role], theme)), ground) >= 4.1, role


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_are_apart_for_every_kind_of_sight(colours: Any, theme: str) -> None:
    seen = {role: colours.seen(colours.linear(getattr(looks()[role], theme))) for role in NAMED}
    worst = min(colours.distance(seen[a], seen[b]) for a, b in combinations(NAMED, 2))
    first = ["positional", "syntactic", "sink", "feature"]
    assert worst >= 0.02
    assert min(colours.distance(seen[a], seen[b]) for a, b in combinations(first, 2)) >= 0.06


def test_every_role_has_a_sign_of_its_own_that_a_terminal_shows() -> None:
    """One column wide, and seen on black and on white."""
    found = terminal_signs()
    assert list(found) == list(looks())
    signs = [sign for sign, _ in found.values()]
    assert len(set(signs)) == len(signs)
    assert {cell_len(sign) for sign in signs} == {1}
    for role, (_, colour) in found.items():
        assert colour in (looks()[role].light, looks()[role].dark)


def test_a_terminal_shows_the_signs_of_the_page() -> None:
    verdict = Verdict(Head("enc", 0, 1), "sink", "first token", 0.9, 0.8, 0.95, 100)
    written = StringIO()
    Console(width=90, file=written).print(RolesText([verdict], 4, "made", signs=terminal_signs()))
    assert f"{looks()['sink'].sign} sink · " in written.getvalue()


def test_the_colours_of_values_are_those_of_their_script() -> None:
    assert ramps() == script("ramp_colours").ramps()
