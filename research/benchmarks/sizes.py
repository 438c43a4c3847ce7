"""The survey against the plain sdpa forward on a CPU, by sentences and by heads of a layer.

Sentences: MiniLM on batches of 16 x 64, the tallies alone and the whole of `hc.survey` from strings
to intervals. Heads: BERT of MiniLM's shape with random weights, the same width cut into ever more
heads. `python -m research.benchmarks.sizes` writes `results/sizes.json`.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import torch
from transformers import BertConfig, BertModel

import headcount as hc
from headcount.models.loading import load
from headcount.models.subject import Subject
from headcount.records import provenance
from research.benchmarks.ablation import words
from research.benchmarks.interleave import interleaved, ratio
from research.benchmarks.survey import drawn_batches, plain, surveyed

RESULTS = Path(__file__).parent / "results"
SENTENCES = (16, 64, 256, 1_024)
HEADS = (1, 2, 4, 6, 12, 24, 48)
ROWS, LENGTH = 16, 64


def by_sentences(count: int, rounds: int) -> dict[str, Any]:
    """So many sentences: the forwards, the tallies, and a survey from its strings."""
    subject = load("minilm", device="cpu", dtype="float32")
    batches = drawn_batches(subject, count // ROWS, ROWS, LENGTH)
    strings = words(count, LENGTH - 2)
    ways = {
        "plain": lambda: plain(subject, batches),
        "tallies": lambda: surveyed(subject, batches),
        "survey": lambda: hc.survey(subject, strings, reading=hc.ReadingOptions(batch_size=ROWS)),
    }
    return {"sentences": count} | _told(interleaved(ways, rounds, warm_up=1))


def by_heads(heads: int, rounds: int) -> dict[str, Any]:
    """Six layers of width 384 in so many heads, 8 batches of 16 x 128."""
    torch.manual_seed(0)
    config = BertConfig(
        hidden_size=384, num_hidden_layers=6, num_attention_heads=heads, intermediate_size=1536
    )
    subject = Subject(BertModel(config).eval(), None, name=f"{heads} heads")
    batches = drawn_batches(subject, 8, 16, 128)
    ways = {"plain": lambda: plain(subject, batches), "tallies": lambda: surveyed(subject, batches)}
    return {"heads": heads} | _told(interleaved(ways, rounds, warm_up=1))


def _told(seconds: dict[str, list[float]]) -> dict[str, Any]:
    return {
        "seconds": {name: round(statistics.median(took), 4) for name, took in seconds.items()},
        "ratio": {name: ratio(seconds, name, "plain") for name in seconds if name != "plain"},
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args(arguments).rounds
    torch.set_num_threads(2)
    result: dict[str, Any] = {
        "what": "all default columns, float32, 2 CPU threads",
        "sentences": [by_sentences(count, rounds) for count in SENTENCES],
        "heads": [by_heads(count, rounds) for count in HEADS],
        "rounds": rounds,
        "provenance": provenance.collect() | {"command": "python -m research.benchmarks.sizes"},
    }
    (RESULTS / "sizes.json").write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps({k: v for k, v in result.items() if k != "provenance"}, indent=2))


if __name__ == "__main__":
    main()
