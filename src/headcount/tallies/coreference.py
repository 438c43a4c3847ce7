"""How often each head points from a mention to its antecedent.

Clark et al., BlackBoxNLP 2019, section 4.3 and Table 2: the share of coreferent mentions whose head
word attends most to the head word of one of the mention's antecedents, for all mentions and for
pronouns, proper and nominal mentions. There is no author code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from headcount.columns import Column
from headcount.errors import UsageError
from headcount.tallies.antecedents import BASELINES
from headcount.tallies.choices import ChoiceTally
from headcount.tallies.mention_questions import Candidates, MentionQuestions, mention_questions
from headcount.tallies.mentions import KINDS
from headcount.tallies.relation_counts import Unit
from headcount.text.words import Words

__all__ = ["COREFERENCE", "Coreference"]

COREFERENCE = Column(
    "coreference",
    meaning="Share of coreferent mentions whose head word attends most to an antecedent's.",
    paper="Clark et al. 2019, section 4.3",
    range=(0, 1),
    direction="higher",
    group="What it tracks",
)


@dataclass
class Coreference(ChoiceTally):
    """Hits of every head, and of rules that know no model, on coreferent mentions.

    A word cannot be its own antecedent, special tokens are none, and by default only words before
    the mention may be chosen (`candidates`: "preceding", "mentions" for head words of mentions
    before, "all" for every other word; the paper does not say, and `convention="paper"` reads it
    as "all"). Heads and rules see what is in the same row: cut texts to 128 words as the paper
    does, or give the model its full length. Counts are kept text by text.
    """

    convention: str = "headcount"
    candidates: Candidates | None = None

    column = COREFERENCE
    kinds = KINDS
    baselines = tuple(BASELINES)
    none = "no mention has an antecedent in the same text"

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing."""
        super().__post_init__()
        if self.convention not in ("headcount", "paper"):
            raise UsageError(
                f"Coreference has no convention '{self.convention}': its authors published no "
                "code; use headcount or paper."
            )
        if self.candidates not in (None, *get_args(Candidates)):
            raise UsageError(
                f"candidates is '{self.candidates}'; choose {', '.join(get_args(Candidates))}."
            )

    def ask(self, words: Words, units: Sequence[Unit], causal: bool) -> MentionQuestions:
        """Every mention that has an antecedent in its row."""
        usual: Candidates = "all" if self.convention == "paper" else "preceding"
        return mention_questions(words, units, self.candidates or usual, causal=causal)
