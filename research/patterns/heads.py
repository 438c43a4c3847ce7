"""Which heads are looked at, tuned on, or trained on: a head is in one part alone."""

from __future__ import annotations

import random

import headcount as hc
from headcount.records.heads import Head

#: A fine-tuned model's heads are those of the model that it comes from.
FAMILY = {
    "minilm": "minilm",
    "minilm-mrpc-0": "minilm",
    "minilm-rte-0": "minilm",
    "minilm-sst2-0": "minilm",
    "minilm-cola-0": "minilm",
    "e5-small": "e5-small",
    "translator": "translator",
}
#: How many heads of a stack are for the test and for the tuning; the others are trained on.
TEST = {"minilm enc": 36, "e5-small enc": 72, "translator enc": 24, "translator dec": 20}
DEV = {"minilm enc": 10, "e5-small enc": 20, "translator enc": 6, "translator dec": 5}


def parts(family: str, heads: list[Head], seed: int) -> dict[Head, str]:
    """The part of every head of a family: test, dev or train; cross heads have none."""
    found: dict[Head, str] = {}
    for stack in ("enc", "dec"):
        own = [head for head in heads if head.stack == stack]
        random.Random(f"{seed} {family} {stack}").shuffle(own)
        test, dev = (sizes.get(f"{family} {stack}", 0) for sizes in (TEST, DEV))
        names = ["test"] * test + ["dev"] * dev + ["train"] * (len(own) - test - dev)
        found |= dict(zip(own, names, strict=True)) if own else {}
    return found


def subject_of(name: str, classifiers: str) -> hc.Subject:
    """A model by the name that it has here, on the CPU so that maps come out the same."""
    known = name in ("minilm", "e5-small", "translator")
    return hc.load(name if known else f"{classifiers}/{name}", device="cpu")
