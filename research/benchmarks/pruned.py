"""A model with half of its heads removed against the whole one, in turns (Michel, table 4).

`python -m research.benchmarks.pruned` times MiniLM and a BERT-base shape of random weights on the
CPU and writes `results/pruned.json`. With `--device cuda` it is the BERT-base shape in bfloat16 and
float32, as it is, recorded as CUDA graphs and compiled, both sides alike, in
`results/pruned-gpu.json`. The FLOP limit stands beside every gain, and a gain that is certainly
beyond it raises: something other than heads was saved. The interval is that of the median over
pairs.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from transformers import BertConfig, BertModel

from headcount.models.loading import load
from headcount.models.subject import Subject
from headcount.pruning.remove import prune
from headcount.records import provenance
from headcount.rooms.bench.speed import Speed, Way, even_heads, latency

RESULTS = Path(__file__).parent / "results"
LENGTH, PAIRS, THREADS = 128, 15, 2


def bert_base(device: str, dtype: torch.dtype) -> Subject:
    """BERT-base's shape; what the weights are costs no time."""
    torch.manual_seed(0)
    return Subject(BertModel(BertConfig()).eval().to(device, dtype), None, name="BERT-base shape")


def measured(whole: Subject, batches: tuple[int, ...], way: Way, aim: Any, pairs: int) -> list[Any]:
    """One entry a batch size, as `headcount bench` reads them."""
    small, found = prune(whole, even_heads(whole, 0.5)), []
    for batch in batches:
        report = latency(
            whole,
            small,
            batches=(batch,),
            lengths=(LENGTH,),
            pairs=pairs,
            way=way,
            parts=way == "plain",
        )
        print(report, flush=True)
        found += [_entry(whole, speed, report.about, aim) for speed in report.speeds]
    return found


def _entry(whole: Subject, speed: Speed, about: dict[str, Any], aim: Any) -> dict[str, Any]:
    """Ratios are times, whole to pruned: 1.15 is 15% more examples a second."""
    if speed.low > speed.limit:
        raise RuntimeError(
            f"{whole.name}, batch {speed.batch}: a gain of {speed.gain:.1%} (at least "
            f"{speed.low:.1%}) is beyond the {speed.limit:.1%} that operations allow, so the whole "
            "model ran by a slower kernel than it need; the figure says nothing of the heads."
        )
    where = ", ".join(str(value) for value in about.values() if value)
    return {
        "what": f"{whole.name}, half the heads, batch {speed.batch}, {LENGTH} tokens, {where}",
        "ratio": {
            "median": round(1 + speed.gain, 4),
            "low": round(1 + speed.low, 4),
            "high": round(1 + speed.high, 4),
        },
        "aim": aim if not callable(aim) else round(aim(speed), 3),
        "more": "better",
        **speed.to_json(),
    }


def on_cpu(pairs: int = PAIRS, threads: int = THREADS) -> dict[str, Any]:
    """Aim: 14% more examples at batch 16 and 64."""
    torch.set_num_threads(threads)
    minilm = load("minilm", device="cpu", dtype="float32")
    return {
        "MiniLM": measured(minilm, (16, 64), "plain", 1.14, pairs),
        "BERT-base": measured(bert_base("cpu", torch.float32), (16,), "plain", 1.14, pairs),
    }


#: Ways by number type on a GPU: float32 keeps it busy by itself.
WAYS: dict[torch.dtype, tuple[Way, ...]] = {
    torch.bfloat16: ("plain", "graph", "compile"),
    torch.float32: ("plain",),
}


def on_gpu(pairs: int = PAIRS, only: str | None = None) -> dict[str, Any]:
    """Aim: 0.7 of the FLOP gain at batch 64 and 256, both sides recorded or compiled."""
    found: dict[str, Any] = {}
    for dtype, ways in WAYS.items():
        for way in ways:
            name = f"{str(dtype).removeprefix('torch.')} {way}"
            if only in (None, name):
                whole = bert_base("cuda", dtype)
                found[name] = measured(whole, (64, 256), way, _most_of_the_limit, pairs)
    return found


def _most_of_the_limit(speed: Speed) -> float:
    return 1 + 0.7 * speed.limit


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="research.benchmarks.pruned", description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--only", help="measure one row anew: bfloat16 compile")
    parser.add_argument("--threads", type=int, default=THREADS)
    given = parser.parse_args(arguments)
    on_device = given.device != "cpu"
    found = on_gpu(given.pairs, given.only) if on_device else on_cpu(given.pairs, given.threads)
    told = {"machine": torch.cuda.get_device_name()} if on_device else {}
    for entries in found.values():
        for entry in entries:
            entry["time"] = provenance.collect()["time"]
    command = "python -m research.benchmarks.pruned" + (" --device cuda" if on_device else "")
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / ("pruned-gpu.json" if on_device else "pruned.json")
    about = provenance.collect() | {"command": command}
    if given.only and path.exists():
        found = json.loads(path.read_text()) | found
    path.write_text(json.dumps({**told, **found, "provenance": about}, indent=2) + "\n")


if __name__ == "__main__":
    main()
