"""Chapter: a few sentences to look at."""

from __future__ import annotations

from headcount.exhibits import write_exhibits
from headcount.progress import Progress
from headcount.stages.exhibits import exhibits_of
from headcount.stages.scene import Chapter, Scene

__all__ = ["exhibit_chapter"]

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
