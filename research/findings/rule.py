"""How a finding is judged: an interval against the smallest effect that would still bear it out.

Claims and bounds are fixed in `frozen/*.toml`. A bound follows from the paper's figure by a rule
that leaves nothing to choose:

| rule | bound |
|---|---|
| half | half of the published effect (of the smallest, where several are published) |
| stated | the figure that the claim itself names |
| at most | the published figure and its own rounding |
| direction | 0: the paper prints no figure, or compares two measures |
| set | ours, with the reason: the paper prints no figure |
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from research import RESULTS, ROOT

Verdict = Literal["holds", "fails", "cannot tell"]
#: Where intervals are drawn from resampled heads: how often, and from which seed.
DRAWS, SEED = 10_000, 0


def place(name: str) -> Path:
    """Where a file without its ending lies: in research/results, or from the root; a folder as it is."""
    path = (ROOT if "/results/" in name else RESULTS) / name
    return path if path.is_dir() else path.with_name(f"{path.name}.json")


@cache
def load(name: str) -> Any:
    """A JSON of research/results, or with a path from the root."""
    return json.loads(place(name).read_text(encoding="utf8"))


@dataclass(frozen=True)
class Ours:
    """One figure of one model, with its 95% interval where it has one."""

    model: str
    value: float
    low: float = math.nan
    high: float = math.nan
    what: str = ""
    #: A count over all heads (layers, functions) of a model, which needs no interval.
    counted: bool = False

    def __str__(self) -> str:
        if math.isnan(self.value):
            return f"{self.model} {self.what or 'not measured'}"
        form = ".0f" if float(self.value).is_integer() and abs(self.value) >= 2 else ".3g"
        ends = "" if math.isnan(self.low) else f" [{self.low:.3g}, {self.high:.3g}]"
        return f"{self.model} {self.value:{form}}{ends}{' ' + self.what if self.what else ''}"


@dataclass(frozen=True)
class Finding:
    """What a paper says, what bears it out, and where ours comes from."""

    id: str
    claim: str
    published: str
    #: Gives our figures; nothing where it was not measured.
    ours: Callable[[], Sequence[Ours]] | None = None
    #: How the bound follows from the published figure; none: nothing is judged.
    rule: str = ""
    figure: float = math.nan
    #: Chance, where the effect is counted from there; the rounding of a published "at most".
    above: float = 0.0
    rounding: float = 0.0
    why: str = ""
    #: The figure must be at least (or at most) the bound for the finding to hold.
    at_most: bool = False
    #: The claim compares two of our figures: its statistic is their difference.
    contrast: bool = False
    #: No: a question of ours beside the paper's.
    of_the_paper: bool = True
    #: What a cost is held against where heads or layers are counted that cost less.
    margin: str = ""
    #: Names of JSON files, the command, and the figure or table.
    data: tuple[str, ...] = ()
    command: str = ""
    shown: str = ""
    note: str = ""
    #: The bound that stood here before the rule, which came with the figures.
    bound_before: float = math.nan

    @property
    def bound(self) -> float:
        """The figure that decides.

        >>> Finding("", "", "+10 to +32", rule="half", figure=10).bound
        5.0
        >>> Finding("", "", "-0.15", rule="at most", figure=-0.15, rounding=0.005).bound
        -0.155
        """
        rules = {
            "half": self.above + self.figure / 2,
            "at most": self.figure + (self.rounding if self.at_most else -self.rounding),
            "direction": 0.0,
            "stated": self.figure,
            "set": self.figure,
        }
        return round(rules[self.rule], 9) if self.rule else math.nan

    def judged(self) -> list[tuple[Ours, Verdict]]:
        """Our figures, each with its verdict."""
        return [(one, self.verdict(one)) for one in (self.ours() if self.ours else [])]

    def verdict(self, one: Ours) -> Verdict:
        """By the interval; by the figure alone where it is a count over all heads.

        Holds: the whole interval lies on the finding's side of the bound. Fails: all of it lies on
        the other side. Else the data cannot tell, and so it is where there is no interval.

        >>> claim = Finding("", "", "", rule="stated", figure=0.3)
        >>> [claim.verdict(Ours("m", v, v - 0.1, v + 0.1)) for v in (0.5, 0.35, 0.1)]
        ['holds', 'cannot tell', 'fails']
        >>> claim.verdict(Ours("m", 0.5)), claim.verdict(Ours("m", 2, counted=True))
        ('cannot tell', 'holds')
        """
        low, high = (one.value, one.value) if one.counted else (one.low, one.high)
        if any(math.isnan(figure) for figure in (self.bound, one.value, low, high)):
            return "cannot tell"
        if self.at_most:
            return "holds" if high <= self.bound else "fails" if low > self.bound else "cannot tell"
        return "holds" if low >= self.bound else "fails" if high < self.bound else "cannot tell"


class Cost(NamedTuple):
    """What it costs that a head, or all heads of a layer but one, are gone; with its interval."""

    cost: float
    low: float
    high: float


def share_within(model: str, costs: Sequence[Cost], margin: float, what: str) -> Ours:
    """The share (in %) that costs less than a margin: from those that surely do to those that may.

    The interval begins at the share that surely costs less and ends where those that surely cost
    more begin. So a bound below it is met, and one above it is out of reach.

    >>> costs = [Cost(0, -1, 0.5), Cost(0.2, -1, 2), Cost(3, 2, 4), Cost(0.4, 0, 0.9)]
    >>> str(share_within("m", costs, 1, "layers"))
    'm 75 [50, 75] % of 4 layers (2 surely, 1 surely not)'
    """
    most = len(costs)
    less = sum(one.high < margin for one in costs)
    more = sum(one.low > margin for one in costs)
    seen = sum(one.cost < margin for one in costs)
    told = f"% of {most} {what} ({less} surely, {more} surely not)"
    ends = (100 * less / most, 100 * (most - more) / most)
    return Ours(model, 100 * seen / most, *ends, told)


def heads_within(path: Sequence[tuple[int, Cost]], margin: float) -> tuple[int, int, int]:
    """How many heads can go in an order before more than a margin is lost: seen, surely, at most.

    A step of the path says how many are gone and what that costs. Surely: up to the last step before
    the first that may cost more. At most: one less than at the first step that surely costs more.

    >>> path = [(12, Cost(0, -1, 0.5)), (24, Cost(0.5, -1, 2)), (36, Cost(2, 1.5, 3))]
    >>> heads_within(path, 1)
    (24, 12, 35)
    """
    seen = surely = 0
    for gone, one in path:
        if one.cost >= margin:
            break
        seen = gone
    for gone, one in path:
        if one.high >= margin:
            break
        surely = gone
    most = next((gone - 1 for gone, one in path if one.low > margin), max(g for g, _ in path))
    return seen, surely, most


def over_heads(values: Sequence[float]) -> tuple[float, float, float]:
    """A mean over heads with the interval of resampled heads.

    >>> [round(figure, 2) for figure in over_heads([0.0, 1.0] * 50)]
    [0.5, 0.4, 0.6]
    """
    given = np.asarray(values, dtype=np.float64)
    drawn = np.random.default_rng(SEED).integers(len(given), size=(DRAWS, len(given)))
    low, high = np.quantile(given[drawn].mean(axis=1), [0.025, 0.975])
    return float(given.mean()), float(low), float(high)


def overall(verdicts: Sequence[Verdict]) -> str:
    """One word where the models agree; else what each says."""
    found = list(dict.fromkeys(verdicts))
    if not found:
        return "cannot tell"
    return found[0] if len(found) == 1 else "mixed: " + ", ".join(verdicts)


#: The papers, by the names of their files.
PAPERS = {
    "voita": "Voita et al., ACL 2019",
    "michel": "Michel et al., NeurIPS 2019",
    "clark": "Clark et al., BlackBoxNLP 2019",
    "kovaleva": "Kovaleva et al., EMNLP 2019",
}
FROZEN = Path(__file__).parent / "frozen"


def findings(
    statistics: Mapping[str, Callable[[], Sequence[Ours]] | None],
    notes: Mapping[str, Callable[[], str]],
) -> tuple[Finding, ...]:
    """The frozen claims, each with its statistic."""
    rows = []
    for paper in PAPERS:
        for row in tomllib.loads((FROZEN / f"{paper}.toml").read_text("utf8"))["finding"]:
            key = row["id"]
            row |= {"data": tuple(row.get("data", ())), "ours": statistics[key]}
            if key in notes:
                row["note"] = notes[key]()
            rows.append(Finding(**row))
    return tuple(rows)
