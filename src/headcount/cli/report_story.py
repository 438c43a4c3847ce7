"""The measuring behind `headcount report`: what is read, what good means, then the story."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headcount.cli.loading import loaded
from headcount.cli.progress import bar, told
from headcount.cli.story_display import StoryDisplay
from headcount.errors import UsageError

if TYPE_CHECKING:
    from headcount.cli.task_option import TaskSpec
    from headcount.run import Run
    from headcount.story import Scene, Told
    from headcount.subject import Subject
    from headcount.tasks.task import Task
    from headcount.text import Corpus

__all__ = ["Wanted", "tell_story"]

_TRANSLATOR = "translator"


@dataclass(frozen=True)
class Wanted:
    """What the command asked for."""

    model: str | None = None
    text: str | None = None
    treebank: str | None = None
    task: TaskSpec | None = None
    limit: int | None = None
    seed: int | None = None
    batch_size: int = 16
    thorough: bool = False
    loading: dict[str, Any] = field(default_factory=dict)

    @property
    def own_text(self) -> bool:
        """Whether the texts are the user's."""
        return any(one not in (None, "sample") for one in (self.text, self.treebank))


def tell_story(wanted: Wanted, place: Path, *, exhibits: bool, replace: bool) -> list[Told]:
    """Measure what the run does not hold yet, with a line for each chapter."""
    from headcount.run import Run

    files = _read(wanted)
    task = None if wanted.task is None else wanted.task.build()
    if task is not None and wanted.limit is not None:
        task = task.limit(wanted.limit, wanted.seed)
    with Run.open(place) as run:
        subject = loaded(wanted.model or _TRANSLATOR, **wanted.loading)
        if replace:
            run.clear()
        scene = _scene(wanted, run, subject, files, task)
        from headcount.story import forecast, tell
        from headcount.sweeps.forecast import in_words

        scene.begin()
        seconds = forecast(scene)
        expected = f"About {in_words(seconds)} on this machine." if seconds > 5 else ""
        with StoryDisplay(f"{subject!r}", expected) as display:
            return tell(scene, exhibits=exhibits, watch=display.watch, ended=display.ended)


def _read(wanted: Wanted) -> dict[str, Corpus]:
    """The files that were named, read before a model is loaded for them."""
    from headcount.stages.corpora import read_corpora

    given = {"corpus": wanted.text, "treebank": wanted.treebank}
    named = {name: file for name, file in given.items() if file not in (None, "sample")}
    if not named:
        return {}
    with told("Reading the corpus"):
        found = read_corpora(
            named.get("corpus"),
            treebank=named.get("treebank"),
            limit=wanted.limit,
            seed=wanted.seed,
        )
    read = {"texts": found.text, "treebank": found.treebank}
    return {name: corpus for name, corpus in read.items() if corpus is not None}  # type: ignore[misc]


def _scene(
    wanted: Wanted, run: Run, subject: Subject, files: dict[str, Corpus], task: Task | None
) -> Scene:
    from headcount.story import Scene

    corpora = files or _sample(subject, wanted)
    corpora, translated = _spoken(subject, corpora, wanted.batch_size)
    why = ""
    if task is None:
        task, why = _natural(subject, corpora["texts"], translated)
    else:
        task.check(subject)
    return Scene(
        run,
        subject,
        corpora["texts"],
        corpora.get("treebank"),
        corpora.get("coref"),
        own_text=wanted.own_text,
        task=task,
        why_no_task=why,
        thorough=wanted.thorough,
        limit=wanted.limit,
        seed=wanted.seed,
        batch_size=wanted.batch_size,
    )


def _sample(subject: Subject, wanted: Wanted) -> dict[str, Corpus]:
    """The bundled sample as this model reads it."""
    from headcount.cli.annotation import Annotation

    asked = Annotation(treebank="sample", coref="sample")
    found = asked.for_model(subject, wanted.limit, wanted.seed)
    trees: Any = found.treebank
    coref: Any = found.coref
    return {"texts": trees, "treebank": trees, "coref": coref}


def _spoken(
    subject: Subject, corpora: dict[str, Corpus], batch_size: int
) -> tuple[dict[str, Corpus], bool]:
    """For a translator without translations, its own; whether that was so."""
    texts = corpora["texts"]
    if "cross" not in subject.anatomy.stacks or texts.paired:
        return corpora, False
    from headcount.tasks.own_output import own_output
    from headcount.text import read_corpus

    with ExitStack() as stack:
        progress = stack.enter_context(bar("Translating", unit="sentences"))
        pairs = read_corpus(own_output(subject, texts, batch_size=batch_size, progress=progress))
    pairs.name = f"{texts.name} in its own words"
    same = {name: pairs if corpus is texts else corpus for name, corpus in corpora.items()}
    return same, True


def _natural(subject: Subject, texts: Corpus, translated: bool) -> tuple[Task | None, str]:
    """What the model does with the texts by itself, or why nothing can be asked of it."""
    from headcount.importance.natural_task import natural_task

    if translated:
        return None, "its texts have no translations; give pairs, or --task translation:FILE"
    try:
        task = natural_task(subject, texts)
    except UsageError:
        task = None
    if task is None or task.kind == "similarity":
        return None, f"{subject.name} predicts no words; say what good means with --task KIND:FILE"
    return task, ""
