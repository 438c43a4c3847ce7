"""Batches made by hand, and the tallies run over them: what the laws of tallies are tried on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from unittest import mock

import torch
from torch import Tensor

from headcount.models.subject import Subject
from headcount.records.table import HeadTable
from headcount.surveys.surveying import COLUMNS, chosen_tallies, no_author_code
from headcount.surveys.tally import Tally, readings_of, tabulate
from headcount.text.batch import Batch, Side
from headcount.wiring import TILE, Needs, tap, taps

SEPARATOR, STOP, MARK = 2, 5, 6  # ids that mean something in these texts


@dataclass(frozen=True)
class Text:
    """Token ids of one made-up sentence, and of its translation for a translator."""

    source: tuple[int, ...]
    target: tuple[int, ...] = ()


def draw_texts(count: int, seed: int = 0, longest: int = 9) -> list[Text]:
    """Sentences of 2 tokens and more: words, stops, marks, and a separator at the end of most."""
    noise = torch.Generator().manual_seed(seed)

    def ids(ends: bool) -> tuple[int, ...]:
        length = int(torch.randint(2, longest, (), generator=noise))
        body = torch.randint(5, 40, (length,), generator=noise).tolist()
        return (1, *body[1:], SEPARATOR) if ends else tuple(body)

    return [Text(ids(n % 4 != 3), ids(False)) for n in range(count)]


def side_of(rows: Sequence[Sequence[int]], left: bool = False, extra: int = 0) -> Side:
    """Pad rows to one length and say what each token is."""
    width = max(len(row) for row in rows) + extra
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    real = torch.zeros(len(rows), width, dtype=torch.bool)
    for place, row in enumerate(rows):
        where = slice(width - len(row), width) if left else slice(0, len(row))
        ids[place, where] = torch.tensor(row)
        real[place, where] = True
    separator = ids == SEPARATOR
    tokens = [[str(number) for number in row] for row in rows]
    stops = ids == STOP
    return Side(ids, real, separator | (ids == 1), separator, stops | (ids == MARK), stops, tokens)


def batch_of(texts: Sequence[Text], kind: str, left: bool = False, extra: int = 0) -> Batch:
    """A batch for an encoder ("enc"), a decoder ("dec") or a translator ("enc-dec")."""
    source = side_of([text.source for text in texts], left, extra)
    inputs = {"input_ids": source.ids, "attention_mask": source.real.long()}
    if kind == "enc-dec":
        target = side_of([text.target for text in texts], extra=extra)
        more = {"decoder_input_ids": target.ids, "decoder_attention_mask": target.real.long()}
        return Batch(inputs | more, {"source": source, "target": target}, [*range(len(texts))])
    inputs["position_ids"] = (source.real.cumsum(-1) - 1).clamp_min(0)
    return Batch(inputs, {"source" if kind == "enc" else "target": source}, [*range(len(texts))])


def tally_up(subject: Subject, batches: Iterable[Batch], convention: str) -> list[Tally]:
    """Run all tallies of a convention over the batches."""
    tallies = chosen_tallies(None, convention)
    needs = Needs()
    for tally in tallies:
        needs = needs | tally.needs
    with tap(subject, needs) as watch:
        for batch in batches:
            for sighting in watch(batch):
                for tally in tallies:
                    tally.update(sighting)
    return tallies


def table_of(subject: Subject, tallies: Sequence[Tally], convention: str) -> HeadTable:
    """The tallies' readings as a table."""
    return tabulate(subject.anatomy, readings_of(tallies), COLUMNS, no_author_code(convention))


@contextmanager
def read_in_tiles(cells: int, kept: int = 0) -> Iterator[list[str]]:
    """Tiles have so many cells, and maps beyond `kept` are not kept; what was read in tiles."""
    read: list[str] = []
    own = taps._rows_at

    def rows_at(source: object, places: Tensor) -> Tensor:
        read.append(type(source).__name__)
        return own(source, places)  # type: ignore[arg-type]

    sizes = {"kept": kept, "cpu": cells}
    with mock.patch.dict(TILE, sizes), mock.patch.object(taps, "_rows_at", rows_at):
        yield read
