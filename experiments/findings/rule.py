"""How a finding is judged: an interval against the smallest effect that would still bear it out."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

RESULTS = Path(__file__).parent.parent.parent / "docs" / "results"
Verdict = Literal["holds", "fails", "cannot tell"]


@cache
def load(name: str) -> Any:
    """A JSON of docs/results, or with a path from the root."""
    path = (RESULTS.parent.parent if "/results/" in name else RESULTS) / f"{name}.json"
    return json.loads(path.read_text(encoding="utf8")) if path.is_file() else None


@dataclass(frozen=True)
class Ours:
    """One figure of one model, with its 95% interval where it has one."""

    model: str
    value: float
    low: float = math.nan
    high: float = math.nan
    what: str = ""

    def __str__(self) -> str:
        form = ".0f" if float(self.value).is_integer() and abs(self.value) >= 2 else ".3g"
        ends = "" if math.isnan(self.low) else f" [{self.low:.3g}, {self.high:.3g}]"
        return f"{self.model} {self.value:{form}}{ends}{' ' + self.what if self.what else ''}"


@dataclass(frozen=True)
class Finding:
    """What a paper says, what bears it out, and where ours comes from."""

    paper: str
    claim: str
    published: str
    #: Gives our figures; nothing where it was not measured.
    ours: Callable[[], Sequence[Ours]] | None
    #: The figure must be at least (or at most) this for the finding to hold.
    bound: float = math.nan
    at_most: bool = False
    #: Names of JSON files in docs/results, the command, and the figure or page.
    source: str = ""
    command: str = ""
    shown: str = ""
    note: str = ""

    def judged(self) -> list[tuple[Ours, Verdict]]:
        """Our figures, each with its verdict."""
        return [(one, self.verdict(one)) for one in (self.ours() if self.ours else [])]

    def verdict(self, one: Ours) -> Verdict:
        """By the interval; by the figure alone where there is none.

        Holds: the whole interval lies on the finding's side of the bound. Fails: all of it lies on
        the other side. Else the data cannot tell. A count over all heads has no interval.

        >>> claim = Finding("", "", "", None, bound=0.3)
        >>> [claim.verdict(Ours("m", v, v - 0.1, v + 0.1)) for v in (0.5, 0.35, 0.1)]
        ['holds', 'cannot tell', 'fails']
        """
        low, high = (one.value, one.value) if math.isnan(one.low) else (one.low, one.high)
        if math.isnan(self.bound) or math.isnan(one.value):
            return "cannot tell"
        if self.at_most:
            return "holds" if high <= self.bound else "fails" if low > self.bound else "cannot tell"
        return "holds" if low >= self.bound else "fails" if high < self.bound else "cannot tell"


def overall(verdicts: Sequence[Verdict]) -> str:
    """One word where the models agree; else what each says."""
    found = list(dict.fromkeys(verdicts))
    if not found:
        return "cannot tell"
    return found[0] if len(found) == 1 else "mixed: " + ", ".join(verdicts)
