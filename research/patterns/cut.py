"""The same head on a text and on its first half: does the pattern stay?"""

from __future__ import annotations

import random
from typing import Any

import headcount as hc
from headcount.bundle import sample
from headcount.rooms.patterns.tally import PATTERNS, Judge


def cut_agreement(model: str, by: Judge, count: int = 12, seed: int = 0) -> dict[str, Any]:
    """How often map and cut map of a head agree, over texts of three sentences."""
    sentences = sample.sentences()
    starts = random.Random(seed).sample(range(len(sentences) - 3), count)
    texts = [" ".join(sentences[start : start + 3]) for start in starts]
    subject = hc.load(model, device="cpu")
    same = total = 0
    for text in texts:
        words = text.split()
        whole, half = (_told(subject, t, by) for t in (text, " ".join(words[: len(words) // 2])))
        same += sum(one == two for one, two in zip(whole, half, strict=True))
        total += len(whole)
    return {"model": model, "texts": count, "maps": total, "same": round(same / total, 4)}


def _told(subject: hc.Subject, text: str, by: Judge) -> list[str]:
    table = hc.survey(
        subject,
        [text],
        tallies=[f"patterns:{by}"],
        columns=["pattern"],
        reading=hc.ReadingOptions(stacks=["enc"]),
    )
    shown = [str(one) for one in table.frame["pattern"]]
    assert set(shown) <= set(PATTERNS)
    return shown
