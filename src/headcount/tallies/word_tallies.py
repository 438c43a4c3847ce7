"""Which tallies look at which annotation: trees, clusters, predicates."""

from __future__ import annotations

from collections.abc import Sequence

from headcount.tallies.arguments import Arguments
from headcount.tallies.coreference import Coreference
from headcount.tallies.features import Features
from headcount.tallies.links import Links
from headcount.tallies.pronoun_choice import PronounChoice
from headcount.tallies.relation_figures import RelationTest
from headcount.tallies.relations import Relations
from headcount.tallies.rest_by_relation import RestByRelation
from headcount.tallies.tally import Tally
from headcount.text.words import Rows

__all__ = ["argument_tallies", "mention_tallies", "tree_tallies"]

Names = Sequence[str] | None


def tree_tallies(convention: str, rows: Rows | None = None, relations: Names = None) -> list[Tally]:
    """Relations, what kinds of words are looked at, and where a head rests without a relation."""
    return [
        Relations(convention, rows=rows, test=RelationTest(relations=relations)),
        Features(convention),
        Links(convention),
        RestByRelation(),
    ]


def mention_tallies(
    convention: str, rows: Rows | None = None, relations: Names = None
) -> list[Tally]:
    """Antecedents, and pronouns between two names; the authors published no program for them."""
    if convention == "code":
        return []
    return [Coreference(convention, rows=rows or "mean"), PronounChoice(rows=rows or "mean")]


def argument_tallies(
    convention: str, rows: Rows | None = None, relations: Names = None
) -> list[Tally]:
    """Predicates and their distant arguments."""
    return [Arguments(convention)]
