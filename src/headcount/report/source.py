"""What a page is made from: a head table, and whatever else its run holds."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from headcount.errors import RunError
from headcount.exhibits import Exhibit, read_exhibits
from headcount.heads import Head
from headcount.run import Run
from headcount.table import HeadTable

__all__ = ["Source", "read_source"]

_PATH = re.compile(r"[\w.~ -]*(/[\w.~ -]+)+/?")
_FRAMES = ("roles", "relations", "agreement", "curve", "changes", "role_changes", "probes")


@dataclass
class Source:
    """A table with its frames, arrays and exhibits; a part that is not there is None or empty."""

    table: HeadTable
    frames: dict[str, pd.DataFrame] = field(default_factory=dict)
    pairs: dict[str, np.ndarray] = field(default_factory=dict)
    exhibits: list[Exhibit] = field(default_factory=list)
    record: dict[str, Any] = field(default_factory=dict)

    def frame(self, name: str) -> pd.DataFrame | None:
        """A frame of the run, where it is there and has rows."""
        found = self.frames.get(name)
        return found if found is not None and len(found) else None

    @property
    def model(self) -> str:
        """What the user called the model, without the folders of a path or the owner on a hub."""
        name = str(self.table.provenance.get("model") or "this model")
        return name.rstrip("/").rsplit("/", 1)[-1] if _PATH.fullmatch(name) else name

    @property
    def places(self) -> dict[Head, int]:
        """The number of every head on the page: stacks by layers by heads, gaps counted."""
        found: dict[Head, int] = {}
        for stack, layers, heads in self.shape:
            for layer in range(layers):
                for index in range(heads):
                    found[Head(stack, layer, index)] = len(found)
        return found

    @property
    def shape(self) -> list[tuple[str, int, int]]:
        """Stack, layers and heads a layer; a pruned model keeps the places of heads that went."""
        sizes = []
        for stack in self.table.stacks:
            own = [head for head in self.table.heads if head.stack == stack]
            layers, heads = max(head.layer for head in own), max(head.index for head in own)
            sizes.append((stack, layers + 1, heads + 1))
        return sizes


def read_source(given: HeadTable | Run | str | Path, *, exhibits: bool = True) -> Source:
    """Read a run directory, or take a table by itself."""
    if isinstance(given, HeadTable):
        details = {name: frame for name, frame in given.details.items() if name in _FRAMES}
        return Source(given, frames=details)
    run = given if isinstance(given, Run) else _opened(Path(given))
    if run is None:
        return Source(HeadTable.load(Path(str(given))))
    if not run.has_table:
        raise RunError(f"{run.path}/ has no head table yet; run `headcount survey` into it first.")
    there = set(run.frames)
    return Source(
        table=run.read_table(),
        frames={name: run.read_frame(name) for name in _FRAMES if name in there},
        pairs=run.read_arrays("pairs") if (run.path / "pairs.npz").exists() else {},
        exhibits=read_exhibits(run) if exhibits else [],
        record=run.record,
    )


def _opened(path: Path) -> Run | None:
    """The run at a path; None for a heads.parquet on its own."""
    return None if path.suffix == ".parquet" else Run.open(path, create=False)
