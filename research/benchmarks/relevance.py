"""Relevance of all heads, per prediction, against a forward and a backward to the input embeddings.

The plain side has sdpa attention, frozen weights and eval mode. A pair of texts is one prediction
of MiniLM; a target token is one of the translator, whose plain side runs every step as a row of
its own. `python -m research.benchmarks.relevance` writes `results/relevance.json`.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headcount import tasks
from headcount.bundle import sample
from headcount.models.loading import load
from headcount.models.subject import Subject
from headcount.records import provenance
from headcount.rooms.labels.labelled import embed
from headcount.rooms.relevance.contribution import straightened
from headcount.rooms.relevance.propagate import traced
from headcount.rooms.relevance.rules import rule_named
from headcount.rooms.relevance.score import explaining
from headcount.tasks.task import Task
from headcount.text.batch import Batch, bare_side
from research.benchmarks.interleave import interleaved, ratio

RESULTS = Path(__file__).parent / "results"
ROWS, LENGTH, ROUNDS = 16, 128, 15
SENTENCES = 8

Work = Callable[[], object]


def relevant(subject: Subject, task: Task, batch: Batch, rule: str) -> Work:
    """All heads, every prediction of the batch."""

    def work() -> None:
        opened = straightened(subject) if rule == "none" else traced(subject, rule_named(rule))
        with opened as tracing, explaining(subject, task) as explain:
            start = explain(tracing, batch)
            tracing.back(start.output, start.starts, start.ledger)

    return work


def embedded(layer: torch.nn.Module, kept: list[Tensor]) -> Any:
    """Make what an embedding gives the end of the backward."""

    def leaf(_: Any, __: Any, output: Tensor) -> Tensor:
        kept.append(output.detach().requires_grad_())
        return kept[-1]

    return layer.register_forward_hook(leaf)


def plain(subject: Subject, run: Callable[[], Tensor]) -> Work:
    """One forward and one backward from the sum of outputs to the input embeddings."""
    layers = {subject.inner.get_input_embeddings()}
    if subject.kind == "enc-dec":
        layers.add(subject.inner.get_decoder().get_input_embeddings())

    def work() -> None:
        leaves: list[Tensor] = []
        handles = [embedded(layer, leaves) for layer in layers]
        try:
            torch.autograd.grad(run().sum(), leaves)
        finally:
            for handle in handles:
                handle.remove()

    return work


def drawn_pairs() -> Batch:
    """Full rows of random words between [CLS] and [SEP], two and two."""
    noise = torch.Generator().manual_seed(0)
    ids = torch.randint(1000, 20000, (ROWS, LENGTH), generator=noise)
    ids[:, 0], ids[:, -1] = 101, 102
    real = torch.ones_like(ids)
    inputs = {"input_ids": ids, "attention_mask": real}
    side = bare_side(ids, real > 0)
    return Batch(inputs, {"source": side}, list(range(ROWS // 2)), labels=torch.zeros(ROWS // 2))


def minilm(rule: str) -> tuple[dict[str, Work], str]:
    subject = load("minilm", device="cpu", dtype="float32")
    freeze(subject)
    batch = drawn_pairs()
    task = tasks.similarity([("a", "b", 0.0)])
    ways = {
        "plain": plain(subject, lambda: embed(subject, batch)),
        "relevance": relevant(subject, task, batch, rule),
    }
    return ways, f"MiniLM float32, {ROWS // 2} pairs of texts of {LENGTH} tokens, one cosine each"


def translator(rule: str) -> tuple[dict[str, Work], str]:
    subject = load("translator", device="cpu", dtype="float32")
    freeze(subject)
    task = tasks.translation(sample.pairs()[:SENTENCES], metric="loss")
    (batch,) = task.batches(subject, SENTENCES)
    expanded, places = by_step(batch)

    def run() -> Tensor:
        logits = subject.model(**expanded, use_cache=False).logits
        return logits[torch.arange(len(places)), places].amax(dim=-1)

    ways = {"plain": plain(subject, run), "relevance": relevant(subject, task, batch, rule)}
    return ways, f"translator float32, {SENTENCES} sentences, {len(places)} target tokens"


def by_step(batch: Batch) -> tuple[dict[str, Tensor], Tensor]:
    """A row for every predicted token, and its place."""
    assert batch.labels is not None
    rows, places = (batch.labels != -100).nonzero(as_tuple=True)
    return {name: tensor[rows] for name, tensor in batch.inputs.items()}, places


def freeze(subject: Subject) -> None:
    assert subject.model.config._attn_implementation == "sdpa"
    assert subject.heads
    subject.model.eval().requires_grad_(False)


def measured(ways: dict[str, Work], what: str, rounds: int) -> dict[str, Any]:
    seconds = interleaved(ways, rounds, warm_up=1)
    return {
        "what": what,
        "seconds": {name: round(statistics.median(times), 4) for name, times in seconds.items()},
        "ratio": ratio(seconds, "relevance", "plain"),
        "rounds": rounds,
    }


def main(rounds: int = ROUNDS, rule: str = "none") -> None:
    torch.set_num_threads(2)
    result = {
        "what": f"contribution of all heads (or relevance, by the rule {rule}) against forward "
        "and backward, 2 threads",
        "cases": {
            "minilm": measured(*minilm(rule), rounds),
            "translator": measured(*translator(rule), rounds),
        },
        "aim": 2.5,
        "provenance": provenance.collect() | {"command": "python -m research.benchmarks.relevance"},
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "relevance.json").write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps({k: v for k, v in result.items() if k != "provenance"}, indent=2))


if __name__ == "__main__":
    main()
