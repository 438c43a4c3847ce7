"""Every verb that takes an engine, on a Ray cluster of two nodes in which something is killed.

    python tests/chaos --each 2 --json counts.json

A trial is one command with one kill, at a random moment after the first worker has begun: of a
worker, of the second node with all that is on it, or of the driver. After a worker or a node the
command must go on by itself; after the driver the same command is given again, with another number
of workers. What it wrote is compared with an undisturbed run in one process: the same files, whole
numbers and words the same, figures to 1e-6.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))

from kills.commands import COMMANDS, make_inputs  # noqa: E402  found beside this script
from kills.harness import asked_for, write_json  # noqa: E402

NODE: dict[str, Any] = {"num_cpus": 2, "object_store_memory": 100 << 20}
KINDS = ("worker", "node", "driver")
SEED = 0

ATLAS = """
[models]
one = "encoder"
other = {pruned_from = "classes", drop_share = 0.5}
[corpora]
texts = {text = "a.txt"}
[tasks]
classes = "classification:dev.tsv,metric=loss"
"""
WORK: dict[str, list[str]] = {
    **{name: words for name, words in COMMANDS.items() if name != "compare"},
    "atlas": ["atlas", "atlas.toml", "-o", "atlas", "--step", "50"],
}
#: The command line with shards so small that many are under way.
DRIVER = f"""
import sys
from headcount.cli.main import app
from headcount.surveys import shards
sys.path.insert(0, {str(TESTS)!r})
from kills.commands import steady_times
steady_times()
shards.SHARD_ITEMS = 2
app(prog_name="headcount")
"""


def main() -> int:
    """All trials; 1 where a command did not go on, or wrote something else."""
    asked = asked_for(__doc__ or "", WORK, kinds={"default": ",".join(KINDS)})
    kinds = asked.kinds.split(",")
    if unknown := set(kinds) - set(KINDS):
        raise SystemExit(f"There is no kind {min(unknown)}; kinds are {', '.join(KINDS)}.")
    found = chaos(asked.names, kinds, asked.each or 2, asked.json)
    print(json.dumps(found))
    return int(any(row["held"] < row["tried"] for row in found["rows"]))


def chaos(names: list[str], kinds: list[str], each: int, out: Path | None) -> dict[str, Any]:
    """Counts by verb and kind of kill: how many were tried, and how many changed nothing."""
    from ray.cluster_utils import Cluster

    drawn, began = random.Random(SEED), time.monotonic()
    found: dict[str, Any] = {"seed": SEED, "rows": []}
    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    nodes = [cluster.add_node(**NODE)]
    try:
        with tempfile.TemporaryDirectory() as scratch:
            inputs = Path(scratch, "inputs")
            inputs.mkdir()
            make_inputs(inputs)
            (inputs / "atlas.toml").write_text(ATLAS)
            for name in names:
                whole = _folder(scratch, inputs)
                _ended(whole, _begun(whole, WORK[name]))
                for kind in kinds:
                    said = [
                        _trial(name, kind, whole, _folder(scratch, inputs), cluster, nodes, drawn)
                        for _ in range(each)
                    ]
                    wrong = [one for one in said if one]
                    row = {"verb": name, "killed": kind, "tried": each, "held": each - len(wrong)}
                    found["rows"].append(row | {"wrong": wrong})
                    print(row, *wrong, file=sys.stderr, flush=True)
                    found["seconds"] = round(time.monotonic() - began)
                    write_json(out, found)
    finally:
        cluster.shutdown()
    return found


def _folder(scratch: str, inputs: Path) -> Path:
    folder = Path(tempfile.mkdtemp(dir=scratch)) / "work"
    shutil.copytree(inputs, folder)
    return folder


def _trial(
    name: str,
    kind: str,
    whole: Path,
    folder: Path,
    cluster: Any,
    nodes: list[Any],
    drawn: random.Random,
) -> str:
    """What was wrong after one kill; empty where nothing was."""
    killed = False
    for _ in range(5):  # a command may have ended before its kill
        driver = _begun(folder, [*WORK[name], *_engine(cluster, drawn)])
        while driver.poll() is None and not _workers(cluster, nodes):
            time.sleep(0.1)
        time.sleep(drawn.uniform(0, 6))
        if driver.poll() is None:
            killed = _kill(kind, driver, cluster, nodes, drawn)
        if killed:
            break
        driver.wait()
        shutil.rmtree(folder)
        shutil.copytree(whole.parent.parent / "inputs", folder)
    if not killed:
        return f"{name} ended before any {kind} could be killed"
    if kind == "driver":
        driver = _begun(folder, [*WORK[name], *_engine(cluster, drawn)])
    if wrong := _ended(folder, driver):
        return wrong
    return _difference(whole, folder)


def _engine(cluster: Any, drawn: random.Random) -> list[str]:
    return ["--engine", "ray", "--address", cluster.address, "--workers", drawn.choice("123")]


def _begun(folder: Path, words: list[str]) -> subprocess.Popen[bytes]:
    always = ["--device", "cpu", *([] if words[0] == "atlas" else ["--seed", "0"])]
    with (folder.parent / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-c", DRIVER, *words, *always], cwd=folder, stdout=log, stderr=log
        )


def _ended(folder: Path, driver: subprocess.Popen[bytes]) -> str:
    """Wait for a command; the end of what it said where it failed."""
    if driver.wait(timeout=600) == 0:
        return ""
    return f"exit {driver.returncode}: {(folder.parent / 'log').read_text()[-400:]}"


def _kill(kind: str, driver: Any, cluster: Any, nodes: list[Any], drawn: random.Random) -> bool:
    """Kill something; False where there is none."""
    if kind == "driver":
        driver.send_signal(signal.SIGKILL)
        driver.wait()
    elif kind == "node":
        cluster.remove_node(nodes.pop(), allow_graceful=False)
        nodes.append(cluster.add_node(**NODE))
    elif workers := _workers(cluster, nodes):
        os.kill(drawn.choice(workers), signal.SIGKILL)
    else:
        return False
    return True


def _workers(cluster: Any, nodes: list[Any]) -> list[int]:
    """The processes of this cluster's actors."""
    import psutil

    found = []
    for node in [cluster.head_node, *nodes]:
        raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
        for child in raylet.children(recursive=True):
            try:
                if "ray::Actor" in " ".join(child.cmdline()):
                    found.append(child.pid)
            except psutil.Error:
                continue
    return found


# --- What was written ---------------------------------------------------------------------------


def _difference(whole: Path, folder: Path) -> str:
    """The first file in which two folders differ; empty where none does."""
    import pandas as pd

    files = [
        {str(one.relative_to(place)) for one in place.rglob("*") if one.is_file()}
        for place in (whole, folder)
    ]
    if files[0] != files[1]:
        return f"files: {sorted(files[0] ^ files[1])[:5]}"
    for name in sorted(files[0]):
        if name.endswith(".parquet"):
            one, other = (pd.read_parquet(place / name) for place in (whole, folder))
            try:
                pd.testing.assert_frame_equal(one, other, atol=1e-6, rtol=1e-6)
            except AssertionError as error:
                return f"{name}: {' '.join(str(error).split())[:200]}"
        elif name.endswith("config.json") and _heads(whole / name) != _heads(folder / name):
            return f"{name}: other heads are left"
    return ""


def _heads(config: Path) -> Any:
    return json.loads(config.read_text()).get("headcount")


if __name__ == "__main__":
    sys.exit(main())
