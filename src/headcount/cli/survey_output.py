"""A survey told to people: roles or columns, then what was read and what to know of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headcount.cli.output import output, print_notes, print_table

if TYPE_CHECKING:
    from headcount.roles.role import Role
    from headcount.subject import Subject
    from headcount.table import HeadTable

__all__ = ["print_survey", "survey_json"]

#: What would have to be given for a role to be judged.
_NEEDED = {
    "syntactic": "--treebank",
    "coreference": "--coref",
    "argument": "--arguments",
    "feature": "--treebank",
}


def print_survey(
    table: HeadTable,
    subject: Subject,
    columns: Sequence[str] | None,
    stacks: Sequence[str] | None,
    notes: Sequence[str],
) -> None:
    """The roles, where heads were judged; the columns, where not or where some were chosen."""
    from headcount.text.faults import skipped_in_words

    judged = "roles" in table.details
    if columns is not None or not judged:
        shown = (
            table if stacks is None else table.select(h for h in table.heads if h.stack in stacks)
        )
        print_table(shown, columns)
    if judged:
        _print_roles(table, subject)
    if "pattern" in table.names:
        _print_patterns(table)
    about = table.provenance
    corpora = about.get("corpora", {about["corpus"]: about})
    sizes = [_sizes(name, read) for name, read in corpora.items()]
    output().print(f"{'; '.join(sizes)}; {subject!r}", style="dim")
    told = [*corpora.values(), about.get("trials", {"remarks": []})]
    remarks = [remark for part in told for remark in part["remarks"]]
    counts = [read["counts"]["skipped"] for read in corpora.values()]
    skipped = [line for each in counts for line in skipped_in_words(each)]
    print_notes([*subject.notes, *remarks, *skipped, *notes])


def survey_json(table: HeadTable) -> dict[str, Any]:
    """The table, and the verdicts where heads were judged."""
    from headcount.exact_json import to_strict

    told = table.to_dict()
    if "roles" in table.details:
        told["roles"] = to_strict(table.details["roles"].to_dict("records"))
    return told


def _print_roles(table: HeadTable, subject: Subject) -> None:
    from headcount.roles.catalogue import all_roles, unread
    from headcount.roles.drawing import RolesText
    from headcount.roles.verdicts import verdicts_of

    missing = [role for role in all_roles() if unread(role, table)]
    output().print(
        RolesText(
            verdicts_of(table.details["roles"]),
            len(table),
            subject.name,
            judged=[role.name for role in all_roles() if role not in missing],
            unjudged={role.name: _why(role, table) for role in missing},
        )
    )


def _print_patterns(table: HeadTable) -> None:
    """The mean share of each pattern in every layer."""
    from headcount.patterns.shares import layer_shares

    shares = layer_shares(table)
    output().print("Patterns, mean share over the heads of a layer:", style="bold")
    names = [str(name).replace("_diagonal", "+diagonal") for name in shares]
    output().print("layer   " + "  ".join(names), style="dim")
    for (stack, layer), row in zip(shares.index.tolist(), shares.to_numpy(), strict=True):
        cells = [f"{100 * s:>{len(n) - 1}.0f}%" for n, s in zip(names, row, strict=True)]
        output().print(f"{stack}.{layer:<4}" + "  ".join(cells), highlight=False)


def _why(role: Role, table: HeadTable) -> str:
    """What would have to be given, or why a corpus cannot tell; empty where no corpus could."""
    noted = [table.notes[name] for name in role.reads if name in table.notes]
    if noted and "trials" not in role.reads:
        return noted[0]
    return _NEEDED.get(role.name, "")


def _sizes(name: str, about: Mapping[str, Any]) -> str:
    """What was read, in words: "20 pairs of news.tsv, 310 source and 290 target tokens"."""
    counts, unit = about["counts"], about["unit"]
    sides = [f"{number:,} {side}" for side, number in counts["tokens"].items()]
    tokens = " and ".join(sides) if len(sides) > 1 else f"{sum(counts['tokens'].values()):,}"
    number = counts["sentences"]
    named = unit.removesuffix("s") if number == 1 else unit
    return f"{number:,} {named} of {name}, {tokens} tokens"
