"""`python -m experiments.gates.summary --data DIR --runs DIR`: what the runs say, in one JSON.

BLEU of every run beside the same training without gates, with the paired bootstrap over
sentences (Koehn 2004). Where there are several seeds, their mean is what is resampled.
`--against NAME ...`: the runs of one folder, whatever their schedules, each against these.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.translator.pairs import read_splits
from headcount.errors import UsageError
from headcount.stats import bleu, bootstrap_difference, bootstrap_interval
from headcount.stats.sample import Floats
from headcount.tasks.translation import bleu_counts

from .config import read_settings

__all__ = ["compared", "summary"]

HERE = Path(__file__).parent
RESULTS = HERE.parent.parent / "docs" / "results"
COMMAND = "python -m experiments.gates.summary"
PARTS = ("dev", "test")


def main() -> None:
    parser = argparse.ArgumentParser(prog="experiments.gates.summary", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("HEADCOUNT_DATA"))
    parser.add_argument("--runs", type=Path, required=True, help="folder with main/ and curve/")
    parser.add_argument("--out", type=Path, default=RESULTS / "pruning-gates.json")
    parser.add_argument("--against", nargs="+", help="runs of the folder; e.g. all-48-long")
    given = parser.parse_args()
    right = _references(Path(given.data))
    told = (
        compared(given.runs, given.against, right) if given.against else summary(given.runs, right)
    )
    given.out.write_text(json.dumps(told, indent=1) + "\n")


def _references(data: Path) -> dict[str, list[str]]:
    from .__main__ import _folder

    config = read_settings(HERE / "config.toml")
    splits = read_splits(config.recipe.data, _folder(data))
    return {part: [pair.target for pair in getattr(splits, part)] for part in PARTS}


def compared(
    runs: Path, baselines: Sequence[str], right: dict[str, list[str]]
) -> dict[str, dict[str, Any] | str]:
    """Every run with its steps and its BLEU, and its difference from each baseline."""
    folder = _Folder(runs, right)
    for name in baselines:
        if name not in folder.told:
            there = ", ".join(folder.names) or "none"
            raise UsageError(f"{runs} has no run '{name}' to hold the others against; has {there}.")
    return {
        "command": f"{COMMAND} --against {' '.join(baselines)}",
        "sentences": {part: len(texts) for part, texts in right.items()},
        "runs": {
            name: folder.about(name) | {
                "steps": folder.told[name]["steps"],
                "scratch": folder.told[name]["scratch"],
                "against": {
                    other: {part: folder.against([name], [other], part) for part in PARTS}
                    for other in baselines
                    if other != name
                },
            }
            for name in folder.names
        },
    }  # fmt: skip


def summary(runs: Path, right: dict[str, list[str]]) -> dict[str, Any]:
    """The headline over seeds, and every run of the curve against the curve's own baseline."""
    main, curve = _Folder(runs / "main", right), _Folder(runs / "curve", right)
    gated = [name for name in main.names if name.startswith("enc-10")]
    whole = [name for name in main.names if name.startswith("base")]
    return {
        "command": COMMAND,
        "sentences": {part: len(texts) for part, texts in right.items()},
        "headline": {
            "steps": main.told[gated[0]]["steps"],
            "seeds": len(gated),
            "mean": {part: main.against(gated, whole, part) for part in PARTS},
            "pooled": _pooled(main, gated, whole),
            "runs": {name: main.about(name) for name in main.names},
        },
        "curve": {
            "steps": curve.told["base"]["steps"],
            "runs": {name: curve.about(name, _baseline(name)) for name in curve.names},
        },
    }


def _baseline(name: str) -> str:
    """What a run is measured against: the same training with all heads, from the same start."""
    return "scratch-all" if name.startswith("scratch") else "base"


class _Folder:
    """The results of runs that share a schedule."""

    def __init__(self, folder: Path, right: dict[str, list[str]]) -> None:
        self.folder, self.right = folder, right
        self.told = {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}
        self.names = sorted(self.told)
        self._counts: dict[tuple[str, str], Floats] = {}

    def counts(self, name: str, part: str) -> Floats:
        """What BLEU counts in each sentence. `[sentence, 10]`"""
        if (name, part) not in self._counts:
            said = (self.folder / f"{name}.{part}.txt").read_text().splitlines()
            rows = zip(said, self.right[part], strict=True)
            self._counts[name, part] = np.array([bleu_counts(*row) for row in rows], dtype=float)
        return self._counts[name, part]

    def against(self, names: list[str], baselines: list[str], part: str) -> dict[str, Any]:
        """The mean BLEU of some runs, that of others, and their difference."""
        mine = np.concatenate([self.counts(name, part) for name in names], axis=1)
        theirs = np.concatenate([self.counts(name, part) for name in baselines], axis=1)
        return _difference(mine, theirs)

    def about(self, name: str, baseline: str | None = None) -> dict[str, Any]:
        """One run: its heads, its BLEU on every part, beside the baseline where one is named."""
        told = self.told[name]
        heads: dict[str, Any] = Counter(head.split(".")[0] for head in told["kept"])
        layers = Counter(".".join(head.split(".")[:2]) for head in told["kept"])
        found: dict[str, Any] = {"left": dict(heads), "layers": dict(sorted(layers.items()))}
        whole = not told["stacks"] and told["scratch"] in ("", "all")
        found["kept"] = "all" if whole else told["kept"]
        found["train_seconds"] = told["train_seconds"]
        for part in PARTS:
            value, low, high = bootstrap_interval(self.counts(name, part), bleu)
            found[part] = {"bleu": _round(value), "low": _round(low), "high": _round(high)}
            if baseline and baseline != name:
                found[part] |= self.against([name], [baseline], part)["difference"]
            if "untouched" in told:
                found[part]["untouched"] = _round(told["untouched"][part]["bleu"])
        return found


def _pooled(folder: _Folder, mine: list[str], theirs: list[str]) -> dict[str, Any]:
    """Dev and test together: the least noise that these sentences allow."""
    sides = [
        np.concatenate(
            [np.concatenate([folder.counts(name, part) for part in PARTS]) for name in names],
            axis=1,
        )
        for names in (mine, theirs)
    ]
    return _difference(*sides)


def _difference(mine: Floats, theirs: Floats) -> dict[str, Any]:
    found = bootstrap_difference(mine, theirs, mean_bleu)
    return {
        "bleu": _round(mean_bleu(mine.sum(axis=0))),
        "baseline": _round(mean_bleu(theirs.sum(axis=0))),
        "difference": {
            "delta": _round(found.value),
            "delta_low": _round(found.low),
            "delta_high": _round(found.high),
            "p": float(f"{float(found.p):.3g}"),
        },
    }


def mean_bleu(sums: Floats) -> Floats:
    """The mean BLEU of systems whose counts stand side by side. `[..., 10 * systems]`"""
    return bleu(sums.reshape(*sums.shape[:-1], -1, 10)).mean(axis=-1)


def _round(value: Any) -> float:
    return round(float(value), 3)


if __name__ == "__main__":
    main()
