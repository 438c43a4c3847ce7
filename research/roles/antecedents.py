"""`python -m research.roles.antecedents --data DIR`: a head's antecedents, same words apart.

Clark et al. 2019, section 4.3, on the training documents of OntoGUM. Mentions that have an
antecedent with the same head word (a match of strings finds those) are told from mentions that
have none. The head is chosen on one half of the documents and judged on the other; its lead over a
rule has an interval over documents, paired.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import headcount as hc
from headcount.records import Column
from headcount.rooms.coreference.tally import (
    BASELINES,
    DIRECTION,
    BatchChoices,
    Choice,
    CoreferenceTally,
    before,
    mentions_of,
)
from headcount.rooms.words.counts import ALL, Counts, Unit, in_selection
from headcount.text import Sentence, Words
from research import RESULTS

COMMAND = "python -m research.roles.antecedents"
FILE = "coref/ontogum-train.jsonl.xz"
MODELS = {"minilm": "MiniLM", "e5-small": "e5-small"}
#: Whether an antecedent in the passage has the same head word; before the mention's own kind.
GROUPS = {ALL: "all", "same": "same head word", "other": "no antecedent with the same head word"}
DRAWS = 2000


@dataclass
class Antecedents(CoreferenceTally):
    """Choices of antecedents, told apart by whether one has the mention's own head word."""

    column = Column("antecedents", meaning="Share of mentions whose antecedent a head finds.")

    def choices(self, words: Words, units: Sequence[Unit], causal: bool) -> BatchChoices:
        """Every mention that has an antecedent in its row."""
        there = words.there.cpu().numpy()
        found = [
            choice
            for row, sentence in enumerate(words.sentences)
            if sentence is not None and sentence.clusters
            for choice in _choices(row, sentence, there[row])
        ]
        return BatchChoices.of(found, words, units, len(BASELINES))

    def details(self) -> dict[str, pd.DataFrame]:
        """A row for each group and rule: the head of one half, judged on the other."""
        [counts] = self.counts()
        chosen = in_selection(counts.units)
        rows = []
        for group, title in GROUPS.items():
            found = counts.of(group, DIRECTION)
            place = int(found.hits[chosen[found.unit]].sum(axis=0).argmax())
            told = ~chosen[found.unit]
            for number, rule in enumerate(BASELINES):
                rows.append(
                    {"mentions": title, "head": str(counts.heads[place]), "against": rule}
                    | _judged(found, told, place, number)
                    | {"documents": int(told.sum())}
                )
        return {"antecedents": pd.DataFrame(rows)}


def _choices(row: int, sentence: Sentence, there: Any) -> Iterator[Choice]:
    """Mentions with an antecedent; candidates are the words before, as in the survey."""
    place = np.cumsum(there) - 1
    seen = [mention for mention in mentions_of(sentence) if there[mention.head]]
    for mention in seen:
        earlier = before(mention, seen)
        right = [other for other in earlier if other.entity == mention.entity]
        if not right:
            continue
        same = any(other.word == mention.word for other in right)
        heads = [other.head for other in right]
        picks = [pick(mention, earlier) for pick in BASELINES.values()]
        hits = [other is not None and other.head in heads for other in picks]
        kind, own = f"{'same' if same else 'other'}:{mention.kind}", int(place[mention.head])
        yield Choice(row, kind, own, place[heads].tolist(), [*range(own)], hits)


def _judged(found: Counts, rows: Any, head: int, rule: int) -> dict[str, Any]:
    """Accuracy of a head and of a rule, and the lead, over documents drawn again."""
    n, mine, theirs = found.arcs[rows], found.hits[rows, head], found.offsets[rows, rule]
    weights = np.random.default_rng(0).multinomial(len(n), np.full(len(n), 1 / len(n)), DRAWS)
    drawn = {"accuracy": weights @ mine, "lead": weights @ (mine - theirs)}
    told = {"n": int(n.sum()), "baseline": round(100 * theirs.sum() / n.sum(), 2)}
    for name, sums in drawn.items():
        low, high = np.quantile(100 * sums / (weights @ n), [0.025, 0.975])
        value = 100 * (mine - (theirs if name == "lead" else 0)).sum() / n.sum()
        told |= {
            name: round(value, 2),
            f"{name}_low": round(low, 2),
            f"{name}_high": round(high, 2),
        }
    return told


def main() -> None:
    parser = argparse.ArgumentParser(prog="research.roles.antecedents", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("HEADCOUNT_DATA"))
    parser.add_argument("--out", type=Path, default=RESULTS / "antecedents.json")
    parser.add_argument("--limit", type=int, help="so many passages, for a trial")
    given = parser.parse_args()
    if given.data is None:
        parser.error("say where the corpora are: --data DIR, or set HEADCOUNT_DATA")
    told: dict[str, Any] = {"command": COMMAND, "file": FILE, "models": {}}
    for name in MODELS:
        table = hc.survey(
            hc.load(name, device="cpu"),
            coref=str(Path(given.data) / FILE),
            columns=[],
            tallies=[Antecedents()],
            limit=given.limit,
        )
        told["models"][name] = table.details["antecedents"].to_dict("records")
        print(table.details["antecedents"].to_string(), flush=True)
    given.out.write_text(json.dumps(told, indent=1) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
