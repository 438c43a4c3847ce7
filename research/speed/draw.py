"""A survey against the plain forward, by length, sentences and heads, and the hardware's limits."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headcount.rooms.figures.figure import SERIES, key_below, sheet

__all__ = ["draw"]

BENCHMARKS = Path(__file__).parents[2] / "research" / "benchmarks" / "results"


def draw(results: Path, out: Path) -> None:
    """Ratios, milliseconds a text and memory on both devices; by sentences and heads on the CPU."""
    told = {
        device: json.loads((BENCHMARKS / f"lengths-{device}.json").read_text())
        for device in ("gpu", "cpu")
    }
    sizes = json.loads((BENCHMARKS / "sizes.json").read_text())
    with sheet(6, columns=2, height=2.3, path=out / "speed-lengths.svg") as (figure, panels):
        ratios, memory, *times, sentences, heads = panels
        series = iter(SERIES)
        for device, found in told.items():
            rows, colour = found["lengths"], SERIES[2 * (device == "cpu")]
            for way in ("all rows", "2048 rows"):
                label = f"{device.upper()}, {way.replace('2048', '2,048')}"
                _line(ratios, rows, "length", way, series, label)
            shares = [row["peak_gib"]["all rows"] / row["peak_gib"]["plain"] for row in rows]
            lengths = [row["length"] for row in rows]
            memory.plot(lengths, shares, color=colour[0], marker=colour[1])
        lengths = [row["length"] for row in told["gpu"]["lengths"]]
        for panel, title in (
            (ratios, "survey / plain forward"),
            (memory, "memory / plain forward"),
        ):
            panel.set_title(f"{title}, by length")
            _doubling(panel, lengths, "tokens of a text")
        for panel, (device, found) in zip(times, told.items(), strict=True):
            rows = [row for row in found["lengths"] if row.get("milliseconds")]
            _times(panel, rows, found["limits"], found["shape"])
            panel.set_title(f"{device.upper()}, milliseconds a text, and limits")
        for way, label in (("tallies", "all columns"), ("survey", "from strings to intervals")):
            _line(sentences, sizes["sentences"], "sentences", way, series, label)
        sentences.set_title("CPU, MiniLM, by sentences of 64 tokens")
        _doubling(sentences, [row["sentences"] for row in sizes["sentences"]], "sentences")
        _line(heads, sizes["heads"], "heads", "tallies", iter(SERIES[4:]), "all columns")
        heads.set_title("CPU, width 384, by heads of a layer")
        _doubling(heads, [row["heads"] for row in sizes["heads"]], "heads")
        for panel in (ratios, memory, sentences, heads):
            panel.axhline(1, color="0.5", linewidth=0.8)
            panel.set_ylim(bottom=0.8)
        key_below(figure)


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


def _times(
    panel: Any, rows: list[dict[str, Any]], limits: Mapping[str, float], shape: Mapping[str, float]
) -> None:
    """Milliseconds a text, and what operations and memory allow at their full rates."""
    lengths = [row["length"] for row in rows]
    for (colour, marker), way in zip(SERIES[2:], ("plain", "all rows"), strict=False):
        found = [row["milliseconds"][way] / row["texts"] for row in rows]
        panel.plot(lengths, found, color=colour, marker=marker)
        panel.annotate(
            way if way == "plain" else "survey", (lengths[0], found[0]),
            xytext=(0, 6 if way != "plain" else -12), textcoords="offset points", ha="left",
        )  # fmt: skip
    bandwidth, size = limits["bytes_per_s"], shape["bytes"]
    weights = size * (shape["weights"] + shape["last_token"]) / bandwidth
    cells = [shape["layers"] * shape["heads"] * length**2 for length in lengths]
    last = len(lengths) - 1
    lines = {
        "operations": (
            [_operations(length, shape) / limits["flops_per_s"] for length in lengths],
            "--", (last - 1) // 2, (2, -9),
        ),
        "weights read once": ([weights] * len(lengths), ":", last, (0, 3)),
        "maps written and read": (
            [2 * size * count / bandwidth for count in cells], "-.", last, (-4, -12),
        ),
    }  # fmt: skip
    for label, (seconds, style, at, shift) in lines.items():
        least = [1e3 * one for one in seconds]
        panel.plot(lengths, least, color="0.5", linestyle=style, linewidth=0.8)
        panel.annotate(
            label, (lengths[at], least[at]), xytext=shift, textcoords="offset points",
            ha="left" if label == "operations" else "right", color="0.4", fontsize=7,
        )  # fmt: skip
    panel.set_yscale("log")
    _doubling(panel, lengths, "tokens of a text")


def _doubling(panel: Any, places: Sequence[int], label: str) -> None:
    panel.set_xscale("log", base=2)
    panel.set_xticks(places, [f"{n // 1024}k" if n >= 1024 else str(n) for n in places])
    panel.set_xlabel(label)


def _operations(tokens: int, shape: Mapping[str, float]) -> float:
    """Of one forward: weights once a token or for the last one alone, and causal attention."""
    once = 2 * shape["weights"] * tokens + 2 * shape["last_token"]
    return once + 2 * shape["layers"] * shape["width"] * tokens**2
