"""Relevance and contribution: the share of a prediction that each head carries.

Voita et al., ACL 2019, section 4 and appendix A: from the top-1 logit of every prediction back to
what each head gave, as a share of its layer, then the mean over predictions. Relevance goes back by
the rules of the paper, contribution by gradient times activation (`contribution.py`).
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from headcount import tasks
from headcount.errors import ModelError, UsageError
from headcount.importance import Arrays, BatchWork, Measure, Score, ScoreOptions, ScoreWork
from headcount.models import Anatomy, Subject, check_finite, enough_memory
from headcount.records import STACKS, Column, Engine, EngineOptions, HeadTable, Journal
from headcount.rooms.labels import HeadTask, MaskedLanguageModelling, Similarity, embed
from headcount.rooms.relevance.contribution import Straightened, straightened
from headcount.rooms.relevance.propagate import (
    Flow,
    LogitInputs,
    Relevance,
    Tracing,
    traced,
    words_read,
)
from headcount.rooms.relevance.rule import RelevanceCounter
from headcount.rooms.relevance.rules import rule_named
from headcount.text import Batch
from headcount.wiring import check_ids

# --- What is explained --------------------------------------------------------------------------
# The top-1 logit of every predicted word, the logit of the class that a classifier chooses, a
# regression's number, the cosine of two embeddings. Every prediction is explained by itself.

Per = Literal["step", "sentence"]

#: What is explained, by the kind of task.
EXPLAINED = {
    "translation": "the top-1 logit of every target token, given the reference before it",
    "lm": "the top-1 logit of every next token",
    "mlm": "the top-1 logit of every hidden token",
    "classification": "the logit of the class that the model chooses",
    "regression": "the number that the model gives",
    "similarity": "the cosine of the two embeddings, half to each text",
}


@dataclass(frozen=True)
class Start:
    """Where relevance starts in one forward.

    `starts` is `[start, row, ...]` over an output `[row, ...]`; `counted` says which of them are
    predictions, `[start, row]`. `rows` of one example lie side by side. Each prediction of a row
    stands for `weights` `[row]` of them.
    """

    output: Tensor
    starts: Tensor
    counted: Tensor
    ledger: RelevanceCounter | None
    rows: int = 1
    weights: Tensor | float = 1.0

    def together(self) -> Start:
        """All predictions of a row in one start."""
        whole = self.starts.sum(dim=0, keepdim=True)
        return replace(self, starts=whole, counted=self.counted.any(dim=0, keepdim=True))


@dataclass(frozen=True)
class Draw:
    """How many predictions of a text are explained (`most`; 0: all), and the seed of the draw.

    Texts are a first stage of sampling, predictions of a text a second (Cochran 1977, section
    10.6). The draw is systematic: places evenly spread from a drawn start, each as likely. It
    depends on the seed and the example alone, never on batches.
    """

    most: int = 0
    seed: int = 0

    def of(self, predicted: Tensor, index: Sequence[int]) -> tuple[Tensor, Tensor]:
        """The drawn ones of `[row, place]`, and for how many each of a row stands, `[row]`.

        >>> drawn, weights = Draw(2).of(torch.ones(1, 6) > 0, [0])
        >>> int(drawn.sum()), weights.tolist()
        (2, [3.0])
        """
        counts = predicted.sum(dim=1).double()
        if not self.most:
            return predicted, torch.ones_like(counts)
        starts = [random.Random(f"{self.seed} {example}").random() for example in index]
        first, most = counts.new_tensor(starts), counts.clamp(max=self.most)
        step = (most / counts.clamp_min(1))[:, None]
        after = predicted.cumsum(dim=1)
        below = [((after - back) * step - first[:, None]).ceil() for back in (0, 1)]
        return predicted & (below[0] > below[1]), counts / most.clamp_min(1)


#: Where no number is given. Shares of the translator vary five to eight times as much within a
#: text as between texts, and a text costs three predictions more, so that 5 a text say most in a
#: given time (Cochran 1977, section 10.6), 8 nearly as much with half the error of the draw, and
#: all of them take twice the time for the same intervals.
PREDICTIONS = 8


def check_predictions(given: int | str | None, convention: str, per: Per) -> int:
    """How many predictions of a text are explained; 0 for all, as the papers do.

    >>> check_predictions(None, "headcount", "step"), check_predictions("all", "code", "step")
    (8, 0)
    """
    if given is None:
        return PREDICTIONS if (convention, per) == ("headcount", "step") else 0
    if given == "all":
        return 0
    if per == "sentence":
        raise UsageError(
            f"predictions is '{given}' and per is 'sentence', which sends all predictions of a "
            "text back at once; leave one of them out."
        )
    if not str(given).isdecimal() or int(given) < 1:
        raise UsageError(
            f"predictions is '{given}'; give how many of each text are explained, 1 or more, or "
            "all."
        )
    return int(given)


#: Runs a batch under a tracing, and says where its relevance starts.
Explain = Callable[[Tracing | Straightened, Batch], Start]


def check_per(per: str) -> Per:
    """A word that says what one backward explains."""
    for known in get_args(Per):
        if per == known:
            return known
    raise UsageError(
        f"per is '{per}'; choose step, one backward a prediction, or sentence, one backward from "
        "the sum of a text's predictions."
    )


def explanation_target(task: tasks.Task) -> str:
    """What is explained in a task, in words."""
    if task.kind not in EXPLAINED:
        raise UsageError(
            f"A {task.kind} task has no prediction that relevance could start from; give a task of "
            f"the kinds {', '.join(EXPLAINED)}."
        )
    return EXPLAINED[task.kind]


@contextmanager
def explaining(subject: Subject, task: tasks.Task, draw: Draw | None = None) -> Iterator[Explain]:
    """How the predictions of a task are explained, within the block: all, or some of a text."""
    if isinstance(task, tasks.Translation | tasks.LanguageModelling | MaskedLanguageModelling):
        with words_read(subject) as words:
            yield lambda tracing, batch: _words(tracing, batch, words, draw or Draw())
    elif isinstance(task, Similarity):
        yield _cosines
    elif isinstance(task, HeadTask):
        yield lambda tracing, batch: _logits(tracing, batch, task)
    else:
        raise UsageError(explanation_target(task))


def _words(tracing: Tracing | Straightened, batch: Batch, words: LogitInputs, draw: Draw) -> Start:
    """One start for each labelled place of a row, or for each that is drawn."""

    def run() -> Tensor:
        logits = tasks.forward(tracing.subject, batch).logits
        top = logits.argmax(dim=-1).gather(1, places)
        return words.logits_at(places, top, tracing.rule, tracing.ledger)

    labels = tasks.labels_of(batch, torch.empty(0, device=tracing.subject.device))
    predicted, weights = draw.of(labels != tasks.IGNORED, batch.index)
    places, there = _places(predicted)
    output, ledger = tracing.forward(run, len(batch))
    each = torch.eye(places.shape[1], dtype=output.dtype, device=output.device)[:, None]
    starts = each * there.to(output.dtype)
    return Start(output, starts, there.T, ledger, weights=weights)


def _places(predicted: Tensor) -> tuple[Tensor, Tensor]:
    """The predicted places of each row one after another, `[row, place]`, and which are there.

    >>> places, there = _places(torch.tensor([[False, True, True], [True, False, False]]))
    >>> places.tolist(), there.tolist()
    ([[1, 2], [0, 1]], [[True, True], [True, False]])
    """
    counts = predicted.sum(dim=1, keepdim=True)
    order = predicted.long().argsort(dim=1, descending=True, stable=True)
    there = torch.arange(int(counts.max()), device=counts.device) < counts
    return order[:, : there.shape[1]], there


def _logits(tracing: Tracing | Straightened, batch: Batch, task: HeadTask) -> Start:
    """One start a row: the class that is chosen, or the number."""
    subject = tracing.subject
    output, ledger = tracing.forward(
        lambda: tasks.logits_of(subject, batch, axes=2, needs=task.needs), len(batch)
    )
    chosen = torch.nn.functional.one_hot(output.argmax(dim=1), output.shape[1])
    return Start(output, chosen[None].to(output.dtype), _all(len(batch), output), ledger)


def _cosines(tracing: Tracing | Straightened, batch: Batch) -> Start:
    """One start a pair: the terms of the cosine, half to each side."""
    output, ledger = tracing.forward(lambda: embed(tracing.subject, batch), 2 * len(batch))
    pairs = output.detach().unflatten(0, (-1, 2))
    unit = pairs / pairs.norm(dim=-1, keepdim=True)
    terms = (unit.prod(dim=1, keepdim=True) / 2).expand_as(pairs).flatten(0, 1)
    return Start(output, terms[None], _all(2 * len(batch), output), ledger, rows=2)


def _all(rows: int, beside: Tensor) -> Tensor:
    return torch.ones(1, rows, dtype=torch.bool, device=beside.device)


# --- How much relevance was kept on the way -----------------------------------------------------


def flow_arrays(flow: Flow, start: Start) -> Arrays:
    """Of all predictions of a batch, cut by cut: what came through, and what is lost.

    `flow` is `[cut, 2]`: a sum, and the largest loss of one prediction as a share of the |R| that
    was sent; `places` is `[cut, 2]`, stack and layer; `sent` is the total of all starts.
    """
    counted = start.counted.double()
    standing = counted * start.weights
    mass = start.starts.flatten(2).abs().sum(dim=2).double()
    through, sent = flow.through.double(), flow.sent.double()
    lost = (through - sent[..., None]).abs() / mass.where(mass > 0, 1.0)[..., None]
    summed = (through * standing[..., None]).sum(dim=(0, 1))
    rows = torch.stack([summed, (lost * counted[..., None]).amax(dim=(0, 1))], dim=-1)
    places = [(STACKS.index(stack), layer) for stack, layer in flow.places]
    return {
        "flow": rows.cpu().numpy(),
        "places": np.array(places),
        "sent": (sent * standing).sum().cpu().numpy(),
    }


@dataclass
class FlowSums:
    """The flow of all batches so far."""

    sums: dict[tuple[str, int], np.ndarray] = field(default_factory=dict)
    sent: float = 0.0

    def add(self, found: Arrays) -> None:
        """Take in one batch."""
        self.sent += float(found["sent"])
        for (stack, layer), row in zip(found["places"].tolist(), found["flow"], strict=True):
            place = (STACKS[stack], layer)
            old = self.sums.get(place, np.zeros(2))
            self.sums[place] = np.array([old[0] + row[0], max(old[1], row[1])])

    def frame(self) -> pd.DataFrame:
        """A row a layer: what of the relevance sent reaches it, or is lost."""
        rows = [(*place, row[0] / self.sent, row[1]) for place, row in self.sums.items()]
        return pd.DataFrame(rows, columns=["stack", "layer", "through", "worst_loss"])

    def in_words(self, promise: str) -> str:
        """One sentence on what was kept."""
        frame = self.frame()
        lowest = frame.iloc[0]
        kept = f"a prediction loses at most {frame['worst_loss'].max():.1e} of it at any layer"
        there = f"{lowest.through:.0%} reaches {lowest.stack}.{int(lowest.layer)}"
        return f"Relevance ({promise}): {kept}; {there}."


# --- Relevance of heads as shares of their layer, one prediction at a time ----------------------


def head_shares(subject: Subject, relevance: Relevance, start: Start) -> Arrays:
    """What every example of a batch adds: summed shares and their number, `[example, head]`.

    A layer that no relevance reached in some prediction (a decoder that only starts) is not
    counted there. Of predictions that were drawn, `error` is the variance which the draw gives the
    summed shares, as if it were a simple one (Cochran 1977, section 2.9).
    """
    heads = relevance.heads.double().unflatten(1, (-1, start.rows)).sum(dim=2)
    if not bool(heads.isfinite().all()):
        check_finite(subject)
        raise ModelError(
            f"The relevance of the heads of {subject.name} is not a number, although all weights "
            f"are; {str(subject.dtype).removeprefix('torch.')} may be too narrow: use --load dtype="
            "float32 (dtype='float32')."
        )
    counted = start.counted.unflatten(1, (-1, start.rows))[:, :, 0, None]
    shares, reached = shares_of_layers(heads, subject.anatomy)
    both = counted & reached
    sums, counts = (shares * both).sum(dim=0), both.sum(dim=0)
    weights = torch.as_tensor(start.weights, device=counts.device)
    weights = weights.expand(len(start.output)).reshape(-1, start.rows)[:, :1]
    spread = ((shares - sums / counts.clamp_min(1)) ** 2 * both).sum(dim=0) / (counts - 1)
    spread = spread * counts * weights * (weights - 1)
    error = torch.where(weights > 1, spread, 0.0)
    return {
        "shares": _array(sums * weights),
        "counts": _array(counts * weights),
        "error": _array(error),
        "explained": _array(counts.amax(dim=1)),
    }


def shares_of_layers(heads: Tensor, anatomy: Anatomy) -> tuple[Tensor, Tensor]:
    """|R| of each head over the sum of |R| in its layer, `[..., head]`, and where that is not 0."""
    shares, reached = torch.zeros_like(heads), torch.zeros_like(heads, dtype=torch.bool)
    for span in anatomy.spans.values():
        sizes = heads[..., span].abs()
        total = sizes.sum(dim=-1, keepdim=True)
        shares[..., span] = sizes / total.where(total > 0, 1.0)
        reached[..., span] = total > 0
    return shares, reached


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.double().cpu().numpy()


# --- Relevance ----------------------------------------------------------------------------------

RELEVANCE = Column(
    "relevance",
    meaning="The head's share of what its layer adds to a prediction, by relevance propagation.",
    paper="Voita et al. 2019, section 4",
    range=(0, 1),
    direction="higher",
    more="more relevant",
    group="How much it matters",
    format=".3f",
)

CONTRIBUTION = replace(
    RELEVANCE,
    name="contribution",
    meaning="The head's share of what its layer adds to a prediction: gradient times activation "
    "with attention, norms and gates held fixed.",
    paper="",
    more="larger share",
)

#: The rule of each convention; the program of 2021 is the rule "alpha-beta".
RULE_OF = {"headcount": "z+", "paper": "ding", "code": "z+"}
#: What relevance was by default in version 1, and in whose name it is measured today.
_OLD_RULE = "default"


def relevance(
    subject: Subject,
    task: Any,
    *,
    rule: str | None = None,
    per: str = "step",
    predictions: int | str | None = None,
    convention: str = "headcount",
    batch_size: int = 16,
    seed: int | None = None,
    journal: Journal | None = None,
    engine: Engine | EngineOptions | str | None = None,
) -> HeadTable:
    """Score every head by its share of the relevance of its layer, with an interval over examples.

    Shares of one layer of a stack sum to 1. `task` may also be a corpus, which is then translated,
    gone on with, filled in or compared in pairs, whatever the model does. `rule` is "z+" (the
    authors' program of 2019), "ding" (the paper's text, the convention "paper") or "alpha-beta"
    (the program of 2021). A model with blocks that the rule's authors did not have is refused with
    the reason; "z+ extended" gives half of a product to each side and passes a root-mean-square
    norm over. `per="step"` explains every prediction by itself, as the paper does; "sentence" sends
    one backward from the sum of a text's predictions, which is an approximation. Of a text with
    more, `predictions` are explained, drawn by the `seed`: 8, or all of them ("all"; the default of
    the papers' conventions). Each stands for those not drawn, so that shares are as right on
    average; intervals hold the draw, and a remark says what it adds. `details["relevance_flow"]`
    and a remark tell how much relevance was kept on the way.

    >>> from headcount import tasks
    >>> from headcount.models.loading import load
    >>> task = tasks.translation([("Rain fell.", "Regen fiel."), ("It rained.", "Es regnete.")])
    >>> relevance(load("translator", device="cpu"), task)
    HeadTable(144 heads: enc 48, dec 48, cross 48; 1 column: relevance)
    """
    if convention not in RULE_OF:
        raise UsageError(f"There is no convention '{convention}'; choose {', '.join(RULE_OF)}.")
    name = RULE_OF[convention] if rule is None else rule
    rule_named(name)
    most = check_predictions(predictions, convention, check_per(per))
    work = _Work(
        subject, tasks.natural_task(subject, task), convention, name, check_per(per),
        Draw(most, seed or 0),
    )  # fmt: skip
    return work.explained(batch_size, journal, engine)


def contribution(
    subject: Subject,
    task: Any,
    *,
    per: str = "step",
    predictions: int | str | None = None,
    batch_size: int = 16,
    seed: int | None = None,
    journal: Journal | None = None,
    engine: Engine | EngineOptions | str | None = None,
) -> HeadTable:
    """Score every head by its share of what its layer contributes, of any model with attention.

    The share is of gradient times activation, with attention, norms and gates held fixed; see
    `contribution.py`, and `relevance` for the options.

    >>> from headcount import tasks
    >>> from headcount.models.loading import load
    >>> task = tasks.translation([("Rain fell.", "Regen fiel."), ("It rained.", "Es regnete.")])
    >>> contribution(load("translator", device="cpu"), task)
    HeadTable(144 heads: enc 48, dec 48, cross 48; 1 column: contribution)
    """
    most = check_predictions(predictions, "headcount", check_per(per))
    work = _Work(
        subject, tasks.natural_task(subject, task), "headcount", None, check_per(per),
        Draw(most, seed or 0),
    )  # fmt: skip
    return work.explained(batch_size, journal, engine)


@contextmanager
def _measuring(
    subject: Subject, task: tasks.Task, rule: str | None, per: Per, draw: Draw
) -> Iterator[Measure]:
    """Within the block, a function that gives shares and flow of a batch."""
    with (
        enough_memory(subject),
        nullcontext() if rule is None else in_double(subject),
        straightened(subject) if rule is None else traced(subject, rule_named(rule)) as tracing,
        explaining(subject, task, draw) as explain,
    ):

        def measure(batch: Batch) -> Arrays:
            check_ids(subject, batch.inputs)
            start = explain(tracing, batch)
            start = start if per == "step" else start.together()
            found = tracing.back(start.output, start.starts, start.ledger)  # type: ignore[arg-type]
            flow = {} if found.flow is None else flow_arrays(found.flow, start)
            return head_shares(subject, found, start) | flow

        yield measure


@contextmanager
def in_double(subject: Subject) -> Iterator[None]:
    """Within the block the model computes in float64; afterwards its own tensors are back.

    Rules that divide by sums which may be near zero make large numbers of small rounding errors:
    in float32 two batch sizes differ in the third digit, and some sums overflow.
    """
    if subject.device.type == "mps":  # has no float64
        yield
        return
    own = [*subject.model.parameters(), *subject.model.buffers()]
    kept = [(one, one.data) for one in own if one.is_floating_point()]
    try:
        for one, data in kept:
            one.data = data.double()
        yield
    finally:
        for one, data in kept:
            one.data = data


@dataclass
class _Work(ScoreWork):
    """A score of shares under way; without a rule it is contribution."""

    rule: str | None
    per: Per
    draw: Draw
    flow: FlowSums = field(default_factory=FlowSums, init=False)
    #: The summed variance of the draw by head, and how many predictions were explained.
    error: Any = field(default=0.0, init=False)
    explained_count: int = field(default=0, init=False)

    @property
    def column(self) -> Column:
        """What is filled."""
        return CONTRIBUTION if self.rule is None else RELEVANCE

    def explained(
        self, batch_size: int, journal: Journal | None, engine: Engine | EngineOptions | str | None
    ) -> HeadTable:
        """Measure all batches of the task."""
        explanation_target(self.task)
        self.task.check(self.subject)
        done = BatchWork(
            self.column.name,
            self.subject,
            partial(_measuring, task=self.task, rule=self.rule, per=self.per, draw=self.draw),
            len(self.task),
            {"convention": self.convention, "batch_size": batch_size, **self.settings},
            journal,
            engine,
        )
        return self.run(done, self.task.batches(self.subject, batch_size))

    @property
    def settings(self) -> dict[str, Any]:
        """What the figures depend on."""
        drawn = {"seed": self.draw.seed} if self.draw.most else {}
        about = {"per": self.per, "predictions": self.draw.most or "all", **drawn}
        return about if self.rule is None else {"rule": self.rule, **about}

    def add(self, number: int, batch: Batch, found: Arrays) -> None:
        """Take in one batch."""
        self.seen.update(batch.index)
        self.sums.add(batch.index, found["shares"], found["counts"])
        if self.rule is not None:
            self.flow.add(found)
        self.error = self.error + found["error"].sum(axis=0)
        self.explained_count += int(found["explained"].sum())

    def table(self) -> HeadTable:
        """What has been found so far."""
        value, low, high = self.sums.interval(absolute=False)
        said = [f"Explained is {explanation_target(self.task)}."]
        if self.per == "sentence":
            said.append(
                "One backward a text, from the sum of its predictions: an approximation of one "
                "backward a prediction."
            )
        total = self.sums.statistics(absolute=False)[..., 1].sum(axis=0)
        if self.explained_count < round(float(total.max())):
            errors = np.sqrt(self.error) / total.clip(1)
            adds = f"adds a standard error of at most {errors.max():.2g}"
            adds = adds if self.draw.most > 1 else "adds an error"
            said.append(
                f"At most {self.draw.most} predictions of a text are explained, "
                f"{self.explained_count:,} of {total.max():,.0f} (all: predictions='all'). "
                f"The draw {adds}, which the intervals hold."
            )
        details = {}
        if self.rule is not None:
            said.append(self.flow.in_words(rule_named(self.rule).promise))
            details["relevance_flow"] = self.flow.frame()
        shares = zip(self.subject.heads, value, strict=True)
        missing = sorted({head.stack for head, share in shares if np.isnan(share)})
        return self.column_table(
            self.column,
            (value, low, np.minimum(high, 1)),
            said,
            [f"{stack}: no {self.column.name} reaches it in this task" for stack in missing],
            details=details,
        )


class RelevanceScore(Score):
    """Relevance among the scores of the registry."""

    column, takes, per = RELEVANCE, ("per", "rule", "predictions"), get_args(Per)

    def filled(self, own: Mapping[str, Any]) -> str:
        """Under its old rule it is contribution, and says so."""
        return (CONTRIBUTION if own.get("rule") == _OLD_RULE else RELEVANCE).name

    def compute(self, subject: Subject, task: tasks.Task, options: ScoreOptions) -> HeadTable:
        """See `relevance`."""
        if options.own.get("rule") == _OLD_RULE:
            warnings.warn(
                "rule='default' of relevance is the score contribution now; write "
                "by='contribution'.",
                FutureWarning,
                stacklevel=2,
            )
            own = {key: one for key, one in options.own.items() if key != "rule"}
            return ContributionScore().compute(subject, task, replace(options, own=own))
        shared = options.shared("convention", "batch_size", "seed", "journal", "engine")
        return relevance(subject, task, **shared)


class ContributionScore(Score):
    """Contribution among the scores of the registry."""

    column, takes, per = CONTRIBUTION, ("per", "predictions"), get_args(Per)

    def compute(self, subject: Subject, task: tasks.Task, options: ScoreOptions) -> HeadTable:
        """See `contribution`."""
        return contribution(
            subject, task, **options.shared("batch_size", "seed", "journal", "engine")
        )
