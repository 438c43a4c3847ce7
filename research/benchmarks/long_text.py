"""One long document from survey to page: what it takes in seconds and memory.

On a GPU a Llama of 1B shape with random weights in bfloat16 reads 32,768 tokens, on a CPU
SmolLM2-135M in float32 reads 8,192: the survey with its trials (sink, induction, retrieval), the
verdicts, and the page. `python -m research.benchmarks.long_text` writes `results/long-gpu.json` or
`results/long-cpu.json`; `--tokenizer` names a folder where SmolLM2 itself is not at hand.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import headcount as hc
from headcount.bundle import sample
from headcount.models import quiet_arguments
from headcount.models.loading import load
from headcount.models.subject import Subject
from headcount.records import provenance
from research.benchmarks.interleave import peak_mib
from research.benchmarks.lengths import llama_1b

RESULTS = Path(__file__).parent / "results"
TOKENS = {"cuda": 32_768, "cpu": 8_192}


def document(tokenizer: Any, tokens: int) -> str:
    """The bundled sentences over and over, as long as asked for."""
    sentences = sample.sentences()
    one = len(tokenizer(" ".join(sentences))["input_ids"])
    text = " ".join(sentences * (tokens // one + 1))
    kept: str = tokenizer.decode(tokenizer(text)["input_ids"][: tokens - 8])
    return kept


def subject_on(device: str, tokenizer: str | None) -> Subject:
    """The model that is read with."""
    if device == "cpu":
        return load("smollm2", device="cpu", dtype="float32")
    from transformers import AutoTokenizer

    own = AutoTokenizer.from_pretrained(tokenizer) if tokenizer else load("smollm2").tokenizer
    bare = llama_1b(device, vocabulary=len(own))
    return Subject(bare.model, own, name=bare.name)


def peak_gib(device: str) -> float:
    """The most memory so far: of the GPU, or of this process."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated() / 2**30
    return peak_mib() / 1024


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int)
    parser.add_argument("--tokenizer")
    given = parser.parse_args(arguments)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        torch.set_num_threads(2)
    subject = subject_on(device, given.tokenizer)
    tokens = given.tokens or TOKENS[device]
    text = document(subject.tokenizer, tokens)
    started = peak_gib(device)
    ids = subject.tokenizer(text, return_tensors="pt")["input_ids"].to(subject.device)
    found: dict[str, Any] = {"tokens": ids.shape[1], "seconds": {}, "peak_gib": {"model": started}}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = work()
        if device == "cuda":
            torch.cuda.synchronize()
        found["seconds"][name] = round(time.perf_counter() - start, 2)
        found["peak_gib"][name] = round(peak_gib(device), 3)
        print(name, found["seconds"][name], found["peak_gib"][name], flush=True)
        return result

    def forward() -> None:
        with torch.no_grad():
            subject.inner(ids, **quiet_arguments(subject.inner))

    timed("plain forward", forward)
    timed("survey", lambda: hc.survey(subject, [text], reading=hc.ReadingOptions(batch_size=1)))
    table = timed(
        "with roles",
        lambda: hc.survey(subject, [text], roles=True, reading=hc.ReadingOptions(batch_size=1)),
    )
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "report.html"
        timed("page", lambda: hc.report(table, place))
        found["page_bytes"] = place.stat().st_size
    found["attention"] = table.provenance.get("attention")
    found["roles"] = table.details["roles"]["role"].value_counts().to_dict()
    found["remarks"] = table.provenance.get("remarks")
    result = {
        "what": f"{subject.name}, {subject.dtype}, one document of {found['tokens']:,} tokens",
        "device": torch.cuda.get_device_name() if device == "cuda" else "2 CPU threads",
        **found,
        "provenance": provenance.collect() | {"command": "python -m research.benchmarks.long_text"},
    }
    name = "gpu" if device == "cuda" else "cpu"
    (RESULTS / f"long-{name}.json").write_text(json.dumps(result, indent=2, default=str) + "\n")


if __name__ == "__main__":
    main()
