"""A survey against the plain forward, by length, sentences and heads, and the hardware's limits."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from headcount.report.plot.figure import SERIES, finish, key_below, panels, paper

__all__ = ["draw"]

BENCHMARKS = Path(__file__).parents[2] / "benchmarks" / "results"
#: Dense bfloat16 operations a second of an H200 and bytes a second of its memory, as stated.
PEAK, BANDWIDTH = 989e12, 4.8e12
#: Of the Llama of 1B shape in `benchmarks/lengths.py`: weights that multiply, layers, width, heads.
WEIGHTS, LAYERS, WIDTH, HEADS = 973e6, 16, 2048, 32
#: Bytes of a number in bfloat16.
BYTES = 2


def draw(results: Path, out: Path) -> None:
    """Ratios on both devices, milliseconds a text on the GPU; by sentences and heads on the CPU."""
    told = {
        device: json.loads(path.read_text())["lengths"]
        for device in ("gpu", "cpu")
        if (path := BENCHMARKS / f"lengths-{device}.json").exists()
    }
    sizes = json.loads((BENCHMARKS / "sizes.json").read_text())
    with paper():
        figure, ((ratios, times), (sentences, heads)) = panels(2, 2, width="page", height=2.3)
        series = iter(SERIES)
        for device, rows in told.items():
            for way in ("all rows", "2048 rows"):
                label = f"{device.upper()}, {way.replace('2048', '2,048')}"
                _line(ratios, rows, "length", way, series, label)
        ratios.set_title("survey / plain forward, by length")
        _doubling(ratios, [row["length"] for row in told["gpu"]], "tokens of a text")
        _times(times, told["gpu"])
        for way, label in (("tallies", "all columns"), ("survey", "from strings to intervals")):
            _line(sentences, sizes["sentences"], "sentences", way, series, label)
        sentences.set_title("CPU, MiniLM, by sentences of 64 tokens")
        _doubling(sentences, [row["sentences"] for row in sizes["sentences"]], "sentences")
        _line(heads, sizes["heads"], "heads", "tallies", iter(SERIES[4:]), "all columns")
        heads.set_title("CPU, width 384, by heads of a layer")
        _doubling(heads, [row["heads"] for row in sizes["heads"]], "heads")
        for panel in (ratios, sentences, heads):
            panel.axhline(1, color="0.5", linewidth=0.8)
            panel.set_ylim(bottom=0.8)
        key_below(figure, ratios, sentences)
        finish(figure, out / "speed-lengths.svg")


def _line(
    panel: Any, rows: list[dict[str, Any]], by: str, way: str, series: Iterator[Any], label: str
) -> None:
    """Medians of the ratios with the middle half of the rounds."""
    points = [(row[by], row["ratio"][way]) for row in rows if way in row["ratio"]]
    if not points:
        return
    colour, marker = next(series)
    places = [place for place, _ in points]
    panel.plot(
        places, [found["median"] for _, found in points], color=colour, marker=marker, label=label
    )
    low, high = ([found[end] for _, found in points] for end in ("low", "high"))
    panel.fill_between(places, low, high, color=colour, alpha=0.15, linewidth=0)


def _times(panel: Any, rows: list[dict[str, Any]]) -> None:
    """Milliseconds a text, and what operations and memory allow at their full rates."""
    lengths = [row["length"] for row in rows]
    for (colour, marker), way in zip(SERIES[2:], ("plain", "all rows"), strict=False):
        found = [row["milliseconds"][way] / row["texts"] for row in rows]
        panel.plot(lengths, found, color=colour, marker=marker)
        panel.annotate(
            way if way == "plain" else "survey", (lengths[0], found[0]),
            xytext=(0, 6 if way != "plain" else -12), textcoords="offset points", ha="left",
        )  # fmt: skip
    limits = {
        "operations": ([_operations(length) / PEAK for length in lengths], "--", 3, (2, -9)),
        "weights read once": ([BYTES * WEIGHTS / BANDWIDTH] * len(lengths), ":", 3, (-6, 3)),
        "maps written and read": (
            [2 * BYTES * LAYERS * HEADS * length**2 / BANDWIDTH for length in lengths],
            "-.", 4, (-4, 14),
        ),
    }  # fmt: skip
    for label, (seconds, style, at, shift) in limits.items():
        least = [1e3 * one for one in seconds]
        panel.plot(lengths, least, color="0.5", linestyle=style, linewidth=0.8)
        panel.annotate(
            label, (lengths[at], least[at]), xytext=shift, textcoords="offset points",
            ha="right" if label.startswith("maps") else "left", color="0.4", fontsize=7,
        )  # fmt: skip
    panel.set_yscale("log")
    panel.set_ylim(bottom=0.05)
    panel.set_title("GPU, milliseconds a text, and limits")
    _doubling(panel, lengths, "tokens of a text")


def _doubling(panel: Any, places: Sequence[int], label: str) -> None:
    panel.set_xscale("log", base=2)
    panel.set_xticks(places, [f"{n // 1024}k" if n >= 1024 else str(n) for n in places])
    panel.set_xlabel(label)


def _operations(tokens: int) -> float:
    """Of one forward: every weight once a token, and causal attention."""
    return 2 * WEIGHTS * tokens + 2 * LAYERS * WIDTH * tokens**2
