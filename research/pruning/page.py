"""The tables of docs/results/pruning.md, made from its JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

from research import pages_of
from research.pages import with_tables

__all__ = ["filled", "tell"]

Rows = list[list[str]]
CASES = {
    f"minilm-{task}-{seed}": f"{title}, seed {seed}" if not seed else f"seed {seed}"
    for task, title in (("sst2", "SST-2"), ("mrpc", "MRPC"), ("cola", "CoLA"))
    for seed in (0, 1)
}
ORDERS = {
    "gradient by layer": "gradient, normalised by layer (the paper's)",
    "gradient": "gradient as it is",
    "ablation": "ablation",
    "random": "random, five orders, first reading",
    "gates": "gates (weights frozen, 400 steps)",
    "gradient, healed": "gradient, healed 200 steps",
    "gates, healed": "gates, healed 200 steps",
}
#: 48 heads: what the run is, and how many rows of text went into it, the trained model's included.
SCRATCH = {
    "all-48-long": ("pruned from the trained one", "3.2 million"),
    "all-48": ("pruned from the trained one", "2.8 million"),
    "scratch-48-converged": ("these 14 / 13 / 21 from scratch, converged", "2.9 million"),
    "scratch-48-long": ("these 14 / 13 / 21 from scratch", "0.8 million"),
    "scratch-gates": ("gates from scratch", "0.8 million"),
}
REMOVED = {  # the orders of research.orders, and their columns
    "Michel et al.": "Michel et al.",
    "gradient": "gradient, not normalised",
    "gradient, again before each step": "the same, again before each step",
    "ablation": "ablation",
    "ablation, again before each step": "the same, again before each step",
}


def tell(results: Path) -> None:
    """Make the tables of the page again."""
    page = pages_of(results) / "pruning.md"
    page.write_text(filled(page.read_text(encoding="utf8"), results), encoding="utf8")


def filled(page: str, results: Path) -> str:
    """The page with the tables of the JSON in a folder."""

    def load(name: str) -> Any:
        return json.loads((results / f"pruning-{name}.json").read_text(encoding="utf8"))

    return with_tables(page, lambda name: TABLES[name](load))


Load = Callable[[str], Any]


def ten_heads(load: Load) -> str:
    mean = load("gates")["headline"]["mean"]
    head = ["", "with 10 encoder heads", "with 48", "difference", "p", "by sentences alone", SEEN]
    rows = [
        [f"{part}, mean of 3 seeds", _two(one["bleu"]), _two(one["baseline"]),
         _change(one["difference"], "delta_"), _p(one["difference"]["p"]),
         _interval(one["sentences_alone"], "delta_"), _two(one["difference"]["detectable"])]
        for part, one in mean.items()
    ]  # fmt: skip
    return _table(head, rows)


def russian(load: Load) -> str:
    told = load("russian")
    head = ["", "with 10 encoder heads", "with 48", "difference", "not healed", SEEN]
    rows = [
        [f"{part}, {_thousands(one)}", _two(one["bleu"]), _two(one["baseline"]), _change(one),
         f"{told['curve'][part]['enc-10-s0']['untouched']:.1f}", _two(one["detectable"])]
        for part, one in told["headline"].items()
    ]  # fmt: skip
    return _table(head, rows)


def frozen(load: Load) -> str:
    domains = {"lohelp": "lohelp (software help)", "pud": "PUD (news, Wikipedia)"}
    head = ["judged on", "with 10 encoder heads", "with 48", "difference", SEEN]
    rows = [
        [f"{domains.get(part, part)}, {_thousands(one)}", _two(one["bleu"]), _two(one["baseline"]),
         _change(one), _two(one["detectable"])]
        for part, one in load("frozen")["headline"].items()
    ]  # fmt: skip
    return _table(head, rows)


def frozen_curve(load: Load) -> str:
    curve = load("frozen")["curve"]
    left = {name: int(one["left"]) for name, one in curve["test"].items()}
    names = [name for name in left if name not in ("enc-10-s1", "enc-10-s2")]
    rows = [
        [str(left[name]), *(cell for part in ("dev", "test") for cell in (
            _two(curve[part][name]["bleu"]), _change(curve[part][name])))]
        for name in sorted(names, key=lambda name: -left[name])
    ]  # fmt: skip
    return _table(["encoder heads", "dev", "difference", "test", "difference"], rows, first="--:")


def roles_left(load: Load) -> str:
    roles = load("frozen")["roles"]
    rows = []
    for name, one in sorted(roles.items(), key=lambda model: (-model[1]["heads"], model[0])):
        count = one["counts"].get
        kinds = [count("positional", 0), count("syntactic", 0), count("feature", 0)]
        rests = count("separator", 0) + count("sink", 0)
        rows.append([f"{one['heads']} ({name})", *map(str, [one["with a role"], *kinds, rests])])
    head = ["heads (run)", "with a role", "positional", "syntactic", "feature", "rests"]
    return _table(head, rows)


def lohelp(load: Load) -> str:
    curve = load("lohelp")["curve"]
    whole = [_two(curve[part]["enc-4"]["baseline"]) for part in ("dev", "test")]
    rows = [["48", whole[0], "", whole[1], "", "", ""]]
    for name in ("enc-10-s0", "enc-4"):
        dev, test = curve["dev"][name], curve["test"][name]
        ends = [f"{test['untouched']:.1f}", _two(test["detectable"])]
        bleus = [_two(dev["bleu"]), _change(dev), _two(test["bleu"]), _change(test)]
        rows.append([dev["left"], *bleus, *ends])
    head = ["encoder heads", "dev", "difference", "test", "difference", "test, not healed", SEEN]
    return _table(head, rows, first="--:")


def curve(load: Load) -> str:
    runs = load("gates")["curve"]["runs"]
    rows = []
    for name in ("enc-17", "enc-10", "enc-4", "enc-1"):
        dev, test = runs[name]["dev"], runs[name]["test"]
        bleus = [cell for part in (dev, test) for cell in (
            _two(part["bleu"]), _change(part, "delta_"))]  # fmt: skip
        left = str(runs[name]["left"]["enc"])
        rows.append([left, *bleus, f"{test['untouched']:.1f}"])
    head = ["encoder heads", "dev", "difference", "test", "difference", "not healed (test)"]
    return _table(head, rows, first="--:")


def all_stacks(load: Load) -> str:
    runs = load("gates")["curve"]["runs"]
    rows = []
    for name, scratch in (("base", "scratch-all"), ("all-48", "scratch-48"), ("all-28", "")):
        test, other = runs[name]["test"], runs.get(scratch, {})
        against = [_change(other[part], "delta_") if other and "delta" in other[part] else ""
                   for part in ("test", "dev")]  # fmt: skip
        rows.append([_stacks(runs[name]), _two(test["bleu"]),
                     _change(test, "delta_") if "delta" in test else "",
                     _two(other["test"]["bleu"]) if other else "not run", *against])  # fmt: skip
    head = ["enc / dec / cross", "from trained, test", "difference", "from scratch, test",
            "against all heads from scratch", "the same on dev"]  # fmt: skip
    return _table(head, rows)


def from_scratch(load: Load) -> str:
    runs = load("scratch")["runs"]
    rows = []
    for name, (what, read) in SCRATCH.items():
        run = runs[name]
        against = [
            _change(run["against"][other]["test"]["difference"], "delta_") if other != name else ""
            for other in ("all-48-long", "all-48")
        ]
        rows.append([what, f"{run['steps']:,}", read, _stacks(run), _two(run["dev"]["bleu"]),
                     _two(run["test"]["bleu"]), *against])  # fmt: skip
    head = ["48 of 144 heads", "steps", "rows read", "enc / dec / cross", "dev", "test",
            "against pruned, 12,000 steps", "against pruned, 4,500 steps"]  # fmt: skip
    return _table(head, rows)


def by_stack(load: Load) -> str:
    rows = load("by-stack")["stacks"]
    found = {(row["stack"], row["left"]): row for row in rows}
    lines = [
        [f"{100 * (48 - left) / 48:.0f}%", *(
            f"{one['bleu']:.1f} ({one['delta']:+.1f} [{one['low']:.1f}, {one['high']:.1f}])"
            for one in (found[stack, left] for stack in ("enc", "dec", "cross")))]
        for left in dict.fromkeys(row["left"] for row in rows)
    ]  # fmt: skip
    return _table(["heads of the stack gone", "encoder", "decoder", "cross"], lines, first="--:")


def readings(load: Load) -> str:
    whole = {name: case["whole"] for name, case in load("classifiers")["cases"].items()}
    told = load("paired")["readings"]
    rows = [["whole, accuracy", *(f"{100 * whole[case]:.1f}" for case in CASES)]]
    for order, words in ORDERS.items():
        rows.append([words, *(_reading(told[case], order) for case in CASES)])
    head = ["heads left: before a loss is seen / within 1 point (95%)", *CASES.values()]
    return _table(head, rows)


def _reading(told: dict[str, dict[str, int]], order: str) -> str:
    if order == "random":
        ends = [one["before_a_loss"] for name, one in told.items()
                if name.startswith("random") and "healed" not in name]  # fmt: skip
        return f"{min(ends)} to {max(ends)}"
    one = told.get(order)
    return "not run" if one is None else f"{one['before_a_loss']} / {one['within']}"


def gates_against(load: Load) -> str:
    told = load("paired")
    found = {
        (case, row["ranking"], row["heads_left"]): row
        for case, rows in told["cases"].items()
        for row in rows
    }
    lefts = sorted({left for *_, left in found}, reverse=True)
    tasks = {"sst2": "SST-2: ", "mrpc": "MRPC: ", "cola": "CoLA: "}
    columns = [(task, name) for task in tasks for name in ("gradient", "gradient by layer")]
    rows = [
        [str(left), *(", ".join(_lead(found[f"minilm-{task}-{seed}", ranking, left])
                                for seed in (0, 1)) for task, ranking in columns)]
        for left in lefts
    ]  # fmt: skip
    head = [f"{tasks[task]}gradient" if ranking == "gradient" else "by layer"
            for task, ranking in columns]  # fmt: skip
    return _table(["heads left", *head], rows, first="--:")


def _lead(row: dict[str, Any]) -> str:
    """Points by which gates lead; a bound has a mark behind it."""
    points = f"{100 * row['difference']:+.1f}"
    points = "0.0" if points in ("+0.0", "-0.0") else points
    sure = row["verdict"] in ("gates better", "ranking better")
    bold = f"**{points}**" if sure else points
    return bold + ("°" if "discordant_at_most" in row else "")


def orders(load: Load) -> str:
    told = load("orders")
    curve = {(row["order"], row["heads_left"]): row["value"] for row in told["curve"]}
    better = {
        (row["order"], 144 - row["removed"])
        for row in told["against"]
        if row["p_adjusted"] <= 0.05 and row["value"] < 0
    }
    chance = sorted({order for order, _ in curve if order.startswith("random")})
    rows = []
    for left in (144, 101, 72, 44, 15):
        cells = [
            f"**{curve[name, left]:.2f}**" if (name, left) in better else f"{curve[name, left]:.2f}"
            for name in REMOVED
        ]
        ends = [f"{curve[name, left]:.2f}" for name in chance]
        spread = min(ends) if left == 144 else f"{min(ends)} to {max(ends)}"
        rows.append([str(left), *cells, spread])
    return _table(["heads left", *REMOVED.values(), "random (three)"], rows, first="--:")


TABLES: dict[str, Callable[[Load], str]] = {
    made.__name__: made
    for made in (ten_heads, russian, frozen, frozen_curve, roles_left, lohelp, curve, all_stacks,
                 from_scratch, by_stack, readings, gates_against, orders)
}  # fmt: skip
SEEN = "a loss seen in 80% of cases"


def _table(head: list[str], rows: Iterable[list[str]], first: str = "---") -> str:
    marks = f"|{first}|" + "--:|" * (len(head) - 1)
    return "\n".join([_line(head), marks, *map(_line, rows)])


def _line(cells: list[str]) -> str:
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


def _two(value: float, sign: str = "") -> str:
    """Two digits, halves away from zero: the JSON has three, and 47.495 is not a binary number.

    >>> _two(47.495), _two(0.104, "+"), _two(-0.004, "+")
    ('47.50', '+0.10', '0.00')
    """
    short = Decimal(str(value)).quantize(Decimal("0.01"), ROUND_HALF_UP)
    return f"{short:{sign}.2f}" if short else "0.00"


def _interval(row: dict[str, float], name: str = "") -> str:
    return f"[{_two(row[f'{name}low'])}, {_two(row[f'{name}high'])}]"


def _change(row: dict[str, float], name: str = "") -> str:
    return f"{_two(row['delta'], '+')} {_interval(row, name)}"


def _p(value: float) -> str:
    return f"{value:.2f}".removeprefix("0")


def _thousands(row: dict[str, Any]) -> str:
    return f"{row['sentences']:,}"


def _stacks(run: dict[str, Any]) -> str:
    return " / ".join(str(run["left"][stack]) for stack in ("enc", "dec", "cross"))
