"""Alignment heads: they point to a word's translation (Garg et al. 2019, Chen et al. 2020)."""

from __future__ import annotations

from dataclasses import dataclass

from headcount.records import HeadTable
from headcount.surveys import roles

ALIGNMENT = roles.kind_beside(__file__, "alignment")


# Cross heads that point to the source token that a target token translates: Garg et al. 2019 while
# the token is predicted; Chen et al. 2020 (Shift-Att) while it is read. Neither draws a line: half
# of the links and 10 points above the diagonal are asked for, the margin that Voita et al. 2019,
# section 5.2, ask of syntactic heads.

#: Label to column: when a head looks at the source of a token.
WHEN = {"when read": "alignment_read", "when predicted": "alignment"}


@dataclass(frozen=True)
class Alignment:
    """Heads that point to a token's source more often than the diagonal does."""

    least: float = 0.5
    #: How far above the diagonal.
    margin: float = 0.1
    #: The level of the test, Holm over all heads.
    level: float = 0.05
    kind = ALIGNMENT
    name = "alignment"
    reads = ("alignment", "alignment_read", roles.TRIALS)

    @property
    def asks(self) -> tuple[tuple[str, str, float], ...]:
        """What it asks a share of, in words, the column, and the least."""
        return tuple((f"the translation of a token {w}", c, self.least) for w, c in WHEN.items())

    def judge(self, table: HeadTable) -> list[roles.Verdict]:
        """The heads that align, by when they do it."""
        found = [verdict for when in WHEN for verdict in self._judge(table, when)]
        return sorted(found, key=lambda verdict: -verdict.value)

    def _judge(self, table: HeadTable, when: str) -> list[roles.Verdict]:
        return roles.row_verdicts(
            roles.passing_rows(
                table, WHEN[when], least=self.least, level=self.level, margin=self.margin
            ),
            self.name,
            lambda row: when,
            lambda row: roles.plain_words(f"the source of a token {when}", row),
        )

    def chance(self, twin: HeadTable, verdict: roles.Verdict) -> float:
        """The value of the twin's best head."""
        return roles.best_of(twin, WHEN[verdict.label], verdict.head.stack)
