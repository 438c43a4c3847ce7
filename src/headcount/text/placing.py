"""Where words stand in a text that is known, or put together from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

__all__ = ["Form", "divided", "place"]


class Form(NamedTuple):
    """Something written: a word or a multiword token, and whether a space follows."""

    text: str
    spaced: bool = True


def place(
    forms: Sequence[Form], text: str | None, skipped: Counter[str]
) -> tuple[str, list[tuple[int, int]]]:
    """The text and where each form stands in it.

    Where the text disagrees with the forms, the forms win: places must be true.

    >>> place([Form("Go", spaced=False), Form("!")], "Go !", Counter())
    ('Go !', [(0, 2), (3, 4)])
    >>> place([Form("Go", spaced=False), Form("!")], "Stop!", Counter())
    ('Go!', [(0, 2), (2, 3)])
    """
    if text is not None:
        found = _find(forms, text)
        if found is not None:
            return text, found
        skipped["text comments that disagree with the words"] += 1
    return _joined(forms)


def _joined(forms: Sequence[Form]) -> tuple[str, list[tuple[int, int]]]:
    places, here = [], 0
    for form in forms:
        places.append((here, here + len(form.text)))
        here += len(form.text) + form.spaced
    text = "".join(form.text + " " * form.spaced for form in forms)
    last = places[-1][1] if places else 0
    return text[:last], places


def _find(forms: Sequence[Form], text: str) -> list[tuple[int, int]] | None:
    """Where each form stands, with only white space between; None if that fails."""
    places, here = [], 0
    for form in forms:
        while here < len(text) and text[here].isspace():
            here += 1
        if not text.startswith(form.text, here):
            return None
        places.append((here, here + len(form.text)))
        here += len(form.text)
    return None if text[here:].strip() else places


def divided(form: str, place: tuple[int, int], parts: Sequence[str]) -> list[tuple[int, int]]:
    """Where the words of a multiword token stand: divided if they spell it, else all of it each.

    >>> divided("don't", (3, 8), ["do", "n't"]), divided("zum", (0, 3), ["zu", "dem"])
    ([(3, 5), (5, 8)], [(0, 3), (0, 3)])
    """
    start, end = place
    if "".join(parts) != form or end - start != len(form):
        return [place] * len(parts)
    ends = list(accumulate(map(len, parts), initial=start))
    return list(pairwise(ends))
