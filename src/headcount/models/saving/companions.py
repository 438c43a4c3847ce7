"""Files beside a model that other programs read: sentence-transformers' pooling, processors."""

from __future__ import annotations

import shutil
from pathlib import Path

from headcount.errors import HeadcountError
from headcount.models.find import find
from headcount.subject import Subject

__all__ = ["copy_companions"]

#: Of sentence-transformers, then of models of images and sound.
FILES = (
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "preprocessor_config.json",
    "processor_config.json",
)
FOLDERS = ("1_Pooling", "2_Normalize", "2_Dense", "3_Normalize")


def copy_companions(subject: Subject, folder: Path) -> None:
    """Copy what lies beside the model that a subject came from, where that is a folder."""
    beside = _home(subject)
    if beside is None:
        return
    for name in FILES:
        if (beside / name).is_file() and not (folder / name).exists():
            shutil.copy(beside / name, folder / name)
    for name in FOLDERS:
        if (beside / name).is_dir():
            shutil.copytree(beside / name, folder / name, dirs_exist_ok=True)
        elif (beside / "modules.json").is_file() and name in (beside / "modules.json").read_text():
            (folder / name).mkdir(exist_ok=True)  # a module without settings has an empty folder


def _home(subject: Subject) -> Path | None:
    if subject.source == "in hand":
        return None
    try:
        found = find(subject.source)
    except HeadcountError:
        return None
    return found.folder if found.kind == "folder" else None
