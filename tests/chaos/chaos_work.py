"""What the drivers of the chaos script do: a survey, and an ablation of every head."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import headcount as hc
from headcount.bundle import sample


def survey(folder: str, engine: Any) -> hc.HeadTable:
    """All pairs of the sample, in shards of eight."""
    subject = hc.load("translator", device="cpu")
    journal = Path(folder, "shards")
    return hc.survey(subject, sample.pairs(), engine=engine, journal=journal)


def score(folder: str, engine: Any) -> hc.HeadTable:
    """144 heads, one at a time, on some translations."""
    subject = hc.load("translator", device="cpu")
    task = hc.tasks.translation(sample.pairs()[:48], metric="loss")
    run = Path(folder, "run") if engine is not None else None
    return hc.score(subject, task, by="ablation", batch_size=4, engine=engine, run=run)
