"""One long annotated document: what tallies between words cost in tiles and by whole maps.

The bundled trees are joined into one text that SmolLM2-135M reads in float32 on two CPU threads, or
on a GPU a Llama of 1B shape with random weights in bfloat16 (`--tokenizer` names a folder where
SmolLM2's is not at hand). Relations and kinds of words are tallied, each way in a process of its
own, and in float32 hits must be the same. `python -m research.benchmarks.long_words` writes
`results/long-words.json` or `results/long-words-gpu.json`; `--words` chooses lengths.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from headcount.bundle.sample import read
from headcount.records import provenance
from headcount.rooms.features.tally import FeatureTally
from headcount.rooms.relations.relations import Relations
from headcount.surveys.passes import PassOptions, run_pass
from headcount.text import Sentence, Word, read_corpus
from headcount.text.sentence import spaced
from headcount.wiring import TILE
from research.benchmarks.long_text import peak_gib, subject_on

RESULTS = Path(__file__).parent / "results"
WORDS = {"cpu": (800, 1_600, 3_200), "cuda": (1_600, 6_400, 25_600)}
#: Cells of the largest map that is kept, by way.
KEPT = {"tiles": 0, "whole maps": 2**40}
#: More words than this have maps beyond a GPU's memory: of 6,407 words they take 26 GiB.
MOST = 10_000
#: Seconds after which a way is given up.
PATIENCE = 600


def document(words: int) -> Sentence:
    """The bundled trees over and over, as one text of at least so many words."""
    joined: list[Word] = []
    while len(joined) < words:
        for sentence in read_corpus(read.path("sample.conllu")):
            assert isinstance(sentence, Sentence)
            first = len(joined)
            joined += [
                replace(word, head=word.head + first if word.head else 0, start=None, end=None)
                for word in sentence.words or ()
            ]
            if len(joined) >= words:
                break
    return spaced(joined)


def alone(words: int, way: str, device: str, tokenizer: str | None) -> dict[str, Any]:
    """One way in this process."""
    torch.set_num_threads(2)
    subject, text = subject_on(device, tokenizer), document(words)
    TILE["kept"] = KEPT[way]
    tallies = [Relations(), FeatureTally()]
    if device == "cuda":  # what it took to make the model is not the survey's
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    before, begun = peak_gib(device), time.perf_counter()
    options = PassOptions(subject.anatomy.stacks, batch_size=1)
    report = run_pass(subject, read_corpus([text]), tallies, options)
    (counts,) = tallies[0].counts()
    seconds = time.perf_counter() - begun
    return {
        "words": len(text.words or ()),
        "seconds": round(seconds, 1),
        "peak_gib": {"model": round(before, 3), "survey": round(peak_gib(device), 3)},
        "paths": dict(report.paths),
        "hits": int(sum(found.sum() for found in counts.hits.values())),
    }


def measured(words: int, way: str, more: list[str]) -> dict[str, Any] | str:
    """One way in a process of its own, or why there is no figure."""
    command = [sys.executable, "-m", "research.benchmarks.long_words", "--alone", way, *more]
    try:
        done = subprocess.run(
            [*command, "--words", str(words)], capture_output=True, text=True, timeout=PATIENCE
        )
    except subprocess.TimeoutExpired:
        return f"not done in {PATIENCE} s"
    if done.returncode:
        raise RuntimeError(f"{way} of {words} words failed: {done.stderr.strip()[-500:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words", type=int, nargs="+")
    parser.add_argument("--tokenizer")
    parser.add_argument("--alone", choices=list(KEPT), help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if given.alone:
        print(json.dumps(alone(given.words[0], given.alone, device, given.tokenizer)))
        return
    more = ["--tokenizer", given.tokenizer] if given.tokenizer else []
    on_gpu, about = device == "cuda", provenance.collect()
    model = "Llama of 1B shape, bfloat16" if on_gpu else "SmolLM2-135M, float32"
    path = RESULTS / ("long-words-gpu.json" if on_gpu else "long-words.json")
    kept = json.loads(path.read_text())["lengths"] if path.exists() else []
    found = {row["asked"]: row for row in kept}
    for words in given.words or WORDS[device]:
        ways = [way for way in KEPT if way == "tiles" or words <= MOST]
        row: dict[str, Any] = {way: measured(words, way, more) for way in ways}
        print(json.dumps(row), flush=True)
        hits = {one["hits"] for one in row.values() if isinstance(one, dict)}
        if len(hits) > 1 and not on_gpu:  # maps in bfloat16 are rounded, tiles are not
            raise RuntimeError(f"Tiles and whole maps differ in their hits at {words} words: {row}")
        found[words] = {"asked": words, "time": about["time"]} | row
        result = {
            "what": f"{model}, one text of trees; relations and kinds of words",
            "device": torch.cuda.get_device_name() if on_gpu else "2 CPU threads",
            "lengths": [found[words] for words in sorted(found)],
            "provenance": about | {"command": "python -m research.benchmarks.long_words"},
        }
        path.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
