"""Fill the tables of docs/results/importance.md; the words between them are written by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from research.names import title
from research.pages import with_tables

from .draw_alone import LEVEL, chosen_elsewhere

__all__ = ["filled"]

Told = dict[str, Any]


def filled(page: str, told: Told) -> str:
    """The page with every table made again."""
    return with_tables(page, lambda name: TABLES[name](told))


def masked(told: Told) -> str:
    """Every head masked in turn: how many cost something, and the ends of what they cost."""
    ends = "smallest and largest cost"
    lines = [f"| examples | metric | as it is | cost something | better gone | {ends} |"]
    lines.append("|---|---|--:|---|---|---|")
    for name, case in told["cases"].items():
        if name.endswith("-again"):
            continue
        unit = " a token" if case["model"] == "translator" else ""
        count = case.get("examples without heads", case["examples"])
        lines.append(_masked(name, count, f"loss{unit}", case["loss"]))
        if "judged" in case:
            judged = case["judged"]
            lines.append(_masked(name, judged["examples"], METRICS[judged["metric"]], judged))
    return "\n".join(lines)


#: What the page calls the metric of a task.
METRICS = {"bleu": "BLEU, greedy", "accuracy": "accuracy", "matthews": "Matthews"}


def _masked(name: str, examples: int, metric: str, found: Told) -> str:
    worse, better = found["cost something"], found["better gone"]
    count = f"{sum(worse.values())} of {found['heads']}"
    stacks = [f"{stack} {worse[stack]}" for stack in ("enc", "dec", "cross") if stack in worse]
    where = f": {', '.join(stacks)}" if len(stacks) > 1 else ""
    scale, digits, unit = 1, 3, ""
    if metric == "accuracy":
        scale, digits, unit = 100, 1, " points"
    elif metric.startswith("BLEU"):
        digits = 1
    ends = ", ".join(f"{scale * end:+.{digits}f}" for end in found["range"])
    cells = [f"{title(name)}, {examples:,}", metric, f"{scale * found['baseline']:.{digits}f}",
             count + where, str(sum(better.values())), ends + unit]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def alone(told: Told) -> str:
    """One head left of a layer, by the loss of the translator."""
    cases = {n: case for n, case in told["cases"].items() if case["model"] == "translator"}
    lines = {
        f"{title(name)} {stack}": [_cost(row, 1, 3) for row in rows if row["stack"] == stack]
        for name, case in cases.items()
        for rows in [chosen_elsewhere(case)]
        for stack in dict.fromkeys(row["stack"] for row in rows)
    }
    return _layers(lines)


def points(told: Told) -> str:
    """The same for the classifiers, in points of their metric."""
    lines = {}
    for name, case in told["cases"].items():
        if "best single heads" in case:
            how = " (Matthews, hundredths)" if case["judged"]["metric"] == "matthews" else ""
            lines[title(name) + how] = [_cost(row, 100, 1) for row in chosen_elsewhere(case)]
    return _layers(lines)


def _cost(row: Told, scale: float, digits: int) -> str:
    # Adding zero takes the sign from what rounds to nothing.
    cost, low, high = (
        f"{round(scale * row[end], digits) + 0.0:.{digits}f}" for end in ("cost", "low", "high")
    )
    return f"{cost}{'*' if row['p_adjusted'] < LEVEL else ''} [{low}, {high}]"


def _layers(lines: dict[str, list[str]]) -> str:
    most = max(map(len, lines.values()))
    head = ["", "layer 0", *map(str, range(1, most))]
    rows = [f"| {' | '.join(head)} |", f"|---|{'--:|' * most}"]
    return "\n".join(rows + [f"| {' | '.join([n, *cells])} |" for n, cells in lines.items()])


TABLES: dict[str, Callable[[Told], str]] = {"masked": masked, "alone": alone, "points": points}
