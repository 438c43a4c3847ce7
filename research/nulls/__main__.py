"""`python -m research.nulls --data DIR`: verdicts that survive each rung, by model and treebank."""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import headcount as hc
from headcount.bundle import sample
from headcount.records.files import write_bytes
from research import RESULTS

from .page import FILE

#: Treebanks by the name of a column, as the surveys of roles read them.
TREEBANKS = {
    "EWT": "treebanks/en_ewt-ud-dev.conllu.xz",
    "GUM": "treebanks/en_gum-ud-dev.conllu.xz",
    "PUD": "treebanks/en_pud-ud-test.conllu.xz",
    "demo": None,
}
MODELS = ("minilm", "e5-small", "smollm2", "translator")
COMMAND = "python -m research.nulls"


def main() -> None:
    """Survey each model on each treebank; what is done already is kept."""
    parser = argparse.ArgumentParser(prog="research.nulls", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("HEADCOUNT_DATA"))
    parser.add_argument("--only", nargs="*", help="models, e.g. minilm; all when it is not said")
    parser.add_argument("--corpora", nargs="*", help="treebanks, e.g. EWT; all when not said")
    parser.add_argument("--again", action="store_true", help="measure again what is known")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    file = given.out / FILE
    known = json.loads(file.read_text(encoding="utf8"))["surveys"] if file.exists() else {}
    for model in given.only or MODELS:
        for corpus in given.corpora or TREEBANKS:
            name, path = f"{model} {corpus}", TREEBANKS[corpus]
            if (name in known and not given.again) or (path and not given.data):
                continue
            print(f"{name} ...", flush=True)
            known[name] = measured(model, path and Path(given.data) / path)
            text = json.dumps({"command": COMMAND, "surveys": known}, ensure_ascii=False)
            write_bytes(file, text.encode() + b"\n")


def measured(model: str, treebank: Path | None) -> dict[str, Any]:
    """The syntactic verdicts of one survey, each with its rung and its nulls."""
    began = time.monotonic()
    subject = hc.load(model, device="cpu")
    table = hc.survey(
        subject,
        treebank=str(treebank or sample.path()),
        roles=[hc.roles.Syntactic()],
        columns=["confidence"],
        reading=hc.ReadingOptions(stacks=[subject.anatomy.stacks[0]]),
    )
    roles, ladder = table.details["roles"], table.details.get("ladder")
    verdicts = []
    for row in roles.to_dict("records"):
        kept = {name: row[name] for name in ("label", "value", "low", "baseline", "rung")}
        kept |= {n: row[n] for n in row if n.startswith("null_") and row[n] == row[n]}
        head = f"{row['stack']}.{row['layer']}.{row['head']}"
        verdicts.append({"head": head} | {n: _plain(one) for n, one in kept.items()})
    rungs = {str(rung): int((roles["rung"] >= rung).sum()) for rung in (1, 2, 3, 4)}
    about = table.provenance
    return {
        "verdicts": verdicts,
        "surviving": rungs,
        "above_zero": _above_zero(roles, ladder),
        "seconds": round(time.monotonic() - began, 1),
        "provenance": {
            "command": COMMAND,
            "weights": about.get("weights"),
            "data": next(iter(about["corpora"].values()))["data"],
            "versions": about["versions"],
            "time": about["time"],
        },
    }


def _above_zero(roles: Any, ladder: Any) -> int:
    """Verdicts whose paired interval against the nearest word lies above 0, without a margin."""
    if ladder is None or not len(roles):
        return 0
    second = ladder[ladder["rung"] == 2].assign(
        label=ladder["relation"] + " " + ladder["direction"]
    )
    key = ["stack", "layer", "head", "label"]
    return int((roles[key].merge(second, on=key)["lead_low"] > 0).sum())


def _plain(value: Any) -> Any:
    return value if isinstance(value, str) else round(float(value), 4)


if __name__ == "__main__":
    main()
