"""A survey and a sweep on a Ray cluster of two nodes in which things are killed at random.

    python tests/chaos --kills 20 --json counts.json

Workers, the second node and the driver are killed; work goes on each time, by itself or when the
driver is begun again with another number of workers. When both are done their tables are compared
with those of an undisturbed run in one process: counts bit for bit, sums to 1e-6. Where the work
ends before all kills were made, another round begins.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent.parent
NODE: dict[str, Any] = {"num_cpus": 2, "object_store_memory": 100 << 20}
SEED = 0

#: What a driver runs: a survey, then an ablation of every head, both journaled.
DRIVER = """
import sys
sys.path.insert(0, {tests!r})
import headcount as hc
from headcount.surveys import shards
from chaos_work import score, survey
shards.SHARD_ITEMS = 8
engine = hc.RayEngine({address!r}, workers={workers})
survey({folder!r}, engine).save({folder!r} + "/survey")
score({folder!r}, engine).save({folder!r} + "/score")
"""


def main() -> int:
    """Kill until all kills are made and the work is done; 1 where a table differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--pause", type=float, default=10.0, help="seconds between kills, at least")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    found = chaos(asked.kills, asked.pause)
    print(json.dumps(found))
    if asked.json is not None:
        asked.json.write_text(json.dumps(found, indent=1) + "\n")
    return int(found["tables_that_differ"] > 0)


def chaos(kills: int, pause: float) -> dict[str, Any]:
    """Counts of what was killed, and of the tables that came out the same."""
    from ray.cluster_utils import Cluster

    drawn, made = random.Random(SEED), Counter[str]()
    begun, rounds, differ, same = time.monotonic(), 0, 0, 0
    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    try:
        nodes = [cluster.add_node(**NODE)]
        with tempfile.TemporaryDirectory() as folder:
            while made.total() < kills:
                place = Path(folder, f"round-{rounds}")
                place.mkdir()
                _round(cluster, nodes, place, drawn, made, kills, pause)
                rounds += 1
                for name in ("survey", "score"):
                    equal = _is_same(name, place)
                    same, differ = same + equal, differ + (not equal)
    finally:
        cluster.shutdown()
    return {
        "seed": SEED,
        "kills": dict(sorted(made.items())),
        "rounds": rounds,
        "tables_that_are_the_same": same,
        "tables_that_differ": differ,
        "seconds": round(time.monotonic() - begun, 1),
    }


def _round(
    cluster: Any,
    nodes: list[Any],
    place: Path,
    drawn: random.Random,
    made: Counter[str],
    kills: int,
    pause: float,
) -> None:
    """One survey and one sweep, from the first start of the driver to its end."""
    driver = _driver(cluster, place, drawn)
    next_kill = time.monotonic() + pause + drawn.random() * pause
    while driver.poll() is None or driver.returncode:
        if driver.poll() is not None:  # a driver that fails by itself is no part of the game
            raise RuntimeError((place / "driver.log").read_text()[-3000:])
        time.sleep(0.2)
        if made.total() >= kills or time.monotonic() < next_kill:
            continue
        kind = drawn.choice(["worker", "worker", "node", "driver"])
        if kind == "worker" and not _kill_worker(nodes, cluster, drawn):
            continue
        if kind == "node":
            cluster.remove_node(nodes.pop(), allow_graceful=False)
            nodes.append(cluster.add_node(**NODE))
        if kind == "driver":
            driver.send_signal(signal.SIGKILL)
            driver.wait()
            driver = _driver(cluster, place, drawn)
        made[kind] += 1
        next_kill = time.monotonic() + pause + drawn.random() * pause


def _driver(cluster: Any, place: Path, drawn: random.Random) -> subprocess.Popen[bytes]:
    code = DRIVER.format(
        tests=str(TESTS / "chaos"),
        address=cluster.address,
        workers=drawn.choice([1, 2, 3]),
        folder=str(place),
    )
    with (place / "driver.log").open("ab") as log:
        return subprocess.Popen([sys.executable, "-c", code], stdout=log, stderr=log)


def _kill_worker(nodes: list[Any], cluster: Any, drawn: random.Random) -> bool:
    """Kill one actor's process of this cluster; False where there is none yet."""
    import psutil

    ours = []
    for node in [cluster.head_node, *nodes]:
        raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
        for child in raylet.children(recursive=True):
            try:
                if "ray::Actor" in " ".join(child.cmdline()):
                    ours.append(child.pid)
            except psutil.Error:
                continue
    if not ours:
        return False
    os.kill(drawn.choice(ours), signal.SIGKILL)
    return True


def _is_same(name: str, place: Path) -> bool:
    import pandas as pd

    import headcount as hc

    sys.path.insert(0, str(TESTS / "chaos"))
    import chaos_work

    found = hc.HeadTable.load(place / name)
    with tempfile.TemporaryDirectory() as folder:
        whole = getattr(chaos_work, name)(folder, None)
        whole.save(Path(folder, "whole"))
        whole = hc.HeadTable.load(Path(folder, "whole"))
    try:
        pd.testing.assert_frame_equal(whole.frame, found.frame, atol=1e-6, rtol=0)
        for detail, frame in whole.details.items():
            other = found.details[detail]
            pd.testing.assert_frame_equal(frame, other, atol=1e-6, rtol=0)
            counts = frame.select_dtypes("integer")
            pd.testing.assert_frame_equal(counts, other[counts.columns])
    except AssertionError as error:
        print(f"{place.name} {name}: {error}", file=sys.stderr)
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
