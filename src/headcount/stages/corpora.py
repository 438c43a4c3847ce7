"""The corpora of a survey: the text, and those with trees, with coreference, with arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from headcount.errors import InputError, UsageError
from headcount.stages.passing import Manner
from headcount.text import Corpus, Sentence, read_corpus, sentences_of
from headcount.text.passages import PASSAGE
from headcount.text.ready import Ready, is_ready

__all__ = ["Corpora", "read_corpora", "ready_corpora"]


@dataclass(frozen=True)
class Corpora:
    """What is read; one corpus may serve for several, and is then gone through once."""

    text: Corpus | Ready
    treebank: Corpus | None = None
    coref: Corpus | None = None
    arguments: Corpus | None = None

    @property
    def text_is_annotated(self) -> bool:
        """Whether the text is one of the annotated corpora."""
        return any(self.text is one for one in (self.treebank, self.coref, self.arguments))


def read_corpora(
    corpus: Any,
    *,
    treebank: Any = None,
    coref: Any = None,
    arguments: Any = None,
    parser: Any = None,
    limit: int | None = None,
    seed: int | None = None,
) -> Corpora:
    """Read what was given; without a text of its own, an annotated corpus serves as text.

    A text that has trees is the treebank, where there is no other.
    """
    read = partial(read_corpus, limit=limit, seed=seed)
    if parser is not None:
        _check_parser(corpus, treebank)
        corpus = treebank = read(corpus, parser=parser)
    trees = None if treebank is None else _having(read(treebank), _tree, _NO_TREE)
    clusters = None if coref is None else _coreference(coref, trees, read)
    predicates = None if arguments is None else _having(read(arguments), _predicate, _NO_PREDICATE)
    given = next((one for one in (trees, clusters, predicates) if one is not None), None)
    if corpus is not None and corpus is not treebank:
        text = read(corpus)
        own = text if trees is None and _any(text, _tree) else trees
        return Corpora(text, own, clusters, predicates)
    if given is None:
        raise UsageError("There is nothing to read: give a corpus, or a treebank in its place.")
    return Corpora(given, trees, clusters, predicates)


def ready_corpora(corpus: Any, stacks: Sequence[str], manner: Manner, **texts: Any) -> Corpora:
    """Ready inputs, for which the settings of texts mean nothing.

    All stacks of the model say which side an input is, whichever of them are looked at.
    """
    settings = {name: getattr(manner, name) for name in ("max_length", "long", "chat")}
    for name, value in {**texts, **settings}.items():
        if value not in (None, False, "window"):
            raise UsageError(
                f"{name} is {value!r}, but these are ready inputs and no text; leave it out."
            )
    return Corpora(Ready(corpus, stacks))


def _check_parser(corpus: Any, treebank: Any) -> None:
    if treebank is not None:
        raise UsageError(
            "Both a treebank and a parser were given; a parser makes a treebank of the text, so "
            "leave one of them out."
        )
    if corpus is None or is_ready(corpus):
        raise UsageError("A parser was given and no text to parse; give one (--text).")


def _coreference(coref: Any, trees: Corpus | None, read: Callable[..., Corpus]) -> Corpus:
    """Passages with clusters; a treebank of the same documents lends them its trees."""
    passage = PASSAGE if isinstance(coref, str | Path) and ".conll" in Path(coref).name else None
    found = None
    if trees is not None and not trees.paired:
        found = read(coref, trees=trees, passage=passage)
    if found is None or not _any(found, _tree):  # of other documents: then none of it is told
        found = read(coref, passage=passage)
    return _having(found, _cluster, _NO_CLUSTER)


def _having(corpus: Corpus, has: Callable[[Sentence], bool], why: str) -> Corpus:
    """The corpus, if any of its sentences has what it is read for."""
    if _any(corpus, has):
        return corpus
    raise InputError(why.format(corpus.name))


def _any(corpus: Corpus, has: Callable[[Sentence], bool]) -> bool:
    return corpus.annotated and any(
        sentence is not None and has(sentence) for item in corpus for sentence in sentences_of(item)
    )


def _tree(sentence: Sentence) -> bool:
    return any(word.head is not None for word in sentence.words or ())


def _cluster(sentence: Sentence) -> bool:
    return any(len(mentions) > 1 for mentions in sentence.clusters)


def _predicate(sentence: Sentence) -> bool:
    return any(predicate.arguments for predicate in sentence.predicates)


_NO_TREE = (
    "{} has no trees: no word has a HEAD; give a treebank (.conllu), or give it as text with a "
    "parser (--text, --parser)."
)
_NO_CLUSTER = (
    "{} has no coreference: no two mentions mean the same; give .jsonl with sents and clusters, "
    ".conllu with Entity=, or GAP's .tsv."
)
_NO_PREDICATE = (
    "{} has no predicate with an argument; give .jsonl with tokens and preds (see the how-to page "
    "on surveys)."
)
