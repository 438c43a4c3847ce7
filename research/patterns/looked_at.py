"""The looked-at maps with their labels: both passes, how disagreements were settled, and another
reader's labels of the test maps and of maps to train on."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from headcount.rooms.patterns.tally import PATTERNS

from .sheets import DRAWS, order, order_of_part
from .store import Kept, read_maps

#: Letters of the sheets: columns, diagonal, both, block, the rest.
LETTERS = dict(zip("vdxbh", PATTERNS, strict=True))
#: The order in which the other reader saw the maps of a draw.
OTHER_ORDER = 4


def looked_at() -> tuple[list[Kept], pd.DataFrame]:
    """Maps, and a row for each: draw, part, model, head, kind, tokens, first, second, label, other.

    `other` is the other reader's label: of the test maps, and of the third draw, which nobody else
    looked at.
    """
    maps: list[Kept] = []
    rows: list[pd.DataFrame] = []
    for draw, folder in DRAWS.items():
        own = read_maps(folder / "maps.npz")
        rows.append(_labelled(folder, len(own)).assign(draw=draw))
        maps += own
    return maps, pd.concat(rows, ignore_index=True)


def passes_of(folder: Path, count: int) -> pd.DataFrame:
    """What each map is, with the labels of both passes."""
    about = pd.read_csv(folder / "maps.tsv", sep="\t", keep_default_na=False)
    for number, name in enumerate(("first", "second"), 1):
        about[name] = _of_pass(folder / f"pass-{number}.txt", count, number)
    return about


def _labelled(folder: Path, count: int) -> pd.DataFrame:
    if not (folder / "pass-1.txt").exists():
        about = pd.read_csv(folder / "maps.tsv", sep="\t", keep_default_na=False)
        about["other"] = _of_other(folder, count, "dev")
        return about.assign(label=about["other"])
    about = passes_of(folder, count)
    settled = dict(line.split() for line in (folder / "settled.txt").read_text().splitlines())
    about["label"] = [
        first if first == second else LETTERS[settled[str(place)]]
        for place, (first, second) in enumerate(zip(about["first"], about["second"], strict=True))
    ]
    about["other"] = _of_other(folder, count, "test")
    return about


def _of_other(folder: Path, count: int, part: str) -> list[str | None]:
    """The other reader's labels of one part; None for other maps."""
    places = order_of_part(folder, part, OTHER_ORDER)
    found = dict(zip(places, _letters(folder / "reader-2.txt"), strict=True))
    return [LETTERS[found[place]] if place in found else None for place in range(count)]


def _of_pass(path: Path, count: int, seed: int) -> list[str]:
    """The labels of one pass, put back from the order of its sheets into that of the maps."""
    found = dict(zip(order(count, seed), _letters(path), strict=True))
    return [LETTERS[found[place]] for place in range(count)]


def _letters(path: Path) -> list[str]:
    """The labels of all sheets, one after the other."""
    return [letter for line in path.read_text().splitlines() for letter in line.split()[1:]]
