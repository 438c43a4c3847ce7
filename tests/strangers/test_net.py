"""Whatever stands where a file of headcount was: nothing of it is run, nothing outside is touched.

Every callable of numpy, collections and headcount through every reader, a sample of them here;
`HEADCOUNT_NET=all` takes all of them, in each container in turn, and `python tests/strangers` every
file of every command.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from strangers.pickles import callables, naming

import headcount as hc
from headcount.errors import HeadcountError
from headcount.records import Journal, Run
from headcount.rooms.exhibits import read_exhibits
from headcount.rooms.gates.training import Checkpoint
from headcount.rooms.probing import Probe
from headcount.surveys import shards

EACH = 1 if os.environ.get("HEADCOUNT_NET") == "all" else 120
heard: list[str] = []


def _run(folder: Path, data: bytes) -> Any:
    for name in ("run.json", "heads.parquet", "pairs.npz"):
        (folder / name).write_bytes(data)
    return Run.open(folder, create=False).record


def _table(folder: Path, data: bytes) -> Any:
    (folder / "run.json").write_text(json.dumps({"schema": 1, "files": []}))
    for name in ("heads.parquet", "curve.parquet", "pairs.npz"):
        (folder / name).write_bytes(data)
    run = Run.open(folder, create=False)
    for read in (run.read_table, lambda: run.read_frame("curve"), lambda: run.read_arrays("pairs")):
        with pytest.raises(HeadcountError):
            read()
    return run.read_table()


def _journal(folder: Path, data: bytes) -> Any:
    (folder / "journal.jsonl").write_bytes(data)
    return Journal.open(folder / "journal.jsonl", {})


def _exhibits(folder: Path, data: bytes) -> Any:
    (folder / "exhibits").mkdir(exist_ok=True)
    (folder / "exhibits" / "one.npz").write_bytes(data)
    entry = {"id": "one", "title": "", "texts": {}, "sides": {}, "own_text": False}
    index = {"schema": 1, "exhibits": [entry]}
    (folder / "exhibits" / "index.json").write_text(json.dumps(index))
    return read_exhibits(folder)


def _shard(folder: Path, data: bytes) -> Any:
    with pytest.raises(shards._DAMAGE):
        shards.state_from(data, {})
    raise HeadcountError("refused")


def _training(folder: Path, data: bytes) -> Any:
    (folder / "training.safetensors").write_bytes(data)
    return Checkpoint(folder, {}).read()


def _probe(folder: Path, data: bytes) -> Any:
    for name in ("probe.json", "probe.safetensors"):
        (folder / name).write_bytes(data)
    return Probe.load(folder)


def _model(folder: Path, data: bytes) -> Any:
    for name in ("config.json", "headcount.json", "model.safetensors", "tokenizer.json"):
        (folder / name).write_bytes(data)
    return hc.load(folder, device="cpu")


READERS: list[Callable[[Path, bytes], Any]] = [
    *(_run, _table, _journal, _exhibits, _shard, _training, _probe, _model)
]


def _listen(event: str, values: tuple[Any, ...]) -> None:
    if event == "pickle.find_class":
        heard.append(".".join(map(str, values)))


@pytest.fixture(scope="module")
def names() -> list[str]:
    """What a pickle may name; from here on every name that one asks for is heard."""
    sys.addaudithook(_listen)
    found = [
        name for package in ("numpy", "collections", "headcount") for name in callables(package)
    ]
    assert len(found) > 5_000
    return found[::EACH]


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
def test_no_name_of_a_pickle_is_looked_up(
    read: Callable[[Path, bytes], Any], names: list[str], tmp_path: Path
) -> None:
    heard.clear()
    for place, name in enumerate(names if read is not _model else names[::10]):
        kinds = list(naming(name).items())
        for kind, data in kinds if EACH > 1 else [kinds[place % len(kinds)]]:
            folder = tmp_path / "run"
            folder.mkdir()
            with pytest.raises(HeadcountError) as caught:
                read(folder, data)
            assert "\n" not in str(caught.value), (name, kind)
            shutil.rmtree(folder)
    assert heard == []


@pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)
def test_files_of_a_run_replaced() -> None:
    words = [sys.executable, Path(__file__).parent, "--only", "score", "--each", "2"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert "code run 0, canary touched 0" in done.stdout
