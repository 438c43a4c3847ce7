"""Families of heads over a corpus: distances between all pairs, a map, clusters, nearest heads."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from headcount.models import Subject, check_subject, refuse_nan
from headcount.records import old_keywords, provenance
from headcount.rooms.families.divergence import Divergence
from headcount.rooms.families.similarity import Families, families_of
from headcount.surveys import PassOptions, run_pass, stacks_of
from headcount.text import Long, Ready, is_ready, read_corpus

if TYPE_CHECKING:
    from rich.table import Table


# --- Families of heads over a corpus ------------------------------------------------------------


@old_keywords()
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
) -> Families:
    """Which heads of each stack are alike: Jensen-Shannon divergences of their attention.

    Clark et al. 2019, section 6. `found.js` is the mean over tokens and `found.js_sum` the sum;
    `found.near("enc.5.3")` gives the nearest heads, `found.silhouette` whether heads of a layer lie
    together. One batch's maps of all layers are in memory at a time, whatever the corpus.

    >>> from headcount.models.loading import load
    >>> families(load("minilm"), ["The cat sat."]).near("enc.0.0")    # doctest: +SKIP
    """
    check_subject(subject, "families(subject, corpus)")
    inputs = PassOptions(stacks_of(subject, stacks), batch_size, max_length, long)
    source = (
        Ready(corpus, subject.anatomy.stacks)
        if is_ready(corpus)
        else read_corpus(corpus, limit=limit, seed=seed)
    )
    tally = Divergence(convention)
    report = run_pass(subject, source, [tally], inputs, "Comparing heads")
    about = provenance.collect(
        model=subject.name,
        weights=subject.weights_hash,
        corpus=source.name,
        data=source.hash,
        counts=vars(report) | {"tokens": dict(report.tokens)},
        convention=convention,
        settings=inputs.to_dict(),
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


# --- Families of heads for a terminal -----------------------------------------------------------


def family_sentences(found: Families) -> list[str]:
    """A sentence or two for each stack: clusters, and whether heads of one layer lie together."""
    return [_sentence(found, number, stack) for number, stack in enumerate(found.stacks)]


def _sentence(found: Families, number: int, stack: str) -> str:
    rows = [place for place, head in enumerate(found.heads) if head.stack == stack]
    clusters = found.count(stack)
    groups = (
        f"{clusters} clusters"
        if clusters > 1
        else "no clear clusters (mean silhouette below 0.25 however they are cut)"
    )
    words = f"{stack}: {len(rows)} heads in {groups}; stress of the map {found.stress[number]:.2f}."
    value, p = found.silhouette[number], found.silhouette_p[number]
    if np.isnan(value):
        return words
    low, high = found.silhouette_shuffled[number]
    return (
        f"{words} Heads of a layer: silhouette {value:+.3f}, shuffled {low:+.3f} to {high:+.3f}, "
        f"p {'=' if p > 0.0005 else '<'} {max(p, 0.0005):.2g}."
    )


def draw_nearest(found: Families, n: int = 10) -> Table:
    """The pairs of heads that are most alike, and of each the divergence; rich prints it."""
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False, title_justify="left")
    for title in ("heads most alike", "", "JS (nats a token)", "clusters"):
        table.add_column(title, justify="right" if "JS" in title else "left", no_wrap=True)
    for first, second in _closest(found, n):
        a, b = found.heads[first], found.heads[second]
        groups = f"{found.cluster[first]}, {found.cluster[second]}"
        table.add_row(str(a), str(b), f"{found.js[first, second]:.4f}", groups)
    return table


def _closest(found: Families, n: int) -> list[tuple[int, int]]:
    apart = np.where(np.tri(len(found.heads), dtype=bool), np.nan, found.js).ravel()
    order = np.argsort(apart, kind="stable")[: min(n, int(np.isfinite(apart).sum()))]
    return [divmod(int(place), len(found.heads)) for place in order]
