"""One and two workers on Ray against this process: the same survey, and the same ablation.

    python -m benchmarks.scaling

Workers are started and have the model before the clock runs, as on a cluster that is up; their
start is told apart. One thread each. Numbers must be the same.
"""

from __future__ import annotations

import gzip
import json
import os
import platform
import tempfile
import time
from pathlib import Path
from typing import Any

import ray

import headcount as hc
from headcount.bundle import sample
from headcount.records.ray_engine import RayEngine
from headcount.survey import shards
from headcount.text import read_corpus

#: Of the files that are read.
LINES = 50_000
RESULTS = Path(__file__).parent / "results" / "scaling.json"


def _reading() -> dict[str, float]:
    """Megabytes of text a second that a driver reads, hashes and cuts, by kind of file."""
    text = "A sentence that is neither long nor short, and stands here often enough to count.\n"
    speeds = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("a.txt", "a.txt.gz", "a.jsonl"):
            path = Path(folder, name)
            line = json.dumps({"text": text.strip()}) + "\n" if ".jsonl" in name else text
            opener = gzip.open if name.endswith("gz") else open
            with opener(path, "wb") as file:
                file.write(line.encode() * LINES)
            begun = time.perf_counter()
            corpus = read_corpus(path)
            pieces = sum(1 for _ in shards.cut_into_shards(corpus))
            assert pieces
            speeds[name] = round(len(text) * LINES / 1e6 / (time.perf_counter() - begun), 1)
    return speeds


def _shard(subject: hc.Subject) -> dict[str, int]:
    """Bytes that a shard of the default survey comes to, whatever its size."""
    with tempfile.TemporaryDirectory() as folder:
        hc.survey(subject, sample.sentences()[:32], journal=folder)
        (file,) = Path(folder).rglob("shard-0.pt")
        return {"heads": len(subject.heads), "bytes": file.stat().st_size}


def main() -> None:
    shards.SHARD_ITEMS = 32  # the sample is small
    subject = hc.load("minilm", device="cpu")
    texts = sample.sentences()
    translator = hc.load("translator", device="cpu")
    task = hc.tasks.translation(sample.pairs()[:8], metric="loss")
    works: dict[str, Any] = {
        "survey": lambda engine: hc.survey(subject, texts, engine=engine),
        "ablation": lambda engine: hc.score(
            translator, task, by="ablation", batch_size=2, engine=engine
        ),
    }
    how = {"object_store_memory": 200 << 20, "include_dashboard": False, "log_to_driver": False}
    begun = time.perf_counter()
    ray.init(num_cpus=2, logging_level="ERROR", **how)
    found: dict[str, Any] = {"start_of_ray": round(time.perf_counter() - begun, 2), "work": {}}
    try:
        for name, work in works.items():
            rows: dict[str, Any] = {}
            whole = None
            for workers in (0, 1, 2):
                engine = RayEngine(workers=workers) if workers else None
                first = time.perf_counter()
                table = work(engine)  # also loads libraries in the workers
                second = time.perf_counter()
                work(engine)
                third = time.perf_counter()
                whole = table if whole is None else whole
                gap = float((whole.frame - table.frame).abs().max(numeric_only=True).max())
                rows[str(workers)] = {
                    "first_seconds": round(second - first, 2),
                    "seconds": round(third - second, 2),
                    "largest_difference": gap,
                }
            found["work"][name] = rows
    finally:
        ray.shutdown()
    found["driver"] = {"reading_mb_a_second": _reading(), "bytes_of_a_shard": _shard(subject)}
    found["machine"] = {
        "cores": os.cpu_count(),
        "load": [round(one, 2) for one in os.getloadavg()],
        "threads": os.environ.get("OMP_NUM_THREADS"),
        "python": platform.python_version(),
        "ray": ray.__version__,
    }
    sizes = {"survey": f"{len(texts)} sentences, MiniLM", "ablation": "144 heads, 8 pairs"}
    found["sizes"] = sizes
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
