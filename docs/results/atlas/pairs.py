"""Writes same-passage.tsv: pairs of sentences of the bundled sample, of one passage or of two.

python docs/results/atlas/pairs.py
"""

from __future__ import annotations

import random
from pathlib import Path

from headcount.text import read_sample


def main() -> None:
    """One pair of neighbours and one pair of strangers for each passage."""
    passages: dict[str, list[str]] = {}
    name = ""
    for sentence in read_sample():
        name = sentence.comments.get("newdoc id", name)
        passages.setdefault(name, []).append(sentence.text)
    names = [one for one, texts in passages.items() if len(texts) > 1]
    drawn, lines = random.Random(0), ["first\tsecond\tsame"]
    for one in names:
        place = drawn.randrange(len(passages[one]) - 1)
        other = drawn.choice([name for name in names if name != one])
        first, second = passages[one][place : place + 2]
        lines += [f"{first}\t{second}\t1", f"{first}\t{drawn.choice(passages[other])}\t0"]
    Path(__file__).with_name("same-passage.tsv").write_text("\n".join(lines) + "\n")


main()
