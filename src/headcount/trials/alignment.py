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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from headcount.columns import Column
from headcount.text.batch import Batch
from headcount.text.side import Side
from headcount.trials.aligner import Aligner, Ids, Links
from headcount.trials.question import Finding
from headcount.wiring import Needs, Sighting

__all__ = ["ALIGNMENT", "ALIGNMENT_COPIES", "ALIGNMENT_READ", "Aligned", "copies", "linked"]


def _column(name: str, title: str, meaning: str, paper: str) -> Column:
    return Column(
        name,
        title=title,
        meaning=meaning,
        paper=paper,
        range=(0, 1),
        direction="higher",
        group="Where it points",
    )


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
class Aligned:
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
        self.finding.marks.add(sighting.site, sighting.batch.index, hits, chance, cells)

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
                if place and _is_copy(token, source, target)
            ]
    return found


def _is_copy(token: str, source: list[str], target: list[str]) -> bool:
    once = source.count(token) == target.count(token) == 1 and source[0] != token
    return once and any(letter.isdigit() or letter.isupper() for letter in token)


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
