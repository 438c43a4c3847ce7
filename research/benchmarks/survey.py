"""The survey of all default columns against the plain sdpa forward of the same batches.

Tokenising is outside both. `python -m research.benchmarks.survey` writes `results/survey.json`.
"""

from __future__ import annotations

import json
import statistics
from collections import Counter
from functools import reduce
from operator import or_
from pathlib import Path

import torch

from headcount.models.loading import load
from headcount.models.subject import Subject
from headcount.records import provenance
from headcount.surveys.surveying import chosen_tallies
from headcount.surveys.tally import receivers
from headcount.text.batch import Batch, Side
from headcount.wiring import Needs, tap
from research.benchmarks.interleave import interleaved, peak_mib, ratio

RESULTS = Path(__file__).parent / "results"
BATCHES, ROWS, LENGTH, ROUNDS = 8, 16, 128, 9


def drawn_batches(subject: Subject, count: int, rows: int, length: int) -> list[Batch]:
    """Full batches of random words between [CLS] and [SEP]; what they say costs no time."""
    noise = torch.Generator().manual_seed(0)
    batches = []
    for number in range(count):
        ids = torch.randint(1000, 20000, (rows, length), generator=noise)
        ids[:, 0], ids[:, -1] = 101, 102
        real = torch.ones_like(ids, dtype=torch.bool)
        ends, marks = ids == 102, ids % 10 == 0
        side = Side(ids, real, ends | (ids == 101), ends, marks, marks, [[]] * rows)
        inputs = {"input_ids": ids, "attention_mask": real.long()}
        batches.append(
            Batch(inputs, {"source": side}, list(range(number * rows, (number + 1) * rows)))
        )
    return batches


def plain(subject: Subject, batches: list[Batch]) -> None:
    """The forward pass alone, as the model comes."""
    with torch.no_grad():
        for batch in batches:
            inputs = {name: part.to(subject.device) for name, part in batch.inputs.items()}
            subject.model(**inputs)


def surveyed(subject: Subject, batches: list[Batch], rows: int | None = None) -> Counter[str]:
    """The same with every default tally watching; gives the paths that were taken."""
    tallies = chosen_tallies(None, "headcount")
    needs = reduce(or_, (tally.needs for tally in tallies), Needs())
    shown = receivers(tallies)
    with tap(subject, needs, rows=rows) as watch:
        for batch in batches:
            watch(batch, **shown)
    for tally in tallies:
        tally.compute()
    return watch.paths


def memory_by_corpus(subject: Subject) -> dict[str, int]:
    """Peak memory after one survey of ever more sentences: it must stay where it is."""
    peaks = {}
    for sentences in (64, 256, 1024):
        surveyed(subject, drawn_batches(subject, sentences // 16, 16, 64))
        peaks[str(sentences)] = peak_mib()
    return peaks


def main() -> None:
    torch.set_num_threads(2)
    subject = load("minilm", device="cpu", dtype="float32")
    assert subject.model.config._attn_implementation == "sdpa"
    memory = memory_by_corpus(subject)
    batches = drawn_batches(subject, BATCHES, ROWS, LENGTH)
    seconds = interleaved(
        {
            "plain sdpa forward": lambda: plain(subject, batches),
            "survey": lambda: surveyed(subject, batches),
        },
        ROUNDS,
    )
    result = {
        "what": f"MiniLM float32 on CPU, {BATCHES} batches of {ROWS}x{LENGTH}, 2 threads",
        "seconds": {name: round(statistics.median(times), 4) for name, times in seconds.items()},
        "ratio": ratio(seconds, "survey", "plain sdpa forward"),
        "aim": 1.15,
        "rounds": ROUNDS,
        "peak_mib_by_sentences": memory,
        "provenance": provenance.collect() | {"command": "python -m research.benchmarks.survey"},
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "survey.json").write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps({k: v for k, v in result.items() if k != "provenance"}, indent=2))


if __name__ == "__main__":
    main()
