"""Surveys on the disk: a file each, so that measuring one again changes nothing else."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

from headcount.records.files import write_bytes

from .reading import Surveys

__all__ = ["read_surveys", "write_surveys"]

FOLDER = "roles"
LIST = Path(__file__).parent / "config.toml"


def read_surveys(results: Path) -> Surveys:
    """Every survey that was kept, by name, in the order of the list."""
    listed = list(tomllib.loads(LIST.read_text(encoding="utf8")))
    files = {file.stem: file for file in sorted((results / FOLDER).glob("*.json"))}
    names = sorted(files, key=lambda name: listed.index(name) if name in listed else len(listed))
    return {name: json.loads(files[name].read_text(encoding="utf8")) for name in names}


def write_surveys(surveys: Surveys, results: Path) -> None:
    """Keep surveys; others stay as they are."""
    (results / FOLDER).mkdir(exist_ok=True)
    for name, survey in surveys.items():
        text = json.dumps(survey, ensure_ascii=False) + "\n"
        write_bytes(results / FOLDER / f"{name}.json", text.encode())
