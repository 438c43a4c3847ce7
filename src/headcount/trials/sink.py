"""Attention sink: does a head rest on the first token, whatever stands there?

Xiao et al. 2024, "Efficient streaming language models with attention sinks", section 3.1; the
figure is that of Gu et al. 2025, "When attention sink emerges in language models": mean weight on
the first token from later ones, on natural text of a fixed length. Texts are run as the tokenizer
writes them, and once more with the begin-of-sequence token put in front or taken away, for a
sink may be that token or the place.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pandas as pd
import torch
from torch import Tensor

from headcount.columns import Column
from headcount.models.site import Site
from headcount.subject import Subject
from headcount.text.batch import Batch, ready_batch
from headcount.trials.answer import interval_of
from headcount.trials.question import Finding, Findings, ask
from headcount.trials.stream import Stream, stream_of
from headcount.trials.wrapping import wrapping_of
from headcount.wiring import Needs, Sighting

__all__ = ["SINK", "Resting", "Sink", "sink_frame"]

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

_SILENT = {
    "enc": "sinks of encoders are special tokens: see the separator columns",
    "cross": "the sink of cross heads is the end of the source: see source_end",
}
_ALL = frozenset[str]()


@dataclass
class Resting:
    """The question: weight on the first token, and which token gets the most, from later rows."""

    #: Rows before this place are not asked: they see little else.
    after: int = 4
    finding: Finding = field(
        default_factory=lambda: Finding(SINK, "uniform attention", silent=dict(_SILENT))
    )
    #: How often each token was the top of a head's rows, and under None the first one.
    tops: dict[Site, list[Counter[int | None]]] = field(default_factory=lambda: defaultdict(list))
    needs = Needs(masses=frozenset({"first"}), tops=frozenset({_ALL}))

    def update(self, sighting: Sighting) -> None:
        """Add each text's mean weight on its first token."""
        if sighting.site.stack != "dec":
            return
        real = sighting.queries.real
        rows = real & (real.long().cumsum(-1) > self.after)
        hits = (sighting.masses["first"].double() * rows[:, None]).sum(-1)
        chance = (rows / sighting.visible.clamp_min(1).double()).sum(-1)
        self.finding.marks.add(sighting.site, sighting.batch.index, hits, chance, rows.sum(-1))
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
class Sink:
    """Windows of natural text through a decoder; answers `sink`, with `sinks` in the details."""

    texts: Sequence[str]
    length: int = 64
    examples: int = 20
    batch_size: int = 8
    name = "sink"
    columns: tuple[Column, ...] = (SINK,)

    def unfit(self, subject: Subject) -> str | None:
        """Only decoder-only models that read text; a translator is asked on its pairs."""
        if subject.kind != "dec":
            return "only decoders that read text by themselves are asked"
        return "the model has no tokenizer to read text" if subject.tokenizer is None else None

    def __call__(self, subject: Subject) -> Findings:
        """Run the windows with and without a begin-of-sequence token."""
        stream, frames, own = stream_of(subject, self.texts), [], Resting()
        for name, before in _beginnings(subject).items():
            resting = Resting()
            ask(subject, self._batches(subject, stream, before), [resting])
            frames.append(sink_frame(subject, resting, name))
            own = resting if not own.finding.marks.examples else own
        return Findings([own.finding], details={"sinks": pd.concat(frames, ignore_index=True)})

    def _batches(self, subject: Subject, stream: Stream, before: list[int]) -> Iterator[Batch]:
        rows = [before + ids for ids in stream.windows(self.length - len(before), self.examples)]
        for first in range(0, len(rows), self.batch_size):
            ids = torch.tensor(rows[first : first + self.batch_size])
            inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
            yield ready_batch(inputs, subject.anatomy.stacks, first)


def _beginnings(subject: Subject) -> dict[str, list[int]]:
    """What stands in front of a text: the tokenizer's own way first, then the other way."""
    own = list(wrapping_of(subject).before)
    begin = getattr(subject.tokenizer, "bos_token_id", None)
    if own:
        return {"as written": own, "without BOS": []}
    return {"as written": []} | ({} if begin is None else {"with BOS": [int(begin)]})


def sink_frame(subject: Subject, resting: Resting, text: str) -> pd.DataFrame:
    """One row a head: weight on the first token, texts that rest there, and who is the sink.

    `first_top` is the share of rows whose largest weight is on the first token; `token` is the
    one that is most often the top, wherever it stands, with its share.
    """
    marks = resting.finding.marks
    asked = [site for site in marks if marks.of(site).cells.any()]
    frames = [_site_frame(subject, resting, site) for site in asked]
    return pd.concat(frames, ignore_index=True).assign(text=text) if frames else pd.DataFrame()


def _site_frame(subject: Subject, resting: Resting, site: Site) -> pd.DataFrame:
    counted = resting.finding.marks.of(site)
    value, low, high = interval_of(counted, (0, 1))
    rows = int(counted.cells[:, 0].sum())
    seen = [(counter.pop(None), *counter.most_common(1)[0]) for counter in resting.tops[site]]
    return pd.DataFrame(
        {
            "stack": site.stack,
            "layer": site.layer,
            "head": site.indices,
            "value": value,
            "low": low,
            "high": high,
            "resting_texts": (counted.hits > RESTING * counted.cells).mean(axis=0),
            "first_top": [first / rows for first, _, _ in seen],
            "token": [_written(subject, number) for _, number, _ in seen],
            "token_top": [times / rows for _, _, times in seen],
        }
    )


def _written(subject: Subject, number: int | None) -> str:
    tokenizer = subject.tokenizer
    return str(number) if tokenizer is None else str(tokenizer.convert_ids_to_tokens(number))
