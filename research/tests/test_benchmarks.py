"""What the speed benchmarks check by themselves, and that pages say what their JSON says."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import pytest
from pruning.test_speed import SMALL, WHOLE
from tiny import TINY
from wiring.test_fused import SMALL as TILES

from headcount.models.subject import Subject
from headcount.rooms.bench.speed import speed_of
from headcount.rooms.kernel import fused
from headcount.wiring.rows import Scores
from headcount.wiring.sighting import Asked
from research import DOCS, RESULTS, ROOT
from research.benchmarks import kernel as script
from research.benchmarks import pruned, scaling
from research.benchmarks.promises import bench_lines, read_results


@pytest.fixture
def kernel() -> Iterator[ModuleType]:
    """The kernel as Triton's interpreter runs it, with tiles that short texts fill."""
    triton = pytest.importorskip("triton", reason="Triton is for Linux on x86-64")
    if not triton.knobs.runtime.interpret:
        pytest.skip("Triton's interpreter is off where there is a GPU")
    module = importlib.import_module("headcount.rooms.kernel.kernel")
    with (
        mock.patch.multiple(module, _TILES=TILES, _EXACT_TILES=TILES),
        mock.patch.object(fused, "available", return_value=True),
    ):
        yield module


@pytest.mark.parametrize(
    "case",
    [
        ("float32", "causal", "bool", "left", True, True, True, (4, 2), 64),
        ("float16", "cross", "added", "right", False, False, False, (6, 1), 80),
    ],
)
def test_the_script_holds_the_kernel_against_a_definition_of_its_own(
    kernel: ModuleType, case: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "QUERIES", 40)
    monkeypatch.setattr(script, "KEYS", 33)
    own = script.Case(*case)
    (told,) = script.held([(own, script.differences(own, "cpu"))]).values()
    assert told["cases"] == 1
    assert told["beyond"] == []
    launched = kernel.launched

    def spoiled(scores: Scores, asked: Asked) -> dict[str, Any]:
        found = launched(scores, asked)
        return found | {"entropy": found["entropy"] + 1e-3}

    monkeypatch.setattr(kernel, "launched", spoiled)
    (told,) = script.held([(own, script.differences(own, "cpu"))]).values()
    assert [one["what"] for one in told["beyond"]] == ["entropy"]


def test_the_benchmark_refuses_a_gain_beyond_what_operations_allow() -> None:
    whole = Subject(TINY["bert"](), name="tiny")
    found = speed_of(([1.5] * 15, [1.0] * 15), (WHOLE, SMALL), None)
    with pytest.raises(RuntimeError, match=r"50\.0% .* beyond the 33\.3% that operations allow"):
        pruned._entry(whole, found, {}, 1.1)


def test_the_page_on_scale_has_what_was_measured() -> None:
    measured = scaling.RESULTS
    found = json.loads(measured.read_text(encoding="utf8")) if measured.exists() else None
    page = scaling.PAGE.read_text(encoding="utf8")
    assert f"{scaling.MARKS[0]}\n{scaling.told(found)}\n{scaling.MARKS[1]}" in page


def test_the_page_on_reliability_has_what_was_counted() -> None:
    page = (DOCS / "reliability.md").read_text(encoding="utf8")
    found = json.loads((RESULTS / "reliability.json").read_text(encoding="utf8"))
    kills, soak, fuzz = found["kills_modes"], found["soak"], found["fuzz"]
    rows: dict[str, list[Any]] = {}
    for row in kills["rows"]:
        rows.setdefault(row["command"], []).append(row)
    for command, modes in rows.items():
        counts = " | ".join(f"{one['survived']} of {one['injected']}" for one in modes)
        assert f"| {command} | {modes[0]['operations']} | {counts} |" in page
    assert sum(row["injected"] for row in kills["rows"]) == kills["injected"]
    assert f"| {kills['injected']} | {kills['survived']} reruns with the same files" in page
    assert f"`{soak['command']}` | {soak['surveys']:,} and {soak['scores']:,} |" in page
    assert f"{soak['growth']['megabytes']:.1f} MB after round 5" in page
    assert not any(value for key, value in soak["growth"].items() if key != "megabytes")
    assert f"`{fuzz['command']}` | {fuzz['tried']:,} | {fuzz['read']:,} read" in page
    assert f"{fuzz['refused']:,} refused in one sentence" in page
    assert f"{fuzz['crashes']} uncaught exception" in page
    held = {(row["command"], row["mode"]): row for row in found["kills_anytime"]["rows"]}
    for command in {command for command, _ in held}:
        modes = [held[command, mode] for mode in ("kill-anytime", "interrupt-anytime")]
        counts = " | ".join(f"{one['survived']} of {one['injected']}" for one in modes)
        assert f"| {command} | {counts} |" in page
    net = found["strangers"]["readers"]
    assert f"(all {net['callables']:,})" in page
    assert f"`{net['command']}` | {net['readings']:,} | no name looked up" in page
    for row in found["strangers"]["rows"]:
        counts = " | ".join(str(row[name]) for name in ("tried", "read", "refused", "held"))
        assert f"| {row['command']} | {counts} |" in page


@pytest.mark.parametrize(
    ("figure", "place"),
    [
        ("{:.2f} times as long as evaluating once a head", ("ablation", "ratio", "median")),
        ("relevance {:.1f} times the forward", ("relevance", "ratio", "median")),
        ("gradients {:.1f} times in bfloat16", ("gradient", 0, "ratio", "example", "median")),
        ("takes {:.1f} times the plain", ("survey", "ratio", "median")),
    ],
)
def test_the_figures_of_the_gpu_are_those_of_its_json(
    figure: str, place: tuple[str | int, ...]
) -> None:
    found = json.loads(
        (ROOT / "research" / "benchmarks" / "results" / "gpu.json").read_text(encoding="utf8")
    )
    for key in place:
        found = found[key]
    page = (ROOT / "docs" / "peers.md").read_text(encoding="utf8")
    assert figure.format(found) in " ".join(page.split())


def test_promises_are_read_from_the_results(tmp_path: Path) -> None:
    ratio = {"median": 1.2, "low": 1.1, "high": 1.3}
    one = {"what": "MiniLM", "ratio": ratio, "aim": 1.5}
    two = {"ratio": {"token": ratio}, "aim": {"token": 1.2}}
    three = {"ratio": ratio, "aim": 1.08, "over_floor": 0.99, "provenance": {"time": "now"}}
    (tmp_path / "survey.json").write_text(json.dumps(one))
    (tmp_path / "gpu.json").write_text(json.dumps({"gradient": [two], "ablation": three}))
    rows = read_results(tmp_path)
    assert [(row["work"], row["value"], row["aim"]) for row in rows] == [
        ("gpu gradient, token", 1.2, 1.2),
        ("gpu ablation", 0.99, 1.08),
        ("survey", 1.2, 1.5),
    ]
    assert "[1.1, 1.3]" in bench_lines(rows)


def test_a_promise_that_is_not_kept_is_marked() -> None:
    row = {"work": "w", "what": "", "value": 12.0, "low": None, "high": None, "aim": 10, "more": ""}
    assert "aim 10, missed" in bench_lines([row])
    assert "missed" not in bench_lines([row | {"more": "better"}])
    assert "aim at least 10, missed" in bench_lines([row | {"more": "better", "value": 9.0}])
