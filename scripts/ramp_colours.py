"""The colours of values on the page, in OKLCH with monotone lightness.

``python scripts/ramp_colours.py`` writes ``src/headcount/reports/assets/ramps.json``. ``up`` runs
from nothing to much, ``both`` from far below 0 over grey to far above. Each has a light and a dark
form, as evenly spaced stops between which the page mixes.
"""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path

PLACE = Path(__file__).parent.parent / "src/headcount/reports/assets/ramps.json"
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


if __name__ == "__main__":
    PLACE.write_text(json.dumps(ramps(), separators=(",", ":")) + "\n", encoding="utf8")
