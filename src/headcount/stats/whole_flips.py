"""The sign-flip test of whole-number differences, exact however many sentences there are.

Hits of a head minus hits of its baseline are whole numbers, so the sum under random signs has a
distribution with a closed form: no draws, no noise, and thousands of heads at once.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headcount.errors import StatsError
from headcount.stats.inputs import read_choice, read_sentences
from headcount.stats.resolution import ALTERNATIVES, Alternative
from headcount.stats.results import Counts, Floats

__all__ = ["SMALLEST", "sign_flip_counts"]

#: Smaller p values are given as this one: the sum that makes them is no more exact.
SMALLEST = 1e-13

# Heads times frequencies held at once: 64 MB a matrix.
_HELD = 2**23


def sign_flip_counts(
    differences: npt.ArrayLike, *, alternative: Alternative = "two-sided"
) -> Floats:
    """p of paired whole-number differences ``[sentence, head...]``: is their sum 0?

    Fisher 1935, section 21, over all patterns of signs. With c_k sentences of difference ±k the
    absolute differences that get a minus sign add up to U, whose characteristic function is
    the product of ((1 + exp(ikt)) / 2)^c_k; p is a value of U's distribution function, summed from
    it over as many frequencies as U has values. Two systems that count hits among the same arcs
    may be compared this way, for then their difference is that of the hits.

    >>> float(sign_flip_counts([2, 1, 0, 3, 1, 1, -1, 2], alternative="greater").round(6))
    0.039063
    """
    read_choice(alternative, "alternative", ALTERNATIVES)
    given = _read_whole(differences)
    flat = given.reshape(len(given), -1)
    size = max(1, _HELD // max(1, int(np.abs(flat).sum(axis=0).max())))
    parts = [flat[:, start : start + size] for start in range(0, flat.shape[1], size)]
    p = np.concatenate([_p_values(part, alternative) for part in parts])
    return p.reshape(given.shape[1:])[()]


def _read_whole(differences: npt.ArrayLike) -> Counts:
    given = read_sentences(differences, "differences")
    whole = np.rint(given).astype(np.int64)
    if np.any(whole != given):
        raise StatsError(
            f"The differences hold {given[whole != given][0]:g}, which is no whole number; "
            "use sign_flip for differences that are not counts."
        )
    return whole


def _p_values(differences: Counts, alternative: Alternative) -> Floats:
    """The share of sign patterns whose sum is at least as far out, ``[head]``."""
    total, value = np.abs(differences).sum(axis=0), differences.sum(axis=0)
    far = {"greater": value, "less": -value, "two-sided": np.abs(value)}[alternative]
    p = _at_most((total - far) // 2, total, _sizes(np.abs(differences)))
    p = np.where(alternative == "two-sided", 2 * p, p)
    fewest = 2.0 ** ((alternative == "two-sided") - np.count_nonzero(differences, axis=0))
    return np.clip(p, np.maximum(np.minimum(fewest, 1), SMALLEST), 1)


def _sizes(sizes: Counts) -> Counts:
    """How many sentences differ by 1, by 2, ..., ``[head, size]``."""
    most = int(sizes.max(initial=1))
    return np.stack([np.count_nonzero(sizes == k, axis=0) for k in range(1, most + 1)], axis=1)


def _at_most(bound: Counts, total: Counts, sizes: Counts) -> Floats:
    """P(U <= bound): the inverse transform, its sum over 0..bound in closed form (Dirichlet).

    An odd number of frequencies keeps every cosine away from 0. Angles are multiples of pi/n, so
    they are reduced in whole numbers, which is exact.
    """
    n = int(total.max(initial=0)) // 2 * 2 + 1
    n += 2 * (n <= total.max(initial=0))
    j = np.arange(1, n // 2 + 1)
    k = np.arange(1, sizes.shape[1] + 1)
    cosines = _cos(np.outer(k, j), n)
    size = np.exp(sizes @ np.log(np.abs(cosines)))
    sign = 1 - 2 * ((sizes @ (cosines < 0).astype(np.int64)) % 2)
    middle = _cos(np.outer(total - bound, j), n)
    kernel = _sin(np.outer(bound + 1, j), n) / _sin(j, n)
    return np.asarray((bound + 1 + 2 * np.sum(size * sign * middle * kernel, axis=1)) / n)


def _cos(multiple: Counts, n: int) -> Floats:
    return np.asarray(np.cos(np.pi / n * (multiple % (2 * n))))


def _sin(multiple: Counts, n: int) -> Floats:
    return np.asarray(np.sin(np.pi / n * (multiple % (2 * n))))
