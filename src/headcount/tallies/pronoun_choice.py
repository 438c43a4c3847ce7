"""A pronoun and two names: does the head look more at the one that is meant?

Webster et al. 2018 (GAP): balanced feminine and masculine pronouns, each with two names of the same
gender, one of them meant. Whoever reads attention as coreference should see it here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from headcount.columns import Column
from headcount.tallies.choices import ChoiceTally
from headcount.tallies.pronoun_questions import PronounQuestions, pronoun_questions
from headcount.tallies.relation_counts import Unit
from headcount.text.words import Words

__all__ = ["PRONOUN_CHOICE", "PronounChoice"]

PRONOUN_CHOICE = Column(
    "pronoun_choice",
    meaning="Share of pronouns between two names that look more at the one that is meant.",
    paper="Webster et al. 2018",
    range=(0, 1),
    direction="higher",
    group="What it tracks",
)


@dataclass
class PronounChoice(ChoiceTally):
    """Choices between two names, by gender of the pronoun, against the nearest and the first name.

    Attention to a name is the sum over its words. Texts where both names are meant, or none, ask
    nothing. The finer table has `bias`, the accuracy on feminine pronouns over that on masculine
    ones: 1 is fair.
    """

    column = PRONOUN_CHOICE
    kinds = ("feminine", "masculine")
    baselines = ("nearest", "first")
    none = "no text has a pronoun between two names of which one is meant"

    def ask(self, words: Words, units: Sequence[Unit], causal: bool) -> PronounQuestions:
        """The pronoun of each text that has one to ask about."""
        return pronoun_questions(words, units, causal=causal)

    def frame(self) -> pd.DataFrame:
        """The finer table, with the bias of each head on each split."""
        found = super().frame()
        key = ["stack", "layer", "head", "against", "split"]
        parts = {kind: rows.set_index(key)["accuracy"] for kind, rows in found.groupby("kind")}
        missing = pd.Series(dtype=float, index=pd.MultiIndex.from_tuples([], names=key))
        bias = parts.get("feminine", missing) / parts.get("masculine", missing)
        return found.join(bias.rename("bias"), on=key)
