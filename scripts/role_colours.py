"""Search the colours of roles: as far apart as can be, also for people who see fewer colours.

python scripts/role_colours.py [light] [dark]

Greedy: colours that are kept stay, each next one has the largest smallest distance (OKLab) to those
before it, under normal sight and simulated protanopia, deuteranopia and tritanopia (Machado et al.
2009), among colours that stand out from the ground by 4.2 to 1. What it prints goes into
the `Kind` of each role by hand.
"""

from __future__ import annotations

import sys
from itertools import product

import numpy as np

KEPT = {
    "light": ["#12419b", "#03875a", "#a0572a", "#843172", "#057ea9", "#857a06"],
    "dark": ["#4ba9fb", "#90f4ab", "#ed9225", "#bb6ea6", "#55d0f2", "#cdd13e"],
}
GROUND = {"light": "#fbfaf6", "dark": "#131519"}
LIGHTNESS = {"light": (0.30, 0.58), "dark": (0.60, 0.95)}
MORE = 10

#: Full dichromacy, in linear RGB.
SIGHT = {
    "normal": np.eye(3),
    "protan": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deutan": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritan": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
TO_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def linear(code: str) -> np.ndarray:
    """A colour code as linear RGB."""
    part = np.array([int(code[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)


def code(rgb: np.ndarray) -> str:
    curved = np.where(
        rgb <= 0.0031308, 12.92 * rgb, 1.055 * np.clip(rgb, 0, 1) ** (1 / 2.4) - 0.055
    )
    return "#" + "".join(f"{round(255 * part):02x}" for part in curved)


def seen(rgb: np.ndarray) -> np.ndarray:
    """OKLab of a colour under each kind of sight, ``[sight, 3]``."""
    each = [np.clip(np.asarray(matrix) @ rgb, 0, 1) for matrix in SIGHT.values()]
    return np.stack([TO_LAB @ np.cbrt(TO_LMS @ one) for one in each])


def contrast(first: np.ndarray, second: np.ndarray) -> float:
    weights = np.array([0.2126, 0.7152, 0.0722])
    one, two = sorted([float(weights @ first), float(weights @ second)])
    return (two + 0.05) / (one + 0.05)


def distance(first: np.ndarray, second: np.ndarray) -> float:
    """The smallest of the distances under each kind of sight."""
    return float(np.linalg.norm(first - second, axis=-1).min())


def candidates(theme: str) -> list[np.ndarray]:
    low, high = LIGHTNESS[theme]
    found = []
    for light, chroma, hue in product(
        np.linspace(low, high, 15), np.linspace(0.03, 0.19, 9), np.arange(0, 360, 8)
    ):
        a, b = chroma * np.cos(np.radians(hue)), chroma * np.sin(np.radians(hue))
        rgb = np.linalg.inv(TO_LMS) @ (np.linalg.inv(TO_LAB) @ [light, a, b]) ** 3
        if (rgb > -0.001).all() and (rgb < 1.001).all():
            rgb = np.clip(rgb, 0, 1)
            if contrast(rgb, linear(GROUND[theme])) >= 4.2:
                found.append(rgb)
    return found


def search(theme: str) -> list[str]:
    kept = [seen(linear(one)) for one in KEPT[theme]]
    pool = [(one, seen(one)) for one in candidates(theme)]
    found = []
    for _ in range(MORE):
        far = [min(distance(labs, other) for other in kept) for _, labs in pool]
        best = int(np.argmax(far))
        kept.append(pool[best][1])
        found.append(f"{code(pool[best][0])}  {far[best]:.3f}")
    return found


if __name__ == "__main__":
    for name in sys.argv[1:] or KEPT:
        print(name, *search(name), sep="\n  ")
