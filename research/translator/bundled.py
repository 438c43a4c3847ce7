"""Score the bundled translator as users load it, and draw how it was trained.

`python -m research.translator.bundled --data DIR` writes `research/results/translator.json` and the
figures beside it.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import headcount as hc
from headcount.bundle import sample
from headcount.records import provenance
from headcount.tasks import translation
from research import RESULTS, pages_of

from .draw import draw

HERE = Path(__file__).parent
COMMAND = "python -m research.translator.bundled"  # as run from the root, without paths


def scored(
    subject: hc.Subject, examples: Any, shown: int = 0, limit: int | None = None
) -> dict[str, Any]:
    """BLEU with its interval and signature, and as many translations as shall be shown."""
    task = translation(examples, metric="bleu", beams=4)
    task = task if limit is None else task.limit(limit, 0)
    outcome = task.evaluate(subject, batch_size=64)
    _, low, high = outcome.interval()
    step = max(1, len(task.examples) // max(1, shown))
    return {
        "pairs": len(task.examples),
        "bleu": round(float(outcome.value), 2),
        "interval": [round(float(low), 2), round(float(high), 2)],
        "signature": outcome.signature,
        "examples": [
            {
                "source": task.examples[place].source,
                "reference": task.examples[place].target,
                "translation": outcome.outputs[place],
            }
            for place in range(0, step * shown, step)
        ],
    }


def over_training() -> list[dict[str, Any]]:
    """BLEU with heads shut, least important first, at every snapshot of the training."""
    told = json.loads((HERE / "results" / "en-de" / "dynamics.json").read_text())
    return [{"step": one["step"], "curve": one["curve"]} for one in told["snapshots"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("HEADCOUNT_DATA"))
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--limit", type=int, help="so many pairs of each, for a trial")
    given = parser.parse_args()
    if given.data is None:
        parser.error("say where the corpora are: --data DIR, or set HEADCOUNT_DATA")
    subject, test = hc.load("translator", device="cpu"), "parallel/tatoeba.en-de.test.tsv"
    result = {
        "tatoeba test": scored(subject, Path(given.data) / test, limit=given.limit),
        "bundled sample": scored(subject, sample.pairs(), shown=8, limit=given.limit),
        "heads over training": over_training(),
        "provenance": provenance.collect(subject=subject.describe()) | {"command": COMMAND},
    }
    (given.out / "translator.json").write_text(
        json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf8"
    )
    draw(given.out, pages_of(given.out))


if __name__ == "__main__":
    main()
