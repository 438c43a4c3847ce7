"""What the pages call models and tasks, for the titles of panels."""

from __future__ import annotations

__all__ = ["title"]

_TITLES = {
    "minilm": "MiniLM",
    "sst2": "SST-2",
    "mrpc": "MRPC",
    "rte": "RTE",
    "cola": "CoLA",
    "tatoeba": "Tatoeba",
}


def title(name: str) -> str:
    """The name in a title; a seed stays behind it.

    >>> title("sst2"), title("sst2-1"), title("minilm-sst2-0"), title("lohelp")
    ('SST-2', 'SST-2, seed 1', 'MiniLM SST-2, seed 0', 'lohelp')
    """
    *words, last = name.split("-")
    if not words or not last.isdigit():
        return _TITLES.get(name, name)
    return " ".join(_TITLES.get(word, word) for word in words) + f", seed {last}"
