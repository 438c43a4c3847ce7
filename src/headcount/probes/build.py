"""A fresh probe of each kind."""

from __future__ import annotations

from torch import Tensor

from headcount.errors import UsageError
from headcount.probes.attention_scores import AttentionScores
from headcount.probes.distance_scores import DistanceScores
from headcount.probes.scorer import Scorer
from headcount.probes.word_scores import WordScores

__all__ = ["fresh"]


def fresh(
    kind: str, heads: int, vectors: Tensor | None, *, seed: int = 0, shifted: bool = False
) -> Scorer:
    """A probe with numbers drawn from a seed.

    >>> type(fresh("attention", 72, None)).__name__
    'AttentionScores'
    """
    if kind == "attention":
        return AttentionScores(heads, seed)
    if vectors is None:
        raise UsageError(f"The probe '{kind}' needs vectors of words; give --words (words=).")
    if kind == "distances":
        return DistanceScores(vectors, seed, shifted)
    return WordScores(heads, vectors, seed, shifted)
