"""Chapter: what the maps look like, by the five patterns of Kovaleva et al."""

from __future__ import annotations

from headcount.patterns.kinds import COLUMNS
from headcount.progress import Progress
from headcount.stages.scene import Chapter, Scene
from headcount.survey import survey

__all__ = ["patterns_chapter"]

#: Texts that settle a head's shares; a thorough story takes all.
_TEXTS = 96


def patterns_chapter(scene: Scene) -> Chapter:
    """Each head's shares of the five patterns among its maps."""
    texts = scene.some_texts(_TEXTS)

    def work(progress: Progress) -> list[str]:
        table = survey(
            scene.subject,
            texts,
            columns=[column.name for column in COLUMNS],
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
