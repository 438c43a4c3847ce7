"""Chapter: which heads are alike."""

from __future__ import annotations

from headcount.families import families
from headcount.progress import Progress
from headcount.stages.scene import Chapter, Scene

__all__ = ["families_chapter"]

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
