"""What BLEU counts in every sentence of a run, kept in the run's own JSON."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence

import numpy as np

from headcount.stats.sample import Floats
from headcount.tasks.translations import bleu_counts

__all__ = ["packed_counts", "unpacked_counts"]


def packed_counts(said: Sequence[str], right: Sequence[str]) -> str:
    """Ten numbers a sentence in a few bytes, so that sentences can be drawn again without them.

    >>> unpacked_counts(packed_counts(["a b c"], ["a b d"])).astype(int).tolist()
    [[3, 3, 2, 1, 0, 0, 3, 2, 1, 0]]
    """
    rows = [bleu_counts(*row) for row in zip(said, right, strict=True)]
    return base64.b64encode(zlib.compress(np.array(rows, dtype="<u2").tobytes(), 9)).decode()


def unpacked_counts(text: str) -> Floats:
    """The same again, as `headcount.stats.bleu` takes them. `[sentence, 10]`"""
    flat = np.frombuffer(zlib.decompress(base64.b64decode(text)), "<u2")
    return flat.reshape(-1, 10).astype(float)
