"""How many key groups need only a window: an order, and a walk with bounds on held-out data.

Loss and retrieval are different questions: by loss alone half of the groups may cost nothing while
facts from far back are lost. So the walk goes on only while the bound on the loss and every bound
on retrieval hold, the latter on templates that no order has seen.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import copyfile
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from scipy.stats import rankdata
from torch import Tensor
from transformers import GraniteSWAConfig, GraniteSWAForCausalLM

from headcount.errors import InputError, ModelError, UsageError
from headcount.importance import Intervention, Sweep, check_task
from headcount.models import Subject, check_subject, eval_mode
from headcount.pruning import Order, held_out_curves, point_of, removed_counts, unit_of
from headcount.records import Brief, Head, Journal, Run, hash_strings, writable_run
from headcount.rooms.trials import Stream, predicts_tokens, stream_of, token_logits, wrapping_of
from headcount.rooms.window.restricting import (
    SIMPSON,
    Window,
    check_length,
    path_slopes,
    read_window,
    restrictable,
    restricted,
)
from headcount.stats import Floats, ratio
from headcount.tasks import IGNORED, LOSS, Marks, Metric, Outcome, Task, choose_metric, label_counts
from headcount.text import Batch, Sentence, intake_of, ready_batch
from headcount.wiring import Turns, attached

# --- Tasks that ask for what stands far back ------------------------------------------------------
# Tasks that judge whether a decoder still finds things far back in its text.
#
# What is asked lies outside the window of a restricted head. Sentences and lines come in templates,
# of which some are `SHOWN` to whoever orders heads and the others are kept `UNSEEN` to judge: an
# order that only learned a template would fail there. Many facts are asked for after one text, each
# answer put into the model's mouth, so that hundreds cost a few dozen forwards. After the needle in
# a haystack (Kamradt 2023), the multi-key needles of RULER (Hsieh et al. 2024), and random tokens
# said twice (Olsson et al. 2022).

# --- Facts --------------------------------------------------------------------------------------

#: Templates and words of which orders are made, and those that judge; no word is in both.
SHOWN, UNSEEN = "shown", "unseen"

_STEMS = {
    SHOWN: (
        "The secret of {name} is the",
        "{name} has hidden the",
        "The sign over the door of {name} shows the",
        "On Monday {name} bought the",
    ),
    UNSEEN: (
        "The parcel for {name} holds one",
        "Asked for the password, {name} replied:",
        "In the register {name} owns every",
        "{name} will meet the courier near that",
        "Note to {name}: bring a",
        "The team led by {name} is called",
    ),
}
_LINES = {SHOWN: ("{key} {number}:",), UNSEEN: ('"{key}-{number}" =', "<{key} {number}>")}
_WORDS: dict[str, dict[str, str]] = {
    SHOWN: {
        "names": "Mara Tobin Ilse Corin Nadia Pavel Selma Oskar Yusuf Greta Linus Amara",
        "first": "copper striped hollow velvet rusty crooked golden frozen salted narrow",
        "second": "lantern kettle ladder violin anchor basket mirror whistle drum candle",
        "third": "willow chapel bakery harbour quarry orchard stable cellar mill bridge",
        "keys": "goose badger otter donkey heron lizard camel rooster beetle salmon",
    },
    UNSEEN: {
        "names": "Victor Elena Martin Sofia Daniel Helen Peter Laura Simon Clara Hugo Irene",
        "first": "silver purple wooden broken silent yellow marble bitter plastic gentle",
        "second": "tiger rabbit spider falcon turtle panther monkey dolphin parrot wolf",
        "third": "hammer bottle blanket guitar rocket pencil wagon helmet ribbon button",
        "keys": "engine garden window planet island market castle station pocket theatre",
    },
}


@dataclass(frozen=True)
class Page:
    """One example: facts as (beginning, answer), those that are asked for, and where text begins.

    `start` says where the text between the facts is cut, and seeds random tokens.
    """

    facts: tuple[tuple[str, str], ...]
    asked: tuple[int, ...]
    start: int


def _facts(kind: str, part: str, count: int, rng: random.Random) -> tuple[tuple[str, str], ...]:
    """Facts of which no two begin alike."""
    words = {name: given.split() for name, given in _WORDS[part].items()}
    found: dict[str, str] = {}
    while len(found) < count:
        if kind == "needles":
            free = [name for name in words["names"] if not any(name in stem for stem in found)]
            name = rng.choice(free or words["names"])
            stem = rng.choice(_STEMS[part]).format(name=name)
        else:
            key, number = rng.choice(words["keys"]), rng.randint(10, 99)
            stem = rng.choice(_LINES[part]).format(key=key, number=number)
        found.setdefault(stem, " ".join(rng.choice(words[n]) for n in ("first", "second", "third")))
    return tuple(found.items())


# --- The task -----------------------------------------------------------------------------------

#: The share of tokens right; tokens of one text are not independent, so texts are resampled.
RIGHT = Metric("accuracy", ("hits", "tokens"), ratio, test="sign-flip")
METRICS = {"accuracy": RIGHT, "loss": LOSS}
#: Facts lie in the first part of the text, so that the window of whoever asks does not reach them.
_DEEPEST = 0.6


@dataclass(frozen=True, repr=False)
class Recall(Task):
    """Texts of one length with facts in them, which the end of the text asks for."""

    kind: ClassVar[str] = "recall"

    #: Tokens of the whole input.
    length: int = 512
    #: Texts that the facts stand in.
    texts_between: tuple[str, ...] = ()
    part_of: str = UNSEEN

    def check(self, subject: Subject) -> None:
        """Raise unless the model reads from left to right, says tokens, and takes the length."""
        if subject.kind != "dec" or not predicts_tokens(subject):
            raise ModelError(
                f"{self.name} asks a decoder with a language-modelling head, and {subject.name} is "
                f"of the class {type(subject.inner).__name__}."
            )
        limit = intake_of(subject.model, subject.tokenizer).target_limit
        if limit is not None and limit < self.length:
            raise UsageError(
                f"{self.name} has texts of {self.length} tokens and {subject.name} takes {limit}; "
                "use a smaller length."
            )

    def describe(self) -> dict[str, Any]:
        """What a run keeps: of the texts between the facts their hash alone."""
        return {**super().describe(), "texts_between": hash_strings(self.texts_between)}

    def encode(self, subject: Subject, batch_size: int) -> Iterator[Batch]:
        """All examples, each of exactly `length` tokens; labels of the last ones only."""
        stream = stream_of(subject, self.texts_between)
        made = [self._row(subject, page, stream) for page in self.examples]
        asked = max(len(labels) for _, labels in made)
        for first in range(0, len(made), batch_size):
            rows = made[first : first + batch_size]
            ids = torch.tensor([row for row, _ in rows])
            labels = torch.full((len(rows), asked), IGNORED)
            for place, (_, own) in enumerate(rows):
                labels[place, asked - len(own) :] = torch.tensor(own)
            inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
            yield replace(ready_batch(inputs, subject.anatomy.stacks, first), labels=labels)

    def answer(self, subject: Subject, batch: Batch) -> Tensor:
        """Logits of the last tokens, from which all answers are said."""
        assert batch.labels is not None
        last = batch.labels.shape[1]
        return token_logits(subject, batch, last=last)[:, -last:]

    def loss(self, subject: Subject, batch: Batch) -> Tensor:
        """Nats of the answers of each row."""
        return _losses(self.answer(subject, batch), batch)

    def mark(self, answer: Any, batch: Batch) -> Marks:
        """Right tokens, or nats, and how many were asked of each row."""
        assert batch.labels is not None
        labels = batch.labels.to(answer.device)
        right = (answer.argmax(-1) == labels).sum(1).float()
        right = right.masked_fill(answer.isnan().flatten(1).any(1), torch.nan)
        counted = right if self.metric is RIGHT else _losses(answer, batch)
        both = torch.stack([counted, label_counts(labels).float()], dim=1)
        return Marks(both.cpu().double().numpy(), [])

    def _row(self, subject: Subject, page: Page, stream: Stream) -> tuple[list[int], list[int]]:
        """The ids of one example, and the labels of its end."""
        front = list(wrapping_of(subject).before)
        told = [
            [*_ids(subject, f" {stem} {answer}.")] if self.name.startswith("needles")
            else [*_ids(subject, f"\n{stem} {answer}\n")]
            for stem, answer in page.facts
        ]  # fmt: skip
        end, labels = _ids(subject, "\n\n"), [IGNORED] * len(_ids(subject, "\n\n"))
        for number in page.asked:
            stem, answer = page.facts[number]
            asks, says, stop = (_ids(subject, s) for s in (f"{stem}", f" {answer}", ".\n"))
            end += [*asks, *says, *stop]
            labels += [IGNORED] * len(asks) + list(says) + [IGNORED] * len(stop)
        room = self.length - len(front) - sum(map(len, told)) - len(end)
        if room < 1:
            raise UsageError(
                f"Texts of {self.length} tokens have no room for {len(page.facts)} facts; use "
                f"{self.length - room + 1} tokens or more."
            )
        hay, rng = stream.cut(page.start % max(len(stream), 1), room), random.Random(page.start)
        cuts = sorted(rng.randint(0, round(_DEEPEST * room)) for _ in told)
        ids = list(front)
        for before, after, fact in zip([0, *cuts], cuts, told, strict=False):
            ids += [*hay[before:after], *fact]
        ids += [*hay[cuts[-1] :], *end]
        return ids, [*labels[1:], IGNORED]  # a label stands where the token before it is read


@dataclass(frozen=True, repr=False)
class Repeated(Recall):
    """Random tokens said twice; the second time every token is known from the first."""

    def _row(self, subject: Subject, page: Page, stream: Stream) -> tuple[list[int], list[int]]:
        front = list(wrapping_of(subject).before)
        half = (self.length - len(front)) // 2
        known, rng = sorted(set(stream.ids)), random.Random(page.start)
        drawn = [rng.choice(known) for _ in range(half)]
        spare = [rng.choice(known) for _ in range(self.length - len(front) - 2 * half)]
        # The first tokens of the repeat do not tell yet that it is one.
        return [*front, *spare, *drawn, *drawn], [IGNORED] * 4 + drawn[5:] + [IGNORED]


def _ids(subject: Subject, text: str) -> list[int]:
    return list(stream_of(subject, [text]).ids)


def _losses(logits: Tensor, batch: Batch) -> Tensor:
    assert batch.labels is not None
    labels = batch.labels.to(logits.device)
    flat = torch.nn.functional.cross_entropy(
        logits.float().flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="none"
    )
    return flat.view_as(labels).sum(1)


# --- The three of them --------------------------------------------------------------------------


def _made(
    kind: str, texts: Sequence[str], part: str, facts: int, asked: int, *,
    pages: int, length: int, metric: str, seed: int,
) -> Recall:  # fmt: skip
    if part not in (SHOWN, UNSEEN):
        raise UsageError(f"The templates are '{part}'; choose {SHOWN} or {UNSEEN}.")
    if pages < 1 or asked < 1:
        raise UsageError(f"{pages} texts with {asked} questions were asked for; give 1 or more.")
    if not texts:
        raise UsageError(f"{kind} stand in texts, and none was given; give one or more.")
    chosen = choose_metric(kind, metric, METRICS)
    rng, made = random.Random(f"{kind} {part} {seed}"), []
    for _ in range(pages):
        own = _facts(kind, part, facts, rng) if facts else ()
        order = tuple(rng.sample(range(facts), min(asked, facts))) if facts else ()
        made.append(Page(own, order, rng.randrange(2**31)))
    make = Recall if facts else Repeated
    name = f"{kind}, {part} templates" if facts else kind
    return make(tuple(made), chosen, name, length, tuple(texts), part)


def needle(
    texts: Sequence[str], *, part: str = UNSEEN, pages: int = 40, asked: int = 8,
    length: int = 512, metric: str = "accuracy", seed: int = 0,
) -> Recall:  # fmt: skip
    """Sentences with three random words each, hidden in texts; all are asked for at the end.

    >>> needle(["Rain fell on the town. " * 99], pages=2)
    Recall('needles, unseen templates', 2 examples, accuracy)
    """
    how: dict[str, Any] = {"pages": pages, "length": length, "metric": metric, "seed": seed}
    return _made("needles", texts, part, asked, asked, **how)


def lookup(
    texts: Sequence[str], *, part: str = UNSEEN, pages: int = 40, asked: int = 8,
    length: int = 512, metric: str = "accuracy", seed: int = 0,
) -> Recall:  # fmt: skip
    """Keys with values in lines, twice as many as are asked for: keys that look alike compete.

    >>> lookup(["Rain fell on the town. " * 99], pages=2, part="shown")
    Recall('lookups, shown templates', 2 examples, accuracy)
    """
    how: dict[str, Any] = {"pages": pages, "length": length, "metric": metric, "seed": seed}
    return _made("lookups", texts, part, 2 * asked, asked, **how)


def repeated(
    texts: Sequence[str], *, part: str = UNSEEN, pages: int = 20, length: int = 512,
    metric: str = "accuracy", seed: int = 0,
) -> Recall:  # fmt: skip
    """Random tokens of these texts, said twice.

    >>> repeated(["Rain fell on the town."], pages=2)
    Repeated('repeated', 2 examples, accuracy)
    """
    how: dict[str, Any] = {"pages": pages, "length": length, "metric": metric, "seed": seed}
    return _made("repeated", texts, part, 0, 1, **how)


Unit = tuple[Head, ...]

#: A model that says fewer of the answers' tokens by itself does not retrieve.
LEAST_RIGHT = 0.5


# --- The order ----------------------------------------------------------------------------------


def unit_costs(
    subject: Subject,
    task: Task,
    window: Window,
    units: Sequence[Unit],
    journal: Journal | None = None,
) -> Floats:
    """What each key group adds along the path, and its absolute slope: ``[2, group]``, a token."""
    unit = f"costs {task.name}"
    if journal is not None and unit in journal.done:
        return np.array(journal.done[unit])
    sums, tokens = np.zeros((2, len(subject.heads))), 0.0
    with path_slopes(subject, task, window) as measure:
        for batch in task.batches(subject, 1):
            found = measure(batch)
            sums[0] += np.tensordot(SIMPSON, found["slopes"].sum(0), axes=(0, 0))
            sums[1] += np.abs(found["slopes"][:, 0]).sum(0)
            tokens += float(found["tokens"].sum())
    place = {head: number for number, head in enumerate(subject.heads)}
    costs = [
        [float(row[[place[h] for h in unit]].sum()) / tokens for unit in units] for row in sums
    ]
    if journal is not None:
        journal.append(unit, costs)
    return np.array(costs)


def largest_share(costs: Sequence[Floats]) -> Floats:
    """The largest share that a group has of any task's costs; what lowers a loss has none.

    >>> largest_share([np.array([1.0, 3.0]), np.array([-1.0, 2.0])]).tolist()
    [0.25, 1.0]
    """
    raised = [np.maximum(cost, 0) for cost in costs]
    shares = [one / max(one.sum(), 1e-12) for one in raised]
    return np.asarray(np.max(shares, axis=0))


def larger_rank(costs: Sequence[Floats]) -> Floats:
    """The larger of a group's two ranks: by its share of what paths add, and of slopes.

    The path keeps the loss of text, and loses needles, of which few are needed to move it; the
    absolute slope keeps needles.

    >>> larger_rank([np.array([[1.0, 3.0, 2.0], [2.0, 1.0, 1.5]])]).tolist()
    [3.0, 3.0, 2.0]
    """
    shares = [largest_share([one[kind] for one in costs]) for kind in (0, 1)]
    return np.asarray(np.max([rankdata(one) for one in shares], axis=0))


def order_of(name: str, units: Sequence[Unit], worth: Floats, counts: Sequence[int]) -> Order:
    """Groups in the order in which they are restricted, the least costly first, in steps."""
    ranked = [units[int(place)] for place in np.argsort(worth, kind="stable")]
    steps = [
        tuple(head for unit in ranked[before:after] for head in unit)
        for before, after in zip([0, *counts], counts, strict=False)
    ]
    return Order(name, "all", tuple(steps))


# --- The curve ----------------------------------------------------------------------------------


@dataclass
class Judge:
    """A task that judges, and what it has found so far, by the name of the point."""

    subject: Subject
    task: Task
    window: Window
    batch_size: int = 1
    journal: Journal | None = None
    #: A logit a head for whole layers that slide natively; None where heads are masked.
    sinks: Mapping[int, Tensor] | None = None

    def __post_init__(self) -> None:
        self.batches = list(self.task.batches(self.subject, self.batch_size))
        self.outcomes = {"whole": self.outcome("whole", ())}

    @property
    def whole(self) -> Outcome:
        """The model as it is."""
        return self.outcomes["whole"]

    def outcome(self, name: str, heads: Sequence[Head]) -> Outcome:
        """The task with these heads restricted, measured or read from the journal."""
        unit = f"{self.task.name} {name} {','.join(map(str, sorted(heads)))}"
        if self.journal is not None and unit in self.journal.done:
            return Outcome(self.task.metric, np.array(self.journal.done[unit], dtype=float))
        if self.sinks is None or not heads:
            with restricted(self.subject, heads, self.window):
                found = self.task.evaluate(self.subject, batches=self.batches)
        else:
            slid = native(self.subject, heads, self.window, self.sinks)
            found = self.task.evaluate(slid, batches=self.batches)
        if self.journal is not None:
            self.journal.append(unit, found.statistics.tolist())
        return found

    def sweep(self, task: Task, points: Mapping[str, Sequence[Head]], **_: Any) -> Sweep:
        """As `importance.sweep`, with the heads of each point restricted instead of removed."""
        for name, heads in points.items():
            if name not in self.outcomes:
                self.outcomes[name] = self.outcome(name, heads)
        made = tuple(Intervention(tuple(heads), name=name) for name, heads in points.items())
        outcomes = tuple(self.outcomes[name] for name in points)
        return Sweep(task, made, self.whole, outcomes, len(task), fast=False)

    def curve(self, order: Order, seed: int = 0) -> tuple[pd.DataFrame, list[str]]:
        """A row a step, as `curve.parquet` has it; heads left are those that see everything."""
        of = [(self.task, [order])]
        (frame,), notes = held_out_curves(self.subject, of, "windows", refit=self, seed=seed)
        return frame.assign(task=self.task.name), notes


# --- The plan -----------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class WindowPlan(Brief):
    """Which heads can be restricted to a window, and what is known of it."""

    window: Window
    #: The heads to restrict, in their order.
    near: tuple[Head, ...]
    units: tuple[Unit, ...]
    order: Order
    step: int
    #: As `curve.parquet` has it, for every task that judged.
    curve: pd.DataFrame
    #: What each task may lose, in its own unit, and the length that was judged.
    limits: Mapping[str, float]
    length: int
    notes: tuple[str, ...] = ()
    #: A logit a head, where whole layers slide natively.
    sinks: Mapping[int, Tensor] | None = None

    @property
    def groups(self) -> int:
        """How many key groups are restricted."""
        return sum(unit[0] in set(self.near) for unit in self.units)

    @property
    def sentence(self) -> str:
        """What holds, and up to which length; longer texts were not measured."""
        rows = self.curve[self.curve["step"] == max(self.step, 1)]
        what = "key group" if self.sinks is None else "layer"
        unit = {
            task: (point_of(metric), f"{unit_of(metric)} of {task}")
            for task, metric in zip(rows["task"], rows["metric"], strict=True)
        }
        within = ", ".join(
            f"{x / unit[task][0]:g} {unit[task][1]}" for task, x in self.limits.items()
        )
        bounds = dict(zip(rows["task"], rows["bound"].astype(float), strict=True))
        lost = ", ".join(
            f"{max(x, 0) / unit[task][0]:.2g} {unit[task][1]}" for task, x in bounds.items()
        )
        if not self.step:
            return (
                f"No {what} can be restricted to {self.window} tokens within {within} (95%): "
                f"the first step may lose {lost}."
            )
        return (
            f"{self.groups} of {len(self.units)} {what}s need only {self.window} tokens: at "
            f"most {lost} is lost (95% bounds), up to {self.length} tokens; nothing was "
            "measured on longer texts."
        )

    def restricted(self, subject: Subject) -> AbstractContextManager[Any]:
        """Within the block the model is restricted as planned."""
        return restricted(subject, self.near, self.window)

    def save(self, subject: Subject, folder: str | Path) -> Path:
        """The model so, in a folder: by code of its own (`save_windowed`), or natively (layers)."""
        if self.sinks is None:
            return save_windowed(subject, self.near, self.window, folder)
        native(subject, self.near, self.window, self.sinks).save(folder)
        return Path(folder)

    def in_brief(self) -> tuple[str, pd.DataFrame]:
        """What was chosen, and the curve."""
        title = f"WindowPlan({self.groups} of {len(self.units)} key groups need {self.window})"
        return title, self.curve.set_index(["task", "step"])


def restrict_plan(
    subject: Subject,
    task: Task,
    restrict: Any,
    *,
    max_loss: float = 0.02,
    max_points: float = 1.0,
    judge: Task | None = None,
    recall: Sequence[Task] | None = None,
    learn: Sequence[Task] | None = None,
    length: int | None = None,
    pages: int = 40,
    step: float = 10.0,
    batch_size: int = 1,
    seed: int = 0,
    limit: int | None = None,
    layers: bool = False,
    run: Any = None,
) -> WindowPlan:
    """How many key groups can be restricted to a window within a loss, and retrieval with it.

    `task` is a language-modelling task on long texts: one half orders the groups, the other judges
    (or `judge` does). Retrieval is judged by `recall`: needles and lookups in templates that the
    order has not seen, and random tokens said twice, `pages` of each at `length` tokens (that of
    the longest text); `learn` are the tasks that the order also takes, by default the same in other
    templates. A group's place is the larger of its ranks by path and by slope, each by the largest
    share that it has of any of them. The walk takes `step` percent of the groups at a time and ends
    where `max_loss` (nats of the text) or `max_points` (points of any retrieval) is exceeded (95%
    bound).

    With `layers` whole layers of a Llama slide over all the window's tokens natively, as those of
    `granite_swa` do, with one sink logit a head in place of the first tokens (`sink_logits`); what
    judges is that model.

    With a `run` directory every finished measurement is on the disk at once.
    """
    check_subject(subject, "restrict_plan(subject, task, (16, 240))")
    check_task(task, "restrict_plan")
    window, units = read_window(restrict), restrictable(subject)
    task = task if limit is None else task.limit(limit, seed)
    if len(task) < 4:
        raise InputError(
            f"{task.name} has {len(task)} examples; groups are ordered on one half and judged on "
            "the other, so it takes four or more."
        )
    if recall is not None and not recall:
        raise UsageError(
            "No task judges retrieval, and a bound on the loss alone is a false promise: heads "
            "that find things again cost text nothing. Leave out recall, or give needles."
        )
    choose, held = task.split(0.5, seed) if judge is None else (task, judge)
    batches = list(held.batches(subject, batch_size))
    check_length(window, batches, held.name)
    longest = max(side.ids.shape[1] for batch in batches for side in batch.sides.values())
    size = length or longest
    between = [one.text for one in task.texts() if isinstance(one, Sentence)]
    make: dict[str, Any] = {"length": size, "pages": pages, "seed": seed}
    judges = [*(recall or _recall(between, make))]
    few = {**make, "pages": max(pages // 4, 2), "metric": "loss", "part": SHOWN, "seed": seed + 1}
    teach = [*(_recall(between, few) if learn is None else learn)]
    everything = [held, *judges, choose, *teach]
    with writable_run(run) as kept, _log(kept, subject, window, everything) as log:
        sinks = None
        if layers:
            by_layer: dict[int, Unit] = {}
            for unit in units:
                by_layer[unit[0].layer] = (*by_layer.get(unit[0].layer, ()), *unit)
            units = [*by_layer.values()]
            sinks = sink_logits(subject, choose, window.tokens)
        judging = [Judge(subject, one, window, batch_size, log, sinks) for one in (held, *judges)]
        usable, notes = _usable(judging)
        costs = [unit_costs(subject, one, window, units, log) for one in (choose, *teach)]
        counts = [*removed_counts(len(units), step), len(units)]
        order = order_of("path and slope", units, larger_rank(costs), counts)
        limits = {held.name: max_loss} | {
            one.task.name: max_points * point_of(one.whole.name) for one in usable[1:]
        }
        reached, curve, more = walk(usable, order, limits, seed)
        if kept is not None:
            kept.write_frame("window", curve)
    near, up_to = order.gone(reached), min(longest, *(getattr(x, "length", size) for x in judges))
    told = (*notes, *more)
    return WindowPlan(window, near, tuple(units), order, reached, curve, limits, up_to, told, sinks)


def _recall(texts: Sequence[str], how: Mapping[str, Any]) -> list[Recall]:
    return [make(texts, **how) for make in (needle, lookup, repeated)]


def _log(
    run: Run | None, subject: Subject, window: Window, tasks: Sequence[Task]
) -> AbstractContextManager[Journal | None]:
    if run is None:
        return nullcontext()
    about = {"what": "headcount window", "weights": subject.weights_hash, "window": str(window)}
    return run.journal({**about, "tasks": [task.describe() for task in tasks]}, "window")


def _usable(judging: Sequence[Judge]) -> tuple[list[Judge], tuple[str, ...]]:
    """Those that the whole model can do; refused where no task of retrieval is left."""
    weak = [
        one for one in judging[1:] if one.whole.name == "accuracy" and one.whole.value < LEAST_RIGHT
    ]
    name = judging[0].subject.name
    notes = tuple(
        f"{name} says {one.whole.value:.2f} of {one.task.name} by itself, so that judges nothing."
        for one in weak
    )
    usable = [one for one in judging if one not in weak]
    if len(usable) < 2:
        raise UsageError(
            f"{name} finds too little again by itself, so retrieval cannot be bounded and nothing "
            f"can be called free ({' '.join(notes)}) Use a model that retrieves, or shorter texts."
        )
    return usable, notes


def walk(
    judging: Sequence[Judge], order: Order, limits: Mapping[str, float], seed: int = 0
) -> tuple[int, pd.DataFrame, list[str]]:
    """The last step at which every task holds its limit (95%), tried in turn; curve; what to note.

    The first step that fails ends the walk, so each bound may use the whole level
    (Maurer, Hothorn & Lehmacher 1995).
    """
    reached, frames, notes = 0, list[pd.DataFrame](), list[str]()
    for step in range(1, len(order) + 1):
        part = Order(order.name, order.scope, order.steps[:step])
        curves = [one.curve(part, seed) for one in judging]
        frames = [frame for frame, _ in curves]
        notes = list(dict.fromkeys(note for _, more in curves for note in more))
        bounds = {str(one["task"].iloc[-1]): float(one["bound"].iloc[-1]) for one in frames}
        if any(bound > limits[task] for task, bound in bounds.items()):
            break
        reached = step
    return reached, pd.concat(frames, ignore_index=True), notes


def restrict_command(
    subject: Subject, task: Task | None, asked: Any, ranking: Any, place: Any, json: bool
) -> None:
    """`headcount prune --ranking restrict=16+240`: what is lost is printed, the model is saved."""
    from headcount.cli import output, print_json, print_notes

    given, _, what = ranking.restrict.partition(":")
    if task is None or asked.max_loss is None or what not in ("", "layers"):
        raise UsageError(
            f"--ranking restrict={ranking.restrict} walks while a loss is held: give a window such "
            "as 16+240 or 16+240:layers, --task lm:FILE, and --max-loss in nats."
        )
    names = ("judge", "refit", "heal", "export", "verify", "survey", "save_dtype", "scores")
    unread = [name for name in names if getattr(asked, name)]
    unread += ["by"] * (asked.by != "gradient")
    if unread:
        raise UsageError(
            f"--{unread[0].replace('_', '-')} means nothing with --ranking restrict, which removes "
            "no head and has an order of its own; leave it out."
        )
    plan = restrict_plan(
        subject,
        task,
        given,
        max_loss=asked.max_loss,
        layers=what == "layers",
        step=ranking.step,
        seed=ranking.seed or 0,
        run=None if place is None else place.run,
    )
    if place is not None and plan.step:
        plan.save(subject, place.model)
    if json:
        near = [str(head) for head in plan.near]
        rows = plan.curve.to_dict("records")
        print_json({"sentence": plan.sentence, "near": near, "curve": rows})
        return
    output().print(plan.sentence)
    print_notes([*subject.notes, *plan.notes])
    if place is not None:
        output().print(f"Wrote {place.folder}/." if plan.step else "No model was saved.")


# --- A folder that loads by its own code ----------------------------------------------------------


def save_windowed(subject: Subject, heads: Sequence[Head], window: Any, folder: str | Path) -> Path:
    """Write a model whose restricted heads keep the first tokens and a ring, also in `generate`.

    The folder loads in plain transformers with `trust_remote_code=True`. Beside it, in
    `duo_attention/`, are the two files that DuoAttention's own code reads: the key heads that see
    everything, and the sizes of the window.
    """
    place, read = Path(folder), read_window(window)
    model: Any = subject.model
    if place.exists() and any(place.iterdir()):
        raise UsageError(f"{place} is not empty; name another folder.")
    if subject.kind != "dec" or getattr(model.config, "attn_logit_softcapping", None) is not None:
        raise ModelError(
            f"{subject.name} keeps no plain causal cache (an encoder, or capped scores), so there "
            "is nothing to save in a window; choose a decoder such as Llama, Mistral or Qwen."
        )
    layers, rows, near = {}, [], set(heads)
    for site in sorted(subject.anatomy.sites, key=lambda one: one.layer):
        size = site.heads // site.kv_heads
        groups = [site.names[first : first + size] for first in range(0, site.heads, size)]
        cut = [place for place, group in enumerate(groups) if near & set(group)]
        for number in cut:
            if not near >= set(groups[number]):
                raise UsageError(
                    f"{groups[number][0]} shares its keys with heads that see everything; name all "
                    f"of {', '.join(map(str, groups[number]))}, or none."
                )
        layers[str(site.layer)] = cut
        rows.append([float(number not in cut) for number in range(site.kv_heads)])
    about = {"first": read.first, "last": read.last, "layers": layers}
    config, own = model.config, {"window": about}
    own["auto_map"] = {"AutoModelForCausalLM": f"modeling_window.{type(model).__name__}"}
    before = {name: getattr(config, name, None) for name in own}
    try:
        config.update(own)
        model.save_pretrained(place)
    finally:
        for name, value in before.items():
            setattr(config, name, value)
            if value is None:
                delattr(config, name)
    if subject.tokenizer is not None:
        subject.tokenizer.save_pretrained(place)
    copyfile(Path(__file__).with_name("modeling_window.py"), place / "modeling_window.py")
    duo = place / "duo_attention"
    duo.mkdir()
    lines = ["\t".join(f"{one:g}" for one in row) for row in rows]
    (duo / "full_attention_heads.tsv").write_text("\n".join(lines) + "\n", encoding="utf8")
    sizes = {"sink_size": read.first, "recent_size": read.last}
    (duo / "config.json").write_text(json.dumps(sizes) + "\n", encoding="utf8")
    return place


# --- Whole layers that slide natively: granite_swa ------------------------------------------------

#: What the config of a Llama and that of `granite_swa` say alike.
_ALIKE = """
vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads
hidden_act max_position_embeddings rms_norm_eps attention_bias mlp_bias tie_word_embeddings
rope_parameters pad_token_id bos_token_id eos_token_id head_dim
"""
#: The sink logit of a layer that sees everything: none.
_NO_SINK = -1e4


def native(
    subject: Subject, heads: Sequence[Head], window: Window, sinks: Mapping[int, Tensor]
) -> Subject:
    """A Llama as `granite_swa`: the layers of these heads slide, with a sink logit a head.

    Plain transformers loads it, and by their sources vLLM, SGLang and llama.cpp.
    """
    model: Any = subject.model
    if type(model).__name__ != "LlamaForCausalLM":
        raise ModelError(
            f"Whole layers slide natively in Llama-shaped models, and {subject.name} is of the "
            f"class {type(model).__name__}; restrict key groups instead (without layers)."
        )
    near = {head.layer for head in heads}
    kinds = ["sliding" if n in near else "full" for n in range(model.config.num_hidden_layers)]
    config = GraniteSWAConfig(
        **{name: getattr(model.config, name) for name in _ALIKE.split()},
        attention_multiplier=model.model.layers[0].self_attn.scaling,
        sliding_window=window.tokens,
        layer_types=[f"{kind}_attention" for kind in kinds],
    )
    config._attn_implementation = "eager"  # the only way of this family that has sinks on a CPU
    with torch.random.fork_rng(devices=[]):
        made: Any = GraniteSWAForCausalLM(config).to(subject.device, subject.dtype).eval()
    weights = dict(model.state_dict())
    for layer in range(config.num_hidden_layers):
        empty = torch.full((config.num_attention_heads,), _NO_SINK)
        weights[f"model.layers.{layer}.self_attn.sinks"] = sinks[layer] if layer in near else empty
    made.load_state_dict(weights)
    return Subject(made, subject.tokenizer, name=f"{subject.name}, {len(near)} layers slide")


def sink_logits(
    subject: Subject, task: Task, window: int, batch_size: int = 1
) -> dict[int, Tensor]:
    """For every layer a logit a head that stands for all keys outside its window.

    Of 41 around their own logsumexp that with which the head's output, on the texts of the task,
    differs least from that of full attention (squared).
    """
    sums: dict[int, tuple[Tensor, Tensor]] = {}
    turns = Turns(subject)

    def run(
        function: Any, module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any, **how: Any
    ) -> Any:
        site, given = turns.next(module), function(module, query, key, value, mask, **how)
        places = torch.arange(query.shape[2], device=query.device)
        back = places[window:, None] - places  # rows that do not see everything in a window
        if not len(back):
            return given
        shared = site.heads // site.kv_heads
        keys, values = (one.repeat_interleave(shared, dim=1).float() for one in (key, value))
        scores = query[:, :, window:].float() @ keys.mT * how["scaling"]
        inside = scores.masked_fill((back < 0) | (back >= window), -torch.inf)
        outside = scores.masked_fill(back < window, -torch.inf).logsumexp(-1)
        total, near = inside.logsumexp(-1), inside.softmax(-1) @ values
        full = given[0].transpose(1, 2)[:, :, window:].float()
        before = sums.get(site.layer)
        tried = before[0] if before else _around(outside)
        share = (total[..., None] - tried[None, :, None]).sigmoid()
        # |full - share near|^2, without the part that no share changes
        error = share.square() * near.square().sum(-1)[..., None]
        error = (error - 2 * share * (full * near).sum(-1)[..., None]).sum((0, 2))
        sums[site.layer] = tried, error + (before[1] if before else 0)
        return given

    with attached(subject, turns=turns, runner=run), eval_mode(subject.model), torch.no_grad():
        for batch in task.batches(subject, batch_size):
            task.answer(subject, batch)
    if not sums:
        raise UsageError(
            f"No text of {task.name} is longer than the window of {window} tokens, so no layer "
            "needs a sink; give longer texts."
        )
    return {
        layer: tried.gather(1, error.argmin(1, keepdim=True))[:, 0]
        for layer, (tried, error) in sums.items()
    }


def _around(outside: Tensor) -> Tensor:
    """41 logits a head, around the usual logsumexp of what is left out: ``[head, logit]``."""
    middle = outside.transpose(0, 1).flatten(1).median(1).values
    return middle[:, None] + torch.linspace(-6, 6, 41, device=outside.device)
