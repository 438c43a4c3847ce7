"""`python -m research.window.page`: the tables of docs/results/window.md, from its JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from scipy.stats import spearmanr

from research import RESULTS
from research.pages import with_tables

PAGE = Path(__file__).parents[2] / "docs" / "results" / "window.md"


def _cell(row: dict[str, Any] | None) -> str:
    """What a task has, and what it costs at most: points where it is a share."""
    if row is None:
        return "–"
    share = row["metric"] == "accuracy"
    times, digits = (100, 1) if share else (1, 3)
    value = f"{times * row['value']:.{digits}f}"
    cost = f"{times * row['cost']:+.{digits}f}"
    if row.get("low") is not None:
        cost += f" [{times * row['low']:+.{digits}f}, {times * row['high']:+.{digits}f}]"
    bound = "" if row.get("bound") is None else f"; bound {times * row['bound']:.{digits}f}"
    return f"{value} ({cost}{bound})"


def curves(case: dict[str, Any]) -> str:
    """A row a point: how many groups are restricted, by which order, and every task."""
    judged = case.get("judged", {})
    tasks = list(dict.fromkeys(task for rows in judged.values() for task in rows))
    whole = {task: row for rows in judged.values() for task, row in rows.items()}
    head = ["restricted", "order"]
    head += [f"{task.partition(',')[0]} ({whole[task]['n']} texts)" for task in tasks]
    lines = ["| " + " | ".join(head) + " |", "|--:|---|" + "---|" * len(tasks)]
    first = [f"{100 * one['whole']:.1f}" if one["metric"] == "accuracy" else f"{one['whole']:.3f}"
             for one in (whole[task] for task in tasks)]  # fmt: skip
    lines.append(f"| 0 of {case['groups']} | the whole model | " + " | ".join(first) + " |")
    for name, rows in judged.items():
        order, _, count = name.rpartition(" ")
        cells = [_cell(rows.get(task)) for task in tasks]
        lines.append(f"| {count} | {order} | " + " | ".join(cells) + " |")
    if "removed" in case:
        metric = {task: row["metric"] for task, row in whole.items()}
        cells = [_cell({**row, "metric": metric[task]}) for task, row in case["removed"].items()]
        third = case["groups"] // 3
        lines.append(f"| {third} removed | {case['order']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def truth(case: dict[str, Any]) -> str:
    """The score against each group restricted alone, and its sum against all at once."""
    lines = ["| task | texts | Spearman with each alone | sum of the column | all restricted | "
             "Spearman of two halves |", "|---|--:|--:|--:|--:|--:|"]  # fmt: skip
    for name, costs in case["costs"].items():
        alone = case.get("truth", {}).get(name, {}).get("alone", {})
        rank = "–"
        if len(alone) == case["groups"]:
            path = case["truth"][name]["path"]
            by_hand = [alone[str(place)] for place in range(case["groups"])]
            rank = f"{spearmanr(path, by_hand)[0]:.2f} ({case['truth'][name]['examples']} texts)"
        halves = costs["halves"]
        agree = f"{spearmanr(*halves)[0]:.2f}" if len(halves) > 1 else "–"
        cost = costs["all restricted"] - costs["whole"]
        lines.append(
            f"| {name} | {costs['examples']} | {rank} | {costs['sum']:+.3f} | {cost:+.3f} | "
            f"{agree} |"
        )
    return "\n".join(lines)


def generate(case: dict[str, Any]) -> str:
    """Memory and time of caches."""
    lines = ["| tokens | cache, whole | cache, half near | step, whole | step, half near | "
             "prefill, whole | prefill, half near |", "|--:|--:|--:|--:|--:|--:|--:|"]  # fmt: skip
    for length, rows in case.get("generate", {}).items():
        figures = ("cache megabytes", "step milliseconds", "prefill seconds")
        pairs = [[rows[name][what] for name in ("whole", "half near")] for what in figures]
        units = ("MB", "MB", "ms", "ms", "s", "s")
        cells = [
            f"{x} {unit}" for x, unit in zip((x for p in pairs for x in p), units, strict=True)
        ]
        lines.append(f"| {int(length):,} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Write the tables into the page."""
    cases = json.loads((RESULTS / "window.json").read_text(encoding="utf8"))["cases"]
    made = {"curves": curves, "truth": truth, "generate": generate}

    def table(name: str) -> str:
        what, _, case = name.partition("_")
        return made[what](cases[case])

    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf8"), table), encoding="utf8")


if __name__ == "__main__":
    main()
