"""`python -m research.verdicts --label after`: how many heads of each model have which role.

Every model is surveyed on the bundled sample with its trees, next to a random twin, and heads are
counted by role. What was counted under another label stays in the JSON, so that the same command,
run on two commits, tells what a change of the rules does.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

import headcount as hc
from headcount.bundle import sample
from headcount.text import read_sample
from research import RESULTS

COMMAND = "python -m research.verdicts"
MODELS = ("translator", "minilm", "e5-small", "smollm2")


def main() -> None:
    parser = argparse.ArgumentParser(prog="research.verdicts", description=__doc__)
    parser.add_argument("--label", default="after", help="before, after, ...")
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--out", type=Path, default=RESULTS / "verdicts.json")
    parser.add_argument("--runs", type=Path, help="keep each survey here, and count those there")
    given = parser.parse_args()
    told: dict[str, Any] = {"command": COMMAND, "counts": {}}
    if given.out.exists():
        told = json.loads(given.out.read_text(encoding="utf8"))
    for name in given.models:
        kept = None if given.runs is None else given.runs / f"{name}-{given.label}"
        table = hc.HeadTable.load(kept) if kept is not None and kept.is_dir() else surveyed(name)
        if kept is not None and not kept.is_dir():
            table.save(kept)
        told["counts"].setdefault(given.label, {})[name] = counted(table)
        given.out.write_text(json.dumps(told, indent=1) + "\n", encoding="utf8")
        print(name, told["counts"][given.label][name]["roles"], flush=True)


def surveyed(name: str) -> hc.HeadTable:
    """The bundled sample with its trees and mentions; a translator also reads the translations."""
    subject = hc.load(name, device="cpu")
    paired = "cross" in subject.anatomy.stacks
    trees = read_sample(translation="text_de" if paired else None)
    return hc.survey(
        subject,
        trees,
        treebank=trees,
        coref=sample.path("coref.jsonl"),
        roles=hc.RoleOptions(roles=True, control="random-init"),
        reading=hc.ReadingOptions(batch_size=8, seed=0),
    )


def counted(table: hc.HeadTable) -> dict[str, Any]:
    """Heads by role, each once a role, and how many have any."""
    frame = table.details["roles"]
    heads = frame.drop_duplicates(["stack", "layer", "head", "role"])
    names = {
        role: sorted(f"{row.stack}.{row.layer}.{row.head}" for row in rows.itertuples())
        for role, rows in heads.groupby("role")
    }
    return {
        "heads": len(table),
        "with a role": len(heads.drop_duplicates(["stack", "layer", "head"])),
        "roles": dict(sorted(Counter(heads["role"]).items())),
        "named": names,
        "rarest": _rarest(table),
    }


def _rarest(table: hc.HeadTable) -> dict[str, Any] | None:
    """The head that points to one of the two rarest tokens most often, and by whose counts."""
    rows = table.details.get("rarity")
    if rows is None:
        return None
    rows = rows[(rows["target"] == "rare_two") & (rows["stack"] != "cross")]
    rows = rows[rows["layer"] == 0] if (rows["stack"] == "enc").any() else rows
    rows = rows[rows["stack"] == rows["stack"].iloc[0]]
    best = rows.sort_values("share").iloc[-1]
    figures = {name: round(float(best[name]), 4) for name in ("share", "low", "high", "uncommon")}
    head = f"{best['stack']}.{best['layer']}.{best['head']}"
    return {"head": head, **figures, "counts": best.get("counts", "the corpus")}


if __name__ == "__main__":
    main()
