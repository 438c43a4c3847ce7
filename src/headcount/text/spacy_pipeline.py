"""An installed spaCy pipeline as a parser."""

from __future__ import annotations

from typing import Any

from headcount.errors import InputError
from headcount.text.sentence import Sentence, Word

__all__ = ["SpacyPipeline", "installed_pipelines", "load_pipeline"]


class SpacyPipeline:
    """Makes sentences of texts with a pipeline that spaCy has loaded."""

    def __init__(self, pipeline: Any, name: str = "a spaCy pipeline") -> None:
        self.name = name
        self._pipeline = pipeline

    def __call__(self, text: str) -> Sentence:
        """The text's words and trees; tokens of white space are left out."""
        found = self._pipeline(text)
        if not found.has_annotation("DEP"):
            raise InputError(f"{self.name} finds no dependencies; choose a pipeline with a parser.")
        own = [token for token in found if not token.is_space]
        numbers = {token.i: number for number, token in enumerate(own, start=1)}
        return Sentence(text, tuple(_word(token, numbers) for token in own))


def load_pipeline(name: str) -> SpacyPipeline | None:
    """An installed pipeline by name; None where spaCy or the pipeline is not there."""
    if name not in (installed_pipelines() or ()):
        return None
    import spacy

    return SpacyPipeline(spacy.load(name), name)


def installed_pipelines() -> list[str] | None:
    """The names of all installed pipelines; None where spaCy itself is not there."""
    try:
        from spacy.util import get_installed_models
    except ImportError:
        return None
    return sorted(get_installed_models())


def _word(token: Any, numbers: dict[int, int]) -> Word:
    is_root = token.head.i == token.i
    return Word(
        form=token.text,
        lemma=token.lemma_ or None,
        upos=token.pos_ or None,
        xpos=token.tag_ or None,
        feats=token.morph.to_dict(),
        head=0 if is_root else numbers[token.head.i],
        deprel="root" if is_root else token.dep_ or None,
        start=token.idx,
        end=token.idx + len(token.text),
    )
