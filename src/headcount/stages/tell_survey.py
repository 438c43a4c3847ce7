"""Chapter: where every head looks, and what it does there."""

from __future__ import annotations

from contextlib import nullcontext

from headcount.progress import Progress
from headcount.stages.programme import Telling
from headcount.stages.scene import Chapter, Scene
from headcount.survey import survey

__all__ = ["survey_chapter"]

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
