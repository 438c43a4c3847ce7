"""Attention between subjects and verbs, and between nouns and pronouns, in both directions.

Kovaleva et al., EMNLP 2019, section 4.3 (token to token). Their notebook takes subjects whose head
is a verb, and pairs the sorted positions of subjects and verbs; noun and pronoun are in the text
only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headcount.columns import Column
from headcount.tallies.feature import NOUN, PRONOUN, VERB
from headcount.tallies.link_tally import Ends, LinkTally
from headcount.text.sentence import Sentence

__all__ = ["LINKS", "Links"]

LINKS = ("subject->verb", "verb->subject", "noun->pronoun", "pronoun->noun")

_SUBJECTS = ("nsubj", "nsubjpass")


@dataclass
class Links(LinkTally):
    """The largest attention along each link of a sentence, averaged over sentences that have it."""

    detail = "links"
    none = "no sentence has both ends of such a link"

    @property
    def links(self) -> tuple[str, ...]:
        """The four links."""
        return LINKS

    def ends(self, sentence: Sentence) -> Sequence[Ends]:
        """Subjects with their verbs, nouns with pronouns, and the other way round."""
        pairs = _subjects(sentence)
        nouns, pronouns = NOUN.places(sentence), PRONOUN.places(sentence)
        subjects = Ends(tuple(s for s, _ in pairs), tuple(v for _, v in pairs), tuple(pairs))
        every = tuple((noun, pronoun) for noun in nouns for pronoun in pronouns)
        named = Ends(tuple(nouns), tuple(pronouns), every)
        return [subjects, _turned(subjects), named, _turned(named)]

    def column(self, link: str) -> Column:
        """How a link's column reads."""
        source, _, target = link.partition("->")
        return Column(
            f"{source}_to_{target}",
            title=f"{source.capitalize()} to {target}",
            meaning=f"Largest attention from a {source} to a {target} of its sentence, on average.",
            paper="Kovaleva et al. 2019, section 4.3",
            range=(0, 1),
            group="What it looks at",
        )


def _turned(ends: Ends) -> Ends:
    return Ends(ends.targets, ends.sources, tuple((b, a) for a, b in ends.linked))


def _subjects(sentence: Sentence) -> list[tuple[int, int]]:
    """Subjects with the verbs they hang from."""
    words = sentence.words or ()
    return [
        (place, word.head - 1)
        for place, word in enumerate(words)
        if (word.deprel or "").partition(":")[0] in _SUBJECTS
        and word.head is not None
        and 0 < word.head <= len(words)
        and VERB.has(words[word.head - 1])
    ]
