"""The models that have a short name, and whether they are at hand."""

from __future__ import annotations

from typing import Any

from headcount.errors import ModelError
from headcount.models.find import BUNDLED, find, known_names

__all__ = ["models_at_hand"]

_ABOUT = {
    "minilm": "all-MiniLM-L6-v2: BERT, 6 layers x 12 heads",
    "e5-small": "e5-small: BERT, 12 layers x 12 heads",
    "smollm2": "SmolLM2-135M-Instruct: Llama, 30 layers x 9 heads (3 KV heads)",
    "translator": "the bundled English-German translator: 6 + 6 layers x 8 heads",
}


def models_at_hand() -> list[dict[str, Any]]:
    """Each short name with what it is, whether it is here, and how to get it otherwise.

    >>> sorted(row["name"] for row in models_at_hand() if row["name"] != "translator")
    ['e5-small', 'minilm', 'smollm2']
    """
    rows = [
        {
            "name": name,
            "about": _ABOUT[name],
            "here": _is_here(name),
            "how": f"python -m headcount.models.fetch {name}",
        }
        for name in known_names()
    ]
    return [row for row in rows if row["here"] or row["name"] not in BUNDLED]


def _is_here(name: str) -> bool:
    try:
        find(name)
    except ModelError:
        return False
    return True
