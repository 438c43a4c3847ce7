"""Tests of `rooms/ray/engine.py` on a real cluster of two nodes, with everything killed.

What is compared is always the same work in this process: counts bit for bit, sums to 1e-6.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from subjects import save, subject_of
from tiny_subjects import classifier
from tiny_tokenizers import PAIRS
from watching import told

import headcount as hc
from headcount.errors import RunError, UsageError
from headcount.rooms.ray import engine as ray_engine
from headcount.rooms.ray.engine import RayEngine
from headcount.surveys import shards
from headcount.surveys.shards import ShardWork
from headcount.surveys.surface import Confidence
from headcount.text import read_sample

ray = pytest.importorskip("ray", reason="the engine on Ray needs ray: pip install 'headcount[ray]'")

from ray.cluster_utils import Cluster  # noqa: E402

#: Workers that are killed start anew, which takes a minute each on a machine with other work.
pytestmark = pytest.mark.timeout(900)
#: Small, for all of them share two cores.
NODE = {"num_cpus": 2, "object_store_memory": 100 << 20, "include_dashboard": False}
TEXTS = [f"The {n} cats sat on the mat and {n * 7} dogs saw {n * n} of it." for n in range(60)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two nodes on this machine, and a driver that is connected to them."""
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    made = Cluster(initialize_head=True, head_node_args=NODE)
    try:
        made.add_node(**{key: NODE[key] for key in ("num_cpus", "object_store_memory")})
        ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "SHARD_ITEMS", 6)


def assert_same(one: hc.HeadTable, other: hc.HeadTable) -> None:
    pd.testing.assert_frame_equal(one.frame, other.frame, atol=1e-6, rtol=0)
    for name, frame in one.details.items():
        pd.testing.assert_frame_equal(frame, other.details[name], atol=1e-6, rtol=0)
        counts = frame.select_dtypes("integer")
        pd.testing.assert_frame_equal(counts, other.details[name][counts.columns])


def test_same_numbers_with_any_number_of_workers(cluster: Any, tmp_path: Path) -> None:
    """Survey with roles, the three scores, the curve and the probe."""
    subject, trees = subject_of("bert", "wordpiece"), read_sample(limit=24)
    local, two = hc.survey(subject, treebank=trees), RayEngine(workers=2)
    assert_same(local, hc.survey(subject, treebank=trees, engine=two))
    task = hc.tasks.classification([(text, n % 2) for n, text in enumerate(TEXTS[:24])])
    judged = classifier()
    how: dict[str, Any] = {"by": "gradient,ablation,relevance", "batch_size": 5}
    scored = hc.score(judged, task, **how)
    for engine in (two, RayEngine(workers=1)):
        run = tmp_path / str(engine.workers)
        assert_same(scored, hc.score(judged, task, **how, engine=engine, run=run))
    plan: dict[str, Any] = {"drop_share": 0.5, "step": 25, "randoms": 1, "batch_size": 5}
    here = hc.prune_plan(judged, task, **plan)
    there = hc.prune_plan(judged, task, **plan, engine=two)
    pd.testing.assert_frame_equal(here.curve, there.curve, atol=1e-6, rtol=0)
    assert here.going == there.going
    probes = [
        hc.probe(subject, trees, epochs=2, words="own", engine=engine, run=tmp_path / "probe")
        for engine in (None, two)
    ]
    pd.testing.assert_frame_equal(*(one.results for one in probes), atol=1e-6, rtol=0)


def test_a_story_on_workers_tells_the_same(cluster: Any, tmp_path: Path) -> None:
    """Survey, patterns, scores, the own metric and the curve, all by the workers."""
    subject = classifier()
    task = hc.tasks.classification([(text, n % 2) for n, text in enumerate(TEXTS[:12])])
    two, asked = RayEngine(workers=2), list[int]()
    run = two.run

    def counted(make: Any, pieces: Any) -> Any:
        asked.append(1)
        return run(make, pieces)

    two.run = counted  # type: ignore[method-assign]
    how: dict[str, Any] = {"text": TEXTS[:12], "task": task}
    how["measuring"] = hc.StoryOptions(limit=12, batch_size=5)
    runs = []
    for name, engine in (("here", None), ("there", two)):
        page = tmp_path / f"{name}.html"
        runs.append(hc.Run.open(hc.story(subject, tmp_path / name, page, engine=engine, **how).run))
    here, there = runs
    assert_same(here.read_table(), there.read_table())
    assert here.frames == there.frames
    for name in {*here.frames} - {"bench"}:  # times are measured anew
        one, other = here.read_frame(name), there.read_frame(name)
        pd.testing.assert_frame_equal(one, other, atol=1e-6, rtol=0)
    assert here.frames.count("curve") == 1
    assert len(asked) >= 7, "survey, patterns, three scores, their order and the curve"
    assert not (there.path / "shards").exists()


class Trouble(Confidence):
    """A tally in whose sight something happens to certain items of the corpus."""

    def __init__(self, folder: Path, **items: int) -> None:
        super().__init__()
        self.folder, self.items = folder, items

    def update(self, sighting: Any) -> None:
        for what, item in self.items.items():
            if item in sighting.batch.index:
                self._befalls(what)
        super().update(sighting)

    def _befalls(self, what: str) -> None:
        if what == "raises":
            raise FloatingPointError("this one is poison")
        if what == "kills":
            os._exit(9)
        if what == "fills":
            raise OSError(errno.ENOSPC, "No space left on device")
        mark = self.folder / what
        if what.startswith("once") and not mark.exists():
            mark.touch()
            os._exit(9)


def test_workers_and_a_node_that_die_cost_nothing(cluster: Any, tmp_path: Path) -> None:
    """Two workers die of themselves, then a node is taken away with the workers on it."""
    subject = subject_of("bert", "wordpiece")
    whole = hc.survey(subject, TEXTS, tallies=[Trouble(tmp_path)])
    node = cluster.add_node(num_cpus=2, object_store_memory=NODE["object_store_memory"])
    taken = []

    def take_away(done: int, total: int, title: str) -> None:
        if done >= 18 and not taken:
            taken.append(done)
            cluster.remove_node(node, allow_graceful=False)

    troubled = Trouble(tmp_path, once=3, once_more=41)
    shards_there = ShardWork(folder=tmp_path / "shards")
    with told(take_away):
        found = hc.survey(
            subject, TEXTS, tallies=[troubled], engine=RayEngine(workers=3), run=shards_there
        )
    assert taken
    assert {file.name for file in tmp_path.iterdir()} == {"once", "once_more", "shards"}
    assert_same(whole, found)
    assert "set_aside" not in found.provenance


def test_poison_is_named_wherever_it_is_met(cluster: Any, tmp_path: Path, monkeypatch: Any) -> None:
    """One example raises, and one kills every worker that it meets."""
    monkeypatch.setattr("headcount.rooms.ray.engine.DEATHS", 1)
    monkeypatch.setattr(shards, "SHARD_ITEMS", 2)
    subject, texts = subject_of("bert", "wordpiece"), TEXTS[:6]
    sound = [text for number, text in enumerate(texts) if number not in (2, 5)]
    troubled = Trouble(tmp_path, raises=2, kills=5)
    found = hc.survey(subject, texts, tallies=[troubled], engine=RayEngine(workers=2))
    assert_same(hc.survey(subject, sound), found)
    first, second = found.provenance["remarks"]
    assert first == (
        "Item 3 of texts in hand (line 3) was set aside: FloatingPointError: this one is poison"
    )
    assert second.startswith("Item 6 of texts in hand (line 6) was set aside: its worker died (")
    assert found.provenance["set_aside"] == 2
    with pytest.raises(RunError, match="A node of the cluster has no room left on its disk"):
        hc.survey(
            subject,
            texts,
            tallies=[Trouble(tmp_path, fills=1)],
            engine=RayEngine(workers=1),
        )


class Killer:
    """A hook that ends a worker whose model reads a certain text."""

    def __init__(self, ids: list[int]) -> None:
        self.ids, self.driver = ids, os.getpid()

    def __call__(self, module: Any, args: Any, inputs: dict[str, Any]) -> None:
        rows = inputs["input_ids"].tolist()
        if os.getpid() != self.driver and any(row[: len(self.ids)] == self.ids for row in rows):
            os._exit(9)


def test_an_example_that_kills_workers_is_set_aside_by_scores(
    cluster: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    """Named and counted after its retries; the others are what they would be without it."""
    monkeypatch.setattr("headcount.rooms.ray.engine.DEATHS", 1)
    subject = classifier()
    rows = [(source, number % 2) for number, (source, _) in enumerate(PAIRS)]
    how: dict[str, Any] = {"by": "gradient,ablation", "batch_size": 4}
    without = hc.score(subject, hc.tasks.classification([*rows[:5], *rows[6:]]), **how)
    killer = Killer(subject.tokenizer(rows[5][0])["input_ids"])
    subject.model.register_forward_pre_hook(killer, with_kwargs=True)
    task, run = hc.tasks.classification(rows), tmp_path / "run"
    found = hc.score(subject, task, **how, engine=RayEngine(workers=1), run=run)
    pd.testing.assert_frame_equal(without.frame, found.frame, atol=1e-6, rtol=0)
    for name in ("gradient", "ablation"):
        about = found.origins.get(name, found.provenance)
        (told,) = [one for one in about["remarks"] if "set aside" in one]
        assert told.startswith("Example 6 ")
        assert "was set aside: its worker died (" in told
        assert about["counts"]["examples"] == len(rows) - 1


DRIVER = """
import sys
from headcount.surveys import shards
shards.SHARD_ITEMS = 6
from headcount.cli.main import run
sys.argv[0] = "headcount"
run()
"""


def test_a_driver_that_was_killed_goes_on(cluster: Any, tmp_path: Path) -> None:
    """Killed after some shards, and begun again with another number of workers."""
    model, text = save(tmp_path / "model", "bert", "wordpiece"), tmp_path / "cats.txt"
    text.write_text("\n".join(TEXTS * 8))
    line = ["survey", str(model), "--text", str(text), "--device", "cpu"]
    there = ["--engine", "ray", "--address", cluster.address, "-o", str(tmp_path / "run")]

    def begun(*words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", DRIVER, *line, *words],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    driver = begun(*there, "--workers", "2")
    kept = tmp_path / "run" / "shards"
    deadline = time.monotonic() + 120
    while len(list(kept.rglob("shard-*.safetensors"))) < 4 and time.monotonic() < deadline:
        assert driver.poll() is None, driver.communicate()
        time.sleep(0.05)
    driver.send_signal(signal.SIGKILL)
    driver.communicate()
    before = len((kept / "survey" / "surveying" / "journal.jsonl").read_text().splitlines())
    assert 4 <= before < 81, "in the middle"
    again = begun(*there, "--workers", "3")
    _, err = again.communicate(timeout=200)
    assert again.returncode == 0, err
    subject = hc.load(model, device="cpu")
    table = hc.Run.open(tmp_path / "run", create=False).read_table()
    assert_same(hc.survey(subject, text), table)
    assert not kept.exists()


def test_bad_input_of_a_cluster(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = subject_of("bert", "wordpiece")
    with pytest.raises(UsageError) as caught:
        hc.survey(subject, TEXTS, engine=RayEngine(workers=2, gpus_per_worker=1))
    assert str(caught.value) == (
        "2 workers with 1 GPUs each need 2, and the cluster has 0; ask for fewer "
        "(--engine ray,workers=N,gpus-per-worker=M)."
    )
    with pytest.raises(UsageError, match="99 workers need as many cores, and the cluster has"):
        hc.survey(subject, TEXTS, engine=RayEngine(workers=99))
    monkeypatch.setattr(ray_engine, "version", lambda: "0.0.1")
    with pytest.raises(UsageError, match=r"The node .* has headcount .*, and this process has 0"):
        hc.survey(subject, TEXTS, engine=RayEngine(workers=1))


def test_a_cluster_that_is_not_there_or_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Ray itself says is put into one sentence."""
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(UsageError, match=r"There is no Ray cluster at 127.0.0.1:1: .*refused"):
        hc.survey(subject_of("bert", "wordpiece"), TEXTS, engine=RayEngine("127.0.0.1:1"))
    monkeypatch.setattr(ray_engine, "_knock", lambda address: None)
    monkeypatch.setattr(ray, "init", lambda **_: refuse())
    said: list[Exception] = []

    def refuse() -> None:
        raise said[0]

    said[:] = [ConnectionError("Could not find any running Ray instance at 10.0.0.5:1.\nmore")]
    with pytest.raises(UsageError) as caught:
        hc.survey(subject_of("bert", "wordpiece"), TEXTS, engine=RayEngine("10.0.0.5:1"))
    assert str(caught.value) == (
        "There is no Ray cluster at 10.0.0.5:1: Could not find any running Ray instance at "
        "10.0.0.5:1; start one with `ray start --head`, or leave --address out to use this machine."
    )
    said[:] = [
        RuntimeError(
            "Version mismatch: The cluster was started with:\n    Ray: 2.1.0\n    Python: 3.9.1\n"
            "This process on node 10.0.0.5 was started with:\n    Ray: 2.60.0\n    Python: 3.11.7"
        )
    ]
    with pytest.raises(UsageError) as caught:
        hc.survey(subject_of("bert", "wordpiece"), TEXTS, engine=RayEngine("10.0.0.5:1"))
    assert str(caught.value) == (
        "The Ray cluster at 10.0.0.5:1 has other versions than this process (Ray: 2.1.0 and "
        "Python: 3.9.1 and Ray: 2.60.0 and Python: 3.11.7); use the same Python, Ray and "
        "headcount everywhere."
    )


def test_without_ray_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"needs the package ray, .*pip install 'headcount\[ray"):
        hc.survey(subject_of("bert", "wordpiece"), TEXTS, engine="ray")
