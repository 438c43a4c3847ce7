"""How many heads there are of a strength, rather than how many a sample can prove.

A count of significant heads grows with the sample. The distribution of true effects does not: it
is found from all effects and their errors together, by a mixture of normals (Stephens 2017, "False
discovery rates: a new deal"; on a grid of centres, as Koenker & Mizera 2014).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import norm

from headcount.errors import UsageError
from headcount.records import HeadTable
from headcount.stats import Floats

#: Points over an offset from which a head is counted as following a relation.
STRENGTH = 0.10
#: Components of the mixture, rounds of its fit, and resamples of heads behind an interval.
_GRID, _ROUNDS, _AGAIN, _DRAWS = 60, 200, 30, 200
#: Half of the width of a 95% interval, in errors.
_HALF = 1.96


@dataclass(frozen=True)
class Prevalence:
    """How many of some heads exceed a strength, and what this sample could have shown.

    >>> Prevalence(72, 0.1, 14.2, 9.0, 19.0, 0.13).in_words("points over the offset")
    'about 14 of 72 heads [9, 19] exceed 0.1 points over the offset; a head of 0.13 is found with
    80% power'
    """

    heads: int
    strength: float
    count: float
    low: float
    high: float
    #: The smallest effect that is significant, corrected over all heads, in 80% of samples.
    detectable: float

    def in_words(self, what: str) -> str:
        """One sentence."""
        return (
            f"about {self.count:.0f} of {self.heads} heads [{self.low:.0f}, {self.high:.0f}] "
            f"exceed {self.strength:g} {what}; a head of {self.detectable:.2g} is found with 80% "
            "power"
        )


def prevalence_of(
    effects: npt.ArrayLike,
    errors: npt.ArrayLike,
    strength: float = STRENGTH,
    *,
    level: float = 0.05,
    seed: int = 0,
) -> Prevalence:
    """How many true effects exceed a strength, from estimates and their standard errors.

    The interval resamples heads, and draws from what is not known of each.

    >>> effects = [0.0] * 60 + [0.3] * 12
    >>> found = prevalence_of(effects, [0.02] * 72, 0.1)
    >>> round(found.count), found.heads
    (12, 72)
    """
    values, sizes = (np.asarray(one, dtype=np.float64) for one in (effects, errors))
    known = np.isfinite(values) & np.isfinite(sizes)
    values = values[known]
    sizes = np.maximum(sizes[known], 1e-4)  # an estimate without any error is not to be had
    if len(values) < 2:
        raise UsageError(f"{len(values)} effects with an error are too few to be distributed.")
    grid, width = _grid(values)
    rng, draws = np.random.default_rng(seed), np.empty(_DRAWS)
    shares = _fit(values, sizes, grid, width)
    count = float(_above(values, sizes, grid, width, shares, strength).sum())
    for draw in range(_DRAWS):
        some = rng.integers(0, len(values), len(values))
        own = _fit(values[some], sizes[some], grid, width, shares)
        chance = _above(values[some], sizes[some], grid, width, own, strength)
        draws[draw] = (rng.random(len(chance)) < chance).sum()
    low, high = np.quantile(draws, [0.025, 0.975])
    needed = norm.ppf(1 - level / len(values)) + norm.ppf(0.8)
    detectable = float(needed * np.median(sizes))
    return Prevalence(len(values), strength, count, float(low), float(high), detectable)


def _grid(values: Floats) -> tuple[Floats, float]:
    """Centres of the components, and the width of each."""
    low, high = float(values.min()), float(values.max())
    room = max(high - low, 1e-3) * 0.05
    grid = np.linspace(low - room, high + room, _GRID)
    return grid, float(grid[1] - grid[0]) / 2


def _fit(
    values: Floats, sizes: Floats, grid: Floats, width: float, begin: Floats | None = None
) -> Floats:
    """The share of each component, by expectation maximisation; few rounds from a good beginning.

    A tenth of the beginning is spread evenly: what is 0 there would stay so.
    """
    spread = np.sqrt(sizes[:, None] ** 2 + width**2)
    likelihood = norm.pdf(values[:, None], grid, spread) + 1e-300
    even = np.full(len(grid), 1 / len(grid))
    shares = even if begin is None else 0.9 * begin + 0.1 * even
    for _ in range(_ROUNDS if begin is None else _AGAIN):
        weights = likelihood * shares
        shares = (weights / weights.sum(axis=1, keepdims=True)).mean(axis=0)
    return shares


def _above(
    values: Floats, sizes: Floats, grid: Floats, width: float, shares: Floats, strength: float
) -> Floats:
    """The chance that each true effect exceeds the strength, given all of them."""
    spread = np.sqrt(sizes[:, None] ** 2 + width**2)
    weights = shares * (norm.pdf(values[:, None], grid, spread) + 1e-300)
    weights /= weights.sum(axis=1, keepdims=True)
    kept = width**2 / spread**2  # how far each estimate draws the component's mean to itself
    mean = grid + kept * (values[:, None] - grid)
    left = width * sizes[:, None] / spread
    return np.asarray((weights * norm.sf(strength, mean, left)).sum(axis=1))


def relation_leads(relations: pd.DataFrame, support: int = 100) -> pd.DataFrame:
    """For each head its lead over the offset, on the relation chosen on the other half.

    A row a head: `effect` and its standard `error`, in shares of arcs.
    """
    key = ["stack", "layer", "head"]
    names = [*key, "relation", "direction"]
    arcs = relations[relations["split"] == "all"].set_index(names)["n"]
    asked = relations[~relations["relation"].isin(["all", "root", "punct"])]
    asked = asked.join(arcs.rename("arcs"), on=names)
    asked = asked[asked["arcs"] >= support].assign(effect=lambda one: one.accuracy - one.baseline)
    chosen = (
        asked[asked["split"] == "select"].sort_values("effect").drop_duplicates(key, keep="last")
    )
    judged = asked[asked["split"] == "report"].merge(chosen[names], on=names)
    return judged.assign(error=(judged["high"] - judged["low"]) / (2 * _HALF))[
        [*names, "effect", "error"]
    ]


def prevalence_frame(table: HeadTable, strength: float = STRENGTH) -> pd.DataFrame:
    """A row for each stack whose relations were surveyed."""
    leads = relation_leads(table.details["relations"])
    rows = []
    what = "points over the offset"
    for stack, own in leads.groupby("stack", sort=False):
        if own["error"].notna().sum() >= 2:
            found = prevalence_of(own["effect"], own["error"], strength)
            said = f"{stack}: {found.in_words(what)}."
            rows.append({"stack": stack, "what": what, **vars(found), "sentence": said})
    names = ["stack", "what", "heads", "strength", "count", "low", "high", "detectable"]
    return pd.DataFrame(rows, columns=[*names, "sentence"])
