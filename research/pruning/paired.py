"""`python -m research.pruning.paired`: gates against rankings with as many heads left.

Both were judged on the same examples. Where right and wrong were kept by example, the test is
McNemar's exact one. `--classifiers DIR --data DIR` judges the sets of heads of an earlier run that
kept no examples again, with the classifiers that are in DIR, and keeps them.

Without examples there is a bound: an example on which two pruned models differ is one on which at
least one of them differs from the whole model, so they differ on at most as many examples as both
do from it together. McNemar's test with that many is the test of the pair at its worst: it can only
err on the side of *cannot tell*. How often a pruned model differs from the whole one follows from
the interval of its loss.

How far one can go down each order is read at the same numbers of heads for all of them: on a finer
grid a ranking would stop elsewhere than gates do for no other reason (`readings`).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binomtest

from headcount.errors import InputError
from headcount.records import provenance
from headcount.records.files import write_bytes
from headcount.stats import adjust, mcnemar, paired_share_interval
from research import RESULTS
from research.disabling.detectable import minimum_detectable_difference
from research.settings import told

from .config import Config, read_config
from .rows import free, packed, unpacked, within

HERE = Path(__file__).parent
COMMAND = "python -m research.pruning.paired"
RANKINGS = ("gradient", "gradient by layer", "ablation")
LEVEL, REACH = 0.05, 1.959964
#: Right and wrong of a case, packed: the whole model's, and those of every order by heads left.
Kept = dict[str, Any]


def discordant(row: dict[str, Any]) -> float:
    """On how many examples a pruned model and the whole one are not both right or both wrong.

    The variance of a mean of -1, 0 and 1 is (their share - mean^2) / n.

    >>> round(discordant({"delta": 0.0, "delta_low": -0.0196, "delta_high": 0.0196, "n": 1000}))
    100
    """
    error = (row["delta_high"] - row["delta_low"]) / (2 * REACH)
    return float(row["n"] * (row["n"] * error**2 + row["delta"] ** 2))


def against(gates: dict[str, Any], ranking: dict[str, Any]) -> dict[str, Any]:
    """The difference in accuracy of two rows with as many heads left, tested at its worst."""
    n = gates["n"]
    apart = round(n * (gates["value"] - ranking["value"]))
    most = max(abs(apart), math.ceil(discordant(gates) + discordant(ranking)))
    most += (most + apart) % 2  # so many for one, the rest for the other
    value, share = apart / n, most / n
    half = REACH * math.sqrt(max(0.0, share - value**2) / n)
    p = 1.0 if not most else float(binomtest((most + apart) // 2, most).pvalue)
    return {
        "gates": gates["value"],
        "other": ranking["value"],
        "difference": value,
        "low": value - half,
        "high": value + half,
        "p": p,
        "n": n,
        "discordant_at_most": most,
        "least_seen": float(minimum_detectable_difference(n, share)),
    }


def exactly(gates: np.ndarray, ranking: np.ndarray) -> dict[str, Any]:
    """The same from right (1) and wrong (0) by example."""
    value, low, high = (float(part) for part in paired_share_interval(gates, ranking))
    apart = gates != ranking
    return {
        "gates": float(gates.mean()),
        "other": float(ranking.mean()),
        "difference": value,
        "low": low,
        "high": high,
        "p": float(mcnemar(gates, ranking).p),
        "n": len(gates),
        "gates_alone_right": int((gates > ranking).sum()),
        "ranking_alone_right": int((gates < ranking).sum()),
        "least_seen": float(minimum_detectable_difference(len(gates), float(apart.mean()))),
    }


def by_example(case: dict[str, Any]) -> Kept | None:
    """Right and wrong that the run itself kept."""
    bare = [row for row in case["curve"] if not row["healed"]]
    if not all("right" in row for row in bare):
        return None
    orders: dict[str, dict[str, str]] = {}
    for row in bare:
        orders.setdefault(row["order"], {})[str(row["heads_left"])] = row["right"]
    return {"n": bare[0]["n"], "orders": orders}


def compared(case: dict[str, Any], margin: float, kept: Kept | None = None) -> list[dict[str, Any]]:
    """Every number of heads at which gates and a ranking were judged; Holm over all of them."""
    bare = [row for row in case["curve"] if not row["healed"]]
    by = {(row["order"], row["heads_left"]): row for row in bare}
    rows = []
    for (order, left), row in by.items():
        for name in RANKINGS if order == "gates" else ():
            if (name, left) in by:
                pair = {"heads_left": left, "ranking": name}
                if kept is None:
                    rows.append(pair | against(row, by[name, left]))
                else:
                    said = (kept["orders"][one][str(left)] for one in ("gates", name))
                    rows.append(pair | exactly(*(unpacked(one, kept["n"]) for one in said)))
    for row, p in zip(rows, adjust([row["p"] for row in rows]), strict=True):
        row["p_adjusted"] = float(p)
        row["verdict"] = _verdict(row, margin)
    return rows


def least_seen(case: dict[str, Any]) -> dict[str, dict[str, float]]:
    """The smallest loss against the whole model that 80 in 100 such tests see, by heads left."""
    found: dict[str, dict[str, float]] = {}
    for row in case["curve"]:
        if not row["healed"] and row["order"] in ("gates", *RANKINGS):
            least = minimum_detectable_difference(row["n"], min(1.0, discordant(row) / row["n"]))
            found.setdefault(row["order"], {})[str(row["heads_left"])] = round(float(least), 4)
    return found


def readings(case: dict[str, Any], margin: float) -> dict[str, dict[str, int]]:
    """Heads left before a loss is seen, and surely within a margin, where gates were judged.

    Healed sets have points of their own, the same for all orders. A loss of theirs is one against
    the whole model trained as long, the margin is one from the whole model as it was.
    """
    left = {row["heads_left"] for row in case["curve"] if row["order"] == "gates"}
    found: dict[str, dict[str, int]] = {}
    for order in dict.fromkeys(row["order"] for row in case["curve"]):
        for healed, loss in ((False, ("delta", "p")), (True, ("fair", "fair_p"))):
            rows = [
                row
                for row in case["curve"]
                if (row["order"], row["healed"]) == (order, healed) and row["heads_left"] in left
            ]
            if rows:
                ends = {"before_a_loss": free(rows, *loss), "within": within(rows, margin)}
                found[f"{order}, healed" if healed else order] = {
                    name: int(end.get("heads_left", case["heads"])) for name, end in ends.items()
                }
    return found


def _verdict(row: dict[str, Any], margin: float) -> str:
    if row["p_adjusted"] < LEVEL:
        return "gates better" if row["difference"] > 0 else "ranking better"
    if -margin <= row["low"] and row["high"] <= margin:
        return "alike"
    return "cannot tell"


def judge_again(
    name: str,
    case: dict[str, Any],
    folder: Path | None,
    data: Path | None,
    config: Config,
    device: str = "cpu",
) -> Kept:
    """The sets of heads of a run on the classifier in a folder; nothing is ranked or learned."""
    from .classifier import read_case
    from .judge import judged

    own = read_case(name, config, folder, data, device)
    if own.held.hash != case["held"]["hash"]:
        raise InputError(
            f"{own.held.name} has other examples than those {name} was judged on; pass the data of "
            "that run (--data DIR)."
        )
    left = {row["heads_left"] for row in case["curve"] if row["order"] == "gates"}
    rows = [
        row
        for row in case["curve"]
        if row["order"] in ("gates", *RANKINGS) and row["heads_left"] in left and not row["healed"]
    ]
    kept = [set(row["kept"].split(",")) for row in rows]
    gone = [[head for head in own.subject.heads if str(head) not in one] for one in kept]
    whole, *found = judged(own.subject, own.judging, [(), *gone], config.classifiers.batch)
    orders: dict[str, dict[str, str]] = {}
    apart = [abs(float(whole.value) - case["whole"])]
    for row, outcome in zip(rows, found, strict=True):
        orders.setdefault(row["order"], {})[str(row["heads_left"])] = packed(outcome.scores)
        apart.append(abs(float(outcome.value) - row["value"]))
    return {
        "n": len(own.held),
        "whole": packed(whole.scores),
        "orders": orders,
        "apart_from_the_run": {
            "whole": apart[0],
            "mean": float(np.mean(apart)),
            "most": max(apart),
        },
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="research.pruning.paired", description=__doc__)
    add = parser.add_argument
    add("--results", type=Path, default=RESULTS)
    add("--classifiers", type=Path, help="judge recorded sets again with what lies here")
    add("--data", type=Path, default=os.environ.get("HEADCOUNT_DATA"), help="folder with glue/")
    add("--device", default="cpu")
    add("--only", nargs="+", help="names of classifiers to judge; all in the folder by default")
    return told(lambda: _all(parser.parse_args(arguments)))


def _all(given: argparse.Namespace) -> None:
    ran = json.loads((given.results / "pruning-classifiers.json").read_text(encoding="utf8"))
    margin = ran["config"]["classifiers"]["margin"]
    config = read_config(HERE / "config.toml")
    file = given.results / "pruning-paired.json"
    kept = (
        json.loads(file.read_text(encoding="utf8")).get("by_example", {}) if file.exists() else {}
    )
    for name, case in ran["cases"].items():
        there = given.classifiers is not None and (given.classifiers / name).is_dir()
        if name in given.only if given.only else there:
            kept[name] = judge_again(
                name, case, given.classifiers, given.data, config, given.device
            )
            _write(file, ran, margin, kept)
    for name, rows in _write(file, ran, margin, kept)["cases"].items():
        for row in rows:
            print(name, row["heads_left"], row["ranking"], f"{row['difference']:+.4f}",
                  f"[{row['low']:+.4f}, {row['high']:+.4f}]", row["verdict"])  # fmt: skip


def _write(file: Path, ran: Any, margin: float, kept: dict[str, Kept]) -> dict[str, Any]:
    cases = ran["cases"].items()
    found = {
        "command": COMMAND,
        "margin": margin,
        "level": LEVEL,
        "cases": {
            name: compared(one, margin, by_example(one) or kept.get(name)) for name, one in cases
        },
        "by_the_bound": {name: compared(one, margin) for name, one in cases if name in kept},
        "least_seen": {name: least_seen(case) for name, case in cases},
        "readings": {name: readings(case, margin) for name, case in cases},
        "by_example": kept,
        "provenance": provenance.collect() | {"command": COMMAND},  # no path of a machine
    }
    write_bytes(file, (json.dumps(found, indent=1) + "\n").encode())
    return found


if __name__ == "__main__":
    sys.exit(main())
