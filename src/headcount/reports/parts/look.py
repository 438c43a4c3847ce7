"""How the page looks: the colours and glyphs of roles, and the colours of values.

A role has one colour for light paper, one for dark, and one glyph; they stand in its `Kind`.

Colours are found by ``scripts/role_colours.py``, which keeps them apart for all kinds of sight; the
glyph keeps roles apart without any colour. Roles that are not here are drawn as ``other``.
"""

from __future__ import annotations

import json
import math
from importlib.resources import files
from itertools import pairwise

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


# --- The colours of values, in OKLCH with monotone lightness ------------------------------------
# ``up`` runs from nothing to much, ``both`` from far below 0 over grey to far above. Each has a
# light and a dark form, as evenly spaced stops between which the page mixes.

Stop = tuple[float, float, float, float]

_STEPS = 24
#: Place, lightness, chroma, hue.
_UP: dict[str, list[Stop]] = {
    "light": [
        (0, 0.97, 0.014, 95),
        (0.3, 0.86, 0.055, 175),
        (0.65, 0.60, 0.105, 235),
        (1, 0.31, 0.12, 272),
    ],
    "dark": [
        (0, 0.245, 0.018, 262),
        (0.35, 0.42, 0.10, 268),
        (0.7, 0.68, 0.12, 215),
        (1, 0.955, 0.085, 105),
    ],
}
_BELOW: dict[str, list[Stop]] = {
    "light": [(0, 0.955, 0.006, 45), (1, 0.50, 0.14, 45)],
    "dark": [(0, 0.27, 0.008, 62), (1, 0.76, 0.14, 62)],
}
_ABOVE: dict[str, list[Stop]] = {
    "light": [(0, 0.955, 0.006, 258), (1, 0.38, 0.14, 262)],
    "dark": [(0, 0.27, 0.008, 235), (1, 0.80, 0.11, 235)],
}


def ramps() -> dict[str, dict[str, list[list[int]]]]:
    """Red, green and blue, 0 to 255, of each stop.

    >>> ramps()["light"]["up"][0], ramps()["dark"]["up"][-1]
    ([248, 245, 235], [248, 244, 177])
    """
    places = [step / _STEPS for step in range(_STEPS + 1)]
    return {
        theme: {
            "up": [_between(_UP[theme], place) for place in places],
            "both": [
                *(_between(_BELOW[theme], place) for place in reversed(places[1:])),
                *(_between(_ABOVE[theme], place) for place in places),
            ],
        }
        for theme in ("light", "dark")
    }


def _between(stops: list[Stop], place: float) -> list[int]:
    """The colour at a place, mixed from the stops on both sides."""
    low, high = next((low, high) for low, high in pairwise(stops) if place <= high[0])
    share = (place - low[0]) / (high[0] - low[0])
    return _rgb(*(a + share * (b - a) for a, b in zip(low[1:], high[1:], strict=True)))


def _rgb(lightness: float, chroma: float, hue: float) -> list[int]:
    """sRGB of an OKLCH colour (Ottosson 2020), cut to what a screen can show."""
    a, b = (chroma * turn(math.radians(hue)) for turn in (math.cos, math.sin))
    long, middle, short = (
        (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3,
        (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3,
        (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3,
    )
    linear = (
        4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * middle + 1.7076147010 * short,
    )
    return [round(255 * min(1, max(0, _coded(value)))) for value in linear]


def _coded(value: float) -> float:
    return 12.92 * value if value <= 0.0031308 else 1.055 * value ** (1 / 2.4) - 0.055
