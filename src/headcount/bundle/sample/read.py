"""The sample as Python: its sentences and its pairs."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

from headcount.errors import UsageError

#: The first is the source; the others follow from it (see scripts/sample_files.py).
FILES = ("sample.conllu", "sample.txt", "sample.en-de.tsv", "coref.jsonl")


def path(name: str = "sample.conllu") -> Path:
    """Where a file of the sample lies.

    >>> path("sample.en-de.tsv").name
    'sample.en-de.tsv'
    """
    if name not in FILES:
        raise UsageError(f"The sample has no file '{name}'; it has {', '.join(FILES)}.")
    return Path(str(resources.files(__package__))) / name


def sentences() -> list[str]:
    """The English sentences, in order.

    >>> len(sentences()) >= 200
    True
    """
    return [_comment(block, "text") for block in _blocks()]


def pairs() -> list[tuple[str, str]]:
    """The English sentences with their German translations.

    >>> pairs()[1]
    ('Ines turned off the gas and poured the water into two cups.',
     'Ines stellte das Gas ab und goss das Wasser in zwei Tassen.')
    """
    return [(_comment(block, "text"), _comment(block, "text_de")) for block in _blocks()]


def _blocks() -> list[str]:
    """The text of each sentence's comments and lines."""
    return path().read_text(encoding="utf8").strip().split("\n\n")


def _comment(block: str, key: str) -> str:
    found = re.search(rf"^# {key} = (.*)$", block, re.MULTILINE)
    assert found is not None  # the sample's tests see to it
    return found[1]
