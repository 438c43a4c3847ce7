"""`python -m research.relevance`: compare the rules, write research/results/relevance.json."""

from __future__ import annotations

import argparse
import json
import tomllib
from pathlib import Path
from typing import Any

import headcount as hc
from headcount.bundle import sample
from headcount.records import provenance
from headcount.tasks import natural_task
from research import RESULTS
from research.relevance.compare import compared
from research.relevance.variants import rules

HERE = Path(__file__).parent
COMMAND = "python -m research.relevance"


def texts(name: str, count: int) -> list[Any]:
    """The shortest texts of the sample, or pairs of them, as the model takes them."""
    if name == "translator":
        return sorted(sample.pairs(), key=lambda pair: len(pair[0]))[:count]
    ordered = sorted(sample.sentences(), key=len)
    if name == "minilm":
        return list(zip(ordered[: 2 * count : 2], ordered[1 : 2 * count : 2], strict=True))
    return ordered[:count]


def top_heads(subject: hc.Subject, table: hc.HeadTable) -> dict[str, list[list[Any]]]:
    """The two most relevant heads of every layer."""
    found = {}
    for site in subject.anatomy.sites:
        layer = table.select(site.names)
        best = [[str(head), layer.head(head)["relevance"]] for head in layer.rank("relevance")[:2]]
        found[f"{site.stack}.{site.layer}"] = [[name, round(value, 3)] for name, value in best]
    return found


def measured(name: str, count: int) -> dict[str, Any]:
    from headcount.rooms.relevance.score import relevance

    subject = hc.load(name, device="cpu", dtype="float32")
    task = natural_task(subject, texts(name, count))
    found = compared(subject, task, rules())
    return {**found, "texts": count, "top": top_heads(subject, relevance(subject, task))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--models", nargs="*", help="some of the models")
    parser.add_argument("--texts", type=int, help="use fewer texts, for a trial")
    given = parser.parse_args()
    config = tomllib.loads((HERE / "config.toml").read_text())
    chosen = given.models or list(config["models"])
    file = given.out / "relevance.json"
    before = json.loads(file.read_text())["models"] if file.exists() else {}
    models = {name: measured(name, given.texts or config["models"][name]) for name in chosen}
    about = provenance.collect() | {"command": COMMAND}
    result = {"command": COMMAND, "models": {**before, **models}, "provenance": about}
    file.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
