"""Alignment: does a cross head look at the source token that is being translated?

Garg et al. 2019, "Jointly learning to align and translate", read links off cross attention. A
target token is predicted in the row before it (`alignment`) and read in its own (`alignment_read`,
the Shift-Att of Chen et al. 2020, "Accurate word alignment induction from neural machine
translation"). No one has linked the tokens by hand, so they are linked two other ways: by a
statistical aligner that was trained on the pairs alone, and, exact but few, by tokens that stand
unchanged on both sides (`alignment_copies`). The baseline is the diagonal: the source token at
the same share of its sentence.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.special import digamma
from torch import Tensor

from headcount.models import Site, Subject
from headcount.records import Column
from headcount.rooms.trials.inputs import measure_of, run_metrics, stream_of, wrapping_of
from headcount.rooms.trials.repeats import id_batches, why_unread
from headcount.stats import Counts, Floats
from headcount.surveys import Finding, Findings, Measure, TrialPlan, interval_of
from headcount.text import Batch, Side, encode, intake_of
from headcount.wiring import Needs, Sighting

# --- Which source token a target token translates, learnt from the pairs alone ------------------
# Brown et al. 1993, IBM Model 1: word translation probabilities by expectation maximisation, here
# with the sparse Dirichlet prior of Riley & Gildea 2012, which keeps rare words from collecting
# links. Places play no part (as they do in fast_align), since the diagonal is the baseline that
# the heads are held against. It is run in both directions, and only the links of which both are
# sure are kept: fewer, and the more to be trusted.

#: A source's and a target's token ids.
Ids = tuple[Sequence[int], Sequence[int]]
#: (target place, source place), at most one for each token of either side.
Links = list[tuple[int, int]]

_NOTHING = -1


@dataclass(frozen=True)
class Aligner:
    """Learns from pairs and links them.

    >>> pairs = [([1, 2], [7, 8]), ([2, 3], [9, 8]), ([3, 1], [7, 9]), ([2], [8])]
    >>> Aligner()(pairs)[1]
    [(0, 1), (1, 0)]
    """

    iterations: int = 10
    #: How much of a token a link must explain, in both directions.
    sure: float = 0.8
    #: The chance that a token translates nothing.
    nothing: float = 0.08
    #: The weight of the prior.
    sparse: float = 0.01

    def __call__(self, pairs: Sequence[Ids]) -> list[Links]:
        """The links of every pair of which both directions are sure, by target place."""
        there = self._one_way(pairs)
        back = self._one_way([(target, source) for source, target in pairs])
        return [
            [(place, found[place]) for place in sorted(found) if other.get(found[place]) == place]
            for found, other in zip(there, back, strict=True)
        ]

    def _one_way(self, pairs: Sequence[Ids]) -> list[dict[int, int]]:
        """For each pair, target place to the source place that it translates, beyond doubt."""
        cells = _cells(pairs, self.nothing)
        for _ in range(self.iterations):
            cells.learn(self.sparse)
        found: list[dict[int, int]] = [{} for _ in pairs]
        for pair, target, source in cells.sure(self.sure):
            found[pair][target] = source
        return found


@dataclass
class _Cells:
    """Every (target token, source token) of every pair, one after another."""

    pair: Counts
    target: Counts
    #: The source place; `_NOTHING` where a target token translates nothing.
    source: Counts
    #: Which target token of which pair a cell belongs to.
    group: Counts
    #: Which kind of (source id, target id), and the source id of each kind, numbered from 0.
    kind: Counts
    source_of_kind: Counts
    prior: Floats
    translation: Floats

    def shares(self) -> Floats:
        """How much of its target token each cell explains."""
        weight = self.translation[self.kind] * self.prior
        shared: Floats = weight / np.bincount(self.group, weight)[self.group]
        return shared

    def learn(self, sparse: float) -> None:
        """One round: expected counts of each kind, then the translations they give."""
        counts = np.bincount(self.kind, self.shares(), len(self.translation)) + sparse
        totals = np.bincount(self.source_of_kind, counts)[self.source_of_kind]
        self.translation = np.exp(digamma(counts) - digamma(totals))

    def sure(self, least: float) -> Iterator[tuple[int, int, int]]:
        """Pair, target place and source place of every cell that explains enough."""
        chosen = np.flatnonzero((self.shares() > least) & (self.source != _NOTHING))
        places = (self.pair[chosen], self.target[chosen], self.source[chosen])
        return zip(*(part.tolist() for part in places), strict=True)


def _cells(pairs: Sequence[Ids], nothing: float) -> _Cells:
    """The cells before anything is learnt: every translation is as likely as any other."""
    blocks = [_block(number, *pair) for number, pair in enumerate(pairs) if all(map(len, pair))]
    pair, target, source, ids, words, width = np.concatenate([np.zeros((6, 0), int), *blocks], 1)
    kinds, kind = np.unique((ids + 1) * (words.max(initial=0) + 1) + words, return_inverse=True)
    sources = kinds // (words.max(initial=0) + 1)
    return _Cells(
        pair=pair,
        target=target,
        source=source,
        group=np.cumsum(source == _NOTHING) - 1,  # every target token's cells begin with it
        kind=kind,
        source_of_kind=np.unique(sources, return_inverse=True)[1],
        prior=np.where(source == _NOTHING, nothing, (1 - nothing) / np.maximum(width, 1)),
        translation=np.ones(len(kinds)),
    )


def _block(number: int, source: Sequence[int], target: Sequence[int]) -> Counts:
    """One pair's cells: pair, target place, source place, source id, target id, source length."""
    rows, columns = len(target), len(source)
    places, ids = np.arange(-1, columns), np.array([_NOTHING, *source])
    return np.stack(
        [
            np.full(rows * (columns + 1), number),
            np.repeat(np.arange(rows), columns + 1),
            np.tile(places, rows),
            np.tile(ids, rows),
            np.repeat(np.asarray(target), columns + 1),
            np.full(rows * (columns + 1), columns),
        ]
    )


# --- Source end: does a cross head rest on the end of the source sentence? ----------------------
# The sink of cross attention: where there is nothing to look for, the weight has to go somewhere,
# as
# that of a decoder goes to its first token. It is the mass on the special tokens that end the
# source
# and on the punctuation just before them.

SOURCE_END = Column(
    "source_end",
    meaning="Mean mass on the end of the source: its end token and the punctuation before it.",
    range=(0, 1),
    direction="higher",
    group="Where it looks",
)

_WHY = "only cross heads look at a source"


@dataclass
class SourceEndMass:
    """The question: how much mass lies on the end of the source?"""

    finding: Finding = field(
        default_factory=lambda: Finding(
            SOURCE_END,
            "the tokens before it, or uniform attention",
            skipped={"enc": _WHY, "dec": _WHY},
        )
    )
    needs = Needs(maps=True)

    def update(self, sighting: Sighting) -> None:
        """Add each pair's mean mass over its target tokens, but for those that end the target.

        There the end of the source is what is to be translated. The baseline is what as many
        tokens just before the end get, or uniform attention where that is more: a head may look at
        the last part of the source for its place.
        """
        if sighting.site.stack != "cross":
            return
        assert sighting.maps is not None
        queries, keys = sighting.queries, sighting.keys
        rows, ends = queries.real & ~source_ends(queries), source_ends(keys)
        there, text = ends.sum(-1), keys.real & ~ends
        last = text & (text.sum(-1, keepdim=True) - text.long().cumsum(-1) < there[:, None])
        hits, near = (
            ((sighting.maps * part[:, None, None]).sum(-1).double() * rows[:, None]).sum(-1)
            for part in (ends, last)
        )
        uniform = there / keys.real.sum(-1).double() * rows.sum(-1)
        chance = torch.maximum(near, uniform[:, None])
        cells = rows.sum(-1) * (there > 0)
        self.finding.counts.add(sighting.site, sighting.batch.index, hits, chance, cells)


def source_ends(side: Side) -> Tensor:
    """True at the special tokens that end a text and at the punctuation just before them."""
    real, text = side.real, side.real & ~side.special
    last = text & (text.long().cumsum(-1) == text.sum(-1, keepdim=True))
    behind = side.special & real & (text.long().cumsum(-1) == text.sum(-1, keepdim=True))
    return behind | (last & side.punctuation)


# --- Alignment ----------------------------------------------------------------------------------


_column = partial(Column, range=(0, 1), direction="higher", group="Where it points")

ALIGNMENT = _column(
    "alignment",
    "Alignment",
    "Share of linked target tokens whose source token is looked at most while they are predicted.",
    "Garg et al. 2019",
)
ALIGNMENT_READ = _column(
    "alignment_read",
    "Alignment when read",
    "Share of linked target tokens whose source token is looked at most while they are read.",
    "Chen et al. 2020, Shift-Att",
)
ALIGNMENT_COPIES = _column(
    "alignment_copies",
    "Alignment of copies",
    "Share of tokens that stand on both sides unchanged whose source is looked at most while they "
    "are predicted.",
    "",
)

SPECIAL = frozenset({"special"})


@dataclass(frozen=True)
class AlignmentHits:
    """The question: is the top source token, special ones aside, the one that is linked?"""

    finding: Finding
    #: Links of each example, by its number; places count tokens of the text, specials left out.
    links: dict[int, Links]
    #: Which row is asked of a target token: -1 the one that predicts it, 0 its own.
    row: int
    needs = Needs(tops=frozenset({SPECIAL}))

    def update(self, sighting: Sighting) -> None:
        """Count the links that each head points along."""
        if sighting.site.stack != "cross":
            return
        keys = sighting.tops[SPECIAL][1]
        counted = [self._example(sighting, row, keys[row]) for row in range(len(keys))]
        hits, chance, cells = (torch.stack(part) for part in zip(*counted, strict=True))
        self.finding.counts.add(sighting.site, sighting.batch.index, hits, chance, cells)

    def _example(self, sighting: Sighting, row: int, top: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Hits of each head, of the diagonal, and links, in one example."""
        links = self.links[sighting.batch.index[row]]
        targets, sources = _places(sighting.queries, row), _places(sighting.keys, row)
        pairs = torch.tensor(links, dtype=torch.long, device=top.device).reshape(-1, 2)
        wanted = sources[pairs[:, 1]]
        hits = (top[:, targets[pairs[:, 0]] + self.row] == wanted).sum(-1)
        straight = diagonal(pairs[:, 0], len(targets), len(sources))
        cells = torch.tensor(len(links), device=top.device)
        return hits, (straight == pairs[:, 1]).sum(), cells


def diagonal(places: Tensor, targets: int, sources: int) -> Tensor:
    """The source place at the same share of the sentence as each target place.

    >>> diagonal(torch.tensor([0, 1, 2, 3]), 4, 2).tolist()
    [0, 0, 1, 1]
    """
    return ((places + 0.5) * sources / max(targets, 1)).long().clamp(0, max(sources - 1, 0))


def linked(run: Sequence[Batch], rest: Sequence[Batch], aligner: Aligner) -> dict[int, Links]:
    """Links of every example that is run, by an aligner that learns from the rest too.

    Examples count by their number, so that the links do not depend on the batches.
    """
    read = {number: ids for batch in run for number, ids in _ids(batch)}
    more = {number: ids for batch in rest for number, ids in _ids(batch)}
    learnt = [part[number] for part in (read, more) for number in sorted(part)]
    return dict(zip(sorted(read), aligner(learnt), strict=False))


def copies(batches: Sequence[Batch]) -> dict[int, Links]:
    """Links of every example by tokens that stand once on each side and look the same.

    Only tokens with a digit or a capital count, and not the first of a text: a small word that
    two languages share may well mean something else.
    """
    found: dict[int, Links] = {}
    for batch in batches:
        for row, number in enumerate(batch.index):
            source, target = (_written(batch.sides[side], row) for side in ("source", "target"))
            found[number] = [
                (place, source.index(token))
                for place, token in enumerate(target)
                if place
                and source.count(token) == target.count(token) == 1
                and source[0] != token
                and any(letter.isdigit() or letter.isupper() for letter in token)
            ]
    return found


def _places(side: Side, row: int) -> Tensor:
    """Where the tokens of the text stand, specials and padding left out."""
    return (side.real[row] & ~side.special[row]).nonzero()[:, 0]


def _ids(batch: Batch) -> Iterator[tuple[int, Ids]]:
    """Each example's number and the ids of its two texts."""
    source, target = batch.sides["source"], batch.sides["target"]
    for row, number in enumerate(batch.index):
        texts = (side.ids[row][_places(side, row)].tolist() for side in (source, target))
        yield number, (next(texts), next(texts))


def _written(side: Side, row: int) -> list[str]:
    """The tokens of the text as the tokenizer writes them."""
    special = side.special[row][side.real[row]].tolist()
    return [token for token, added in zip(side.tokens[row], special, strict=True) if not added]


# --- Attention sink -----------------------------------------------------------------------------
# Xiao et al. 2024, "Efficient streaming language models with attention sinks", section 3.1; the
# figure is that of Gu et al. 2025, "When attention sink emerges in language models": mean weight on
# the first token from later ones, on natural text of a fixed length. Texts are run as the tokenizer
# writes them, and once more with the begin-of-sequence token put in front or taken away, for a
# sink may be that token or the place.

SINK = Column(
    "sink",
    title="Attention sink",
    meaning="Mean weight on the first token from later tokens of natural text.",
    paper="Xiao et al. 2024, section 3.1; Gu et al. 2025",
    range=(0, 1),
    direction="higher",
    group="Where it looks",
)

#: A text counts as resting on its first token above this mean weight (Gu et al. 2025).
RESTING = 0.3

_SILENT_SINK = {
    "enc": "sinks of encoders are special tokens: see the separator columns",
    "cross": "the sink of cross heads is the end of the source: see source_end",
}
_ALL = frozenset[str]()


@dataclass
class SinkMass:
    """The question: weight on the first token, and which token gets the most, from later rows."""

    #: Rows before this place are not asked: they see little else.
    after: int = 4
    finding: Finding = field(
        default_factory=lambda: Finding(
            SINK, "the second token, or uniform attention", skipped=dict(_SILENT_SINK)
        )
    )
    #: How often each token was the top of a head's rows, and under None the first one.
    tops: dict[Site, list[Counter[int | None]]] = field(default_factory=lambda: defaultdict(list))
    #: What uniform attention would give the first token, and over how many rows.
    uniform: dict[Site, list[float]] = field(default_factory=lambda: defaultdict(lambda: [0.0, 0]))
    needs = Needs(masses=frozenset({"first"}), tops=frozenset({_ALL}), maps=True)

    def update(self, sighting: Sighting) -> None:
        """Add each text's mean weight on its first token, beside that on its second.

        A head that looks at the beginning for its place gives both about as much.
        """
        if sighting.site.stack != "dec":
            return
        assert sighting.maps is not None
        real, keys = sighting.queries.real, sighting.keys.real
        rows = real & (real.long().cumsum(-1) > self.after)
        hits = (sighting.masses["first"].double() * rows[:, None]).sum(-1)
        second = keys & (keys.long().cumsum(-1) == 2)
        beside = ((sighting.maps * second[:, None, None]).sum(-1).double() * rows[:, None]).sum(-1)
        uniform = (rows / sighting.visible.clamp_min(1).double()).sum(-1)
        chance = torch.maximum(beside, uniform[:, None])
        self.finding.counts.add(sighting.site, sighting.batch.index, hits, chance, rows.sum(-1))
        known = self.uniform[sighting.site]
        known[0], known[1] = known[0] + float(uniform.sum()), known[1] + int(rows.sum())
        self._count(sighting, rows)

    def _count(self, sighting: Sighting, rows: Tensor) -> None:
        """Note which token is the top of each row, and whether it is the first."""
        counters = self.tops[sighting.site]
        counters += [Counter() for _ in range(sighting.site.heads - len(counters))]
        key = sighting.tops[_ALL][1]
        ids = torch.gather(sighting.keys.ids[:, None].expand(-1, key.shape[1], -1), 2, key)
        first = key == sighting.keys.real.long().argmax(-1)[:, None, None]
        for head, counter in enumerate(counters):
            counter.update(ids[:, head][rows].tolist())
            counter[None] += int(first[:, head][rows].sum())


@dataclass(frozen=True)
class SinkTrial:
    """Windows of natural text through a decoder; answers `sink`, with `sinks` in the details."""

    texts: Sequence[str]
    length: int = 64
    examples: int = 20
    batch_size: int = 8
    name = "sink"
    columns: tuple[Column, ...] = (SINK,)

    def unfit(self, subject: Subject) -> str | None:
        """Only decoder-only models that read text; a translator is asked on its pairs."""
        return why_unread(subject)

    def __call__(self, subject: Subject) -> Findings:
        """Run the windows with and without a begin-of-sequence token."""
        stream, frames, own = stream_of(subject, self.texts), [], SinkMass()
        for name, before in _beginnings(subject).items():
            resting = SinkMass()
            cut = stream.windows(self.length - len(before), self.examples)
            rows = [before + ids for ids in cut]
            run_metrics(subject, id_batches(subject, rows, self.batch_size), [resting])
            frames.append(sink_frame(subject, resting, name))
            own = resting if not own.finding.counts.examples else own
        return Findings([own.finding], details={"sinks": pd.concat(frames, ignore_index=True)})


def _beginnings(subject: Subject) -> dict[str, list[int]]:
    """What stands in front of a text: the tokenizer's own way first, then the other way."""
    own = list(wrapping_of(subject).before)
    begin = getattr(subject.tokenizer, "bos_token_id", None)
    if own:
        return {"as written": own, "without BOS": []}
    return {"as written": []} | ({} if begin is None else {"with BOS": [int(begin)]})


def sink_frame(subject: Subject, resting: SinkMass, text: str) -> pd.DataFrame:
    """One row per head: weight on the first token, texts in which it is the top key, the sink.

    `first_top` is the share of rows whose largest weight is on the first token; `token` is the
    one that is most often the top, wherever it stands, with its share.
    """
    marks = resting.finding.counts
    asked = [site for site in marks if marks.of(site).cells.any()]
    frames = [_site_frame(subject, resting, site) for site in asked]
    return pd.concat(frames, ignore_index=True).assign(text=text) if frames else pd.DataFrame()


def _site_frame(subject: Subject, resting: SinkMass, site: Site) -> pd.DataFrame:
    counted = resting.finding.counts.of(site)
    value, low, high = interval_of(counted, (0, 1))
    rows = int(counted.cells[:, 0].sum())
    written: Any = getattr(subject.tokenizer, "convert_ids_to_tokens", None)
    seen = [(counter.pop(None), *counter.most_common(1)[0]) for counter in resting.tops[site]]
    return pd.DataFrame(
        {
            "stack": site.stack,
            "layer": site.layer,
            "head": site.indices,
            "value": value,
            "low": low,
            "high": high,
            "uniform": resting.uniform[site][0] / max(resting.uniform[site][1], 1),
            "resting_texts": (counted.hits > RESTING * counted.cells).mean(axis=0),
            "first_top": [first / rows for first, _, _ in seen],
            "token": [str(written(number) if written else number) for _, number, _ in seen],
            "token_top": [times / rows for _, _, times in seen],
        }
    )


# --- Pairs through a translator -----------------------------------------------------------------

_SELF = "only cross heads link two texts"
_SILENT = {"enc": _SELF, "dec": _SELF}


@dataclass(frozen=True)
class Pairs:
    """Sources with their translations; answers the alignment columns, `source_end` and `sink`."""

    pairs: Sequence[tuple[str, str]]
    #: How many pairs are run through the model, and from how many (these among them) the aligner
    #: learns.
    examples: int = 200
    learning: int = 2_500
    aligner: Aligner = field(default_factory=Aligner)
    batch_size: int = 16
    name = "pairs"
    columns: tuple[Column, ...] = (ALIGNMENT, ALIGNMENT_READ, ALIGNMENT_COPIES, SOURCE_END, SINK)

    def unfit(self, subject: Subject) -> str | None:
        """Only encoder-decoders that read text, and only where there are pairs."""
        if "cross" not in subject.anatomy.stacks:
            return "the model has no cross heads"
        if subject.tokenizer is None:
            return "the model has no tokenizer to read text"
        return None if self.pairs else "there are no pairs of texts"

    def __call__(self, subject: Subject) -> Findings:
        """Link the pairs' tokens, run some of them, and ask all questions."""
        run = _encoded(subject, self.pairs[: self.examples], self.batch_size)
        rest = _encoded(subject, self.pairs[self.examples : self.learning], self.batch_size)
        links, exact = linked(run, rest, self.aligner), copies(run)
        aligned = [
            AlignmentHits(Finding(column, "the diagonal", skipped=dict(_SILENT)), known, row)
            for column, known, row in (
                (ALIGNMENT, links, -1),
                (ALIGNMENT_READ, links, 0),
                (ALIGNMENT_COPIES, exact, -1),
            )
        ]
        ending, resting = SourceEndMass(), SinkMass()
        run_metrics(subject, run, [*aligned, ending, resting], ("dec", "cross"))
        found = [*(question.finding for question in aligned), ending.finding, resting.finding]
        sinks = sink_frame(subject, resting, "as written")
        return Findings(found, _measures(self.name, links, exact), {"sinks": sinks})


def _encoded(subject: Subject, pairs: Sequence[tuple[str, str]], batch_size: int) -> list[Batch]:
    """Pairs in batches; none where there are none."""
    if not pairs:
        return []
    return list(
        encode(
            list(pairs),
            subject.tokenizer,
            stacks=subject.anatomy.stacks,
            intake=intake_of(subject.model, subject.tokenizer),
            batch_size=batch_size,
        )
    )


def _measures(trial: str, links: dict[int, Links], exact: dict[int, Links]) -> list[Measure]:
    """How far the aligner can be trusted: the copies that it links, and links rightly."""
    right = np.array([len({*links[number]} & {*exact[number]}) for number in exact], dtype=float)
    touched = [{place for place, _ in links[number]} for number in exact]
    tried = [
        sum(place in seen for place, _ in exact[number])
        for number, seen in zip(exact, touched, strict=True)
    ]
    there = [len(exact[number]) for number in exact]
    names = ("copies that the aligner links", "links of copies that are right")
    return [
        measure_of(trial, name, right, np.array(cells, dtype=float), (0, 1))
        for name, cells in zip(names, (there, tried), strict=True)
        if any(cells)
    ]


#: Both among the trials of the registry.
SINKS_PLAN = TrialPlan(lambda given: SinkTrial(given.texts))
PAIRS_PLAN = TrialPlan(lambda given: Pairs(given.pairs))
