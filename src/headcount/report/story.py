"""The story of a model's heads: what each does, how much it matters, how many can go.

Reads top to bottom as it is told. Every chapter is a stage of the run: one that is there with the
same settings is not done again, and one that was broken off goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from time import monotonic
from typing import Any, Literal

from headcount.records import Progress, provenance
from headcount.report.chapters import (
    Chapter,
    Scene,
    ablation_chapter,
    agreement_chapter,
    curve_chapter,
    exhibit_chapter,
    families_chapter,
    gradient_chapter,
    own_metric_chapter,
    patterns_chapter,
    relevance_chapter,
    seconds_a_text,
    survey_chapter,
)

#: The walk of the product; each chapter may read what those before it found.
CHAPTERS: tuple[Callable[[Scene], Chapter], ...] = (
    survey_chapter,
    exhibit_chapter,
    families_chapter,
    patterns_chapter,
    gradient_chapter,
    relevance_chapter,
    ablation_chapter,
    own_metric_chapter,
    agreement_chapter,
    curve_chapter,
)

State = Literal["done", "kept", "left out"]
#: Opened for each chapter that is told; gives what to call with its progress.
Watch = Callable[[Chapter], AbstractContextManager[Progress]]


@dataclass(frozen=True)
class Told:
    """How a chapter ended: done now, kept from before, or left out and why."""

    name: str
    title: str
    state: State
    seconds: float = 0.0
    why: str = ""

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return vars(self).copy()


def run_story(
    scene: Scene,
    *,
    exhibits: bool = True,
    watch: Watch | None = None,
    ended: Callable[[Told], None] | None = None,
) -> list[Told]:
    """Do every chapter that is not in the run yet, and say how each ended.

    Without `exhibits` no sentence is kept in the run. Ctrl-C leaves a run that is whole; the same
    call goes on with it.
    """
    scene.begin()
    told = []
    for make in _chosen(exhibits):
        told.append(_told(scene, make(scene), watch or _silently))
        if ended is not None:
            ended(told[-1])
    return told


def expected_seconds(scene: Scene) -> float:
    """Seconds that the chapters which are not in the run yet will take, roughly."""
    chapters = [make(scene) for make in CHAPTERS]
    left = [one for one in chapters if not one.why_not and not _is_kept(scene, one)]
    forwards = sum(chapter.forwards for chapter in left)
    return forwards * seconds_a_text(scene) if forwards else 0.0


def _is_kept(scene: Scene, chapter: Chapter) -> bool:
    return scene.run.stage(chapter.name).done_with(chapter.settings)


def _chosen(exhibits: bool) -> Sequence[Callable[[Scene], Chapter]]:
    return [make for make in CHAPTERS if exhibits or make is not exhibit_chapter]


def _told(scene: Scene, chapter: Chapter, watch: Watch) -> Told:
    if chapter.why_not:
        return Told(chapter.name, chapter.title, "left out", why=chapter.why_not)
    stage = scene.run.stage(chapter.name)
    if _is_kept(scene, chapter):
        return Told(chapter.name, chapter.title, "kept", float(stage.record.get("seconds", 0)))
    begun = monotonic()
    try:
        with watch(chapter) as progress:
            notes = chapter.work(progress)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"Interrupted; what was measured is in {scene.run.path}/, and the same command goes on."
        ) from None
    stage.finish(chapter.settings, _about(scene, chapter), notes)
    return Told(chapter.name, chapter.title, "done", monotonic() - begun)


def _about(scene: Scene, chapter: Chapter) -> dict[str, Any]:
    """Where a chapter's figures come from."""
    task = {} if chapter.task is None else {"task": chapter.task.describe()}
    return provenance.collect(
        model=scene.subject.name,
        revision=scene.subject.revision,
        weights=scene.subject.weights_hash,
        corpus=scene.texts.name,
        data=scene.texts.hash,
        seed=scene.seed,
        **task,
    )


def _silently(_: Chapter) -> AbstractContextManager[Progress]:
    return nullcontext(lambda done, total: None)
