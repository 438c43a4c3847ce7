"""Survey the models on pairs of consecutive paragraphs; one table a model and convention."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import headcount as hc
from headcount.text import read_corpus, texts_of

CONVENTIONS = ("headcount", "code")


def paragraph_pairs(path: Path, count: int, seed: int) -> list[tuple[str, str]]:
    """Neighbouring paragraphs, no paragraph in two pairs, a random sample in their order."""
    paragraphs = [texts_of(item)[0] for item in read_corpus(path)]
    pairs = list(zip(paragraphs[::2], paragraphs[1::2], strict=False))
    chosen = sorted(random.Random(seed).sample(range(len(pairs)), min(count, len(pairs))))
    return [pairs[place] for place in chosen]


def blocks(config: dict[str, Any], data: Path, name: str, columns: list[str]) -> list[hc.HeadTable]:
    """The same survey of disjoint blocks of the pairs, of some columns."""
    pairs = paragraph_pairs(data / config["text"], config["pairs"], config["seed"])
    subject, count = hc.load(name), config["blocks"]
    how = {"max_length": config["max_length"], "long": "truncate", "columns": columns}
    return [hc.survey(subject, pairs[place::count], **how) for place in range(count)]


def surveys(config: dict[str, Any], data: Path) -> dict[str, dict[str, hc.HeadTable]]:
    """Tables by model and convention."""
    pairs = paragraph_pairs(data / config["text"], config["pairs"], config["seed"])
    found: dict[str, dict[str, hc.HeadTable]] = {}
    for name in config["models"]:
        subject = hc.load(name)
        found[name] = {
            convention: hc.survey(
                subject,
                pairs,
                reading=hc.ReadingOptions(
                    convention=convention, max_length=config["max_length"], long="truncate"
                ),
            )
            for convention in CONVENTIONS
        }
    return found
