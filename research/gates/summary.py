"""`python -m research.gates.summary --runs DIR`: what the runs say, in one JSON.

BLEU of every run beside the same training without gates, with the paired bootstrap over
sentences (Koehn 2004) from what each run's JSON keeps of its translations. Where there are several
seeds, their mean is what is resampled, and `seeded` adds what the seeds differ by.
`--against NAME ...`: the runs of one folder, whatever their schedules, each against these.
`--recorded`: the headline's intervals again from what the JSON itself records, without runs.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from headcount.errors import InputError, UsageError
from headcount.stats import bleu, bootstrap_difference, bootstrap_interval
from headcount.stats.sample import Floats
from research import RESULTS

from .counts import unpacked_counts

__all__ = ["compared", "recorded", "seeded", "summary"]

COMMAND = "python -m research.gates.summary"
PARTS = ("dev", "test")
REACH = 1.959964  # standard errors to an end of a 95% interval
POWER = 2.8  # standard errors of a loss that is seen in 80% of cases at the level of 5%


def main() -> None:
    parser = argparse.ArgumentParser(prog="research.gates.summary", description=__doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--runs", type=Path, help="folder with main/ and curve/")
    source.add_argument("--recorded", action="store_true", help="no runs: from --out itself")
    parser.add_argument("--out", type=Path, default=RESULTS / "pruning-gates.json")
    parser.add_argument("--against", nargs="+", help="runs of the folder; e.g. all-48-long")
    given = parser.parse_args()
    if given.recorded:
        told = recorded(json.loads(given.out.read_text()))
    elif given.against:
        told = compared(given.runs, given.against)
    else:
        told = summary(given.runs)
    given.out.write_text(json.dumps(told, indent=1) + "\n")


def compared(runs: Path, baselines: Sequence[str]) -> dict[str, Any]:
    """Every run with its steps and its BLEU, and its difference from each baseline."""
    folder = _Folder(runs)
    for name in baselines:
        if name not in folder.told:
            there = ", ".join(folder.names) or "none"
            raise UsageError(f"{runs} has no run '{name}' to hold the others against; has {there}.")
    return {
        "command": f"{COMMAND} --against {' '.join(baselines)}",
        "sentences": folder.sentences,
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


def summary(runs: Path) -> dict[str, Any]:
    """The headline over seeds, and every run of the curve against the curve's own baseline."""
    main, curve = _Folder(runs / "main"), _Folder(runs / "curve")
    told = {name: main.about(name) for name in main.names}
    gated, whole = _sides(told)
    mean = {part: main.against(gated, whole, part) for part in PARTS}
    return {
        "command": COMMAND,
        "sentences": main.sentences,
        "headline": {
            "steps": main.told[gated[0]]["steps"],
            "seeds": len(gated),
            "mean": {part: _with_seeds(mean[part], told, part) for part in PARTS},
            "runs": told,
        },
        "curve": {
            "steps": curve.told["base"]["steps"],
            "runs": {name: curve.about(name, _baseline(name)) for name in curve.names},
        },
    }


def recorded(told: dict[str, Any]) -> dict[str, Any]:
    """The same file with the headline's intervals made again from what it records."""
    old = told["headline"]
    mean = {part: _with_seeds(old["mean"][part], old["runs"], part) for part in PARTS}
    about = {key: old[key] for key in ("steps", "seeds")}
    return told | {"headline": about | {"mean": mean, "runs": old["runs"]}}


def _sides(runs: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The seeds with ten heads, and those with all."""
    sides = [[name for name in runs if name.startswith(start)] for start in ("enc-10", "base")]
    return sides[0], sides[1]


def _with_seeds(found: dict[str, Any], runs: dict[str, Any], part: str) -> dict[str, Any]:
    """A difference of means over seeds: what was resampled over sentences, and with seeds."""
    alone = found.get("sentences_alone", found["difference"])
    mine, theirs = ([runs[name][part]["bleu"] for name in side] for side in _sides(runs))
    return {
        "bleu": found["bleu"],
        "baseline": found["baseline"],
        "difference": seeded(alone, mine, theirs),
        "sentences_alone": alone,
    }


def seeded(
    sentences: dict[str, float], mine: Sequence[float], theirs: Sequence[float]
) -> dict[str, Any]:
    """A difference of two means over seeds with an interval that has sentences and seeds in it.

    Its variance is V = S + a^2 / n + b^2 / m. S is that of drawing sentences, from the bootstrap's
    interval: ((high - low) / (2 * 1.96))^2. a and b are the standard deviations of BLEU over the n
    and m seeds of the two sides, which are taken as independent. The interval is the difference
    +- t * sqrt(V), with Student's t of Satterthwaite's degrees of freedom:
    V^2 / ((a^2/n)^2 / (n - 1) + (b^2/m)^2 / (m - 1)); S is known far better and adds none.

    It errs on the wide side: what differs from seed to seed by sentence is in S and in a and b.
    `in_pairs` has the same with the variance of the differences of like seeds, d^2 / n, for both:
    they read the text in one order.

    >>> alone = {"delta": -1.0, "delta_low": -1.2, "delta_high": -0.8}
    >>> found = seeded(alone, [40, 41, 42], [41, 42, 43])
    >>> found["delta_low"] < -3, round(found["in_pairs"]["delta_low"], 3)
    (True, -1.2)
    """
    apart = np.subtract(mine, theirs) if len(mine) == len(theirs) else None
    found = _student(sentences, [mine, theirs])
    return found | ({} if apart is None else {"in_pairs": _student(sentences, [apart])})


def _student(sentences: dict[str, float], drawn: Sequence[Any]) -> dict[str, Any]:
    """The interval from that of sentences and what varies over seeds, independent of each other."""
    parts = [(float(np.var(values, ddof=1)) / len(values), len(values) - 1) for values in drawn]
    alone = (sentences["delta_high"] - sentences["delta_low"]) / (2 * REACH)
    seeds = sum(variance for variance, _ in parts)
    error = math.sqrt(alone**2 + seeds)
    spread = sum(variance**2 / freedom for variance, freedom in parts)
    freedom = error**4 / spread if spread else math.inf
    half, delta = float(stats.t.ppf(0.975, freedom)) * error, sentences["delta"]
    return {
        "delta": delta,
        "delta_low": _round(delta - half),
        "delta_high": _round(delta + half),
        "p": float(f"{2 * float(stats.t.sf(abs(delta) / error, freedom)):.3g}"),
        "error_of_sentences": _round(alone),
        "error_of_seeds": _round(math.sqrt(seeds)),
        "degrees_of_freedom": round(min(freedom, 1e6), 1),
        "detectable": _round(POWER * error),
    }


def _baseline(name: str) -> str:
    """What a run is measured against: the same training with all heads, from the same start."""
    return "scratch-all" if name.startswith("scratch") else "base"


class _Folder:
    """The results of runs that share a schedule."""

    def __init__(self, folder: Path) -> None:
        self.told = {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}
        self.names = sorted(self.told)
        self._counts: dict[tuple[str, str], Floats] = {}

    @property
    def sentences(self) -> dict[str, int]:
        return {part: len(self.counts(self.names[0], part)) for part in PARTS}

    def counts(self, name: str, part: str) -> Floats:
        """What BLEU counts in each sentence. `[sentence, 10]`"""
        if (name, part) not in self._counts:
            score = self.told[name]["scores"].get(part, {})
            if "counts" not in score:
                raise InputError(
                    f"The run '{name}' keeps no counts of {part}; run it again with --parts {part}."
                )
            self._counts[name, part] = unpacked_counts(score["counts"])
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
