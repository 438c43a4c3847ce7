"""Kinds of words that a head may look at: by tag, relation or form, as Kovaleva et al. have them.

>>> NOUN.has(Word("rain", upos="NOUN"))
True
"""

from __future__ import annotations

from dataclasses import dataclass

from headcount.text import Sentence, Word

# Kovaleva et al., EMNLP 2019, section 4.3: nouns, verbs, pronouns, subjects, objects, negation;
# they tagged with spaCy. Labels of Universal Dependencies, Stanford and spaCy are all known here.


@dataclass(frozen=True)
class Feature:
    """Words with one of these tags, relations or forms; what is empty says nothing.

    A word's universal tag counts where it has one, else its own tag, by its first letters. A
    relation counts whole (`obl:agent`) and without its subtype (`nsubj` for `nsubj:pass`).

    >>> Feature("noun", upos=frozenset({"NOUN"}), xpos=("NN",)).has(Word("rain", xpos="NNS"))
    True
    """

    name: str
    upos: frozenset[str] = frozenset()
    xpos: tuple[str, ...] = ()
    relations: frozenset[str] = frozenset()
    forms: frozenset[str] = frozenset()

    def has(self, word: Word) -> bool:
        """Whether a word is of this kind."""
        relation = word.deprel or ""
        return (
            self._tagged(word)
            or relation in self.relations
            or relation.partition(":")[0] in self.relations
            or word.form.lower() in self.forms
        )

    def places(self, sentence: Sentence) -> list[int]:
        """The words of this kind, counted from 0."""
        return [place for place, word in enumerate(sentence.words or ()) if self.has(word)]

    def _tagged(self, word: Word) -> bool:
        if word.upos is not None:
            return word.upos in self.upos
        return bool(self.xpos) and (word.xpos or "").startswith(self.xpos)


_NEGATING = """
    not n't n’t no never none nobody nothing nowhere neither nor cannot without hardly barely
    scarcely seldom
"""
#: Seventeen words, as many as the authors' list has; the list itself is ours.
NEGATIONS = frozenset(_NEGATING.split())

NOUN = Feature("noun", upos=frozenset({"NOUN", "PROPN"}), xpos=("NN",))
VERB = Feature("verb", upos=frozenset({"VERB"}), xpos=("VB",))
PRONOUN = Feature("pronoun", upos=frozenset({"PRON"}), xpos=("PRP",))
SUBJECT = Feature(
    "subject",
    relations=frozenset({"nsubj", "nsubjpass", "csubj", "csubjpass", "agent", "obl:agent", "expl"}),
)
OBJECT = Feature("object", relations=frozenset({"obj", "dobj", "iobj", "dative", "attr", "oprd"}))
NEGATION = Feature("negation", forms=NEGATIONS)

FEATURES: tuple[Feature, ...] = (NOUN, VERB, PRONOUN, SUBJECT, OBJECT, NEGATION)
