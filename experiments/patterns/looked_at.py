"""The looked-at maps with their labels: both passes, and how disagreements were settled."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from headcount.patterns.kinds import PATTERNS

from .sheets import order
from .store import Kept, read_maps

FOLDER = Path(__file__).parent / "looked_at"
#: Letters of the sheets: columns, diagonal, both, block, the rest.
LETTERS = dict(zip("vdxbh", PATTERNS, strict=True))


def looked_at() -> tuple[list[Kept], pd.DataFrame]:
    """Maps, and a row for each: part, model, head, kind, tokens, first, second, label."""
    maps = read_maps(FOLDER / "maps.npz")
    about = pd.read_csv(FOLDER / "maps.tsv", sep="\t", keep_default_na=False)
    for number, name in enumerate(("first", "second"), 1):
        about[name] = _of_pass(FOLDER / f"pass-{number}.txt", len(maps), number)
    settled = dict(line.split() for line in (FOLDER / "settled.txt").read_text().splitlines())
    about["label"] = [
        first if first == second else LETTERS[settled[str(place)]]
        for place, (first, second) in enumerate(zip(about["first"], about["second"], strict=True))
    ]
    return maps, about


def _of_pass(path: Path, count: int, seed: int) -> list[str]:
    """The labels of one pass, put back from the order of its sheets into that of the maps."""
    letters = [letter for line in path.read_text().splitlines() for letter in line.split()[1:]]
    found = dict(zip(order(count, seed), letters, strict=True))
    return [LETTERS[found[place]] for place in range(count)]
