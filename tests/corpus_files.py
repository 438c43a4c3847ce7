"""Files for readers, made of a text."""

from __future__ import annotations

import io
import json
from typing import Any

from headcount.text.lines import TextFile


def file_of(text: str, name: str) -> TextFile:
    return TextFile(name, lambda: io.BytesIO(text.encode()))


def columns(text: str, name: str = "t.conll") -> TextFile:
    """A file written with single spaces for tabs, but in comments."""
    lines = [line if line.startswith("#") else line.replace(" ", "\t") for line in text.split("\n")]
    return file_of("\n".join(lines), name)


def records(*found: Any, name: str = "t.jsonl") -> TextFile:
    """JSON lines; a string is a line as it is."""
    lines = [each if isinstance(each, str) else json.dumps(each) for each in found]
    return file_of("\n".join(lines) + "\n", name)
