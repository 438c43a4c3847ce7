"""The speed report: what a pruned model costs and how fast it is, beside the whole one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from headcount.pruning.costs import Costs
from headcount.pruning.speed import Speed

__all__ = ["SpeedReport"]


@dataclass(frozen=True)
class SpeedReport:
    """Two models side by side (Michel et al. 2019, table 4); `print` shows it as a table."""

    whole: str
    small: str
    #: Heads of each.
    heads: tuple[int, int]
    #: At the longest length, one row.
    costs: tuple[Costs, Costs]
    speeds: tuple[Speed, ...]
    #: Device, dtype, threads, and how the forwards were run.
    about: dict[str, Any]
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Everything as plain words and numbers."""
        return {
            "whole": self.whole,
            "small": self.small,
            "heads": list(self.heads),
            "costs": [cost.to_json() for cost in self.costs],
            "speeds": [speed.to_json() for speed in self.speeds],
            "about": self.about,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"whole   {self.whole}"
        yield f"pruned  {self.small}"
        yield ", ".join(str(value) for value in self.about.values() if value)
        yield ""
        yield from self._costs()
        yield ""
        yield f"{'batch':>5} {'tokens':>6} {'whole/s':>10} {'pruned/s':>10}   gain [95%]" + (
            f"{'limit':>20} {'reached':>8}"
        )
        for speed in self.speeds:
            yield _row(speed)
        told = [speed for speed in self.speeds if speed.leak is not None]
        if told:
            yield ""
            yield from _where(max(told, key=lambda speed: speed.batch * speed.length))
        for note in self.notes:
            yield ""
            yield note

    def _costs(self) -> Iterator[str]:
        one, other = self.costs
        yield f"{'':24}{'whole':>16}{'pruned':>16}"
        rows: list[tuple[str, float, float]] = [
            ("heads", *self.heads),
            ("parameters", one.parameters, other.parameters),
            ("of attention", one.attention_parameters, other.attention_parameters),
            (f"MFLOPs, {one.tokens} tokens", one.flops / 1e6, other.flops / 1e6),
        ]
        if one.kv_bytes:
            rows.append(("cache, bytes a token", one.kv_bytes, other.kv_bytes))
        if one.source_kv_bytes:
            rows.append(("and a source token", one.source_kv_bytes, other.source_kv_bytes))
        for name, before, after in rows:
            yield f"{name:24}{before:16,.0f}{after:16,.0f}  {_percent(after / before - 1)}"


def _row(speed: Speed) -> str:
    one, other = speed.throughput
    gain = f"{_percent(speed.gain)} [{_percent(speed.low)}, {_percent(speed.high)}]"
    return (
        f"{speed.batch:5} {speed.length:6} {one:10.1f} {other:10.1f}   {gain:24}"
        f"{_percent(speed.limit):>6} {speed.reached:8.2f}"
    )


def _where(speed: Speed) -> Iterator[str]:
    """Where the rest of the gain went, in a table and in words."""
    leak = speed.leak
    assert leak is not None
    yield f"Where the time goes, batch {speed.batch}, {speed.length} tokens, in milliseconds"
    yield f"{'':14}{'whole':>9}{'pruned':>9}{'share':>8}{'beyond its operations':>23}"
    total = sum(speed.whole_parts.values())
    for part, taken in speed.whole_parts.items():
        yield (
            f"{part:14}{1e3 * taken:9.2f}{1e3 * speed.small_parts[part]:9.2f}"
            f"{100 * taken / total:7.0f}%{100 * leak.slower[part]:22.1f}%"
        )
    slower = sum(leak.slower.values())
    yield (
        f"Operations alone would save {100 * leak.limit:.1f}% of the time; {100 * leak.saved:.1f}% "
        f"was saved. Of the difference, {100 * leak.elsewhere:.1f} points are time that holds no "
        f"operations of the heads, and {100 * slower:.1f} points are parts that run slower than "
        "their own operations say (below 0: faster)."
    )


def _percent(share: float) -> str:
    return f"{100 * share:+.1f}%"
