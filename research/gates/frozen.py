"""`python -m research.gates.frozen --data DIR --runs DIR`: runs with a frozen decoder, or of
another translator (`--domain`).

BLEU against the same training without gates. The interval of the headline resamples seeds and
sentences (a hierarchical bootstrap), parts are never pooled, and the smallest loss that could have
been told from nothing stands beside it. Roles are judged anew on each pruned encoder (figure 8).
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from headcount.stats import bleu
from headcount.stats.sample import Floats
from headcount.tasks.translations import bleu_counts
from research import RESULTS
from research.translator.pairs import read_pairs

from .survivors import pruned, roles_left

FILES = {
    "tatoeba": {
        "dev": "tatoeba.en-de.dev.tsv", "test": "tatoeba.en-de.test.tsv",
        "lohelp": "lohelp.en-de.test.tsv", "pud": "pud.en-de.test.tsv",
    },
    "lohelp": {"dev": "lohelp.en-de.dev.tsv", "test": "lohelp.en-de.test.tsv"},
    "russian": {"dev": "tatoeba.en-ru.dev.tsv", "test": "tatoeba.en-ru.test.tsv"},
}  # fmt: skip
DRAWS = 2000


def main() -> None:
    parser = argparse.ArgumentParser(prog="research.gates.frozen", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("HEADCOUNT_DATA"))
    parser.add_argument("--pud", type=Path, help="the file that research.gates.pud wrote")
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=RESULTS / "pruning-frozen.json")
    parser.add_argument("--domain", choices=FILES, default="tatoeba", help="what was translated")
    parser.add_argument("--start", default="translator", help="the translator before pruning")
    parser.add_argument("--add", action="store_true", help="further runs to those that are known")
    given = parser.parse_args()
    inner = Path(given.data) / "parallel"
    data = inner if inner.is_dir() else Path(given.data)
    command = f"python -m research.gates.frozen --domain {given.domain}"
    told: dict[str, Any] = {"command": command, "headline": {}, "curve": {}, "roles": {}}
    told |= json.loads(given.out.read_text()) if given.add else {}
    runs = _Runs(given.runs)
    gated = [name for name in runs.told if name.startswith("enc-10-")]
    whole = [name for name in runs.told if name.startswith("base-")]
    if gated:
        told["steps"], told["seeds"] = runs.told[gated[0]]["steps"], len(gated)
    for part, file in FILES[given.domain].items():
        path = given.pud if part == "pud" and given.pud else data / file
        judged = all((given.runs / f"{name}.{part}.txt").exists() for name in whole)
        if path is None or not path.is_file() or not judged:
            continue
        right = [pair.target for pair in read_pairs(path)]
        theirs = runs.counts(whole, part, right)
        if gated:
            mine = runs.counts(gated, part, right)
            told["headline"][part] = _difference(mine, theirs) | {"sentences": len(right)}
        for name in runs.told:
            if name.startswith("enc-") and (given.runs / f"{name}.{part}.txt").exists():
                one = runs.counts([name], part, right)
                left = str(runs.told[name]["keep"])
                told["curve"].setdefault(part, {})[name] = _difference(one, theirs) | {
                    "left": left,
                    "untouched": runs.told[name]["untouched"][part]["bleu"],
                    "against": ", ".join(whole),
                }
    for path in sorted(given.runs.glob("*.roles.json")):  # surveyed where it was trained
        name = path.name.removesuffix(".roles.json")
        if not (given.add and name in told["roles"]):
            told["roles"][name] = json.loads(path.read_text())
    for path in sorted(given.runs.glob("*.safetensors")):
        if path.stem not in told["roles"] and path.stem != "cut":
            told["roles"][path.stem] = roles_left(pruned(path.with_suffix(""), given.start))
            print(path.stem, told["roles"][path.stem]["counts"], flush=True)
    given.out.write_text(json.dumps(told, indent=1) + "\n")


class _Runs:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.told = {
            path.stem: json.loads(path.read_text())
            for path in sorted(folder.glob("*.json"))
            if not path.stem.endswith(".roles")
        }

    def counts(self, names: list[str], part: str, right: list[str]) -> Floats:
        """What BLEU counts, ``[seed, sentence, 10]``."""
        rows = []
        for name in names:
            said = (self.folder / f"{name}.{part}.txt").read_text().splitlines()
            rows.append([bleu_counts(*row) for row in zip(said, right, strict=True)])
        return np.array(rows, dtype=float)


def _difference(mine: Floats, theirs: Floats) -> dict[str, float]:
    """The mean BLEU of the seeds, and its difference with seeds and sentences drawn again."""
    random, drawn = np.random.default_rng(0), []
    for _ in range(DRAWS):
        rows = random.integers(0, mine.shape[1], mine.shape[1])
        weights = np.bincount(rows, minlength=mine.shape[1])
        sides = [
            bleu(np.einsum("s,psk->pk", weights, side)[random.integers(0, len(side), len(side))])
            for side in (mine, theirs)
        ]
        drawn.append(float(sides[0].mean() - sides[1].mean()))
    low, high = np.quantile(drawn, [0.025, 0.975])
    values = [float(bleu(side.sum(axis=1)).mean()) for side in (mine, theirs)]
    return {
        "bleu": round(values[0], 3),
        "baseline": round(values[1], 3),
        "delta": round(values[0] - values[1], 3),
        "low": round(float(low), 3),
        "high": round(float(high), 3),
        # A true loss so large is told from nothing in 80% of such experiments.
        "detectable": round(2.8 * float(np.std(drawn)), 3),
    }


if __name__ == "__main__":
    main()
