"""The annotated corpora that a command names, read before a model is loaded for them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headcount.cli.corpus import SAMPLE

if TYPE_CHECKING:
    from headcount.subject import Subject
    from headcount.text.corpus import Corpus

__all__ = ["Annotation", "read_annotated"]


@dataclass(frozen=True)
class Annotation:
    """Corpora with words; the bundled sample is read once it is known what the model is."""

    treebank: Corpus | str | None = None
    coref: Corpus | str | None = None
    arguments: Corpus | str | None = None

    @property
    def any(self) -> bool:
        """Whether one of them was given."""
        return any((self.treebank, self.coref, self.arguments))

    def with_treebank(self, treebank: Corpus | None) -> Annotation:
        """The same with another treebank."""
        return replace(self, treebank=treebank)

    def for_model(self, subject: Subject, limit: int | None, seed: int | None) -> Annotation:
        """The same with the sample as this model reads it: a translator takes its translations."""
        treebank, coref = self.treebank, self.coref
        if treebank == SAMPLE:
            translation = "text_de" if "cross" in subject.anatomy.stacks else None
            treebank = _sample("sample.conllu", limit, seed, translation)
        if coref == SAMPLE:
            coref = _sample("coref.jsonl", limit, seed)
        return replace(self, treebank=treebank, coref=coref)


def read_annotated(
    treebank: str | None,
    coref: str | None,
    arguments: str | None,
    limit: int | None,
    seed: int | None,
) -> Annotation:
    """Read the files that were named, and refuse those that lack what they are named for."""
    from headcount.stages.corpora import read_corpora

    given = {"treebank": treebank, "coref": coref, "arguments": arguments}
    files = {name: file for name, file in given.items() if file not in (None, SAMPLE)}
    if not files:
        return Annotation(**given)
    found = read_corpora(None, limit=limit, seed=seed, **files)
    return Annotation(**{name: getattr(found, name) or file for name, file in given.items()})


def _sample(
    name: str, limit: int | None, seed: int | None, translation: str | None = None
) -> Corpus:
    from headcount.bundle import sample
    from headcount.text.corpus import read_corpus

    corpus = read_corpus(sample.path(name), limit=limit, seed=seed, translation=translation)
    corpus.name = name  # where headcount is installed tells nothing
    return corpus
