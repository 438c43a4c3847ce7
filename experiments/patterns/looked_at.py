"""The looked-at maps with their labels: both passes, and how disagreements were settled."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from headcount.survey.pattern_network import PATTERNS

from .sheets import order
from .store import Kept, read_maps

FOLDER = Path(__file__).parent / "looked_at"
#: Letters of the sheets: columns, diagonal, both, block, the rest.
LETTERS = dict(zip("vdxbh", PATTERNS, strict=True))
#: The draws of maps: any head and text at random, and those where blocks are likely.
DRAWS = {1: FOLDER, 2: FOLDER / "second"}


def looked_at() -> tuple[list[Kept], pd.DataFrame]:
    """Maps, and a row for each: draw, part, model, head, kind, tokens, first, second, label."""
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
    about = passes_of(folder, count)
    settled = dict(line.split() for line in (folder / "settled.txt").read_text().splitlines())
    about["label"] = [
        first if first == second else LETTERS[settled[str(place)]]
        for place, (first, second) in enumerate(zip(about["first"], about["second"], strict=True))
    ]
    return about


def _of_pass(path: Path, count: int, seed: int) -> list[str]:
    """The labels of one pass, put back from the order of its sheets into that of the maps."""
    letters = [letter for line in path.read_text().splitlines() for letter in line.split()[1:]]
    found = dict(zip(order(count, seed), letters, strict=True))
    return [LETTERS[found[place]] for place in range(count)]
