"""The story of a model's heads: what each does, how much it matters, how many can be pruned.

`story` is `headcount report MODEL` as one call. Every stage is kept in the run: one that is there
with the same settings is not done again, and one that was interrupted goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any, Literal

from headcount import plugins
from headcount.errors import RunError, UsageError
from headcount.importance import in_words
from headcount.models import Subject, load
from headcount.pruning import GATE_STEPS, HEAL_STEPS, read_tolerance
from headcount.records import (
    Engine,
    EngineOptions,
    Run,
    announce,
    engine_of,
    noticed,
    old_keywords,
    provenance,
    version,
    working,
)
from headcount.reports.options import PageOptions, StoryOptions
from headcount.reports.page import Report, check_page, report
from headcount.reports.parts.numbers import read_source
from headcount.reports.stages import StoryContext, StoryStage, stages_of
from headcount.surveys import Corpora, read_corpora, sample_for, translated
from headcount.tasks import Task, natural_task
from headcount.text import Corpus

State = Literal["running", "done", "kept", "left out"]


@dataclass(frozen=True)
class StageStatus:
    """Where a stage is: running, done now, kept from before, or left out and why."""

    name: str
    title: str
    state: State
    seconds: float = 0.0
    why: str = ""

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return vars(self).copy()


# --- `hc.story` ---------------------------------------------------------------------------------


_UNPAIRED = "its texts have no translations; give pairs, or --task translation:FILE"
#: A limit is of every stage, also of those that would take fewer by themselves.
_EVERY_STAGE = " Every stage takes {limit:,} examples; without --limit, as many as stay quick."


@old_keywords(measuring=StoryOptions, drawing=PageOptions)
def story(
    model: Subject | str | Path | None = None,
    run: str | Path | None = None,
    page: str | Path = "report.html",
    *,
    text: Any = None,
    treebank: Any = None,
    coref: Any = None,
    task: Task | None = None,
    measuring: StoryOptions | None = None,
    drawing: PageOptions | None = None,
    replace: bool = False,
    engine: Engine | EngineOptions | str | None = None,
    **loading: Any,
) -> Report:
    """Measure everything about a model's heads that a run does not hold yet, and write the page.

    The whole of `headcount report MODEL`: where every head looks and its roles, a few sentences,
    which heads are alike, patterns, importance by gradient, relevance and ablation, how far they
    agree, and the pruning curve. `hc.report` only draws a run that is there: a path does not say
    whether it is a run or a model, and to measure takes minutes to hours, so this is a function of
    its own.

    `model` is a Subject or what `hc.load` takes, with the options of `hc.load` (`device`, ...) as
    further keywords; by default the bundled translator. `text` is what `hc.survey` takes,
    `treebank` sentences with trees, `coref` texts with mentions; without any, the bundled sample. A
    translator whose texts have no translations gets its own. Without a `task` (`hc.tasks`) the
    natural one is taken: translate, predict the next or the hidden words; a model that predicts no
    words gets the stages that need no task.

    `run` is by default ``run/``, or ``run-MODEL/``; the same call goes on with it. What was
    measured there otherwise (other texts, settings or version) is refused, unless `replace` clears
    it. A quick story takes as many examples as the size of the model allows. `measuring`
    (`hc.StoryOptions`): `thorough` takes all, and `limit` so many: the first, or with a `seed` a
    random sample; `tolerance` is the loss that may be when heads go: points ("0.5"), percent
    ("1%"), or by metric ("bleu=0.5,loss=1%"); by default one point of accuracy, F1 and
    correlations, half a point of BLEU and chrF, and 1% of losses. With `gates` it is also measured
    which heads gates choose that learn on frozen weights, and with `heal` what the rest gains from
    training on, each at four sizes of the model; a number is that of training steps (500 and 200).
    With `refit` the rest is solved for anew instead (`hc.Refit`), in seconds.
    `drawing` (`hc.PageOptions`) has `exhibits`, `maps` and `compare` of `hc.report`. Surveys,
    scores and the curve are measured in this process or by the workers of an
    `engine` ("ray", `RayEngine(...)`), with the same numbers.

    The report's `stages` say what was done, kept from before, or left out and why.
    """
    asked, shown = measuring or StoryOptions(), drawing or PageOptions()
    limit, seed, batch_size = asked.limit, asked.seed, asked.batch_size
    check_page(page, shown.maps)
    where = engine_of(engine)
    allowed = str(read_tolerance(asked.tolerance)) or None
    if shown.compare is not None:
        read_source(shown.compare, exhibits=False)  # refused before the work, if it cannot be read
    corpora = _read_texts(text, treebank, coref, limit, seed)
    if task is not None and limit is not None:
        task = task.limit(limit, seed)
    with Run.open(_usual_run(model) if run is None else run) as kept:
        subject = _loaded(model, loading)
        if replace:
            kept.clear()
        own_text, why = corpora is not None, ""
        corpora = corpora or _sample(subject, limit=limit, seed=seed)
        texts: Any = corpora.text
        if "cross" in subject.anatomy.stacks and not texts.paired:  # then it reads its own output
            corpora = translated(subject, corpora, asked.examples)
            texts, why = corpora.text, _UNPAIRED
        if task is not None:
            task.check(subject)
            why = ""
        elif not why:
            task, why = _natural_task(subject, texts)
        if task is None and (asked.gates or asked.heal or asked.refit):
            what = "Gates have" if asked.gates else "Healing has" if asked.heal else "A refit has"
            raise UsageError(f"{what} nothing to learn from: {why}.")
        context = StoryContext(
            kept,
            subject,
            texts,
            corpora.treebank,
            corpora.coref,
            own_text=own_text,
            task=task,
            why_no_task=why,
            thorough=asked.thorough,
            tolerance=allowed,
            limit=limit,
            seed=seed,
            batch_size=asked.examples,
            texts_at_once=batch_size,
            engine=where,
            gates=asked.steps("gates", GATE_STEPS),
            heal=asked.steps("heal", HEAL_STEPS),
            refit=asked.refit,
        )
        context.begin()
        check_stages(context, exhibits=shown.exhibits)
        announce(repr(subject))
        if not where.remote and (seconds := expected_seconds(context)) > 5:
            every = "" if limit is None or asked.thorough else _EVERY_STAGE.format(limit=limit)
            announce(f"About {in_words(seconds)} on this machine.{every}")
        stages = run_story(context, exhibits=shown.exhibits)
    written = report(kept, page, **vars(shown))
    return Report(written.path, written.run, tuple(stages))


def _usual_run(model: Subject | str | Path | None) -> Path:
    """Where the story is kept by default.

    >>> _usual_run(None), _usual_run("org/My-Model")
    (PosixPath('run'), PosixPath('run-My-Model'))
    """
    if model is None:
        return Path("run")
    name = model.name if isinstance(model, Subject) else model
    return Path(f"run-{Path(name).name or 'model'}")


def _loaded(model: Subject | str | Path | None, loading: Mapping[str, Any]) -> Subject:
    if isinstance(model, Subject):
        if loading:
            raise UsageError(
                f"{next(iter(loading))} is an option of hc.load, and {model.name} is loaded; "
                "leave it out."
            )
        return model
    if not isinstance(model, str | Path | None):
        raise UsageError(
            f"story takes a Subject or the name of a model, not {type(model).__name__}; write "
            "hc.story(hc.Subject(model, tokenizer), task=task)."
        )
    name = model or "translator"
    with working(f"Loading {name}"):
        return load(name, **loading)


def _read_texts(
    text: Any, treebank: Any, coref: Any, limit: int | None, seed: int | None
) -> Corpora | None:
    """The user's texts, read before a model is loaded for them; None where the sample is meant."""
    given = [None if isinstance(one, str) and one == "sample" else one for one in (text, treebank)]
    if all(one is None for one in (*given, coref)):
        return None
    with working("Reading the corpus"):
        return read_corpora(given[0], treebank=given[1], coref=coref, limit=limit, seed=seed)


def _sample(subject: Subject, **drawn: Any) -> Corpora:
    """The bundled sample as this model reads it."""
    trees = sample_for(subject, "sample", "treebank", **drawn)
    # What a room reads is left out where it is not there.
    known = "coref" in plugins.names_of("formats")
    coref = sample_for(subject, "sample", "coref", **drawn) if known else None
    return Corpora(trees, trees, coref)


def _natural_task(subject: Subject, texts: Corpus) -> tuple[Task | None, str]:
    """What the model does with the texts by itself, or why there is nothing."""
    if subject.inner.get_output_embeddings() is None:
        return None, f"{subject.name} predicts no words; say what good means with --task KIND:FILE"
    return natural_task(subject, texts), ""


# --- The stages one after another ---------------------------------------------------------------


def run_story(context: StoryContext, *, exhibits: bool = True) -> list[StageStatus]:
    """Do every stage that is not in the run yet, and say how each ended.

    Without `exhibits` no sentence is kept in the run. Ctrl-C leaves a run that is whole; the same
    call goes on with it.
    """
    context.begin()
    check_stages(context, exhibits=exhibits)
    ended = []
    if not any(plugin.origin.startswith("room ") for plugin in plugins.listed("stages")):
        why = "headcount is here without its rooms; the story has the core's stages alone"
        announce(StageStatus("rooms", "What rooms add", "left out", why=why))
    for stage in stages_of(context):
        if exhibits or not stage.keeps_text:
            ended.append(_run_stage(context, stage))
            announce(ended[-1])
    return ended


def expected_seconds(context: StoryContext) -> float:
    """Seconds that what is not in the run yet will take, from a measured step of each kind."""
    left = [one for one in stages_of(context) if not one.why_not and not _is_kept(context, one)]
    seconds, each = 0.0, dict[str, float]()
    for stage in left:
        share = 1 - context.run.stage(stage.name).begun_share(stage.settings)
        for step, times in stage.runs:
            if step.name not in each:
                each[step.name] = step.seconds()
            seconds += share * times * each[step.name]
    return seconds


#: Seconds after which a run is told how far a stage has come.
_NOTED = 5.0


def _is_kept(context: StoryContext, stage: StoryStage) -> bool:
    record = context.run.stage(stage.name)
    weights = record.record.get("provenance", {}).get("weights")
    return weights == context.subject.weights_hash and record.done_with(stage.settings)


def check_stages(context: StoryContext, *, exhibits: bool = True) -> None:
    """Refuse, before the long work, to replace what was measured otherwise.

    A stage with other settings, other texts or by another version stays as it is; so does a table
    that no stage tells of.
    """
    run = context.run
    ways = "pass replace=True (--replace) to start it anew, or keep it and name another run (--run)"
    if run.has_table and not run.stages and not run.record.get("begun"):
        names = run.read_table().names
        if names:
            raise RunError(
                f"{run.path}/ holds a table ({', '.join(names[:3])}{', ...' * (len(names) > 3)}) "
                f"that no report made; {ways}."
            )
    for stage in stages_of(context):
        record = run.stage(stage.name)
        if stage.why_not or stage.derived or (stage.keeps_text and not exhibits):
            continue
        if record.record and not _is_kept(context, stage) and not record.begun_with(stage.settings):
            raise RunError(
                f"{run.path}/ holds {stage.name} made {_otherwise(record.record, stage.settings)}; "
                f"{ways}."
            )


def _otherwise(old: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """How a stage was made, as far as it would be made otherwise now."""
    if old.get("headcount") != version():
        return f"by headcount {old.get('headcount')}"
    was = old.get("settings") or {}
    keys = [key for key in settings if was.get(key) != settings[key]]
    if not keys:
        return "of other weights"
    if {"texts", "treebank", "coref", "task", "own"} & set(keys):
        return "on other texts or examples"
    said = [f"{key} was {was.get(key)}, is {settings[key]}" for key in keys]
    return f"with other settings ({'; '.join(said[:3]) or 'other options'})"


def _run_stage(context: StoryContext, stage: StoryStage) -> StageStatus:
    status = StageStatus(stage.name, stage.title, "running")
    if stage.why_not:
        return replace(status, state="left out", why=stage.why_not)
    record = context.run.stage(stage.name)
    if _is_kept(context, stage):
        return replace(status, state="kept", seconds=float(record.record.get("seconds", 0)))
    begun = monotonic()
    record.begin(stage.settings)

    def note(share: float) -> None:
        # Stages with a task keep every batch, so that another run has that much less to do.
        if stage.task is not None:
            record.begin(stage.settings, share)

    try:
        with noticed(note, _NOTED), working(stage.title):
            notes = stage.work()
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"Interrupted; what was measured is in {context.run.path}/, and the same command goes "
            "on."
        ) from None
    task = {} if stage.task is None else {"task": stage.task.describe()}
    about = provenance.collect(
        model=context.subject.name,
        revision=context.subject.revision,
        weights=context.subject.weights_hash,
        corpus=context.texts.name,
        data=context.texts.hash,
        seed=context.seed,
        **task,
    )
    record.finish(stage.settings, about, notes)
    return replace(status, state="done", seconds=monotonic() - begun)
