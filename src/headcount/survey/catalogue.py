"""The statistics that every survey has, and how a choice of columns becomes tallies."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from headcount.errors import UsageError, check_convention
from headcount.records import Column
from headcount.survey.tallies.coreference import CoreferenceTally, PronounChoice
from headcount.survey.tallies.counts import RelationTest
from headcount.survey.tallies.features import FeatureTally
from headcount.survey.tallies.links import ArgumentTally, Links
from headcount.survey.tallies.offsets import Offsets
from headcount.survey.tallies.relations import Relations
from headcount.survey.tallies.rest_by_relation import RestByRelation
from headcount.survey.tallies.surface import Confidence, Entropy, Neighbours, Specials
from headcount.survey.tally import Tally
from headcount.text import Rows

# --- The statistics that every survey has -------------------------------------------------------

#: Columns every survey has, in the order of the table.
COLUMNS: tuple[Column, ...] = (
    *Confidence.columns,
    *Entropy.columns,
    *Neighbours.columns,
    *Specials.columns,
    *Offsets.columns,
)

#: Columns whose authors published no program: nothing to reproduce under `code`.
_TEXT_ONLY = {column.name for column in (*Confidence.columns, *Offsets.columns)}


def no_author_code(convention: str) -> dict[str, str]:
    """Columns that do not exist under a convention, with the reason."""
    if convention != "code":
        return {}
    why = "the authors published no program for it; use the convention headcount or paper"
    return {name: why for name in (c.name for c in COLUMNS) if name in _TEXT_ONLY}


def chosen_tallies(columns: Sequence[str] | None, convention: str) -> list[Tally]:
    """The tallies that fill the columns asked for, or all of them."""
    check_convention(convention)
    for name in columns or ():
        _check_column(name, convention)
    every: list[Tally] = [
        Confidence(),
        Entropy(convention),
        Neighbours(convention),
        Specials(convention),
        Offsets(),
    ]
    named = [column.name for column in COLUMNS] if columns is None else columns
    wanted = set(named) - set(no_author_code(convention))
    return [tally for tally in every if wanted & {column.name for column in tally.columns}]


def _check_column(name: str, convention: str) -> None:
    known = [column.name for column in COLUMNS]
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}."
        raise UsageError(f"There is no column '{name}'; {hint}")
    if name in _TEXT_ONLY:
        check_convention(convention, f"Column '{name}' does")


# --- Which tallies look at which annotation: trees, clusters, predicates ------------------------

Names = Sequence[str] | None


def tree_tallies(convention: str, rows: Rows | None = None, relations: Names = None) -> list[Tally]:
    """Relations, what kinds of words are looked at, and where a head rests without a relation."""
    return [
        Relations(convention, rows=rows, test=RelationTest(relations=relations)),
        FeatureTally(convention),
        Links(convention),
        RestByRelation(),
    ]


def mention_tallies(
    convention: str, rows: Rows | None = None, relations: Names = None
) -> list[Tally]:
    """Antecedents, and pronouns between two names; the authors published no program for them."""
    if convention == "code":
        return []
    return [CoreferenceTally(convention, rows=rows or "mean"), PronounChoice(rows=rows or "mean")]


def argument_tallies(
    convention: str, rows: Rows | None = None, relations: Names = None
) -> list[Tally]:
    """Predicates and their distant arguments."""
    return [ArgumentTally(convention)]
