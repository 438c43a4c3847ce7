"""Two corpora side by side, as pairs: a treebank and its translation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from headcount.errors import InputError
from headcount.text.corpus import Corpus
from headcount.text.sentence import Pair, Sentence, sentences_of

__all__ = ["side_by_side"]


def side_by_side(sources: Corpus, targets: Corpus) -> Corpus:
    """Pairs of the corpora's sentences, in order, each side with the words it has.

    >>> from headcount.text.corpus import read_corpus
    >>> found = side_by_side(read_corpus(["Rain.", "Go!"]), read_corpus(["Regen.", "Geh!"]))
    >>> [pair.target for pair in found]
    ['Regen.', 'Geh!']
    """
    for corpus in (sources, targets):
        if corpus.paired:
            raise InputError(f"{corpus.name} holds pairs already; give sentences.")
    if len(sources) != len(targets):
        raise InputError(
            f"{sources.name} has {len(sources)} sentences and {targets.name} has {len(targets)}; "
            "side by side they must have the same number."
        )

    def pairs(skipped: Counter[str]) -> Iterator[Pair]:
        skipped.update(sources.skipped + targets.skipped)
        for source, target in zip(sources, targets, strict=True):
            assert isinstance(source, Sentence) and isinstance(target, Sentence)  # noqa: PT018
            _check_ids(source, target)
            annotated = (*sentences_of(source), *sentences_of(target))
            yield Pair(source.text, target.text, source.line, (annotated[0], annotated[1]))

    return Corpus(pairs, f"{sources.name} beside {targets.name}")


def _check_ids(source: Sentence, target: Sentence) -> None:
    """Refuse sentences that say themselves that they are not each other's translation."""
    first, second = (each.comments.get("sent_id") for each in (source, target))
    if first is not None and second is not None and first != second:
        raise InputError(
            f"The sentences {first} and {second} stand side by side; the corpora must have the "
            "same sentences in the same order."
        )
