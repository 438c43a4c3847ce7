"""Whether a ratio of sums over sentences lies above a known value, from streaming sums."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr, stdtrit

from headcount.stats.intervals import ratio_interval
from headcount.stats.results import Floats

__all__ = ["ratio_test"]

#: Two values closer than this are a tie: sums in another order round otherwise.
_TIE = 1e-12


def ratio_test(
    x: npt.ArrayLike,
    n: npt.ArrayLike,
    xx: npt.ArrayLike,
    xn: npt.ArrayLike,
    nn: npt.ArrayLike,
    sentences: npt.ArrayLike,
    null: npt.ArrayLike = 0.0,
) -> Floats:
    """One-sided p of "Σx / Σn is at most `null`", sentences being the unit.

    Student's t on the delta method's error (Cochran 1977, section 2.11), never below 2^-sentences:
    so often would sentences that all lie above have done so by mere signs. NaN where the ratio is
    undefined or fewer than two sentences were seen.

    >>> x, n = np.array([3.0, 2, 4, 1]), np.array([4.0, 5, 4, 3])
    >>> round(float(ratio_test(x.sum(), n.sum(), x @ x, x @ n, n @ n, len(x), null=0.4)), 3)
    0.12
    """
    value, low, _ = ratio_interval(x, n, xx, xn, nn, sentences, confidence=0.5)
    rows = np.broadcast_to(np.asarray(sentences, dtype=np.float64), value.shape)
    degrees = np.maximum(rows - 1, 1)
    # Half of a 50% interval is t(0.75) errors wide.
    error = (value - low) / stdtrit(degrees, 0.75)
    away = value - np.asarray(null, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.where(np.abs(away) <= _TIE, 0.0, away / error)
    p = np.maximum(stdtr(degrees, -t), 0.5 ** np.minimum(rows, 1000))
    return np.where(np.isnan(value) | (rows < 2), np.nan, p)[()]
