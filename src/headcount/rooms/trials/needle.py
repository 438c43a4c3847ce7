"""Retrieval: does a head look at the very token that the model copies out of a long text?

Wu et al. 2024, equation 1: of the needle's tokens, the share for which the head's largest weight,
while the model says the token, lies on that token inside the needle. The answer is put into the
model's mouth: the same for every model, and quick. In the paper the model says it itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headcount.errors import UsageError
from headcount.models import Subject
from headcount.records import Column
from headcount.rooms.trials.inputs import (
    Stream,
    measure_of,
    predicts_tokens,
    run_metrics,
    stream_of,
    wrapping_of,
)
from headcount.rooms.trials.repeats import id_batches, why_unread
from headcount.surveys import Finding, Findings, TrialPlan
from headcount.text import intake_of
from headcount.wiring import Needs, Sighting, hooked

# --- A needle in a haystack ---------------------------------------------------------------------
# Wu et al. 2024, "Retrieval head mechanistically explains long-context factuality", section 2. The
# needle is a sentence of this project's own with random words in it, so that no model can know the
# answer; the end of the text begins the sentence again, and the model has to go on.

_PEOPLE = ("Mara", "Tobin", "Ilse", "Corin", "Nadia", "Pavel", "Selma", "Oskar", "Yusuf", "Greta")
_LOOKS = ("copper", "striped", "hollow", "velvet", "rusty", "crooked", "golden", "frozen", "salted")
_THINGS = ("lantern", "kettle", "ladder", "violin", "anchor", "basket", "mirror", "whistle", "drum")
_PLACES = ("willow", "chapel", "bakery", "harbour", "quarry", "orchard", "stable", "cellar", "mill")
_BEASTS = ("goose", "badger", "otter", "donkey", "heron", "lizard", "camel", "rooster", "beetle")


@dataclass(frozen=True)
class Haystack:
    """One example: token ids, where the needle's answer stands, and the rows that repeat it."""

    ids: tuple[int, ...]
    #: The first place of the answer inside the needle.
    needle: int
    #: The answer's ids; they also end `ids`.
    answer: tuple[int, ...]
    depth: float

    @property
    def rows(self) -> slice:
        """The rows that predict the answer's tokens at the end."""
        return slice(len(self.ids) - len(self.answer) - 1, len(self.ids) - 1)


def needles(count: int, rng: np.random.Generator) -> Iterator[tuple[str, str]]:
    """Beginnings and answers: a person, and where that person hid what.

    >>> "".join(next(needles(1, np.random.default_rng(0))))
    'The secret of Yusuf is that the crooked anchor lies behind the bakery of the hollow goose'
    """
    for _ in range(count):
        person, look, thing, place, other, beast = (
            str(rng.choice(words)) for words in (_PEOPLE, _LOOKS, _THINGS, _PLACES, _LOOKS, _BEASTS)
        )
        fact = f" the {look} {thing} lies behind the {place} of the {other} {beast}"
        yield f"The secret of {person} is that", fact


def haystacks(
    subject: Subject,
    texts: Sequence[str],
    lengths: Sequence[int],
    depths: Sequence[float],
    each: int,
    seed: int,
) -> list[Haystack]:
    """Examples of every length and depth, `each` of them, shortest first."""
    _check(lengths, depths, each)
    rng = np.random.default_rng(seed)
    stream = stream_of(subject, texts)
    places = [(length, depth) for length in lengths for depth in depths for _ in range(each)]
    asked = zip(places, needles(len(places), rng), strict=True)
    return [
        _haystack(subject, stream, length, depth, needle, int(rng.integers(0, len(stream) or 1)))
        for (length, depth), needle in asked
    ]


def _haystack(
    subject: Subject, stream: Stream, length: int, depth: float, needle: tuple[str, str], start: int
) -> Haystack:
    """Text, needle, text, and the needle's beginning again, exactly `length` tokens with it all."""
    stem, fact = needle
    front = list(wrapping_of(subject).before)
    told, answer, stop = (stream_of(subject, [f" {part}"]).ids for part in (stem, fact[1:], "."))
    asked = stream_of(subject, [f"\n\n{stem}"]).ids
    room = length - len(front) - len(told) - 2 * len(answer) - len(stop) - len(asked)
    if room < 1:
        raise UsageError(
            f"A haystack of {length} tokens has no room for its needle; use {length - room + 1} "
            "or more."
        )
    hay = stream.cut(start, room)
    above = round(depth * room)
    before = [*front, *hay[:above], *told]
    ids = [*before, *answer, *stop, *hay[above:], *asked, *answer]
    return Haystack(tuple(ids), len(before), tuple(answer), depth)


def _check(lengths: Sequence[int], depths: Sequence[float], each: int) -> None:
    if not lengths or not depths or each < 1:
        raise UsageError("A haystack needs a length, a depth and an example; give one or more.")
    for depth in depths:
        if not 0 <= depth <= 1:
            raise UsageError(f"The depth of a needle is {depth}; it lies between 0 and 1.")


# --- Retrieval ----------------------------------------------------------------------------------

RETRIEVAL = Column(
    "retrieval",
    meaning="Share of a needle's tokens that the head points at while the model copies them out "
    "of a long text.",
    paper="Wu et al. 2024, equation 1",
    range=(0, 1),
    direction="higher",
    group="What it finds again",
)

_ALL, _KEEP = frozenset[str](), "logits_to_keep"


@dataclass
class NeedleHits:
    """The question: is the top key of the row the token to be said, inside the needle?"""

    examples: Sequence[Haystack]
    finding: Finding = field(default_factory=lambda: Finding(RETRIEVAL, "a random token"))
    needs = Needs(tops=frozenset({_ALL}))

    def update(self, sighting: Sighting) -> None:
        """Count the tokens pointed at in each example."""
        keys = sighting.tops[_ALL][1]
        hits, chance, cells = [], [], []
        for row, index in enumerate(sighting.batch.index):
            example = self.examples[index]
            wanted = _wanted(example).to(keys.device)
            top = keys[row, :, example.rows]
            hits.append(
                torch.gather(wanted.expand(len(top), -1, -1), 2, top[..., None]).sum((1, 2))
            )
            chance.append((wanted.sum(-1) / sighting.visible[row, example.rows].double()).sum())
            cells.append(len(example.answer))
        counted = torch.stack(hits), torch.stack(chance), torch.tensor(cells, device=keys.device)
        self.finding.counts.add(sighting.site, sighting.batch.index, *counted)


@dataclass(frozen=True)
class Needle:
    """Needles in haystacks; answers `retrieval`, and whether the model retrieves at all."""

    texts: Sequence[str]
    #: Tokens of the whole input.
    lengths: tuple[int, ...] = (96, 192)
    #: Where the needle lies: 0 at the beginning, 1 at the end.
    depths: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9)
    #: Examples of each length and depth.
    each: int = 2
    batch_size: int = 4
    seed: int = 0
    name = "needle"
    columns: tuple[Column, ...] = (RETRIEVAL,)

    def unfit(self, subject: Subject) -> str | None:
        """Only decoder-only models that read text and predict tokens."""
        if why := why_unread(subject):
            return why
        if not predicts_tokens(subject):
            return "the model has no layer that predicts tokens"
        limit = intake_of(subject.model, subject.tokenizer).target_limit
        if limit is not None and limit < max(self.lengths):
            return (
                f"the model takes {limit} tokens and the longest haystack has {max(self.lengths)}"
            )
        return None

    def __call__(self, subject: Subject) -> Findings:
        """Make the haystacks and run them once: what the heads do, and what the model says."""
        made = haystacks(subject, self.texts, self.lengths, self.depths, self.each, self.seed)
        return self.asked(subject, made)

    def asked(self, subject: Subject, made: Sequence[Haystack]) -> Findings:
        """The heads' hits, and the share of the answer's tokens that the model would say."""
        question, said = NeedleHits(made), list[Tensor]()
        longest = max(len(example.answer) for example in made)

        def more(_: Any, args: Any, given: dict[str, Any]) -> Any:
            """A tap spares all logits but the last."""
            return args, given | ({_KEEP: longest + 1} if _KEEP in given else {})

        def hear(_: Any, __: Any, output: Any) -> None:
            said.extend(output.logits.argmax(-1).cpu())

        model = [subject.model]
        batches = id_batches(subject, [example.ids for example in made], self.batch_size)
        with hooked(model, more, with_kwargs=True), hooked(model, hear, after=True):
            run_metrics(subject, batches, [question])
        answers = [torch.tensor(example.answer) for example in made]
        pairs = zip(said, answers, strict=True)
        hits = np.array([float((row[-len(one) - 1 : -1] == one).sum()) for row, one in pairs])
        cells = np.array([float(len(one)) for one in answers])
        right = measure_of(self.name, "right tokens of the answer", hits, cells, (0, 1))
        return Findings([question.finding], [right])


def _wanted(example: Haystack) -> Tensor:
    """Which keys hold the token that a row predicts, inside the needle: ``[row, key]``."""
    ids = torch.tensor(example.ids)
    inside = torch.zeros_like(ids, dtype=torch.bool)
    inside[example.needle : example.needle + len(example.answer)] = True
    said_next = ids[example.rows.start + 1 :]
    return (ids == said_next[:, None]) & inside


#: It among the trials of the registry.
NEEDLE = TrialPlan(lambda given: Needle(given.texts, seed=given.seed))
