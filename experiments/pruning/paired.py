"""`python -m experiments.pruning.paired`: gates against rankings with as many heads left.

Both were judged on the same examples, each against the whole model; right and wrong by example were
not kept. An example on which two pruned models differ is one on which at least one of them differs
from the whole model, so they differ on at most as many examples as both do from it together.
McNemar's test with that many is the test of the pair at its worst: it can only err on the side of
*cannot tell*. How often a pruned model differs from the whole one follows from the interval of its
loss.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

from scipy.stats import binomtest

from experiments.disabling.detectable import minimum_detectable_difference
from headcount.records import provenance
from headcount.stats import adjust

RESULTS = Path(__file__).parents[2] / "docs" / "results"
COMMAND = "python -m experiments.pruning.paired"
RANKINGS = ("gradient", "gradient by layer", "ablation")
LEVEL, REACH = 0.05, 1.959964


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
        "heads_left": gates["heads_left"],
        "ranking": ranking["order"],
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


def compared(case: dict[str, Any], margin: float) -> list[dict[str, Any]]:
    """Every number of heads at which gates and a ranking were judged; Holm over all of them."""
    bare = [row for row in case["curve"] if not row["healed"]]
    by = {(row["order"], row["heads_left"]): row for row in bare}
    rows = [
        against(row, by[name, row["heads_left"]])
        for row in bare
        if row["order"] == "gates"
        for name in RANKINGS
        if (name, row["heads_left"]) in by
    ]
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


def _verdict(row: dict[str, Any], margin: float) -> str:
    if row["p_adjusted"] < LEVEL:
        return "gates better" if row["difference"] > 0 else "ranking better"
    if -margin <= row["low"] and row["high"] <= margin:
        return "alike"
    return "cannot tell"


def main() -> None:
    parser = argparse.ArgumentParser(prog="experiments.pruning.paired", description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    told = json.loads((given.results / "pruning-classifiers.json").read_text(encoding="utf8"))
    margin = told["config"]["classifiers"]["margin"]
    cases = {name: compared(case, margin) for name, case in told["cases"].items()}
    for name, rows in cases.items():
        for row in rows:
            print(name, row["heads_left"], row["ranking"], f"{row['difference']:+.4f}",
                  f"[{row['low']:+.4f}, {row['high']:+.4f}]", row["verdict"])  # fmt: skip
    found = {"command": COMMAND, "margin": margin, "level": LEVEL, "cases": cases}
    found["least_seen"] = {name: least_seen(case) for name, case in told["cases"].items()}
    found["provenance"] = provenance.collect()
    file = given.results / "pruning-paired.json"
    file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
