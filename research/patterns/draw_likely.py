"""`python -m research.patterns.draw_likely --draw 2`: maps to look at where blocks are likely.

The first draw took heads and texts at random and met 7 blocks. Here heads that keep to their own
text of a pair come first, judged on texts that are not looked at; the others come at random. The
third draw has maps to train on alone.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import headcount as hc
from headcount.records.heads import Head

from .heads import FAMILY, parts, subject_of
from .maps import Map, maps_of
from .sheets import DRAWS
from .store import write_maps
from .texts import Given, given

HEAD_SEED = 20190


class Plan(NamedTuple):
    """How many maps of each part."""

    seed: int
    #: Of so many heads of a family that keep to their text most, so many maps each.
    first: dict[str, tuple[int, int]]
    #: Of any other head.
    any: dict[str, int]


PLANS = {
    2: Plan(20191, {"test": (12, 6), "dev": (12, 5)}, {"test": 36, "dev": 132}),
    3: Plan(20192, {"dev": (20, 5)}, {"dev": 64}),
}
#: Texts that heads are ranked on, and texts that may be looked at, of each model.
RANKED, SHOWN = 6, 16
Row = tuple[Map, dict[str, object]]


def own_text(one: Map) -> float:
    """How much denser the own text is than the other one, away from the diagonal."""
    size = len(one.weights)
    places, tokens = np.arange(size), ~one.special
    away = np.abs(places[:, None] - places) > max(1, size // 16)
    cells = tokens[:, None] & tokens & away
    same = one.segment[:, None] == one.segment
    inside, outside = one.weights[cells & same], one.weights[cells & ~same]
    return size * float(inside.mean() - outside.mean()) if inside.size and outside.size else 0.0


def drawn(plan: Plan, classifiers: str) -> list[Row]:
    """All rows, in a random order."""
    dice = random.Random(plan.seed)
    likely: list[Row] = []
    rest: dict[str, list[Row]] = {"test": [], "dev": []}
    for family in dict.fromkeys(FAMILY.values()):
        models = [name for name, of in FAMILY.items() if of == family]
        subjects = {name: subject_of(name, classifiers) for name in models}
        first = next(iter(subjects.values()))
        part = {h: _part(p) for h, p in parts(family, first.heads, HEAD_SEED).items()}
        ranks = _ranks(first, dice) if family != "translator" else []
        for which, (heads, each) in plan.first.items():
            chosen = [head for head in ranks if part[head] == which][:heads]
            likely += _shown(subjects, dict.fromkeys(chosen, which), each, ("pair",), dice)
            if which == "dev" or family != "translator":
                others = {h: which for h, of in part.items() if of == which and h not in chosen}
                kinds = ("pair",) if which == "test" else ("pair", "single")
                rest[which] += _shown(subjects, others, 1, kinds, dice)
    rows = likely + [
        row for which, many in plan.any.items() for row in dice.sample(rest[which], many)
    ]
    dice.shuffle(rows)
    return rows


def _part(name: str) -> str:
    """Heads that the network trains on may be looked at for tuning, too."""
    return "test" if name == "test" else "dev"


def _ranks(subject: hc.Subject, dice: random.Random) -> list[Head]:
    """Heads by how much they keep to their own text, the most first."""
    found: dict[Head, float] = {}
    for turn in range(RANKED):
        for one in maps_of(subject, given(("pair", "long pair")[turn % 2], dice), ("enc",)):
            found[one.head] = found.get(one.head, 0.0) + own_text(one)
    return sorted(found, key=lambda head: -found[head])


def _shown(
    subjects: dict[str, hc.Subject],
    heads: dict[Head, str],
    each: int,
    kinds: tuple[str, ...],
    dice: random.Random,
) -> list[Row]:
    """So many maps of each head, each of a model and a text of its own."""
    places = [(model, turn) for model in subjects for turn in range(SHOWN)]
    wanted: dict[tuple[str, int], list[Head]] = {}
    for head in heads:
        for place in dice.sample(places, each):
            wanted.setdefault(place, []).append(head)
    return [
        row
        for (model, turn), chosen in wanted.items()
        for row in _rows(model, subjects[model], _text(turn, kinds, model, dice), chosen, heads)
    ]


def _rows(
    model: str, subject: hc.Subject, text: Given, chosen: list[Head], part: dict[Head, str]
) -> Iterator[Row]:
    stacks = ("enc", "dec") if model == "translator" else ("enc",)
    maps = {one.head: one for one in maps_of(subject, text, stacks)}
    for head in chosen:
        about = {"model": model, "head": str(head), "kind": text.kind, "text": str(text)}
        yield maps[head], {"part": part[head], **about}


def _text(turn: int, kinds: tuple[str, ...], model: str, dice: random.Random) -> Given:
    kind = ("long " if turn % 3 == 2 else "") + kinds[turn % len(kinds)]
    return given(kind.replace("pair", "single") if model == "translator" else kind, dice)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--classifiers", required=True, help="what research.glue --save wrote")
    parser.add_argument("--draw", type=int, choices=PLANS, required=True)
    given_ = parser.parse_args()
    rows, folder = drawn(PLANS[given_.draw], given_.classifiers), DRAWS[given_.draw]
    about: Any = pd.DataFrame([about for _, about in rows])
    about.insert(0, "map", range(len(rows)))
    about["tokens"] = [len(one.weights) for one, _ in rows]
    write_maps(folder / "maps.npz", [one for one, _ in rows])
    about.to_csv(folder / "maps.tsv", sep="\t", index=False)
    print(about.groupby(["part", "model", "kind"]).size().to_string())


if __name__ == "__main__":
    main()
