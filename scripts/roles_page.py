"""Write docs/roles.md from the rules themselves: every role, its rule, its thresholds, a picture.

python scripts/roles_page.py          # writes the page
python scripts/roles_page.py --check  # says whether it still follows the rules
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from headcount.surveys.roles.role import KINDS, all_roles

PAGE = Path(__file__).parent.parent / "docs" / "roles.md"
_SIZE = 10

#: Where each row of a made sentence of ten tokens looks: the column of its largest weight.
_LOOKS: dict[str, Callable[[int], int]] = {
    "positional": lambda row: min(row + 1, _SIZE - 1),
    "syntactic": lambda row: (2, 2, 5, 5, 5, 2, 8, 8, 5, 8)[row],
    "alignment": lambda row: (0, 1, 3, 2, 4, 5, 7, 6, 8, 9)[row],
    "coreference": lambda row: (0, 1, 2, 3, 4, 1, 6, 7, 1, 9)[row],
    "induction": lambda row: row - 4 if row >= 5 else 0,
    "retrieval": lambda row: 1 if row >= 7 else row,
    "duplicate": lambda row: row - 5 if row >= 5 else row,
    "previous": lambda row: max(row - 1, 0),
    "rare": lambda row: 6,
    "argument": lambda row: (3, 3, 3, 3, 3, 3, 7, 7, 7, 3)[row],
    "feature": lambda row: 3 if row < 6 else 8,
    "separator": lambda row: 4 if row < 5 else _SIZE - 1,
    "punctuation": lambda row: 4 if row < 6 else 8,
    "sink": lambda row: 0,
    "source-end": lambda row: _SIZE - 1,
}


_WORDS = """\
Written by `python scripts/roles_page.py` from the rules in `headcount.surveys.roles`; a test
says when it no longer follows them. A head can have several roles, or none. Thresholds are
fields of the rules, e.g. `hc.roles.Positional(share=0.8)`. The pictures are made: rows look,
columns are looked at, ten tokens each. [How to write a role](how-to/write-a-role.md).

A role says what a head does, or at which place it looks much (a separator, the first token, the
end of the source) without a job that we can name. Why it looks there, and whether it is needed,
a place does not say. Where a rule chooses among relations or labels, it judges on sentences that
it did not choose on; where random twins were measured, they must be beaten."""


def page() -> str:
    """The text of the page."""
    rules = {role.name: role for role in all_roles()}
    lines = [
        "# Roles: what each means, and the rule that gives it",
        "",
        *_WORDS.splitlines(),
        "",
    ]
    for kind in KINDS.values():
        if kind.name == "other":
            continue
        rests = " A place, no job." if kind.rests else ""
        paper = f" {kind.paper}." if kind.paper else ""
        lines += [f"## {kind.name}", "", f"A head that {kind.meaning}.{rests}{paper}", ""]
        if kind.name in _LOOKS:
            lines += ["```text", *_map(_LOOKS[kind.name]), "```", ""]
        lines += _rule(rules[kind.name]) if kind.name in rules else []
    return "\n".join(lines).rstrip() + "\n"


def _map(looks: Callable[[int], int]) -> list[str]:
    return [
        "".join("█" if looks(row) == key else "·" for key in range(_SIZE)) for row in range(_SIZE)
    ]


def _rule(role: Any) -> list[str]:
    """What the rule's docstring says, what it reads, and its thresholds with their comments."""
    told = inspect.cleandoc(type(role).__doc__ or "").split("\n\n>>>")[0]
    comments = {
        name: " ".join(words.split())
        for cls in reversed(type(role).__mro__[:-1])
        for words, name in re.findall(r"((?:    #: [^\n]+\n)+)    (\w+):", inspect.getsource(cls))
    }
    lines = [f"**Rule** (`hc.roles.{type(role).__name__}`). {told}", ""]
    reads = ", ".join(f"`{name}`" for name in role.reads)
    lines += [f"Reads {reads}.", ""]
    shown = [one for one in fields(role) if isinstance(getattr(role, one.name), int | float | str)]
    if shown:
        lines += ["| threshold | usual | meaning |", "|---|---|---|"]
        for one in shown:
            meaning = comments.get(one.name, "").replace("#: ", "").replace("|", "/")
            lines.append(f"| `{one.name}` | {getattr(role, one.name)} | {meaning} |")
        lines.append("")
    return lines


def main() -> int:
    """Write the page, or with --check compare it."""
    made = page()
    if "--check" in sys.argv[1:]:
        return 0 if PAGE.is_file() and PAGE.read_text(encoding="utf8") == made else 1
    PAGE.write_text(made, encoding="utf8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
