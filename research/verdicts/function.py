"""`python -m research.verdicts.function [--run RUN] [--survey RUN]`: do roles tell what matters?

RUN is a run of `headcount report`, which has the scores and the pruning curve; without one the
bundled translator's is measured into `--work`, or taken from there. Its roles are tested, or those
of another survey of the same model.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import headcount as hc
from headcount.rooms.agreement.agreement import by_role, role_sentences
from research import RESULTS


def main() -> None:
    parser = argparse.ArgumentParser(prog="research.verdicts.function", description=__doc__)
    parser.add_argument("--run", type=Path, help="a run of `headcount report` that is there")
    parser.add_argument("--survey", type=Path, help="a run whose roles are tested instead")
    parser.add_argument("--work", type=Path, default=Path("run/function"), help="a run of our own")
    parser.add_argument("--limit", type=int, help="so many examples at most, for a trial")
    parser.add_argument("--out", type=Path, default=RESULTS / "function.json")
    given = parser.parse_args()
    table = hc.HeadTable.load(given.run or reported(given.work, given.limit))
    if given.survey is not None:
        table.details["roles"] = hc.HeadTable.load(given.survey).details["roles"]
    found = by_role(table)
    told = {
        "command": "python -m research.verdicts.function",
        "model": table.provenance.get("model"),
        "sentences": role_sentences(found),
        "rows": json.loads(found.to_json(orient="records", double_precision=4)),
    }
    given.out.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf8")
    print(*told["sentences"], sep="\n")


def reported(work: Path, limit: int | None) -> Path:
    """What `headcount report` measures of the bundled translator; the same call goes on there."""
    hc.story(
        run=work, page=work.with_suffix(".html"), measuring=hc.StoryOptions(limit=limit),
        drawing=hc.PageOptions(exhibits=False), device="cpu",
    )  # fmt: skip
    return work


if __name__ == "__main__":
    main()
