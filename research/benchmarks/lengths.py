"""The survey of all default columns against the plain sdpa forward, by length of text.

On a GPU a Llama of 1B shape with random weights in bfloat16, on a CPU SmolLM2-135M in float32: time
and peak memory, over all rows and over a sample of 2,048. `python -m research.benchmarks.lengths`
writes `results/lengths-gpu.json` or `results/lengths-cpu.json`, length by length; `--lengths`
measures some of them anew. It also writes what the machine allows (`limits`): the rate of a large
matrix product and of a large copy, measured before the lengths, on a CPU with the same two threads.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from headcount.models import quiet_arguments
from headcount.models.loading import load
from headcount.models.subject import Subject
from headcount.records import provenance
from headcount.text.batch import Batch, Side
from research.benchmarks.interleave import interleaved, peak_mib, ratio, waited
from research.benchmarks.survey import surveyed

RESULTS = Path(__file__).parent / "results"
LENGTHS = {
    "cuda": (128, 512, 2_048, 8_192, 32_768, 131_072),
    "cpu": (128, 512, 2_048, 4_096, 8_192),
}
SAMPLE = 2_048
#: The most that a survey may cost against the plain forward, by way.
AIMS: dict[tuple[str, int], dict[str, float]] = {
    ("cuda", 8_192): {"all rows": 1.35},
    ("cuda", 32_768): {"all rows": 1.6, "2048 rows": 1.05},
    ("cuda", 131_072): {"all rows": 2.0, "2048 rows": 1.05},
    ("cpu", 4_096): {"all rows": 1.6},
}
#: Tokens of a survey: as many texts as that gives, but sixteen at most and one at least.
TOKENS = 131_072
#: The side of the matrices and the bytes of the copy that limits are measured by: products large
#: enough for full rate, and copies much larger than any cache.
SIDE, COPIED = {"cuda": 8_192, "cpu": 4_096}, {"cuda": 2**33, "cpu": 2**30}


def llama_1b(device: str, vocabulary: int = 32_000) -> Subject:
    """Random weights in the shape of Llama 3.2 1B, without the layer that predicts tokens."""
    from transformers import LlamaConfig, LlamaModel

    config = LlamaConfig(
        hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32,
        num_key_value_heads=8, head_dim=64, vocab_size=vocabulary, max_position_embeddings=131_072,
    )  # fmt: skip
    torch.manual_seed(0)
    with torch.device(device):
        model = LlamaModel(config).to(torch.bfloat16).eval()
    return Subject(model, None, name="Llama of 1B shape")


def texts(length: int, most: int = 16) -> list[Batch]:
    """One to so many texts of a length."""
    return [text(length, seed) for seed in range(max(1, min(most, TOKENS // length)))]


def text(length: int, seed: int) -> Batch:
    """One text of random tokens, one in ten of them punctuation."""
    noise = torch.Generator().manual_seed(seed)
    ids = torch.randint(100, 30_000, (1, length), generator=noise)
    real, none, marks = torch.ones_like(ids).bool(), torch.zeros_like(ids).bool(), ids % 10 == 0
    side = Side(ids, real, none, none, marks, marks, [[]])
    inputs = {"input_ids": ids, "attention_mask": real.long()}
    return Batch(inputs, {"target": side}, [0], [0])


def plain(subject: Subject, batches: list[Batch]) -> None:
    """The forward passes alone: without a cache, and without logits that a survey has none of."""
    quiet = quiet_arguments(subject.inner)
    for batch in batches:
        inputs = {name: part.to(subject.device) for name, part in batch.inputs.items()}
        with torch.no_grad():
            subject.inner(**inputs, **quiet)


def peak_gib(work: Any, device: str) -> float:
    """The most memory that a call took, on the device; on a CPU, of this process so far."""
    if device == "cpu":
        work()
        return peak_mib() / 1024
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    work()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() / 2**30


def measured(subject: Subject, length: int, device: str, rounds: int, most: int) -> dict[str, Any]:
    """One length: every way in turns."""
    batches = texts(length, most)
    ways: dict[str, Any] = {
        "plain": lambda: plain(subject, batches),
        "all rows": lambda: surveyed(subject, batches),
    }
    if length > SAMPLE:
        ways[f"{SAMPLE} rows"] = lambda: surveyed(subject, batches, SAMPLE)
    if device == "cuda":
        ways = {name: waited(work) for name, work in ways.items()}
    seconds = interleaved(ways, rounds, warm_up=1) if rounds else {}
    row: dict[str, Any] = {
        "what": f"{subject.name}, {len(batches)} x {length:,} tokens",
        "length": length,
        "texts": len(batches),
        "milliseconds": {
            name: round(1e3 * statistics.median(times), 2) for name, times in seconds.items()
        },
        "ratio": {name: ratio(seconds, name, "plain") for name in seconds if name != "plain"},
        "paths": dict(surveyed(subject, batches)),
    }
    if seconds and (device, length) in AIMS:
        row["aim"] = AIMS[device, length]
    if device == "cuda":
        row["peak_gib"] = {name: round(peak_gib(work, device), 3) for name, work in ways.items()}
    return row


def limits(device: str, dtype: torch.dtype, rounds: int = 15) -> dict[str, Any]:
    """What a machine allows in a dtype, on a CPU with these threads: operations, bytes a second.

    The fastest round of each, since a limit is what the machine can do. A copy reads every byte
    once and writes it once, and both count.
    """
    noise, side = torch.Generator(device).manual_seed(0), SIDE[device]
    on = {"device": device, "dtype": dtype}
    left, right = (torch.randn(side, side, generator=noise, **on) for _ in range(2))
    product, source = torch.empty(side, side, **on), torch.ones(COPIED[device] // 4, device=device)
    target = torch.empty_like(source)
    ways: dict[str, Any] = {
        "product": lambda: torch.mm(left, right, out=product),
        "copy": lambda: target.copy_(source),
    }
    if device == "cuda":
        ways = {name: waited(work) for name, work in ways.items()}
    seconds = interleaved(ways, rounds)
    threads = "" if device == "cuda" else f", {torch.get_num_threads()} threads"
    return {
        "what": f"product of {side} x {side} in {str(dtype).removeprefix('torch.')}, copy of "
        f"{COPIED[device] >> 20} MiB{threads}, the fastest of {rounds} rounds",
        "flops_per_s": round(2 * side**3 / min(seconds["product"])),
        "bytes_per_s": round(2 * COPIED[device] / min(seconds["copy"])),
    }


def shape_of(subject: Subject) -> dict[str, int]:
    """What the operations and bytes of a forward follow from, for a decoder of one kind of layer.

    Weights that multiply every token, those that make the logits of the last one alone, layers,
    heads, their width together, and the bytes of a number.
    """
    model = subject.inner
    linear = [one for one in model.modules() if isinstance(one, torch.nn.Linear)]
    last = model.get_output_embeddings()
    sites = subject.anatomy.sites
    return {
        "weights": sum(one.weight.numel() for one in linear if one is not last),
        "last_token": 0 if last is None else last.weight.numel(),
        "layers": len(sites),
        "heads": sites[0].heads,
        "width": sites[0].heads * sites[0].head_dim,
        "bytes": subject.dtype.itemsize,
    }


def _alone(length: int, way: str) -> float:
    """Peak memory of one way on a CPU, in a process of its own."""
    command = [
        sys.executable,
        "-m",
        "research.benchmarks.lengths",
        "--alone",
        way,
        "--lengths",
        str(length),
    ]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(found.stdout.splitlines()[-1])


def subject_on(device: str) -> Subject:
    """The model that is measured on a device."""
    if device == "cuda":
        return llama_1b(device)
    return load("smollm2", device="cpu", dtype="float32")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lengths", type=lambda text: [int(part) for part in text.split(",")])
    parser.add_argument("--rounds", type=int, default=5, help="none: memory alone")
    parser.add_argument("--texts", type=int, default=16, help="at most so many of each length")
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        torch.set_num_threads(2)
    subject = subject_on(device)
    if given.alone:
        batches = texts(given.lengths[0])[:1]
        way = plain if given.alone == "plain" else surveyed
        print(peak_gib(lambda: way(subject, batches), device))
        return
    name = "gpu" if device == "cuda" else "cpu"
    path, about = RESULTS / f"lengths-{name}.json", provenance.collect()
    found = {row["length"]: row for row in _kept(path)}
    allowed = {
        "limits": limits(device, subject.dtype) | {"time": about["time"]},
        "shape": shape_of(subject),
    }
    print(json.dumps(allowed), flush=True)
    for length in given.lengths or LENGTHS[device]:
        rounds = given.rounds if length <= 32_768 else 3
        row = measured(subject, length, device, rounds, given.texts)
        if device == "cpu":
            row["peak_gib"] = {way: round(_alone(length, way), 3) for way in ("plain", "all rows")}
        command = f"python -m research.benchmarks.lengths --lengths {length} --rounds {rounds}"
        found[length] = row | {"time": about["time"], "command": f"{command} --texts {given.texts}"}
        print(json.dumps(row), flush=True)
        result = {
            "what": f"{subject.name}, {subject.model.dtype}, all default columns",
            "device": torch.cuda.get_device_name() if device == "cuda" else "2 CPU threads",
            **allowed,
            "lengths": [found[one] for one in sorted(found)],
            "provenance": about | {"command": "python -m research.benchmarks.lengths"},
        }
        path.write_text(json.dumps(result, indent=2) + "\n")


def _kept(path: Path) -> list[dict[str, Any]]:
    """Rows of lengths that were measured before; each says when."""
    if not path.exists():
        return []
    kept = json.loads(path.read_text())
    older = kept["provenance"]["time"]
    return [{"time": older} | row for row in kept["lengths"]]


if __name__ == "__main__":
    main()
