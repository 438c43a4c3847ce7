"""A survey against the plain forward, by length of text, and what the GPU could do at most."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from headcount.report.plot.figure import SERIES, finish, key_below, panels, paper

__all__ = ["draw"]

BENCHMARKS = Path(__file__).parents[2] / "benchmarks" / "results"
#: Dense bfloat16 operations a second of an H200, as its maker states them.
PEAK = 989e12
#: Of the Llama of 1B shape in `benchmarks/lengths.py`: weights that multiply, layers, width.
WEIGHTS, LAYERS, WIDTH = 973e6, 16, 2048


def draw(results: Path, out: Path) -> None:
    """Ratios on both devices, and milliseconds a text on the GPU; numbers of the benchmarks."""
    told = {
        device: json.loads(path.read_text())["lengths"]
        for device in ("gpu", "cpu")
        if (path := BENCHMARKS / f"lengths-{device}.json").exists()
    }
    with paper():
        figure, ((ratios, times),) = panels(1, 2, width="page", height=2.4)
        series = iter(SERIES)
        for device, rows in told.items():
            for way in ("all rows", "2048 rows"):
                points = [(row["length"], row["ratio"][way]) for row in rows if way in row["ratio"]]
                if not points:
                    continue
                colour, marker = next(series)
                ratios.plot(
                    [length for length, _ in points],
                    [found["median"] for _, found in points],
                    color=colour, marker=marker, label=f"{device.upper()}, {_named(way)}",
                )  # fmt: skip
        ratios.axhline(1, color="0.5", linewidth=0.8)
        ratios.set_title("survey / plain forward")
        ratios.set_ylim(bottom=0.9)
        _by_length(ratios, [row["length"] for row in told["gpu"]])
        _times(times, told["gpu"])
        key_below(figure, ratios)
        finish(figure, out / "speed-lengths.svg")


def _times(panel: Any, rows: list[dict[str, Any]]) -> None:
    """Milliseconds a text, and the time that the operations of the forward take at full rate."""
    lengths = [row["length"] for row in rows]
    for (colour, marker), way in zip(SERIES[2:], ("plain", "all rows"), strict=False):
        found = [row["milliseconds"][way] / row["texts"] for row in rows]
        panel.plot(lengths, found, color=colour, marker=marker)
        panel.annotate(
            way if way == "plain" else "survey", (lengths[0], found[0]),
            xytext=(0, 6 if way != "plain" else -12), textcoords="offset points", ha="left",
        )  # fmt: skip
    least = [1e3 * _operations(length) / PEAK for length in lengths]
    panel.plot(lengths, least, color="0.5", linestyle="--", linewidth=0.8)
    panel.annotate(
        "operations at full rate", (lengths[1], least[1]), xytext=(10, -4),
        textcoords="offset points", ha="left", color="0.4",
    )  # fmt: skip
    panel.set_yscale("log")
    panel.set_title("GPU, milliseconds a text")
    _by_length(panel, lengths)


def _by_length(panel: Any, lengths: list[int]) -> None:
    panel.set_xscale("log", base=2)
    panel.set_xticks(lengths, [f"{n // 1024}k" if n >= 1024 else str(n) for n in lengths])
    panel.set_xlabel("tokens of a text")


def _operations(tokens: int) -> float:
    """Of one forward: every weight once a token, and causal attention."""
    return 2 * WEIGHTS * tokens + 2 * LAYERS * WIDTH * tokens**2


def _named(way: str) -> str:
    return way.replace("2048", "2,048")
