"""A ladder of nulls: how much of what a head points to would be found without the model.

Clark et al. (BlackBoxNLP 2019) and Voita et al. (ACL 2019) hold a head that follows a relation
against a fixed offset. Here are three more rungs: the nearest word of a part of speech, a logistic
choice on parts of speech, distance and words, and a random model as sharp as this one with the
model's own maps of other sentences. Every null is chosen on one half of the sentences and judged
on the other, on the same arcs as the head, with a paired interval over sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from headcount import stats
from headcount.records import Head
from headcount.rooms.nulls.pointing import AskedArcs, Flags, Pointing
from headcount.rooms.nulls.rules import Null, Rules
from headcount.stats import Floats

#: Fewer arcs, on both halves together, are not compared.
SUPPORT = 100
#: Relations that no head can be said to follow.
WITHOUT = frozenset({"root", "punct", "_"})
#: The columns of the frame `ladder`: a head, a relation, a direction and a rung each.
COLUMNS = (
    "stack", "layer", "head", "relation", "direction", "rung", "null", "n", "accuracy", "chance",
    "chance_low", "chance_high", "lead", "lead_low", "lead_high", "cleared",
)  # fmt: skip


class Rung(NamedTuple):
    """One null against all heads, on the arcs that judge."""

    name: str
    n: int
    accuracy: Floats
    chance: Floats
    chance_low: Floats
    chance_high: Floats
    #: Of heads over the null, with the ends of the paired interval.
    lead: Floats
    low: Floats
    high: Floats


def against_null(name: str, asked: AskedArcs, hits: Flags, null: Flags) -> Rung:
    """Heads against a null on the same arcs of the judging half; ``null`` is one, or one a head."""
    judged = asked.judged
    own = hits[judged].astype(np.float64)
    theirs = np.broadcast_to(null.reshape(len(null), -1)[judged], own.shape).astype(np.float64)
    _, unit = np.unique(asked.unit[judged], return_inverse=True)
    size = int(unit.max()) + 1 if len(unit) else 0
    n = np.bincount(unit, minlength=size).astype(np.float64)

    def interval(values: Floats, low: float) -> stats.Interval:
        sums = np.zeros((size, values.shape[1]))
        np.add.at(sums, unit, values)
        return stats.ratio_interval(
            sums.sum(0), n.sum(), (sums**2).sum(0), n @ sums, n @ n, size, bounds=(low, 1)
        )

    chance, lead = interval(theirs, 0), interval(own - theirs, -1)
    accuracy = np.asarray(own.mean(axis=0)) if len(own) else np.full(own.shape[1], np.nan)
    parts = [np.asarray(part) for part in (*chance, *lead)]
    return Rung(name, int(n.sum()), accuracy, *parts)


@dataclass
class Ladder:
    """The rungs of one stack; each is measured once, at first use."""

    pointing: Pointing
    #: Sharp random twins, asked for when a head stands on rung 3.
    twins: Callable[[], Sequence[Pointing]] = tuple
    #: How far above each null, besides the offset, the paired interval must lie.
    margin: float = 0.0
    _climbed: dict[tuple[str, str, int], Rung | None] = field(default_factory=dict)

    @cached_property
    def _rules(self) -> Rules:
        return Rules(self.pointing)

    def rung(self, relation: str, direction: str, number: int) -> Rung | None:
        """A rung of one relation and direction for every head; None where it cannot be asked."""
        key = (relation, direction, number)
        if key not in self._climbed:
            self._climbed[key] = self._climb(*key)
        return self._climbed[key]

    def _climb(self, relation: str, direction: str, number: int) -> Rung | None:
        asked = self.pointing.asked(relation, direction)
        if asked.judged.all() or not asked.judged.any():
            return None
        hits = self.pointing.hits(asked, direction)
        if number == 4:
            return self._fourth(asked, direction, hits)
        null = self._null(asked, direction, number)
        return against_null(null.name, asked, hits, null.hits)

    def _null(self, asked: AskedArcs, direction: str, number: int) -> Null:
        if number == 3:
            return self._rules.choice(asked, direction)
        return self._rules.offset(asked) if number == 1 else self._rules.nearest(asked)

    def _fourth(self, asked: AskedArcs, direction: str, hits: Flags) -> Rung | None:
        """The harder of the best head of a sharp twin and of the head's own maps elsewhere."""
        found = []
        for twin in self.twins():
            theirs = twin.hits(asked, direction)
            best = int(theirs[~asked.judged].sum(axis=0).argmax())
            found.append(against_null("sharp random twin", asked, hits, theirs[:, best]))
        moved, there = self.pointing.shuffled_hits(asked, direction)
        if (there & asked.judged).any():
            same = AskedArcs(
                asked.query[there], asked.target[there], asked.unit[there], asked.judged[there]
            )
            found.append(against_null("maps of other sentences", same, hits[there], moved[there]))
        if not found:
            return None
        lows = np.stack([one.low for one in found])
        hardest = np.where(np.isnan(lows), -np.inf, lows).argmin(axis=0)
        if len(found) == 1:
            return found[0]
        picked = [
            np.stack([getattr(one, name) for one in found])[hardest, np.arange(len(hardest))]
            for name in Rung._fields[2:]
        ]
        return Rung("sharp random twin or maps of other sentences", found[0].n, *picked)

    def clears(self, rung: Rung | None, place: int) -> bool:
        """Whether a head lies so far above a null (95%)."""
        return rung is not None and bool(rung.low[place] > self.margin)

    def height(self, head: Head, relation: str, direction: str) -> int:
        """The highest rung that a head clears (95%), all lower ones cleared too, from the first.

        The first is the offset, which the verdict itself has cleared.
        """
        place = self.pointing.heads.index(head)
        height = 1
        for number in (2, 3, 4):
            if not self.clears(self.rung(relation, direction, number), place):
                break
            height = number
        return height

    def frame(self, keys: Iterable[tuple[str, str]] | None = None) -> pd.DataFrame:
        """A row for each head, relation, direction and rung that was climbed so far."""
        rows = []
        for (relation, direction, number), rung in self._climbed.items():
            if rung is None or (keys is not None and (relation, direction) not in keys):
                continue
            stack, layer, index = zip(*self.pointing.heads, strict=True)
            rows.append(
                pd.DataFrame(
                    {
                        "stack": stack, "layer": layer, "head": index, "relation": relation,
                        "direction": direction, "rung": number, "null": rung.name, "n": rung.n,
                        "accuracy": rung.accuracy, "chance": rung.chance,
                        "chance_low": rung.chance_low, "chance_high": rung.chance_high,
                        "lead": rung.lead, "lead_low": rung.low, "lead_high": rung.high,
                        "cleared": rung.low > self.margin,
                    }
                )
            )  # fmt: skip
        return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame(columns=list(COLUMNS))


def with_rungs(
    relations: pd.DataFrame, ladder: pd.DataFrame, rungs: Mapping[tuple[Head, str], int]
) -> pd.DataFrame:
    """The frame `relations` with the rung of every verdict and each null on the judging half."""
    key = ["stack", "layer", "head", "relation", "direction"]
    found = relations.copy()
    heads = zip(*(found[name] for name in key), strict=True)
    judged = found["split"] == "report"
    found["rung"] = [
        float(rungs.get((Head(stack, int(layer), int(head)), f"{relation} {way}"), 0))
        for stack, layer, head, relation, way in heads
    ]
    found.loc[~judged, "rung"] = np.nan
    for number in (2, 3, 4):  # the first is the baseline of the frame itself
        own = ladder[ladder["rung"] == number].set_index(key)
        for end in ("", "_low", "_high"):
            column = own[f"chance{end}"].rename(f"null_{number}{end}")
            found = found.drop(columns=column.name, errors="ignore").join(column, on=key)
            found.loc[~judged, column.name] = np.nan
    return found


def details_of(ladder: pd.DataFrame, head: Head, relation: str, way: str) -> dict[str, Any]:
    """What each rung's null gets beside one verdict, by column: `null_2`, `null_2_low` ..."""
    same = ladder[
        (ladder["stack"] == head.stack) & (ladder["layer"] == head.layer)
        & (ladder["head"] == head.index) & (ladder["relation"] == relation)
        & (ladder["direction"] == way)
    ]  # fmt: skip
    return {
        f"null_{row['rung']}{end}": float(row[f"chance{end}"])
        for row in same.to_dict("records")
        for end in ("", "_low", "_high")
    }
