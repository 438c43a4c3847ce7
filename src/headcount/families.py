"""Families of heads over a corpus: distances between all pairs, a map, clusters, nearest heads."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from headcount import provenance
from headcount.errors import UsageError
from headcount.head_families import Families, families_of
from headcount.models.finite import refuse_nan
from headcount.progress import Progress
from headcount.stages.passing import Manner, passed
from headcount.subject import Subject
from headcount.survey import stacks_of
from headcount.tallies.divergence import Divergence
from headcount.text import read_corpus
from headcount.text.encode import Long
from headcount.text.ready import Ready, is_ready

__all__ = ["families", "families_of_tally"]


def families(
    subject: Subject,
    corpus: Any,
    *,
    convention: str = "headcount",
    stacks: Collection[str] | None = None,
    batch_size: int = 8,
    max_length: int | None = None,
    long: Long = "window",
    limit: int | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Families:
    """Which heads of each stack are alike: Jensen-Shannon divergences of their attention.

    Clark et al. 2019, section 6. `found.js` is the mean over tokens and `found.js_sum` the sum;
    `found.near("enc.5.3")` tells the nearest heads, `found.silhouette` whether heads of a layer lie
    together. One batch's maps of all layers are in memory at a time, whatever the corpus.

    >>> from headcount.models.load import load
    >>> families(load("minilm"), ["The cat sat."]).near("enc.0.0")    # doctest: +SKIP
    """
    if not isinstance(subject, Subject):
        raise UsageError(f"families takes a Subject, not {subject!r}; make one with hc.load(name).")
    manner = Manner(stacks_of(subject, stacks), batch_size, max_length, long)
    source = (
        Ready(corpus, subject.anatomy.stacks)
        if is_ready(corpus)
        else read_corpus(corpus, limit=limit, seed=seed)
    )
    tally = Divergence(convention)
    report = passed(subject, source, [tally], manner, progress)
    about = provenance.collect(
        model=subject.name,
        weights=subject.weights_hash,
        corpus=source.name,
        data=source.hash,
        counts=vars(report) | {"tokens": dict(report.tokens)},
        convention=convention,
        settings=manner.to_dict(),
        seed=seed,
    )
    return families_of_tally(subject, tally, seed=seed or 0, about=about)


def families_of_tally(
    subject: Subject, tally: Divergence, *, seed: int = 0, about: dict[str, Any] | None = None
) -> Families:
    """Families from what a tally summed up, in the order of the subject's heads."""
    pairs = tally.pairs()
    for stack, one in pairs.items():
        if np.isnan(one.js_sum).any():
            refuse_nan(subject, stack)
    return families_of(subject.heads, pairs, seed=seed, provenance=about)
