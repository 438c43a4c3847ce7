"""How the page looks: the colours and glyphs of roles, and the colours of values.

A role has one colour for light paper, one for dark, and one glyph; they stand in its `Kind`.

Colours are found by ``scripts/role_colours.py``, which keeps them apart for all kinds of sight; the
glyph keeps roles apart without any colour. Roles that are not here are drawn as ``other``.
"""

from __future__ import annotations

import json
from importlib.resources import files

from headcount.surveys.roles import KINDS, Kind

# --- How a role looks ---------------------------------------------------------------------------


def asset(name: str) -> str:
    """A file of the page: its template, a script, a style sheet."""
    return (files("headcount.reports") / "assets" / name).read_text(encoding="utf-8")


#: The relations of Universal Dependencies in a few words.
UD = json.loads(asset("relations.json"))

#: What a head without a role looks like.
NONE = Kind(
    "none",
    "no test fired",
    says="observation",
    sign="·",
    light="#8d9098",
    dark="#7d818b",
    glyph="M9.7 8A1.7 1.7 0 1 1 6.3 8 1.7 1.7 0 1 1 9.7 8Z",
    solid=True,
)


def looks() -> dict[str, Kind]:
    """Every role that is there in the order in which people read them, then none."""
    return {**KINDS, "none": NONE}


def first_roles() -> list[str]:
    """The order in which a head's first role is chosen, the one that it is counted by everywhere.

    What it does comes before where it looks (`with_roles` goes by the same).
    """
    return sorted(KINDS, key=lambda role: KINDS[role].rests)


def terminal_signs() -> dict[str, tuple[str, str]]:
    """A role's sign and, of its two colours, the one that is seen on black and on white alike.

    >>> terminal_signs()["sink"]
    ('↧', '#a0572a')
    """

    def seen(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        light = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
        shine = 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2]  # WCAG 2.2
        return min((shine + 0.05) / 0.05, 1.05 / (shine + 0.05))

    return {
        role: (look.sign, max(look.light, look.dark, key=seen)) for role, look in looks().items()
    }


def role_css() -> str:
    """The colours as custom properties, and one class a role.

    >>> ".r-sink{color:var(--r-sink)}" in role_css()
    True
    """
    light, dark = (
        "".join(f"--r-{role}:{getattr(look, theme)};" for role, look in looks().items())
        for theme in ("light", "dark")
    )
    classes = "".join(f".r-{role}{{color:var(--r-{role})}}" for role in looks())
    return f":root{{{light}}}\n:root[data-theme=dark]{{{dark}}}\n{classes}\n"


# --- The colours of values ------------------------------------------------------------------------


def ramps() -> dict[str, dict[str, list[list[int]]]]:
    """Red, green and blue of each stop: `up` from nothing to much, `both` from below 0 to above.

    ``scripts/ramp_colours.py`` makes them, evenly spaced in OKLCH with monotone lightness.

    >>> ramps()["light"]["up"][0], ramps()["dark"]["up"][-1]
    ([248, 245, 235], [248, 244, 177])
    """
    return dict(json.loads(asset("ramps.json")))
