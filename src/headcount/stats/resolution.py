"""The smallest p a test can give, and whether that is small enough for the question asked."""

from __future__ import annotations

import math
from typing import Literal

from headcount.errors import StatsError
from headcount.stats.inputs import read_choice, read_count, read_share

__all__ = ["ALTERNATIVES", "CORRECTIONS", "Alternative", "Correction", "check_resolution", "floor"]

Alternative = Literal["two-sided", "greater", "less"]
Correction = Literal["holm", "bh", "none"]
ALTERNATIVES = ("two-sided", "greater", "less")
CORRECTIONS = {"holm": "Holm", "bh": "Benjamini-Hochberg", "none": "no correction"}

# Decimal levels such as 0.05 are not exact in binary; a p that meets the level exactly must pass.
_SLACK = 1 + 1e-9


def check_resolution(
    *,
    tests: int,
    draws: int | None = None,
    sentences: int | None = None,
    level: float = 0.05,
    method: Correction = "holm",
    alternative: Alternative = "two-sided",
) -> float:
    """The smallest p possible; `StatsError` where even that could never count as significant.

    Random draws give no p below 1/(draws+1). Sentences that all agree give none below 2^-sentences,
    twice that when two-sided. A single head must get below level/tests, with Holm and with
    Benjamini-Hochberg: there several heads can pass together above it, but none could alone.

    >>> check_resolution(draws=1000, tests=144, level=0.01)
    Traceback (most recent call last):
    headcount.errors.StatsError: 1,000 draws give no p below 1/1001 = 0.000999, but Holm over 144
    tests at level 0.01 asks for p <= 0.01/144 = 6.94e-05; use at least 14,399 draws.
    """
    read_choice(method, "correction", CORRECTIONS)
    read_choice(alternative, "alternative", ALTERNATIVES)
    shared = 1 if method == "none" else read_count(tests, "tests")
    asked = f"{CORRECTIONS[method]} over {shared:,} tests" if shared > 1 else "one test"
    target = f"but {asked} at level {read_share(level, 'level'):g} asks for p <= "
    target += f"{level:g}/{shared} = {level / shared:.3g}" if shared > 1 else f"{level:g}"
    if sentences is not None:
        _check_sentences(read_count(sentences, "sentences"), level / shared, alternative, target)
    if draws is not None:
        _check_draws(read_count(draws, "draws"), level / shared, target)
    return max(
        0.0 if draws is None else 1 / (draws + 1),
        0.0 if sentences is None else floor(sentences, alternative),
    )


def floor(sentences: int, alternative: Alternative) -> float:
    """The smallest p of a paired test: all sentences on one side, as likely as any other signs.

    >>> floor(5, "greater"), floor(5, "two-sided")
    (0.03125, 0.0625)
    """
    return min(1.0, 2.0 ** ((alternative == "two-sided") - sentences))


def _check_draws(draws: int, wanted: float, target: str) -> None:
    if 1 / (draws + 1) > wanted * _SLACK:
        needed = math.ceil(1 / wanted / _SLACK) - 1
        raise StatsError(
            f"{draws:,} draws give no p below 1/{draws + 1} = {1 / (draws + 1):.3g}, {target}; "
            f"use at least {needed:,} draws."
        )


def _check_sentences(sentences: int, wanted: float, alternative: Alternative, target: str) -> None:
    smallest = floor(sentences, alternative)
    if smallest > wanted * _SLACK:
        sides = alternative == "two-sided"
        needed = math.ceil(-math.log2(wanted * _SLACK)) + sides
        raise StatsError(
            f"A {'two' if sides else 'one'}-sided paired test on {sentences} sentences gives no p "
            f"below 2^-{sentences - sides} = {smallest:.3g}, {target}; "
            f"use at least {needed} sentences."
        )
