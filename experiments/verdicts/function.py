"""`python -m experiments.verdicts.function --run RUN [--survey RUN]`: do heads with a role matter?

RUN is a run of `headcount report`, which has the scores and the pruning curve. Its roles are
tested, or those of another survey of the same model.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import headcount as hc
from headcount.importance import by_role, role_sentences

RESULTS = Path(__file__).parent.parent.parent / "docs" / "results"


def main() -> None:
    parser = argparse.ArgumentParser(prog="experiments.verdicts.function", description=__doc__)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--survey", type=Path, help="a run whose roles are tested instead")
    parser.add_argument("--out", type=Path, default=RESULTS / "function.json")
    given = parser.parse_args()
    table = hc.HeadTable.load(given.run)
    if given.survey is not None:
        table.details["roles"] = hc.HeadTable.load(given.survey).details["roles"]
    found = by_role(table)
    told = {
        "command": "python -m experiments.verdicts.function",
        "model": table.provenance.get("model"),
        "sentences": role_sentences(found),
        "rows": json.loads(found.to_json(orient="records", double_precision=4)),
    }
    given.out.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf8")
    print(*told["sentences"], sep="\n")


if __name__ == "__main__":
    main()
