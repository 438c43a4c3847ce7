"""How long a sweep will take, said before it begins."""

from __future__ import annotations

__all__ = ["forecast", "in_words"]


def forecast(seconds: float, examples: int, total: int, interventions: int) -> str:
    """One sentence, from the time that some of the examples took.

    >>> forecast(6.0, examples=16, total=500, interventions=144)
    '145 evaluations of 500 examples, about 7 h 33 min.'
    """
    whole = seconds / examples * total * (interventions + 1)
    return f"{interventions + 1} evaluations of {total:,} examples, about {in_words(whole)}."


def in_words(seconds: float) -> str:
    """A duration as people say it.

    >>> in_words(7.2), in_words(200), in_words(90000)
    ('7 s', '3 min', '25 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if rest and hours < 24 else f"{hours} h"
