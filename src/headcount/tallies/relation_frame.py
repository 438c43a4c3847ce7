"""Counts become the frame `relations`: a row for each head, relation, direction and split."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from headcount import stats
from headcount.errors import StatsError, UsageError
from headcount.run import FRAMES
from headcount.tallies.relation_counts import ALL, RelationCounts
from headcount.tallies.relation_figures import RelationTest, figures_by_split, in_selection

__all__ = ["COLUMNS", "relation_frame"]

#: The promised columns, then ours.
COLUMNS = (*FRAMES["relations"], "p_bh", "sentences", "selected", "note")

_KEY = ["stack", "relation", "direction"]


def relation_frame(
    counts: Sequence[RelationCounts], test: RelationTest, *, root: bool = False
) -> pd.DataFrame:
    """A row for each head, relation, direction and split; `root` keeps the root's own row."""
    _check_relations(counts, test)
    blocks = [block for one in counts for block in _blocks(one, test, root)]
    if not blocks:
        return pd.DataFrame(columns=list(COLUMNS))
    return _corrected(_stacked(blocks), test)


def _check_relations(counts: Sequence[RelationCounts], test: RelationTest) -> None:
    """Refuse a relation that was asked for and never occurs."""
    there = {name for one in counts for sub in (True, False) for name in one.relations(sub)} | {ALL}
    for name in test.relations or ():
        if name not in there:
            near = difflib.get_close_matches(name, there, n=1)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(sorted(there))}."
            raise UsageError(f"The relation '{name}' never occurs in this treebank; {hint}")


def _names(counts: RelationCounts, test: RelationTest, root: bool) -> list[str]:
    if test.relations is not None:
        return list(test.relations)
    found = counts.relations(test.subtypes)
    return [ALL, *(name for name in found if name != "_" and (root or name.lower() != "root"))]


def _blocks(counts: RelationCounts, test: RelationTest, root: bool) -> Iterator[dict[str, Any]]:
    """One block of rows, a head each, for every relation, direction and split that has arcs."""
    chosen = in_selection(counts.units, test.seed)
    stack, layer, head = zip(*counts.heads, strict=True)
    for relation in _names(counts, test, root):
        for direction in counts.directions:
            found = counts.of(relation, direction, test.subtypes)
            for figures in figures_by_split(found, chosen[found.unit], counts.tried, test):
                key = {"relation": relation, "direction": direction}
                yield {"stack": stack, "layer": layer, "head": head, **key, **figures}


def _stacked(blocks: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Blocks below one another; what is one value for a block is repeated for its heads."""
    sizes = [len(block["head"]) for block in blocks]
    return pd.DataFrame(
        {
            name: np.concatenate(
                [
                    np.broadcast_to(block[name], size)
                    for block, size in zip(blocks, sizes, strict=True)
                ]
            )
            for name in blocks[0]
        }
    )


def _corrected(frame: pd.DataFrame, test: RelationTest) -> pd.DataFrame:
    """Drop the tests that cannot answer, with the reason, and correct the others together."""
    tests = int(frame["p"].notna().sum())
    for _, group in frame[frame["p"].notna()].groupby(_KEY, sort=False):
        why = _why_none(int(group["sentences"].iloc[0]), tests, test.level)
        if why:
            frame.loc[group.index, "p"] = np.nan
            frame.loc[group.index, "note"] = why
    p = frame["p"].to_numpy(dtype=float)
    adjusted = {"p_adjusted": stats.holm(p), "p_bh": stats.benjamini_hochberg(p)}
    return frame.assign(**adjusted)[list(COLUMNS)]


def _why_none(sentences: int, tests: int, level: float) -> str:
    try:
        stats.check_resolution(tests=tests, sentences=sentences, level=level, alternative="greater")
    except StatsError as error:
        return str(error)
    return ""
