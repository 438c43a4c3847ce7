"""What gates free and healing gives back in sentences, and what is known of the translator."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pandas as pd

from headcount.pruning import freed
from headcount.records import Head, parse_heads
from headcount.reports import Source, run_tolerance


def freed_sentences(source: Source) -> list[str]:
    """What can be pruned where gates chose, and after healing; for page and terminal."""
    said = []
    for name in ("gates", "refitted", "healed"):
        frame = source.frame(name)
        allowed = [] if frame is None else freed(frame, run_tolerance(source))
        sizes = [f"{one.heads or 'none'} within {one.within} ({one.most})" for one in allowed]
        if sizes:
            said.append(f"{_chosen(source, name).capitalize()}: {', '.join(sizes)}; 95% bounds.")
    return said


def _chosen(source: Source, name: str) -> str:
    """Who chose the heads of a frame, and what learned."""
    about = (source.record.get("stages") or {}).get(name, {}).get("settings") or {}
    steps = f" for {about['steps']:,} steps" if about.get("steps") else ""
    by = "learned gates" if about.get("by", "gates") == "gates" else f"{about['by']}"
    if name == "gates":
        return f"heads that can be pruned, chosen by gates that learned{steps} with frozen weights"
    return f"chosen by {by}, the rest {name}{steps}"


def known_heads(weights: Any) -> dict[str, Any] | None:
    """What the project found of the bundled translator; None for any other model."""
    place = files("headcount.bundle") / "translator" / "known.json"
    known: dict[str, Any] = json.loads(place.read_text("utf-8"))
    return known if known["weights"] == weights else None


#: Sets of heads that go, by how many were to stay.
HeadSets = dict[int, tuple[Head, ...]]


def sets_of_frame(frame: pd.DataFrame) -> HeadSets:
    """The sets of heads that a frame of `judged` is about."""
    rows = frame[(frame["metric"] == frame["metric"].iloc[0]) & (frame["step"] > 0)]
    return {
        int(left): tuple(parse_heads(going))
        for left, going in zip(rows["heads_left"], rows["removed"], strict=True)
    }
