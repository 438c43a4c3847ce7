"""One and two workers on Ray against this process: the same survey, and the same ablation.

    python -m research.benchmarks.scaling [--tiny] [--json FILE]

Writes research/benchmarks/results/scaling.json, and its table into
docs/how-to/scale-arithmetic.md. Workers are started and have the model before the clock runs, as
on a cluster that is up; their start is a figure of its own. One thread each. Numbers must be the
same.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import tempfile
import time
from pathlib import Path
from typing import Any

import headcount as hc
from headcount.bundle import sample
from headcount.rooms.ray.engine import RayEngine
from headcount.surveys import shards
from headcount.surveys.shards import ShardWork
from headcount.text import read_corpus

#: Of the files that are read.
LINES = 50_000
RESULTS = Path(__file__).parent / "results" / "scaling.json"
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "scale-arithmetic.md"
#: Between these the page has what was measured.
MARKS = ("<!-- scaling: research/benchmarks/scaling.py -->", "<!-- end of scaling -->")


def told(found: dict[str, Any] | None) -> str:
    """What was measured, for the page."""
    if found is None:
        return "**Not measured yet.**"
    machine, sizes = found["machine"], found["sizes"]
    lines = [
        f"On {machine['cores']} cores with a load of {machine['load'][0]} before, one thread each, "
        f"Ray {machine['ray']}; seconds, workers started and with the model before.",
        "",
        "| work | this process | 1 worker | 2 workers | 2 workers against 1 | largest difference |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name, rows in found["work"].items():
        here, one, two = (rows[key]["seconds"] for key in ("0", "1", "2"))
        gap = max(row["largest_difference"] for row in rows.values())
        cells = [f"{name}: {sizes[name]}", here, one, two, f"{one / two:.2f} times", f"{gap:.1g}"]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    driver = found["driver"]
    speeds = ", ".join(f"{v} MB/s ({k})" for k, v in driver["reading_mb_a_second"].items())
    shard = driver["bytes_of_a_shard"]
    return "\n".join(
        [
            *lines,
            "",
            f"The driver reads, hashes and cuts {speeds}. A shard of {shard['heads']} heads comes "
            f"to {shard['bytes']:,} bytes. Ray starts in {found['start_of_ray']} s.",
        ]
    )


def put_into_page(found: dict[str, Any], page: Path = PAGE) -> None:
    """Replace what stands between the marks."""
    text = page.read_text(encoding="utf8")
    before, _, rest = text.partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    middle = f"{MARKS[0]}\n{told(found)}\n{MARKS[1]}"
    page.write_text(before + middle + after, encoding="utf8")


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


def _shard(subject: hc.Subject, texts: Any) -> dict[str, int]:
    """Bytes that a shard of the default survey comes to, whatever its size."""
    with tempfile.TemporaryDirectory() as folder:
        hc.survey(subject, texts[:32], run=ShardWork(folder=folder))
        (file,) = Path(folder).rglob("shard-0.pt")
        return {"heads": len(subject.heads), "bytes": file.stat().st_size}


def main() -> None:
    import ray

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tiny", action="store_true", help="only to see that it runs: no page")
    parser.add_argument("--json", type=Path, default=RESULTS)
    asked = parser.parse_args()
    load = [round(one, 2) for one in os.getloadavg()]
    shards.SHARD_ITEMS = 32  # the sample is small
    translator = hc.load("translator", device="cpu")
    subject = translator if asked.tiny else hc.load("minilm", device="cpu")
    texts = sample.pairs()[:8] if asked.tiny else sample.sentences()
    pairs = sample.pairs()[: 2 if asked.tiny else 8]
    task = hc.tasks.translation(pairs, metric="loss")
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
    found["driver"] = {
        "reading_mb_a_second": _reading(),
        "bytes_of_a_shard": _shard(subject, texts),
    }
    found["machine"] = {
        "cores": os.cpu_count(),
        "load": load,
        "threads": os.environ.get("OMP_NUM_THREADS"),
        "python": platform.python_version(),
        "ray": ray.__version__,
    }
    model = "the translator" if asked.tiny else "MiniLM"
    found["sizes"] = {
        "survey": f"{len(texts)} texts, {model}",
        "ablation": f"144 heads of the translator, {len(pairs)} pairs",
    }
    asked.json.write_text(json.dumps(found, indent=1) + "\n")
    if not asked.tiny:
        put_into_page(found)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
