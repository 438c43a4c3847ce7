"""Which heads link a predicate and its arguments across a distance.

Kovaleva et al., EMNLP 2019, section 4.1: FrameNet examples of at most 12 tokens, core elements of
at most 3 tokens and more than 2 away from the target; the largest attention over the pairs of a
link, averaged over sentences. PropBank's ARG0 to ARG5 take the place of core elements here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from headcount.columns import Column
from headcount.tallies.link_tally import Ends, LinkTally
from headcount.text.sentence import Argument, Predicate, Sentence, Span

__all__ = ["ARGUMENT_LINKS", "Arguments", "Frames"]

ARGUMENT_LINKS = ("argument->predicate", "predicate->argument")

CORE = frozenset(f"ARG{number}" for number in range(6))


@dataclass(frozen=True)
class Frames:
    """Which sentences and arguments are asked about.

    A FrameNet example marks one target and a few elements, PropBank every predicate and all its
    arguments: there almost no sentence has its every argument far away, so by default each core
    argument is judged for itself (`every=False`) and any number of predicates will do.
    """

    #: The most words of a sentence, and of an argument.
    words: int | None = 12
    argument_words: int | None = 3
    #: An argument this near, in words, is left out: a head that looks around would find it.
    near: int = 2
    core: frozenset[str] = CORE
    #: Whether one argument that fails leaves its predicate out.
    every: bool = False
    #: Whether a sentence must have exactly one predicate.
    one_predicate: bool = False

    def links(self, sentence: Sentence) -> list[tuple[int, Span]]:
        """Predicates with the spans of their arguments, of those that pass."""
        count = len(sentence.words or ())
        if self.words is not None and count > self.words:
            return []
        if self.one_predicate and len(sentence.predicates) != 1:
            return []
        return [
            (predicate.word, argument.span)
            for predicate in sentence.predicates
            if 0 <= predicate.word < count
            for argument in self._passing(predicate, count)
        ]

    def _passing(self, predicate: Predicate, count: int) -> list[Argument]:
        right = [each for each in predicate.arguments if self._passes(predicate, each, count)]
        if self.every and len(right) < len(predicate.arguments):
            return []
        return [argument for argument in right if argument.label in self.core]

    def _passes(self, predicate: Predicate, argument: Argument, count: int) -> bool:
        first, last = argument.span
        if not 0 <= first <= last < count:
            return False
        short = self.argument_words is None or last - first < self.argument_words
        core = self.every or argument.label in self.core
        return core and short and _distance(predicate.word, argument.span) > self.near


@dataclass
class Arguments(LinkTally):
    """The largest attention between predicates and their arguments, averaged over sentences.

    Pairs of the same link count (`pairing="linked"`), under `code` those of the sorted positions.
    """

    frames: Frames = field(default_factory=Frames)

    detail = "arguments"
    usual = "linked"
    none = "no sentence has a predicate with an argument that is asked about"

    @property
    def links(self) -> tuple[str, ...]:
        """Both directions."""
        return ARGUMENT_LINKS

    def ends(self, sentence: Sentence) -> Sequence[Ends]:
        """The words of arguments and their predicates."""
        linked = tuple(
            (place, predicate)
            for predicate, span in self.frames.links(sentence)
            for place in range(span.first, span.last + 1)
        )
        sources = tuple(dict.fromkeys(argument for argument, _ in linked))
        targets = tuple(dict.fromkeys(predicate for _, predicate in linked))
        turned = tuple((predicate, argument) for argument, predicate in linked)
        return [Ends(sources, targets, linked), Ends(targets, sources, turned)]

    def column(self, link: str) -> Column:
        """How a link's column reads."""
        source, _, target = link.partition("->")
        return Column(
            f"{source}_to_{target}",
            title=f"{source.capitalize()} to {target}",
            meaning=f"Largest attention from a distant {source} to its {target}, on average.",
            paper="Kovaleva et al. 2019, section 4.1",
            range=(0, 1),
            direction="higher",
            group="What it tracks",
        )


def _distance(word: int, span: Span) -> int:
    """How many words lie between, counted as steps; 0 inside the span."""
    return max(span.first - word, word - span.last, 0)
