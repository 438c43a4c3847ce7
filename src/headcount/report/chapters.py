"""How fast this machine runs this model: a few texts, timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any

import numpy as np
import pandas as pd

from headcount import tasks
from headcount.importance import (
    GROUP,
    Intervention,
    Sweep,
    ablation_costs,
    compared,
    origin,
    score,
    sweep,
    sweep_task,
    texts_of_task,
)
from headcount.models import Subject
from headcount.pruning import Goal, Order, OrderOptions, Orders, curve_frame, curve_sweep
from headcount.records import Column, Head, HeadTable, Journal, Progress, Run, write_exhibits
from headcount.report.chosen_sentences import exhibits_of
from headcount.survey import PATTERN_COLUMNS, Manner, Telling, families, run_pass, survey
from headcount.tasks import Task, Translation
from headcount.text import Corpus, texts_of

# --- What all chapters of a story share ---------------------------------------------------------


@dataclass(frozen=True)
class Chapter:
    """One step of the story: what it is, what it depends on, and how it is done."""

    #: The stage of the run that it is kept under.
    name: str
    #: What people are told it does.
    title: str
    #: All that its figures depend on besides the model: with the same it is not done again.
    settings: Mapping[str, Any] = field(default_factory=dict)
    #: Does it, and puts what it finds into the run; returns what to note.
    work: Callable[[Progress], list[str]] = lambda progress: []
    #: The examples that it uses, where it uses any.
    task: Task | None = None
    #: Forwards of one text that it takes, roughly; for a forecast alone.
    forwards: float = 0.0
    #: Why it cannot be told of this model; empty where it can.
    why_not: str = ""


@dataclass(frozen=True)
class Scene:
    """A model in front of its texts, with the run that keeps what is found."""

    run: Run
    subject: Subject
    #: What is read: sentences, or pairs.
    texts: Corpus
    treebank: Corpus | None = None
    coref: Corpus | None = None
    #: Whether the texts are the user's, rather than the bundled sample.
    own_text: bool = True
    #: What good means; None where nobody said and the model does nothing by itself.
    task: Task | None = None
    why_no_task: str = ""
    thorough: bool = False
    limit: int | None = None
    seed: int | None = None
    batch_size: int = 16
    #: Told, before long work, how long it will take.
    announce: Callable[[str], None] | None = None

    @property
    def heads(self) -> list[Head]:
        """The model's heads."""
        return self.subject.heads

    def read(self) -> HeadTable | None:
        """The run's table as it is now."""
        return self.run.read_table() if self.run.has_table else None

    def keep(self, table: HeadTable) -> None:
        """Put columns and details into the run, beside what is there."""
        old = self.read()
        self.run.write_table(table if old is None else old.join(table, replace=True))

    def begin(self) -> None:
        """Refuse a run of another model before the long work."""
        weights = {"weights": self.subject.weights_hash}
        self.run.check_subject(HeadTable.of(self.heads, {}, provenance=weights))

    def some_texts(self, count: int) -> Corpus:
        """So many texts for a quick story, drawn from all of them; all for a thorough one."""
        if self.thorough or self.limit is not None:
            return self.texts
        return self.texts.limit(count, self.seed or 0)

    @property
    def about_texts(self) -> dict[str, Any]:
        """The texts, in settings."""
        read = {"texts": self.texts, "treebank": self.treebank, "coref": self.coref}
        found = {name: corpus.hash for name, corpus in read.items() if corpus is not None}
        return {**found, "seed": self.seed}

    def about_task(self, task: Task) -> dict[str, Any]:
        """A task, in settings."""
        return {"task": task.hash, "metric": task.metric.name, "seed": self.seed}


# --- What people judge a task by, where that is more than its loss ------------------------------

_WORDS = {"bleu": "BLEU", "chrf": "chrF", "f1": "F1"}


def own_metric(scene: Scene) -> Task | None:
    """The story's task with that metric; None where the loss is all there is."""
    task = scene.task
    if task is None or task.kind in ("lm", "mlm"):
        return None
    if isinstance(task, Translation) and task.metric.name == "loss":
        return replace(tasks.translation(task.examples, metric="bleu"), name=task.name)
    return task


def metric_title(task: Task) -> str:
    """A metric as people write it."""
    return _WORDS.get(task.metric.name, task.metric.name)


# --- How many examples a quick story can afford -------------------------------------------------

#: Characters of a token, roughly.
_CHARACTERS = 4.0
#: Fewer examples tell nothing.
_LEAST = 16
#: So many examples tell how long they are.
_LOOK = 200


def affordable(task: Task, subject: Subject, forwards: float, budget: float) -> int:
    """So many examples that `forwards` runs of each stay within a budget of multiplications.

    At least 16, at most all.
    """
    each = forwards * forward_cost(task, subject)
    return min(len(task), max(_LEAST, int(budget / each)))


def forward_cost(task: Task, subject: Subject) -> float:
    """Multiplications of one forward of one example: weights times tokens, roughly."""
    texts = [text for item in texts_of_task(task)[:_LOOK] for text in texts_of(item)]
    characters = sum(map(len, texts)) / min(len(task), _LOOK)
    table = subject.inner.get_input_embeddings()
    looked_up = 0 if table is None else sum(weight.numel() for weight in table.parameters())
    weights = sum(weight.numel() for weight in subject.model.parameters()) - looked_up
    if "cross" in subject.anatomy.stacks:
        characters /= 2  # each half of the weights sees one of the two texts
    return max(1.0, weights * characters / _CHARACTERS)


# --- Chapter ------------------------------------------------------------------------------------

_NAME, _TITLE = "curve", "How far heads can go"
#: A tenth of all heads a step: at most 10 points with the whole model.
_STEP = 10.0
#: Multiplications for the loss, and for output that the model speaks itself.
_BUDGET, _SPOKEN = 1e12, 4.5e11
#: More examples than this make a quick curve no clearer.
_MOST = 200


def curve_chapter(scene: Scene) -> Chapter:
    """Heads are ordered on one half of the examples; the other half judges what is left."""
    if scene.task is None:
        return Chapter(_NAME, _TITLE, why_not=scene.why_no_task)
    task = _cut(scene, sweep_task(scene.task), 11, _BUDGET)
    if len(task) < 4:
        return Chapter(_NAME, _TITLE, why_not=f"{task.name} has {len(task)} examples, too few.")
    names = ["gradient", *(["ablation"] if scene.thorough else []), "random"]
    settings = {**scene.about_task(task), "by": names, "step": _STEP}

    def work(progress: Progress) -> list[str]:
        fingerprint = {**settings, "what": "curve", "weights": scene.subject.weights_hash}
        with scene.run.journal(fingerprint, _NAME) as journal:
            frame, notes = _Curve(scene, task, names, journal, progress).measured()
        scene.run.write_frame(_NAME, frame)
        scene.run.drop_journal(_NAME)
        return notes

    spoken = 0 if own_metric(scene) is None else 70 * min(40, len(task) / 2)
    return Chapter(_NAME, _TITLE, settings, work, task, 11 * len(task) + spoken)


class _Curve:
    """The points of the curve, one journal for all of them."""

    def __init__(
        self, scene: Scene, task: Task, names: list[str], journal: Journal, progress: Progress
    ) -> None:
        self.scene, self.names, self.journal, self.progress = scene, names, journal, progress
        self.choose, self.held_out = task.split(0.5, scene.seed or 0)

    def measured(self) -> tuple[pd.DataFrame, list[str]]:
        """The curve by the loss, then by the task's own metric along the first order."""
        how = OrderOptions(step=_STEP, randoms=1, batch_size=self.scene.batch_size)
        orders = Orders(self.scene.subject, self.choose, how, journal=self.journal)
        made = orders.of(self.names, Goal())
        frames, notes = [], []
        for task, along in self._judged(made):
            frame, told = self._one(task, along)
            frames.append(frame)
            notes += told
        return pd.concat(frames, ignore_index=True), list(dict.fromkeys(notes))

    def _judged(self, orders: list[Order]) -> list[tuple[Task, list[Order]]]:
        judged: list[tuple[Task, list[Order]]] = [(self.held_out, orders)]
        spoken = own_metric(self.scene)
        if spoken is not None:
            spoken = replace(spoken, examples=self.held_out.examples)
            judged.append((_cut(self.scene, spoken, 70, _SPOKEN), orders[:1]))
        return judged

    def _one(self, task: Task, orders: list[Order]) -> tuple[pd.DataFrame, list[str]]:
        found = curve_sweep(
            self.scene.subject,
            task,
            orders,
            name=f"curve {task.metric.name}",
            batch_size=self.scene.batch_size,
            journal=self.journal,
            progress=self.progress,
        )
        frame, notes = curve_frame(found, orders, heads=len(self.scene.heads), part="held-out")
        return frame, [*found.notes, *notes]


def _cut(scene: Scene, task: Task, forwards: float, budget: float) -> Task:
    if scene.thorough or scene.limit is not None:
        return task
    count = affordable(task, scene.subject, forwards, budget)
    return task.limit(min(_MOST, count), scene.seed or 0)


# --- Chapter: a few sentences to look at --------------------------------------------------------

#: As many sentences are kept.
COUNT = 3


def exhibit_chapter(scene: Scene) -> Chapter:
    """Sentences that show what the verdicts speak of, with every head's map of them."""

    def work(progress: Progress) -> list[str]:
        roles = scene.run.read_frame("roles") if "roles" in scene.run.frames else None
        found, notes = exhibits_of(
            scene.subject,
            scene.treebank or scene.texts,
            roles=roles,
            count=COUNT,
            own_text=scene.own_text,
        )
        write_exhibits(scene.run, found)
        progress(len(found), len(found))
        return notes

    settings = {**scene.about_texts, "count": COUNT, "own_text": scene.own_text}
    return Chapter("exhibits", "A few sentences to look at", settings, work)


# --- Chapter: which heads are alike -------------------------------------------------------------

#: Texts that settle which heads are alike; a thorough story takes all.
_TEXTS = 96


def families_chapter(scene: Scene) -> Chapter:
    """Divergences between all heads of a stack, a map of them, clusters and nearest heads."""
    texts = scene.some_texts(_TEXTS)

    def work(progress: Progress) -> list[str]:
        found = families(
            scene.subject,
            texts,
            batch_size=min(8, scene.batch_size),
            seed=scene.seed,
            progress=progress,
        )
        scene.run.write_arrays("pairs", found.arrays())
        return []

    settings = {"texts": texts.hash, "seed": scene.seed, "convention": "headcount"}
    return Chapter("families", "Which heads are alike", settings, work, forwards=4.0 * len(texts))


# --- Chapter ------------------------------------------------------------------------------------

#: Heads that are tried in a quick story, and the multiplications it may take.
_FEW, _BUDGET_TELL_OWN_METRIC = 6, 3e11


def own_metric_chapter(scene: Scene) -> Chapter:
    """The heads whose ablation costs most loss, tried by what people judge the task by."""
    task = own_metric(scene)
    title = "What the most important heads cost the task"
    if task is None:
        why = scene.why_no_task or "the task has no metric besides its loss"
        return Chapter("own-metric", title, why_not=why)
    title = f"What the most important heads cost in {metric_title(task)}"
    count = len(scene.heads) if scene.thorough else _FEW
    if not scene.thorough and scene.limit is None:
        task = task.limit(
            affordable(task, scene.subject, 7.0 * (count + 1), _BUDGET_TELL_OWN_METRIC),
            scene.seed or 0,
        )
    chosen = task
    settings = {**scene.about_task(task), "heads": count}

    def work(progress: Progress) -> list[str]:
        heads = _most_important(scene.read(), count)
        fingerprint = {**settings, "what": "own metric", "weights": scene.subject.weights_hash}
        with scene.run.journal(fingerprint, "own-metric") as journal:
            found = sweep(
                scene.subject,
                chosen,
                [Intervention([head]) for head in heads],
                metric="task",
                batch_size=scene.batch_size,
                journal=journal,
                name="own metric",
                progress=progress,
                announce=scene.announce,
            )
        scene.keep(_table(scene, chosen, heads, found))
        scene.run.drop_journal("own-metric")
        return [f"{len(heads)} of {len(scene.heads)} heads, those whose ablation costs most loss."]

    return Chapter("own-metric", title, settings, work, task, 7.0 * (count + 1) * len(task))


def _most_important(table: HeadTable | None, count: int) -> list[Head]:
    assert table is not None  # the chapter before this one wrote it
    worth = np.nan_to_num(table.numbers("ablation"), nan=-np.inf)
    order = np.argsort(-worth, kind="stable")[:count]
    return sorted(table.heads[place] for place in order)


def _table(scene: Scene, task: Task, heads: list[Head], found: Sweep) -> HeadTable:
    """A column that is NA for the heads that were not tried."""
    costs = ablation_costs(found)
    name = f"ablation_{task.metric.name}"
    rows = [scene.heads.index(head) for head in heads]

    def spread(values: np.ndarray) -> np.ndarray:
        room = np.full(len(scene.heads), np.nan)
        room[rows] = values
        return room

    settings = {"metric": task.metric.name, "baseline": found.baseline.value, "mode": "zero"}
    return HeadTable.of(
        scene.heads,
        {name: spread(costs.value), f"{name}_p_adjusted": spread(costs.p_adjusted)},
        _columns(name, task),
        low={name: spread(costs.low)},
        high={name: spread(costs.high)},
        notes={name: "; ".join(["only the heads whose ablation costs most loss", *costs.notes])},
        provenance=origin(scene.subject, task, settings=settings, remarks=found.notes),
    )


def _columns(name: str, task: Task) -> list[Column]:
    paper = "Michel et al. 2019, section 3.2"
    return [
        Column(
            name,
            meaning=f"How much {metric_title(task)} falls without the head.",
            unit=metric_title(task),
            paper=paper,
            group=GROUP,
            more="more important",
            format="+.3g",
            diverging=True,
        ),
        Column(
            f"{name}_p_adjusted",
            meaning=f"The p value of {name}, after Holm over the heads that were tried.",
            paper=paper,
            group=GROUP,
            range=(0, 1),
            format=".2g",
        ),
    ]


# --- Chapter ------------------------------------------------------------------------------------

#: Texts that settle a head's shares; a thorough story takes all.
_TEXTS_TELL_PATTERNS = 96


def patterns_chapter(scene: Scene) -> Chapter:
    """Each head's shares of the five patterns among its maps."""
    texts = scene.some_texts(_TEXTS_TELL_PATTERNS)

    def work(progress: Progress) -> list[str]:
        table = survey(
            scene.subject,
            texts,
            columns=[column.name for column in PATTERN_COLUMNS],
            patterns=True,
            roles=False,
            batch_size=scene.batch_size,
            seed=scene.seed,
            progress=progress,
        )
        scene.keep(table)
        return []

    settings = {"texts": texts.hash, "seed": scene.seed, "convention": "headcount"}
    return Chapter("patterns", "What its maps look like", settings, work, forwards=3.0 * len(texts))


# --- Chapters -----------------------------------------------------------------------------------

#: Multiplications that each chapter of a quick story may take: half a minute to two minutes.
_BUDGETS = {"gradient": 1e12, "relevance": 3.5e11, "ablation": 1.35e12}


def gradient_chapter(scene: Scene) -> Chapter:
    """How much the loss notices a head: one forward and one backward an example."""
    return _score_chapter(scene, "gradient", "How much the loss notices each head", forwards=3)


def relevance_chapter(scene: Scene) -> Chapter:
    """Which share of its predictions a head carries: a backward for every prediction."""
    title = "Which share of a prediction each head carries"
    return _score_chapter(scene, "relevance", title, forwards=40)


def ablation_chapter(scene: Scene) -> Chapter:
    """What happens without a head: the task once for every head, by its loss."""
    title = "What happens without each head, by loss"
    return _score_chapter(scene, "ablation", title, forwards=0.6 * len(scene.heads))


def agreement_chapter(scene: Scene) -> Chapter:
    """Whether the measures rank heads alike."""

    def work(progress: Progress) -> list[str]:
        table = scene.read()
        frame = None if table is None else compared(table)
        if frame is None:
            return ["There are not two measures of importance to compare."]
        scene.run.write_frame("agreement", frame)
        return []

    stages = scene.run.stages
    settings = {name: stages[name]["finished"] for name in stages if name.startswith("score-")}
    return Chapter(
        "agreement", "Whether the measures agree", settings, work, why_not=scene.why_no_task
    )


def _score_chapter(scene: Scene, name: str, title: str, *, forwards: float) -> Chapter:
    if scene.task is None:
        return Chapter(f"score-{name}", title, why_not=scene.why_no_task)
    task = _afforded(scene, scene.task, forwards, _BUDGETS[name])
    settings: Mapping[str, Any] = {**scene.about_task(task), "convention": "headcount"}

    def work(progress: Progress) -> list[str]:
        table = score(
            scene.subject,
            task,
            by=name,
            run=scene.run,
            batch_size=scene.batch_size,
            seed=scene.seed,
            progress=lambda _, done, total: progress(done, total),
            announce=scene.announce,
        )
        told = table.origins.get(name, table.provenance).get("remarks", ())
        return [*told, *_tell_scores_cut(scene.task, task)]

    return Chapter(f"score-{name}", title, settings, work, task, forwards * len(task))


def _afforded(scene: Scene, task: Task, forwards: float, budget: float) -> Task:
    """All of the task for a thorough story or a limit of the user's, else as much as is quick."""
    if scene.thorough or scene.limit is not None:
        return task
    return task.limit(affordable(task, scene.subject, forwards, budget), scene.seed or 0)


def _tell_scores_cut(whole: Task | None, task: Task) -> list[str]:
    if whole is None or len(whole) == len(task):
        return []
    return [f"{len(task):,} of {len(whole):,} examples were used; --thorough takes all."]


# --- Chapter: where every head looks, and what it does there ------------------------------------

#: What a text costs with all tallies, trees and trials, in forwards.
_EACH = 7.0


def survey_chapter(scene: Scene) -> Chapter:
    """All columns of a survey, and the verdicts that texts, trees and mentions allow.

    A thorough story also asks a randomly initialised twin.
    """
    control = "random-init" if scene.thorough else None

    def work(progress: Progress) -> list[str]:
        table = survey(
            scene.subject,
            scene.texts,
            treebank=scene.treebank,
            coref=scene.coref,
            roles=True,
            control=control,
            batch_size=scene.batch_size,
            seed=scene.seed,
            telling=_all_into(progress),
        )
        scene.keep(table)
        return list(table.provenance.get("remarks", []))

    settings = {**scene.about_texts, "control": control, "convention": "headcount"}
    title = "Where every head looks, and its roles"
    twice = 1 if control is None else 2
    return Chapter("survey", title, settings, work, forwards=twice * _EACH * len(scene.texts))


def _all_into(progress: Progress) -> Telling:
    """Every pass and the trials tell the same line."""
    return lambda name, unit: nullcontext(progress)


# --- How fast this machine runs this model: a few texts, timed ----------------------------------

#: So many texts are run, after as many to warm up.
_TEXTS_PACE = 8


def seconds_a_text(scene: Scene) -> float:
    """What one forward of one text takes, among others in a batch."""
    texts = scene.texts.limit(_TEXTS_PACE, scene.seed or 0)
    manner = Manner(scene.subject.anatomy.stacks, scene.batch_size)
    run_pass(scene.subject, texts, [], manner)
    begun = monotonic()
    run_pass(scene.subject, texts, [], manner)
    return (monotonic() - begun) / len(texts)
