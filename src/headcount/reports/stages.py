"""The stages of a story: survey, exhibits, scores, agreement, curve; rooms add theirs.

Each is a function that looks at the model, its texts and its task, and returns a `StoryStage`: what
its figures depend on, how it is done, and roughly how long it takes. What they measure: the columns
and roles of Clark et al. 2019, Kovaleva et al. 2019 and Voita et al. 2019; gradient and ablation of
Michel et al. 2019, sections 3.2 and 4.1; relevance of Voita et al. 2019, section 4; the pruning
curve of Michel et al. 2019, section 4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any

import numpy as np
import pandas as pd

from headcount import importance, plugins, tasks
from headcount.models import Subject, bare_table
from headcount.pruning import can_go, read_tolerance, removed_counts
from headcount.records import Engine, Head, HeadTable, Journal, Run
from headcount.surveys import PassOptions, ReadingOptions, RoleOptions, ShardWork, run_pass, survey
from headcount.tasks import Task, Translation
from headcount.text import Corpus, texts_of

# --- What all stages share ----------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """A little of what a stage does, to be timed; `run` gives how many examples it ran."""

    name: str
    run: Callable[[], int]

    def seconds(self) -> float:
        """What one example takes on this machine, among others in a batch."""
        self.run()  # to warm up
        begun, done = monotonic(), self.run()
        while (taken := monotonic() - begun) < _MEASURED:  # a busy machine needs a while
            done += self.run()
        return taken / done


#: Seconds for which each step is measured, where it is a short one.
_MEASURED = 1.0


@dataclass(frozen=True)
class StoryStage:
    """One step of the story: what it is, what it depends on, and how it is done."""

    #: The stage of the run that it is kept under.
    name: str
    #: What it does, for people.
    title: str
    #: All that its figures depend on besides the model: with the same it is not done again.
    settings: Mapping[str, Any] = field(default_factory=dict)
    #: Does it, and puts what it finds into the run; returns what to note.
    work: Callable[[], list[str]] = list
    #: The examples that it uses, where it uses any.
    task: Task | None = None
    #: For a forecast: steps of the kinds that it takes, and how many of each.
    runs: tuple[tuple[Step, float], ...] = ()
    #: Why this model has no such stage; empty where it has.
    why_not: str = ""
    #: Whether it only reads what other stages left: it may be done again at any time.
    derived: bool = False
    #: Whether it keeps sentences of the texts; a story without exhibits leaves it out.
    keeps_text: bool = False


@dataclass(frozen=True)
class StoryContext:
    """A model, its texts and its task, with the run that keeps what is found."""

    run: Run
    subject: Subject
    #: What is read: sentences, or pairs.
    texts: Corpus
    treebank: Corpus | None = None
    coref: Corpus | None = None
    #: Whether the texts are the user's, rather than the bundled sample.
    own_text: bool = True
    #: What good means; None where it was not given and the model does nothing by itself.
    task: Task | None = None
    why_no_task: str = ""
    thorough: bool = False
    #: The loss that may be when heads go; see `pruning.read_tolerance`.
    tolerance: str | None = None
    limit: int | None = None
    seed: int | None = None
    batch_size: int = 16
    #: Texts that a survey runs at once, where that was asked for; None: by their tokens.
    texts_at_once: int | None = None
    #: Who does surveys, scores and the curve; None: this process.
    engine: Engine | None = None
    #: Steps in which gates learn, and in which what is left is healed; 0 for none.
    gates: int = 0
    heal: int = 0
    #: Whether what is left is refitted at a few sizes.
    refit: bool = False

    @property
    def heads(self) -> list[Head]:
        """The model's heads."""
        return self.subject.heads

    def keep(self, table: HeadTable) -> None:
        """Put columns and details into the run, next to what is there."""
        if self.run.has_table:
            table = self.run.read_table().join(table, replace=True)
        self.run.write_table(table)

    def keep_survey(self, stage: str, texts: Corpus, **options: Any) -> HeadTable:
        """Survey texts, shard by shard on the disk until the table is in the run."""
        table = survey(
            self.subject,
            texts,
            reading=ReadingOptions(batch_size=self.texts_at_once, seed=self.seed),
            run=ShardWork(folder=self.run.shards(stage)),
            engine=self.engine,
            **options,
        )
        self.keep(table)
        self.run.drop_shards(stage)
        return table

    def begin(self) -> None:
        """Refuse a run of another model before the long work."""
        self.run.check_subject(bare_table(self.subject))

    @contextmanager
    def journal(self, name: str, what: str, settings: Mapping[str, Any]) -> Iterator[Journal]:
        """A journal for one stage, dropped when the stage has kept what it found."""
        fingerprint = {**settings, "what": what, "weights": self.subject.weights_hash}
        with self.run.journal(fingerprint, name) as journal:
            yield journal
        self.run.drop_journal(name)

    def some_texts(self, count: int) -> Corpus:
        """A sample of the texts for a quick story; all for a thorough one."""
        if self.thorough or self.limit is not None:
            return self.texts
        return self.texts.limit(count, self.seed or 0)

    def afforded(self, task: Task, forwards: float, budget: float, most: int | None = None) -> Task:
        """As much of a task as stays quick; all of it for a thorough story or under a limit."""
        if self.thorough or self.limit is not None:
            return task
        count = affordable(task, self.subject, forwards, budget)
        return task.limit(count if most is None else min(most, count), self.seed or 0)

    @property
    def about_texts(self) -> dict[str, Any]:
        """The texts, in settings."""
        read = {"texts": self.texts, "treebank": self.treebank, "coref": self.coref}
        found = {name: corpus.hash for name, corpus in read.items() if corpus is not None}
        return {**found, "seed": self.seed}

    def about_task(self, task: Task) -> dict[str, Any]:
        """A task, in settings."""
        return {"task": task.hash, "metric": task.metric.name, "seed": self.seed}


#: Characters of a token, roughly.
_CHARACTERS = 4.0
#: Fewer examples say nothing.
_LEAST = 16
#: So many examples show how long they are.
_LOOK = 200


def affordable(task: Task, subject: Subject, forwards: float, budget: float) -> int:
    """The number of examples whose `forwards` runs stay within a budget of multiplications.

    One forward of one example takes weights times tokens, roughly. At least 16, at most all.
    """
    texts = [text for item in task.texts()[:_LOOK] for text in texts_of(item)]
    characters = sum(map(len, texts)) / min(len(task), _LOOK)
    if "cross" in subject.anatomy.stacks:
        characters /= 2  # each half of the weights sees one of the two texts
    table = subject.inner.get_input_embeddings()
    looked_up = 0 if table is None else sum(weight.numel() for weight in table.parameters())
    weights = sum(weight.numel() for weight in subject.model.parameters()) - looked_up
    each = forwards * max(1.0, weights * characters / _CHARACTERS)
    return min(len(task), max(_LEAST, int(budget / each)))


def forward_steps(context: StoryContext, times: float) -> tuple[tuple[Step, float], ...]:
    """A number of forwards of a text; a few of them make a step."""
    texts = context.texts.limit(16, 0)
    how = PassOptions(context.subject.anatomy.stacks, context.texts_at_once)

    def run() -> int:
        run_pass(context.subject, texts, [], how)
        return len(texts)

    return ((Step("forward", run), times),)


def evaluation_step(context: StoryContext, task: Task) -> Step:
    """A batch of a task's examples of a usual length; the batches of all are sorted by it too."""
    some = task.limit(3 * context.batch_size, 0)
    lengths = [sum(map(len, texts_of(item))) for item in some.texts()]
    order = np.argsort(np.reshape(lengths, (len(some), -1)).sum(axis=1), kind="stable").tolist()
    few = some.part(order[len(some) // 3 :][: context.batch_size])

    def run() -> int:
        return len(few.evaluate(context.subject, batch_size=context.batch_size))

    return Step(f"{task.kind} {task.metric.name}", run)


def _scoring(context: StoryContext, task: Task, name: str) -> Step:
    """A score of heads on a few examples."""
    few = task.limit(4, 0)

    def run() -> int:
        importance.score(context.subject, few, by=name, compare=False, batch_size=4)
        return len(few)

    return Step(name, run)


# --- Where every head looks, and what it does there ---------------------------------------------

#: What a text costs with all tallies, trees, trials and the twin, in forwards.
_EACH = 16.0


def survey_stage(context: StoryContext) -> StoryStage:
    """All columns of a survey, and the verdicts that texts, trees and mentions allow.

    A randomly initialised twin is measured too, and decides.
    """
    # What a model that has learned nothing reaches is no role, where a room makes such models.
    control = None if plugins.part("control") is None else "random-init"

    def work() -> list[str]:
        table = context.keep_survey(
            "survey",
            context.texts,
            treebank=context.treebank,
            coref=context.coref,
            roles=RoleOptions(True, control),
        )
        return list(table.provenance.get("remarks", []))

    settings = {**context.about_texts, "control": control, "convention": "headcount"}
    title = "Where every head looks, and its roles"
    runs = forward_steps(context, _EACH * len(context.texts))
    return StoryStage("survey", title, settings, work, runs=runs)


# --- How much every head matters ----------------------------------------------------------------

#: Multiplications that each score of a quick story may take: half a minute to two minutes.
_BUDGETS = {"gradient": 1e12, "ablation": 1.35e12}


def gradient_stage(context: StoryContext) -> StoryStage:
    """How much the loss notices a head: one forward and one backward an example."""
    return score_stage(context, "gradient", "How much the loss notices each head", forwards=3)


def ablation_stage(context: StoryContext) -> StoryStage:
    """What happens without a head: the task once for every head, by its loss."""
    title = "What each head costs in loss"
    return score_stage(context, "ablation", title, forwards=0.6 * len(context.heads))


def score_stage(
    context: StoryContext, name: str, title: str, *, forwards: float, budget: float | None = None
) -> StoryStage:
    """A score of every head, on as many examples as a budget of multiplications allows."""
    whole = context.task
    if whole is None:
        return StoryStage(f"score-{name}", title, why_not=context.why_no_task)
    task = context.afforded(whole, forwards, budget or _BUDGETS[name])
    settings = {**context.about_task(task), "convention": "headcount"}

    def work() -> list[str]:
        table = importance.score(
            context.subject,
            task,
            by=name,
            run=context.run,
            compare=False,  # a stage of its own compares all scores once
            batch_size=context.batch_size,
            seed=context.seed,
            engine=context.engine,
        )
        notes = list(table.origins.get(name, table.provenance).get("remarks", ()))
        if len(task) < len(whole):
            used = f"{len(task):,} of {len(whole):,} examples were used"
            notes.append(f"{used}; --thorough takes all.")
        return notes

    if name == "ablation":  # all heads of a few examples would take too long
        runs = ((evaluation_step(context, importance.sweep_task(task)), forwards * len(task)),)
    else:
        runs = ((_scoring(context, task, name), float(len(task))),)
    return StoryStage(f"score-{name}", title, settings, work, task, runs)


def own_metric(context: StoryContext) -> Task | None:
    """The story's task with what people judge it by; None where the loss is all there is."""
    task = context.task
    if task is None or task.kind in ("lm", "mlm"):
        return None
    if isinstance(task, Translation) and task.metric.name == "loss":
        return replace(tasks.translation(task.examples, metric="bleu"), name=task.name)
    return None if task.metric.name == "loss" else task


# --- The pruning curve -----------------------------------------------------------------------

_NAME, _TITLE = "curve", "The pruning curve"
#: In percent of all heads: a tenth a step after the first few heads; fewer in random orders.
_STEP, _RANDOM_STEP, _RANDOMS = 10.0, 20.0, 5
#: Multiplications for the loss, and for what people judge the task by.
_BUDGET, _OWN = 3e12, 1e12
#: More examples than this make a quick curve no clearer.
_MOST = 1000


@dataclass(frozen=True)
class Halves:
    """The examples of the curve: a half to choose on, and the other to judge by each metric."""

    task: Task
    choose: Task
    #: By the loss, and by what people judge the task by, on fewer examples where that takes long.
    judges: list[Task]

    @property
    def own(self) -> Task | None:
        """The judge that is not the loss, where there is one."""
        return self.judges[1] if self.judges[1:] else None


def too_few(task: Task) -> str:
    """Why a task cannot be halved; empty where it can."""
    return f"{task.name} has {len(task)} examples, too few." if len(task) < 4 else ""


def halves_of(context: StoryContext, whole: Task) -> Halves:
    """The examples of the story's task as the curve uses them."""
    task = context.afforded(importance.sweep_task(whole), 18, _BUDGET, most=_MOST)
    choose, held_out = task.split(0.5, context.seed or 0)
    own = own_metric(context)
    if own is None:
        return Halves(task, choose, [held_out])
    each = 7.0 if own.generates else 1.0
    own = context.afforded(replace(own, examples=held_out.examples), 8 * each, _OWN, most=_MOST)
    return Halves(task, choose, [held_out, own])


def curve_stage(context: StoryContext) -> StoryStage:
    """One half of the examples orders the heads; the other half judges."""
    if context.task is None:
        return StoryStage(_NAME, _TITLE, why_not=context.why_no_task)
    if why := too_few(context.task):
        return StoryStage(_NAME, _TITLE, why_not=why)
    halves = halves_of(context, context.task)
    task, choose, held_out = halves.task, halves.choose, halves.judges[0]
    names = ["gradient", *(["ablation"] if context.thorough else []), "random"]
    own, counts = halves.own, removed_counts(len(context.heads), _STEP, fine=True)
    orders = len(names) - 1, _RANDOMS * round(100 / _RANDOM_STEP)
    # Layers before the first head that went are not run again: about a quarter is saved.
    points = 0.75 * (1.0 + orders[0] * len(counts) + orders[1])
    runs = [(evaluation_step(context, held_out), points * len(held_out))]
    runs.append((_scoring(context, choose, "gradient"), float(len(choose))))
    # the first order once more, by what people judge the task by
    runs += [] if own is None else [(evaluation_step(context, own), 9.0 * len(own))]
    settings = {**context.about_task(task), "by": names, "step": _STEP, "randoms": _RANDOMS}
    settings |= {} if own is None else {"own": own.hash}

    def work() -> list[str]:
        from headcount.pruning import Goal, Orders, RankingOptions, held_out_curves, removal_table

        how = RankingOptions(
            step=_STEP,
            fine=True,
            randoms=_RANDOMS,
            random_step=_RANDOM_STEP,
            batch_size=context.batch_size,
        )
        with context.journal(_NAME, "curve", settings) as journal:
            where: dict[str, Any] = {"journal": journal, "engine": context.engine}
            orders = Orders(context.subject, choose, how, **where).of(names, Goal())
            judged = [(held_out, orders)]
            judged += [] if own is None else [(own, [orders[0].thinned()])]
            where |= {"batch_size": context.batch_size}
            frames, notes = held_out_curves(context.subject, judged, "curve", **where)
            curve = pd.concat(frames, ignore_index=True)
            context.run.write_frame(_NAME, curve)
            context.keep(removal_table(curve, context.heads))
        return list(dict.fromkeys(notes))

    return StoryStage(_NAME, _TITLE, settings, work, task, tuple(runs))


def can_go_stage(context: StoryContext) -> StoryStage:
    """How many heads can be pruned within the tolerance, by the rule of `pruning.can_go`."""
    title, allowed = "How many heads can be pruned", read_tolerance(context.tolerance)
    if context.task is None:
        return StoryStage("can-go", title, why_not=context.why_no_task)

    def work() -> list[str]:
        if _NAME not in context.run.frames:
            return []
        return [one.sentence for one in can_go(context.run.read_frame(_NAME), allowed)]

    measured = context.run.stages.get(_NAME, {}).get("finished")
    settings = {"tolerance": str(allowed) or None, "curve": measured}
    return StoryStage("can-go", title, settings, work, derived=True)


# --- All stages ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class StageMaker:
    """How a stage comes into the story: made when its turn comes, right after another."""

    make: Callable[[StoryContext], StoryStage]
    #: The stage that it follows, by its name in the registry; the core's stand as they are listed.
    after: str = ""
    #: Whether this story asks for it.
    wanted: Callable[[StoryContext], bool] = lambda context: True


SURVEY = StageMaker(survey_stage)
GRADIENT, ABLATION = StageMaker(gradient_stage), StageMaker(ablation_stage)
CURVE, CAN_GO = StageMaker(curve_stage), StageMaker(can_go_stage)


def stages_of(context: StoryContext) -> Iterator[StoryStage]:
    """Every stage of the registry that the story asks for; each may read what those before found.

    Rooms put theirs behind one that is there; behind one that is missing, they come last.
    """
    makers: dict[str, StageMaker] = plugins.every("stages")
    order = [name for name, maker in makers.items() if not maker.after]
    waiting = [name for name, maker in makers.items() if maker.after]
    while waiting:
        ready = [name for name in waiting if makers[name].after in order] or waiting[:1]
        for name in reversed(ready):
            after = makers[name].after
            order.insert(order.index(after) + 1 if after in order else len(order), name)
        waiting = [name for name in waiting if name not in ready]
    return (makers[name].make(context) for name in order if makers[name].wanted(context))
