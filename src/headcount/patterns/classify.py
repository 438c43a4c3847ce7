"""Which of the five patterns a map shows, told by the bundled network or by the rule."""

from __future__ import annotations

from typing import Any, Literal, get_args

import torch
from torch import Tensor

from headcount.errors import InputError, UsageError
from headcount.patterns.kinds import PATTERNS
from headcount.patterns.network import network
from headcount.patterns.picture import pictures
from headcount.patterns.rule import Rule

__all__ = ["LEAST", "Judge", "check_judge", "classify", "numbers_of"]

#: Who tells the pattern.
Judge = Literal["network", "rule"]
#: A map of fewer tokens shows no pattern: a column, a line and a block are the same cells there.
LEAST = 4


def classify(
    maps: Any, special: Any = None, segment: Any = None, by: Judge = "network"
) -> list[str]:
    """The pattern of each map: `[query, key]`, or `[head, query, key]` of one text.

    `special` marks the places that the tokenizer added; left out, there are none. `segment` numbers
    the texts that tokens belong to: all 0 is a single text, which has no blocks; left out, they are
    not known, and a block is told by its look. Rows of padding must be cut off.

    >>> classify(torch.eye(12))
    ['diagonal']
    """
    maps = torch.as_tensor(maps)
    maps = maps[None] if maps.dim() == 2 else maps
    _check(maps)
    none = torch.zeros(maps.shape[-1], dtype=torch.bool, device=maps.device)
    marks = none if special is None else torch.as_tensor(special, device=maps.device).bool()
    texts = None if segment is None else torch.as_tensor(segment, device=maps.device).long()
    return [PATTERNS[number] for number in numbers_of(maps, marks, texts, by).tolist()]


def numbers_of(
    maps: Tensor, special: Tensor, segment: Tensor | None, by: Judge = "network"
) -> Tensor:
    """The places in PATTERNS `[head]`; nothing is checked."""
    if by == "rule":
        return Rule()(maps, special, segment)
    scores: Tensor = network(str(maps.device))(pictures(maps, special, segment))
    if segment is not None and not bool((segment != segment[0]).any()):
        # A single text has no blocks, by definition.
        scores[:, PATTERNS.index("block")] = -torch.inf
    return scores.argmax(-1)


def check_judge(by: Any) -> Judge:
    """The judge, if there is one of that name.

    >>> check_judge("eye")
    Traceback (most recent call last):
    headcount.errors.UsageError: Patterns are told by 'network' or 'rule', not by 'eye'.
    """
    if by not in get_args(Judge):
        raise UsageError(f"Patterns are told by 'network' or 'rule', not by {by!r}.")
    return by


def _check(maps: Tensor) -> None:
    shape = " x ".join(map(str, maps.shape[-2:]))
    if maps.dim() != 3 or maps.shape[-1] != maps.shape[-2]:
        raise InputError(
            f"The map is {shape}; patterns are told of square maps [query, key], where a text "
            "looks at itself."
        )
    if maps.shape[-1] < LEAST:
        raise InputError(f"The map is {shape}; a pattern needs {LEAST} tokens or more to show.")
    if not bool(torch.isfinite(maps).all()):
        raise InputError("The map holds a weight that is not a number; check the model.")
