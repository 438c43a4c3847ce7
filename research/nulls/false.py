"""`python -m research.nulls.false`: how many surveys find a role where there is none.

Models are random twins of full size, as sharp as the trained one layer by layer; trees are those
of the bundled sample, or the same labels and arcs between words drawn at random. A survey is as a
user calls it, with the ladder of nulls and without a random twin of its own.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import headcount as hc
from headcount.records.files import write_bytes
from headcount.rooms.nulls import layer_confidence, sharp_twin
from headcount.surveys import Pass, PassOptions, read_corpora
from headcount.text import read_sample
from headcount.text.sentence import Sentence
from research import RESULTS

COMMAND = "python -m research.nulls.false"
FILE = "false-verdicts.json"
SURVEYS = 100


def main() -> None:
    """Go through the seeds of each model; what is done already is kept."""
    parser = argparse.ArgumentParser(prog="research.nulls.false", description=__doc__)
    parser.add_argument("--models", nargs="+", default=["translator", "minilm"])
    parser.add_argument("--surveys", type=int, default=SURVEYS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    file = given.out / FILE
    known: dict[str, Any] = {}
    if file.exists():
        known = json.loads(file.read_text(encoding="utf8"))["cases"]
    for name in given.models:
        subject = hc.load(name, device="cpu")
        goal = layer_confidence(subject, _reading(subject))
        for case in ("sharp random models", "shuffled trees"):
            rows = known.setdefault(f"{name}, {case}", {})
            for seed in range(given.surveys):
                if str(seed) in rows:
                    continue
                began = time.monotonic()
                if case == "shuffled trees":
                    found = survey(subject, mixed(seed), [hc.roles.Syntactic()])
                else:
                    found = survey(sharp_twin(subject, _reading(subject), seed=seed, goal=goal))
                rows[str(seed)] = verdicts(found)
                print(case, seed, rows[str(seed)], f"{time.monotonic() - began:.0f} s", flush=True)
                text = json.dumps({"command": COMMAND, "cases": known}, indent=1)
                write_bytes(file, text.encode() + b"\n")


def survey(subject: hc.Subject, trees: Any = None, roles: Any = True) -> hc.HeadTable:
    """What a user gets from the sample with its trees, of the first stack."""
    trees = list(read_sample()) if trees is None else trees
    reading = hc.ReadingOptions(stacks=[subject.anatomy.stacks[0]])
    return hc.survey(subject, treebank=trees, roles=hc.RoleOptions(roles=roles), reading=reading)


def verdicts(table: hc.HeadTable) -> list[str]:
    """Each verdict of a survey: role, label and rung."""
    rows = table.details["roles"].to_dict("records")
    return [f"{row['role']}: {row['label']}, rung {row['rung']}" for row in rows]


def mixed(seed: int) -> list[Sentence]:
    """The sample's trees, shuffled."""
    draw = random.Random(seed)
    return [shuffled(one, draw) for one in read_sample()]


def shuffled(sentence: Sentence, draw: random.Random) -> Sentence:
    """The same words, with a tree of the same labels and arcs between words drawn at random."""
    words = list(sentence.words or ())
    order = draw.sample(range(len(words)), len(words))  # word -> the word whose place it takes
    moved = []
    for place, word in enumerate(words):
        other = words[order[place]]
        head = other.head
        if head is not None and head > 0:
            head = order.index(head - 1) + 1
        moved.append(replace(word, head=head, deprel=other.deprel))
    return replace(sentence, words=tuple(moved))


def _reading(subject: hc.Subject) -> Pass:
    """The sample as the calibration of a twin reads it."""
    texts = read_corpora(list(read_sample())).text
    stacks = subject.anatomy.stacks[:1]
    return Pass(
        "Surveying", texts, (), PassOptions(stacks, 16, None, "window", False, True, None, 0)
    )


if __name__ == "__main__":
    main()
