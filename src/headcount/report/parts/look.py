"""How a role looks: one colour for light paper, one for dark, and one glyph, for the closed list.

Colours are found by ``scripts/role_colours.py``, which keeps them apart for all kinds of sight; the
glyph tells roles apart without any colour. Roles outside the list are drawn as ``other``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

# --- How a role looks ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Look:
    """A role's words and signs on a page.

    `glyph` is an SVG path in a box of 16; it is filled where `solid`, else drawn as a line.
    """

    title: str
    meaning: str
    light: str
    dark: str
    glyph: str
    solid: bool = False


#: Every role of the toolkit in the order in which people read them, then the rest.
LOOKS: dict[str, Look] = {
    "positional": Look(
        "Positional", "points to one offset", "#12419b", "#4ba9fb", "M13 2.5 2.5 8 13 13.5Z", True
    ),
    "syntactic": Look(
        "Syntactic",
        "points along a dependency",
        "#03875a",
        "#90f4ab",
        "M2.5 12C2.5 1.5 13.5 1.5 13.5 11M10.4 8.9 13.5 12.2 16 8.8",
    ),
    "rare": Look(
        "Rare",
        "points to the rarest token",
        "#857a06",
        "#cdd13e",
        "M8 1 10 6 15 6.4 11.2 9.7 12.4 15 8 12.1 3.6 15 4.8 9.7 1 6.4 6 6Z",
        True,
    ),
    "coreference": Look(
        "Coreference",
        "points to an antecedent",
        "#7864d7",
        "#ccfaed",
        "M6 11A3.6 3.6 0 1 1 6 5M10 5A3.6 3.6 0 1 1 10 11M5.5 8H10.5",
    ),
    "argument": Look(
        "Argument",
        "links predicate and argument",
        "#534627",
        "#778666",
        "M2.5 8H13.5M3 4.5V11.5M13 4.5V11.5",
    ),
    "feature": Look(
        "Feature",
        "looks at one kind of word",
        "#c23e95",
        "#f5a0c5",
        "M8 1.5 14.5 8 8 14.5 1.5 8Z",
        True,
    ),
    "separator": Look("Separator", "rests on separators", "#057ea9", "#55d0f2", "M5 2V14M11 2V14"),
    "punctuation": Look(
        "Punctuation",
        "looks at punctuation",
        "#6a6679",
        "#9dce86",
        "M5.5 3V8.5M5.5 12.6V12.7M11 3V8.5M11 12.5Q11 14 9.4 14.8",
    ),
    "broad": Look(
        "Broad",
        "spreads over the whole text",
        "#843172",
        "#bb6ea6",
        "M13.2 8A5.2 5.2 0 1 1 2.8 8 5.2 5.2 0 1 1 13.2 8Z",
    ),
    "sink": Look(
        "Sink",
        "rests on the first token",
        "#a0572a",
        "#ed9225",
        "M8 1.5V10M4.4 6.8 8 10.6 11.6 6.8M2.5 14.2H13.5",
    ),
    "previous": Look(
        "Previous",
        "looks at the token before",
        "#261d6c",
        "#5594cf",
        "M12.5 3 7.5 8 12.5 13M7 3 2 8 7 13",
    ),
    "duplicate": Look(
        "Duplicate",
        "looks at the same token earlier",
        "#6e5853",
        "#b0a491",
        "M2 6H10V14H2ZM6 6V2H14V10H10",
    ),
    "induction": Look(
        "Induction",
        "looks at what followed last time",
        "#3d290e",
        "#f2fa46",
        "M13 9.5A5.2 5.2 0 1 1 11.5 4.2M12 1V4.8H8.2",
    ),
    "retrieval": Look(
        "Retrieval",
        "copies from far back",
        "#5b0643",
        "#c0dcde",
        "M6.6 11.2A4.6 4.6 0 1 1 6.7 11.2M10 10 14.5 14.5",
    ),
    "alignment": Look(
        "Alignment",
        "points to the word's translation",
        "#694ccd",
        "#6e6bed",
        "M2 4H14M2 12H14M5 4 11 12",
    ),
    "source-end": Look(
        "Source-end",
        "rests on the end of the source",
        "#6c2448",
        "#da452c",
        "M2 8H10.5M7 4.4 10.8 8 7 11.6M14 2.5V13.5",
    ),
    "other": Look("Other", "told by its label", "#1b1d22", "#ece9e2", "M3 3 13 13M13 3 3 13"),
    "none": Look(
        "No role found",
        "no test fired",
        "#8d9098",
        "#7d818b",
        "M9.7 8A1.7 1.7 0 1 1 6.3 8 1.7 1.7 0 1 1 9.7 8Z",
        True,
    ),
}


def role_css() -> str:
    """The colours as custom properties, and one class a role.

    >>> ".r-sink{color:var(--r-sink)}" in role_css()
    True
    """
    light, dark = (
        "".join(f"--r-{role}:{getattr(look, theme)};" for role, look in LOOKS.items())
        for theme in ("light", "dark")
    )
    classes = "".join(f".r-{role}{{color:var(--r-{role})}}" for role in LOOKS)
    return f":root{{{light}}}\n:root[data-theme=dark]{{{dark}}}\n{classes}\n"


# --- The colours of values, in OKLCH with monotone lightness ------------------------------------
# ``up`` runs from nothing to much, ``both`` from far below 0 over grey to far above. Each has a
# light
# and a dark form, as evenly spaced stops between which the page mixes.

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
    """The colour at a place, mixed from the stops beside it."""
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
