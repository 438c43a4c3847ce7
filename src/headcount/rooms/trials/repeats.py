"""Repeated random tokens: what a head does when an unseen text begins again.

Olsson et al. 2022, "In-context learning and induction heads": random tokens carry no meaning and no
grammar, so only the repeat itself can be found in them. Each example is a sequence of distinct
random tokens followed by itself, between the special tokens of the tokenizer. The two sides of an
encoder-decoder are drawn apart, so that no source token tells the decoder anything about its own
text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from headcount.models import Subject
from headcount.records import Column
from headcount.rooms.trials.inputs import (
    Layout,
    measure_of,
    predicts_tokens,
    run_metrics,
    token_logits,
    wrapping_of,
)
from headcount.stats import Floats
from headcount.surveys import Finding, Findings, Measure, TrialCounts, TrialPlan
from headcount.text import SIDES, Batch, intake_of, ready_batch, special_ids
from headcount.wiring import Needs, Sighting, Valve, known_ids, valve

# --- The question how much weight a head puts at a fixed distance, from chosen rows -------------

#: Offset to the rows that are asked about it.
Rows = Mapping[int, slice]


@dataclass(frozen=True)
class WeightAtOffset:
    """Mean weight at query + offset; chance is uniform attention over what the query may see.

    `rows` says, for a side and whether it looks back only, which rows are asked about which
    offset; no rows where the question means nothing. Rows whose window ends before the offset
    do not count.
    """

    finding: Finding
    offsets: frozenset[int]
    rows: Callable[[str, bool], Rows]

    @property
    def needs(self) -> Needs:
        """The weight at the offsets."""
        return Needs(offsets=self.offsets)

    def update(self, sighting: Sighting) -> None:
        """Add each example's mean weight."""
        site = sighting.site
        asked = self.rows(SIDES[site.stack][0], site.causal)
        if not asked:
            return
        parts = [_part(sighting, offset, rows) for offset, rows in asked.items()]
        hits, chance, cells = (torch.cat(part, dim=-1).sum(-1) for part in zip(*parts, strict=True))
        if not cells.any():
            self.finding.skipped[site.stack] = "the windows of some layers end before the repeat"
        self.finding.counts.add(site, sighting.batch.index, hits, chance, cells)


def _part(sighting: Sighting, offset: int, rows: slice) -> tuple[Tensor, Tensor, Tensor]:
    """Weight ``[batch, head, row]``, chance and whether it counts ``[batch, row]``."""
    visible = sighting.visible[:, rows]
    counts = visible >= _needed(sighting, offset)
    weight = sighting.offsets[offset][..., rows].double() * counts[:, None]
    return weight, counts / visible.clamp_min(1).double(), counts


def _needed(sighting: Sighting, offset: int) -> int:
    """How many keys a row must see for this offset to be among them, if it has a window."""
    if sighting.site.causal:
        return abs(offset) + 1
    return min(2 * abs(offset) + 1, sighting.keys.real.shape[-1])


# --- Previous token on random text --------------------------------------------------------------
# Elhage et al. 2021, "A mathematical framework for transformer circuits": the first half of an
# induction circuit. The survey's column `previous` has the same weight on natural text.

PREVIOUS_RANDOM = Column(
    "previous_random",
    title="Previous token, random text",
    meaning="Mean weight of a token on the one before it, in repeated random tokens.",
    paper="Elhage et al. 2021",
    range=(0, 1),
    direction="higher",
    group="What it finds again",
)

_SILENT = {"cross": "queries and keys are different texts"}


def previous_metric(layout: Layout) -> WeightAtOffset:
    """From every token of the sequence and its repeat but the first.

    >>> previous_metric(Layout(5, {"source": 1})).rows("source", False)
    {-1: slice(2, 11, None)}
    """

    def rows(side: str, causal: bool) -> Rows:
        places = layout.both(side)
        return {-1: slice(places.start + 1, places.stop)}

    finding = Finding(PREVIOUS_RANDOM, "uniform attention", skipped=dict(_SILENT))
    return WeightAtOffset(finding, frozenset({-1}), rows)


# --- Duplicate token ----------------------------------------------------------------------------
# Wang et al. 2023, "Interpretability in the wild", section 3: on random tokens said twice, the
# mean weight from a token to its other occurrence; for a head that looks back only, from the
# repeat to the first occurrence.

DUPLICATE = replace(
    PREVIOUS_RANDOM,
    name="duplicate",
    title="Duplicate token",
    meaning="Mean weight on the other occurrence of the token, in repeated random tokens.",
    paper="Wang et al. 2023, section 3",
)


def duplicate_metric(layout: Layout) -> WeightAtOffset:
    """From the repeat to the first occurrence, and back where the head sees both.

    >>> duplicate_metric(Layout(5, {"source": 0})).rows("source", False)
    {-5: slice(5, 10, None), 5: slice(0, 5, None)}
    """
    length = layout.length

    def rows(side: str, causal: bool) -> Rows:
        back = {-length: layout.second(side)}
        return back if causal else back | {length: layout.first(side)}

    finding = Finding(DUPLICATE, "uniform attention", skipped=dict(_SILENT))
    return WeightAtOffset(finding, frozenset({-length, length}), rows)


# --- Induction: does a head look at what came after this token last time? -----------------------
# Olsson et al. 2022, prefix matching: on random tokens said twice, the mean weight from a token
# of the repeat to the token that followed its first occurrence.

INDUCTION = replace(
    PREVIOUS_RANDOM,
    name="induction",
    title="",
    meaning="Mean weight on the token that followed this one before, in repeated random tokens.",
    paper="Olsson et al. 2022, prefix matching",
    more="more inductive",
)

_BOTH_SIDES = "a head that sees both sides of a token need not look for what followed it"


def induction_metric(layout: Layout) -> WeightAtOffset:
    """From the repeat back to one place after the first occurrence.

    >>> induction_metric(Layout(5, {"target": 1})).rows("target", True)
    {-4: slice(6, 11, None)}
    """
    offset = 1 - layout.length

    def rows(side: str, causal: bool) -> Rows:
        return {offset: layout.second(side)} if causal else {}

    finding = Finding(INDUCTION, "uniform attention", skipped={"enc": _BOTH_SIDES, **_SILENT})
    return WeightAtOffset(finding, frozenset({offset}), rows)


# --- Token ids to draw random texts from --------------------------------------------------------

# "[unused7]", "<extra_id_3>", "<0x0A>", "<|reserved_1|>", "madeupword0001": kept for nobody.
_SPARE = re.compile(r"[\[<].+[\]>]|madeupword\d+", re.DOTALL)

_NAMED = ("pad", "bos", "eos", "unk", "sep", "cls", "mask", "decoder_start")


def plain_ids(subject: Subject, *, target: bool = False) -> list[int]:
    """Every id that stands for a piece of text, in order.

    With a tokenizer: its vocabulary without special, added, unknown and spare tokens. Without
    one: all ids that the model embeds but those that its config names.
    """
    rows = known_ids(subject, "decoder_input_ids" if target else "input_ids")
    if subject.tokenizer is None:
        # The special ids that a config names; an end of sentence may be several.
        found = [getattr(subject.inner.config, f"{name}_token_id", None) for name in _NAMED]
        flat = [one for value in found for one in (value if isinstance(value, list) else [value])]
        named, config = {number for number in flat if number is not None}, subject.inner.config
        own = getattr(config, "tgt_vocab_size" if target else "src_vocab_size", None)
        size = rows or own or config.get_text_config().vocab_size
        return [number for number in range(size) if number not in named]
    left_out = special_ids(subject.tokenizer) | set(subject.tokenizer.added_tokens_decoder)
    left_out |= {subject.tokenizer.unk_token_id}
    # Some Marian models have one vocabulary for the source, one for the target.
    separate = getattr(subject.tokenizer, "separate_vocabs", False) and not target
    known = subject.tokenizer.get_src_vocab() if separate else subject.tokenizer.get_vocab()
    return sorted(
        number
        for token, number in known.items()
        if number not in left_out
        and (rows is None or number < rows)
        and not _SPARE.fullmatch(token)
    )


# --- Token ids as batches -----------------------------------------------------------------------


def id_batches(subject: Subject, rows: Sequence[Sequence[int]], size: int) -> Iterator[Batch]:
    """Rows of token ids that follow one another in batches, no more than `size` of one length."""
    first = 0
    for _, group in groupby(rows, key=len):
        alike = list(group)
        for start in range(0, len(alike), size):
            ids = torch.tensor(alike[start : start + size])
            inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
            yield ready_batch(inputs, subject.anatomy.stacks, first + start)
        first += len(alike)


def why_unread(subject: Subject) -> str | None:
    """Why a trial on plain text is not for a model; None where it is."""
    if subject.kind != "dec":
        return "only decoders that read text by themselves are asked"
    return "the model has no tokenizer to read text" if subject.tokenizer is None else None


# --- Random tokens said twice -------------------------------------------------------------------

#: A sequence shorter than this leaves chance too high to tell anything.
SHORTEST = 4


@dataclass(frozen=True)
class Repeats:
    """Repeated random sequences; answers `induction`, `duplicate` and `previous_random`."""

    #: Tokens before the repeat; fewer where the model cannot take twice as many.
    length: int = 32
    examples: int = 20
    batch_size: int = 8
    seed: int = 0
    name = "repeats"
    columns: tuple[Column, ...] = (INDUCTION, DUPLICATE, PREVIOUS_RANDOM)

    def unfit(self, subject: Subject) -> str | None:
        """Models that read no token ids, or too few of them."""
        if subject.inner.main_input_name != "input_ids":
            return "the model reads no token ids"
        if self.fitted(subject) < SHORTEST:
            return f"the model takes fewer than {2 * SHORTEST} tokens"
        return None

    def __call__(self, subject: Subject) -> Findings:
        """Run the sequences and ask all three questions."""
        layout = self.layout(subject)
        questions = [
            question(layout) for question in (induction_metric, duplicate_metric, previous_metric)
        ]
        stacks = [stack for stack in subject.anatomy.stacks if stack != "cross"]
        run_metrics(subject, self.batches(subject), questions, stacks)
        return Findings([question.finding for question in questions])

    def fitted(self, subject: Subject) -> int:
        """The length that the model can take twice, and draw without repetition."""
        intake = intake_of(subject.model, subject.tokenizer)
        room = [(intake.source_limit, False)] if subject.kind != "dec" else []
        room += [(intake.target_limit, True)] if subject.kind != "enc" else []
        lengths = [self.length]
        for limit, target in room:
            wrapped = len(wrapping_of(subject, target=target and subject.kind != "dec").around([]))
            lengths.append(len(plain_ids(subject, target=target and subject.kind != "dec")))
            if limit is not None:
                lengths.append((limit - wrapped - (subject.kind == "enc-dec")) // 2)
        return min(lengths)

    def layout(self, subject: Subject) -> Layout:
        """The places of the sequence on each side."""
        translates = subject.kind == "enc-dec"
        before = {"source": len(wrapping_of(subject).before)}
        # A decoder's input begins with the start token and then reads its labels.
        target = (
            len(wrapping_of(subject, target=True).before) + 1 if translates else before["source"]
        )
        return Layout(self.fitted(subject), before | {"target": target})

    def batches(self, subject: Subject) -> Iterator[Batch]:
        """The examples, the same for the same seed whatever the batch size."""
        inputs = self._inputs(subject)
        for first in range(0, self.examples, self.batch_size):
            part = {name: rows[first : first + self.batch_size] for name, rows in inputs.items()}
            yield ready_batch(part, subject.anatomy.stacks, first)

    def _inputs(self, subject: Subject) -> dict[str, Tensor]:
        """What the model takes, all examples."""
        ids = self._twice(subject, 0, target=False)
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        intake = intake_of(subject.model, subject.tokenizer)
        if intake.shift is not None:
            inputs["decoder_input_ids"] = intake.shift(self._twice(subject, 1, target=True))
            if intake.accepts("decoder_attention_mask"):
                inputs["decoder_attention_mask"] = torch.ones_like(inputs["decoder_input_ids"])
        return inputs

    def _twice(self, subject: Subject, stream: int, *, target: bool) -> Tensor:
        """Every example's sequence, said twice and wrapped, ``[example, token]``."""
        rng = np.random.default_rng([self.seed, stream])
        known, length = plain_ids(subject, target=target), self.fitted(subject)
        wrapping = wrapping_of(subject, target=target)
        if target and not wrapping.after:  # a decoder never reads the last of its labels
            wrapping = replace(wrapping, after=(known[0],))
        drawn = [rng.choice(known, length, replace=False).tolist() for _ in range(self.examples)]
        return torch.tensor([wrapping.around(ids + ids) for ids in drawn])


# --- Copying: what a head adds to the word that the repeat asks for -----------------------------
# Olsson et al. 2022 call a head inductive when it looks at what followed last time *and* raises the
# logit of what it looks at. Looking is `induction`; raising is measured here on the same random
# tokens said twice, as the derivative of the right word's log-probability with respect to the
# head's valve: what the head adds to it, to first order, by every path through the model. One
# backward pass answers for all heads.

INDUCTION_EFFECT = Column(
    "induction_effect",
    meaning="What the head adds to the log-probability of the right token of the repeat, to first "
    "order, in repeated random tokens.",
    paper="Olsson et al. 2022, copying; measured through the valve",
    unit="nats",
    direction="higher",
    more="copies more",
    diverging=True,
    format="+.3f",
    group="What it finds again",
)

_SILENT_COPYING = {
    "enc": "the repeat is in the decoder's own text",
    "cross": "the repeat is in the decoder's own text",
}


@dataclass(frozen=True)
class Copying:
    """Repeated random sequences; answers `induction_effect`, and whether the model repeats."""

    repeats: Repeats = field(default_factory=Repeats)
    name = "copying"
    columns: tuple[Column, ...] = (INDUCTION_EFFECT,)

    def unfit(self, subject: Subject) -> str | None:
        """Models without a decoder, or whose decoder says nothing."""
        if "dec" not in subject.anatomy.stacks:
            return "the model has no decoder"
        if not predicts_tokens(subject):
            return "the model has no layer that predicts tokens"
        return self.repeats.unfit(subject)

    def of_twin(self) -> None:
        """A random twin is not asked: no rule compares with what it copies."""

    def __call__(self, subject: Subject) -> Findings:
        """Run the sequences forward and backward once."""
        finding = Finding(INDUCTION_EFFECT, "no effect", skipped=dict(_SILENT_COPYING))
        layout, told = self.repeats.layout(subject), []
        with valve(subject, torch.ones(len(subject.heads))) as opened:
            for batch in self.repeats.batches(subject):
                told.append(_mark(subject, opened, batch, layout, finding.counts))
        return Findings([finding], _measures(self.name, np.concatenate(told)))


def _mark(
    subject: Subject, opened: Valve, batch: Batch, layout: Layout, counts: TrialCounts
) -> Floats:
    """Mark the heads on one batch; the model's own figures ``[example, figure]``."""
    batch = batch.to(subject.device)
    opened.scales = torch.ones(len(batch), len(subject.heads), requires_grad=True)
    logits = token_logits(subject, batch)
    chances = logits.float().log_softmax(-1)[:, :-1]
    following = batch.sides["target"].ids[:, 1:, None].to(chances.device)
    spoken = chances.gather(-1, following)[..., 0]
    asked = _asked(layout)
    (effect,) = torch.autograd.grad(spoken[:, asked].sum(), opened.scales)
    cells = torch.full((len(batch),), asked.stop - asked.start)
    for site, span in subject.anatomy.spans.items():
        if site.stack == "dec":
            counts.add(site, batch.index, effect[:, span], torch.zeros(len(batch)), cells)
    return _figures(chances, spoken, following[..., 0], layout)


def _asked(layout: Layout) -> slice:
    """The rows whose next token is known from the first time: all of the repeat but its last."""
    second = layout.second("target")
    return slice(second.start, second.stop - 1)


def _figures(chances: Tensor, spoken: Tensor, following: Tensor, layout: Layout) -> Floats:
    """Right words, and loss in the repeat and before it, of each example."""
    first, again = layout.first("target"), _asked(layout)
    before = slice(first.start, first.stop - 1)
    hits = (chances[:, again].argmax(-1) == following[:, again]).float().mean(-1)
    losses = [-spoken[:, rows].mean(-1) for rows in (again, before)]
    return torch.stack([hits, *losses], dim=-1).detach().double().cpu().numpy()


def _measures(trial: str, told: Floats) -> list[Measure]:
    names = ("right tokens of the repeat", "loss in the repeat", "loss before the repeat")
    tops = (1.0, np.inf, np.inf)
    return [
        measure_of(trial, name, told[:, place], np.ones(len(told)), (0, top))
        for place, (name, top) in enumerate(zip(names, tops, strict=True))
    ]


#: Both among the trials of the registry.
REPEATS = TrialPlan(lambda given: Repeats(seed=given.seed))
COPYING = TrialPlan(lambda given: Copying(Repeats(seed=given.seed)))
