"""`python -m experiments.verdicts.antecedents --data DIR`: antecedents on OntoGUM's training part.

The development part has too few mentions to tell a head from the rule that matches head words.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import headcount as hc
from headcount.survey.roles import Coreference

RESULTS = Path(__file__).parent.parent.parent / "docs" / "results"


def main() -> None:
    parser = argparse.ArgumentParser(prog="experiments.verdicts.antecedents", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("HEADCOUNT_DATA"))
    parser.add_argument("--models", nargs="+", default=["minilm"])
    parser.add_argument("--limit", type=int, help="so many documents")
    parser.add_argument("--out", type=Path, default=RESULTS / "antecedents.json")
    given = parser.parse_args()
    told: dict[str, object] = {"command": "python -m experiments.verdicts.antecedents"}
    for name in given.models:
        subject = hc.load(name, device="cpu")
        file = Path(given.data) / "coref" / "ontogum-train.jsonl.xz"
        table = hc.survey(
            subject, coref=file, roles=[Coreference()], batch_size=8, limit=given.limit
        )
        frame = table.details["coreference"]
        best = frame[(frame["split"] == "report") & frame["selected"].astype(bool)]
        told[name] = json.loads(best.to_json(orient="records", double_precision=4))
        given.out.write_text(json.dumps(told, indent=1) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
