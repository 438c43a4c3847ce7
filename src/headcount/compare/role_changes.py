"""Roles that heads kept, lost and won."""

from __future__ import annotations

import pandas as pd

__all__ = ["role_changes"]

_KEY = ["stack", "layer", "head", "role", "label"]


def role_changes(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """A row for each role that a head has in one of two frames of verdicts, or in both.

    >>> one = pd.DataFrame([("enc", 0, 1, "rare", "rarest token", 0.5)], columns=[*_KEY, "value"])
    >>> role_changes(one, one[:0])[["head", "change"]].values.tolist()
    [[1, 'lost']]
    """
    ours, theirs = (frame[[*_KEY, "value"]].drop_duplicates(_KEY) for frame in (before, after))
    types = {"layer": "int64", "head": "int64"}
    both = ours.astype(types).merge(
        theirs.astype(types), on=_KEY, how="outer", suffixes=("_before", "_after"), indicator=True
    )
    words = {"both": "kept", "left_only": "lost", "right_only": "won"}
    change = both.pop("_merge").astype(str).map(words)
    return both.assign(change=change)
