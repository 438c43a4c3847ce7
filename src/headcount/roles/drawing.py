"""Verdicts in a terminal: what heads do, role by role, with the evidence in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from headcount.roles.kinds import KINDS
from headcount.roles.role import Verdict

__all__ = ["RolesText"]

_HOW_TO_READ = "A line gives a share with its 95% interval, then what a rule without a model gets"
_TWIN = ", then what the best head gets with random weights"
_CERTAIN = ". Tests are corrected for all heads that were tried."
_DIRECTIONS = (
    "nsubj dep->head: the subject looks most at its verb; head->dep: the verb at its subject; "
    "head<-dep: of all words the verb looks most at the subject."
)


@dataclass(frozen=True)
class RolesText:
    """The verdicts that rich prints, the clearest of each role; a few lines a role."""

    verdicts: Sequence[Verdict]
    #: How many heads the model has, and what it is called.
    heads: int
    model: str = ""
    #: Roles that were judged; those without a verdict are told in one line.
    judged: Sequence[str] = ()
    #: Roles that could not be judged, with what they would need; empty where nothing would help.
    unjudged: dict[str, str] = field(default_factory=dict)
    #: The most verdicts of one role that are shown.
    most: int = 5

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """A headline, a block for each role, then what was not found and not asked."""
        yield Text(self.headline, style="bold")
        for role in KINDS:
            own = [verdict for verdict in self.verdicts if verdict.role == role]
            if own:
                yield Text("")
                yield _title(role, own)
                yield _rows(self._shown(own))
                yield from _rest(own, self.most)
        yield Text("")
        for line in self._footnotes():
            yield Text(line, style="dim")

    @property
    def headline(self) -> str:
        """How many heads have a role.

        >>> RolesText([], 72, "minilm").headline
        'minilm: none of 72 heads has a role that we can name'
        """
        found = len({verdict.head for verdict in self.verdicts})
        of = f"of {self.heads} heads {'has' if found < 2 else 'have'} a role that we can name"
        name = f"{self.model}: " if self.model else ""
        return f"{name}{found or 'none'} {of}"

    def _shown(self, own: Sequence[Verdict]) -> list[Verdict]:
        """The clearest of each label first, so that one relation does not fill the block."""
        firsts = {verdict.label: verdict for verdict in reversed(own)}
        others = [verdict for verdict in own if verdict is not firsts[verdict.label]]
        clearest = [verdict for verdict in own if verdict is firsts[verdict.label]]
        return [*clearest, *others][: self.most]

    def _footnotes(self) -> Iterator[str]:
        found = {verdict.role for verdict in self.verdicts}
        if found:
            asked = any(not math.isnan(verdict.control) for verdict in self.verdicts)
            yield _HOW_TO_READ + (_TWIN if asked else "") + _CERTAIN
        if "syntactic" in found:
            yield _DIRECTIONS
        silent = {role: why for role, why in self.unjudged.items() if role not in found}
        for told, roles in (
            ("No head", [role for role in self.judged if role not in found]),
            ("Not asked", [f"{role} ({why})" for role, why in silent.items() if why]),
            ("Not for this model", [role for role, why in silent.items() if not why]),
        ):
            if roles:
                yield f"{told}: {', '.join(roles)}."


def _title(role: str, own: Sequence[Verdict]) -> Text:
    heads = len({verdict.head for verdict in own})
    counted = f"{heads} {'head' if heads == 1 else 'heads'}"
    return Text.assemble((role, "bold"), f" · {KINDS[role].meaning} · {counted}")


def _rows(shown: Sequence[Verdict]) -> Table:
    # Text, never strings: rich would read a relation named "[red]" as markup.
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column()
    for verdict in shown:
        table.add_row(Text(f"  {verdict.head}"), Text(verdict.in_words))
    return table


def _rest(own: Sequence[Verdict], most: int) -> Iterator[Text]:
    if len(own) > most:
        yield Text(f"  ... and {len(own) - most} more", style="dim")
