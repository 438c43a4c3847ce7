"""Folders of headcount as strangers leave them: begun and broken off; and what one holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headcount.surveys import shards


def broken_off(headcount: Callable[..., Any], line: list[Any]) -> None:
    """The survey is stopped when one shard is kept."""
    write = shards._Kept.write

    def stopping(self: Any, number: int, state: Any) -> None:
        if number:
            raise KeyboardInterrupt
        write(self, number, state)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards._Kept, "write", stopping)
        assert headcount(*line).code == 130


def state_of_folder(folder: Path) -> dict[str, Any]:
    """Everything there: bytes, and the moment of the last change."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mtime_ns,
            path.is_file() and path.read_bytes(),
        )
        for path in [folder, *folder.rglob("*")]
    }
