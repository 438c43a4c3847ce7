"""Which heads a probe relies on: each one's part in the scores of right arcs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from headcount.columns import Column
from headcount.heads import Head
from headcount.probes.batch import batch_of, in_order
from headcount.probes.example import UNKNOWN, Example
from headcount.probes.scorer import Scorer
from headcount.stats import bootstrap_interval, ratio
from headcount.table import HeadTable

__all__ = ["PROBE_WEIGHT", "reliance"]

PROBE_WEIGHT = Column(
    "probe_weight",
    title="Probe weight",
    meaning="What this head adds to the score of a gold arc in a probe of all heads together, "
    "above what it adds to the mean candidate of the same word; they add up to the probe's margin.",
    paper="Clark et al. 2019, section 5",
    direction="higher",
    more="relied on more",
    group="What it does",
    format=".3f",
    diverging=True,
)
_AT_ONCE = 8


def reliance(
    scorer: Scorer,
    examples: Sequence[Example],
    probed: Sequence[Head],
    heads: Sequence[Head],
    **about: Any,
) -> HeadTable:
    """The column `probe_weight` of a table of `heads`, with intervals over sentences.

    Softmax takes no notice of what all candidates of a word get alike, so only the margin over
    their mean counts. Heads of other stacks than the probed one are NA.
    """
    sums = np.array([row for group in in_order(examples, _AT_ONCE) for row in _sums(scorer, group)])
    found = bootstrap_interval(sums) if len(sums) > 1 else _of_one(sums[0])
    spots = {head: spot for spot, head in enumerate(probed)}
    values, low, high = (
        [float(part[spots[head]]) if head in spots else np.nan for head in heads] for part in found
    )
    name, notes = PROBE_WEIGHT.name, {}
    if len(spots) < len(heads):
        others = sorted({head.stack for head in heads} - {head.stack for head in probed})
        notes[name] = "; ".join(
            f"{stack}: a probe reads {probed[0].stack} alone" for stack in others
        )
    return HeadTable.of(
        list(heads), {name: values}, [PROBE_WEIGHT], low={name: low}, high={name: high},
        notes=notes, **about,
    )  # fmt: skip


def _of_one(sums: np.ndarray) -> tuple[np.ndarray, ...]:
    """One sentence has values, and no interval."""
    unknown = np.full(len(sums), np.nan)
    return ratio(sums), unknown, unknown


@torch.no_grad()
def _sums(scorer: Scorer, examples: Sequence[Example]) -> list[np.ndarray]:
    """``[head, 2]`` of each sentence: the sum of margins on gold arcs, and their number."""
    batch = batch_of(examples, next(scorer.parameters()).device)
    parts = scorer.contributions(batch).double()
    there = batch.candidates[:, None, None].double()
    mean = (parts * there).sum(-1) / there.sum(-1)
    gold = batch.heads.clamp(min=0)[:, None, :, None].expand(-1, parts.shape[1], -1, 1)
    known = (batch.heads != UNKNOWN)[:, None]
    margins = ((parts.gather(-1, gold)[..., 0] - mean) * known).sum(-1)
    return list(torch.stack([margins, known.sum(-1).expand_as(margins)], dim=-1).cpu().numpy())
