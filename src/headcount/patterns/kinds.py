"""The five patterns of attention maps, in the order of their numbers."""

from __future__ import annotations

from headcount.columns import Column

__all__ = ["COLUMNS", "PATTERN", "PATTERNS"]

#: Kovaleva et al., EMNLP 2019, section 4.1, in the words of `docs/decisions/0006-patterns.md`.
PATTERNS = ("vertical", "diagonal", "vertical_diagonal", "block", "heterogeneous")

_MEANING = {
    "vertical": "a few columns through most rows",
    "diagonal": "a line along the diagonal",
    "vertical_diagonal": "columns and a diagonal line",
    "block": "squares of the two texts of a pair",
    "heterogeneous": "none of the four other patterns",
}

#: The share of a head's maps that show each pattern.
COLUMNS: tuple[Column, ...] = tuple(
    Column(
        f"pattern_{name}",
        meaning=f"Share of maps with the pattern {name.replace('_', ' and ')}: {_MEANING[name]}.",
        paper="Kovaleva et al. 2019, section 4.1",
        range=(0, 1),
        group="What its maps look like",
    )
    for name in PATTERNS
)

#: The pattern that most of a head's maps show, in a word.
PATTERN = Column(
    "pattern",
    meaning="The pattern that most of the head's maps show.",
    paper="Kovaleva et al. 2019, section 4.1",
    group="What its maps look like",
)
