"""A pruned SmolLM2 on the disk: by which way it was saved, and that plain transformers loads it."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import headcount as hc
from headcount.records.heads import Head, parse_head

from .config import Config
from .groups import groups_of, load_model
from .points import shuffled

__all__ = ["check_saved"]


def check_saved(config: Config, name: str | None, curve: Path) -> dict[str, Any]:
    """Save it with one group less in every layer, and unevenly: at random, and as ranked."""
    subject = load_model(config, name, "cpu")
    groups = groups_of(subject)
    count = max(1, len(groups) // 10)
    drawn = shuffled(groups, config.seed)[:count]
    going = {
        "one group of every layer": _of_every_layer(subject),
        f"{count} groups at random": [head for group in drawn for head in group],
    }
    if curve.exists():
        going[f"{count} groups by gradient"] = _in_order(curve, len(groups) - count)
    return {"saved": {what: _saved(subject, heads) for what, heads in going.items()}}


def _of_every_layer(subject: hc.Subject) -> list[Head]:
    """The last group of each layer."""
    last = {group[0].layer: group for group in groups_of(subject)}
    return [head for group in last.values() for head in group]


def _in_order(curve: Path, left: int) -> list[Head]:
    """The heads that are gone at a point of the gradient order."""
    rows = [row for row in json.loads(curve.read_text())["curve"] if row["order"] == "gradient"]
    far = [row for row in rows if row["units_left"] >= left and not row["healed"]]
    return [parse_head(word) for row in far for word in row["removed"].split(",") if word]


def _saved(subject: hc.Subject, heads: list[Head]) -> dict[str, Any]:
    """Saving proves itself: the folder is loaded by transformers alone in a fresh process."""
    small = hc.prune(subject, heads)
    with tempfile.TemporaryDirectory() as folder:
        found = small.save(Path(folder) / "small")
        size = sum(path.stat().st_size for path in found.folder.rglob("*") if path.is_file())
    return {
        "heads removed": len(heads),
        "route": found.route,
        "why": found.why,
        "loads with": found.loads_with.replace(str(found.folder), "FOLDER"),
        "outputs apart": found.apart,
        "megabytes": round(size / 1e6, 1),
    }
