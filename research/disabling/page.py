"""`python -m research.disabling.page`: the table of the results page, from its JSON."""

from __future__ import annotations

import json
from typing import Any

from .__main__ import RESULTS

HEADING = (
    "| task (metric, n) | unit, mode | best, same examples | best of halves: on the one that chose "
    "| on the other half (5 splits) | least detectable there "
    "| significantly worse / better without |"
)


def table(told: dict[str, Any]) -> str:
    """A row for each task, unit and mode; tasks too small to tell are marked."""
    rows = [
        _row(task, found, unit, mode)
        for task, found in told["tasks"].items()
        for unit in ("head", "layer")
        for mode in told["config"]["modes"]
    ]
    return "\n".join([HEADING, "|" + "---|" * 7, *rows])


def _row(task: str, found: dict[str, Any], unit: str, mode: str) -> str:
    part = found[f"{unit} {mode}"]
    low, high = part["range on the other half"]
    best = part["best on all of dev"]
    least = part["detectable on the other half"]
    cells = [
        f"{task} ({found['metric']} {found['baseline']:.3f}, {found['examples']})",
        f"{unit}, {mode}",
        f"{_points(best['gain'])} ({best['name']}, p {best['p_adjusted']:.2g})",
        _points(part["mean gain on the half that chose"]),
        f"{_points(part['mean gain on the other half'])} ({_points(low)} to {_points(high)})",
        ("–" if least is None else f"{100 * least:.1f}")
        + (", too small" if part["too small"] else ""),
        f"{part['surely worse without']} / {part['surely better without']} of {len(part['gains'])}",
    ]
    return f"| {' | '.join(cells)} |"


def _points(gain: float) -> str:
    return f"{100 * gain:+.1f}"


if __name__ == "__main__":
    print(table(json.loads((RESULTS / "together-disabling.json").read_text())))
