"""`python -m research.patterns.draw_sample`: the maps that are to be looked at."""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import pandas as pd

from .heads import FAMILY, parts, subject_of
from .maps import Map, maps_of
from .store import write_maps
from .texts import Given, given

HERE = Path(__file__).parent
SEED = 20190
#: Maps of each head that is looked at, by family; the models of a family take turns.
EACH = {"minilm": 5, "e5-small": 2, "translator": 2}
#: Texts of each kind for each model; kinds of pairs are left out where a model reads none.
KINDS = ("single", "pair", "single", "pair", "long single", "long pair")
TEXTS = 12


def drawn(classifiers: str) -> tuple[list[Map], pd.DataFrame]:
    """Maps of the heads that are looked at, in a random order, and what each of them is."""
    found: list[tuple[Map, dict[str, object]]] = []
    for family, each in EACH.items():
        models = [name for name, of in FAMILY.items() if of == family]
        dice = random.Random(f"{SEED} {family}")
        wanted: dict[tuple[str, int], list[tuple[object, str]]] = {}
        subjects = {name: subject_of(name, classifiers) for name in models}
        chosen = parts(family, subjects[models[0]].heads, SEED)
        for head, part in chosen.items():
            places = dice.sample([(m, t) for m in models for t in range(TEXTS)], each)
            for place in places if part != "train" else ():
                wanted.setdefault(place, []).append((head, part))
        texts = {(m, t): _text(t, m == "translator", dice) for m in models for t in range(TEXTS)}
        for (model, turn), heads in wanted.items():
            maps = {
                one.head: one
                for one in maps_of(subjects[model], texts[model, turn], _stacks(model))
            }
            found += [(maps[h], _about(model, h, part, texts[model, turn])) for h, part in heads]
    random.Random(SEED).shuffle(found)
    return [one for one, _ in found], pd.DataFrame([about for _, about in found])


def _stacks(model: str) -> tuple[str, ...]:
    return ("enc", "dec") if model == "translator" else ("enc",)


def _text(turn: int, translated: bool, dice: random.Random) -> Given:
    kind = KINDS[turn % len(KINDS)]
    return given(kind.replace("pair", "single") if translated else kind, dice)


def _about(model: str, head: object, part: str, text: Given) -> dict[str, object]:
    return {"part": part, "model": model, "head": str(head), "kind": text.kind, "text": str(text)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--classifiers", required=True, help="what research.glue --save wrote")
    given_ = parser.parse_args()
    maps, about = drawn(given_.classifiers)
    about.insert(0, "map", range(len(maps)))
    about["tokens"] = [len(one.weights) for one in maps]
    write_maps(HERE / "looked_at" / "maps.npz", maps)
    about.to_csv(HERE / "looked_at" / "maps.tsv", sep="\t", index=False)
    print(about.groupby(["part", "model", "kind"]).size().to_string())


if __name__ == "__main__":
    main()
