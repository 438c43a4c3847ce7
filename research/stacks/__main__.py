"""`python -m research.stacks --data DIR --out FILE`: BLEU as one stack loses its heads.

Michel et al. 2019, figure 4 (each kind of attention pruned alone: cross-attention collapses first)
and Tables 2 and 5 (one head left in a layer, the best one, chosen on other data). Heads are ranked
by gradient on training pairs, layers' heads chosen on dev, everything is judged on test.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import headcount as hc
from headcount.importance import Intervention, sweep
from headcount.records.heads import Head
from headcount.stats import bleu, bootstrap_difference, holm
from headcount.tasks import translation
from headcount.tasks.translations import bleu_counts
from headcount.wiring.valves import valve
from research import RESULTS
from research.translator.evaluate import translate
from research.translator.pairs import Pair, read_pairs

COMMAND = "python -m research.stacks"


def main() -> None:
    parser = argparse.ArgumentParser(prog="research.stacks", description=__doc__)
    add = parser.add_argument
    add("--data", type=Path, default=os.environ.get("HEADCOUNT_DATA"), help="folder of corpora")
    add("--out", type=Path, default=RESULTS / "pruning-by-stack.json")
    add("--device", default="cuda")
    add("--rank", type=int, default=1000, help="training pairs that rank heads")
    add("--choose", type=int, default=500, help="dev pairs that choose a layer's head")
    add("--judge", type=int, default=2500, help="test pairs")
    add("--longest", type=int, default=128, help="tokens of a translation")
    add("--step", type=int, default=10, help="percent of a stack's heads from point to point")
    add("--sixty", type=int, default=0, help="test pairs for 60 percent gone, judged once more")
    add("--time-limit", type=float, default=1e9, help="seconds after which nothing is begun")
    given = parser.parse_args()
    inner = Path(given.data) / "parallel"
    found = by_stack(given, inner if inner.is_dir() else Path(given.data))
    given.out.write_text(json.dumps(found, indent=1) + "\n")


def by_stack(given: argparse.Namespace, data: Path) -> dict[str, Any]:
    """Both experiments on the bundled translator."""
    began = time.monotonic()
    subject = hc.load("translator", device=given.device)
    direct = [p for p in read_pairs(data / "tatoeba.en-de.train.tsv.xz") if p.direct]
    chosen = np.random.default_rng(0).permutation(len(direct))[: given.rank]
    ranked = translation(_pairs([direct[row] for row in chosen]), metric="loss")
    dev = translation(
        _pairs(read_pairs(data / "tatoeba.en-de.dev.tsv")[: given.choose]), metric="loss"
    )
    test = read_pairs(data / "tatoeba.en-de.test.tsv")[: given.judge]
    judge = _Judge(subject, test, given.longest)
    scores = hc.score(subject, ranked, by="gradient", batch_size=64)
    order = scores.rank("gradient")[::-1]
    told: dict[str, Any] = {
        "command": COMMAND,
        "rank": len(ranked), "choose": len(dev), "test": len(test), "longest": given.longest,
        "whole": judge.whole_bleu,
        "stacks": [], "layers": [],
    }  # fmt: skip
    for stack in subject.anatomy.stacks:
        mine = [head for head in order if head.stack == stack]
        for percent in range(given.step, 101, given.step):
            if time.monotonic() - began > given.time_limit:
                break
            gone = mine[: len(mine) * percent // 100]
            told["stacks"].append({"stack": stack, "left": len(mine) - len(gone), **judge(gone)})
    if given.sixty:
        more = read_pairs(data / "tatoeba.en-de.test.tsv")[: given.sixty]
        told["at 60 percent"] = at_sixty(subject, order, more, given.longest)
    groups = {head[:2]: [h for h in subject.heads if h[:2] == head[:2]] for head in subject.heads}
    alone = {head: [h for h in groups[head[:2]] if h != head] for head in subject.heads}
    every = [Intervention(alone[head], name=str(head)) for head in subject.heads]
    found = sweep(subject, dev, every, metric="loss", batch_size=64)
    loss = {head: one.value for head, one in zip(subject.heads, found.outcomes, strict=True)}
    for (stack, layer), heads in groups.items():
        if time.monotonic() - began > given.time_limit:
            break
        best = min(heads, key=lambda head: loss[head])
        told["layers"].append({"stack": stack, "layer": layer, "best": str(best),
                               **judge(alone[best])})  # fmt: skip
    for rows in (told["stacks"], told["layers"]):
        for row, p in zip(rows, holm([row["p"] for row in rows]) if rows else [], strict=True):
            row["p_adjusted"] = float(p)
    return told


def at_sixty(
    subject: hc.Subject, order: Sequence[Head], pairs: Sequence[Pair], longest: int
) -> dict[str, Any]:
    """Where the paper's collapse shows, on more pairs than the whole curve."""
    judge, rows = _Judge(subject, pairs, longest), []
    for stack in subject.anatomy.stacks:
        mine = [head for head in order if head.stack == stack]
        gone = mine[: len(mine) * 60 // 100]
        rows.append({"stack": stack, "left": len(mine) - len(gone), **judge(gone)})
    return {"test": len(pairs), "whole": judge.whole_bleu, "stacks": rows}


def _pairs(pairs: Sequence[Pair]) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in pairs]


class _Judge:
    """BLEU with beam 4 without some heads, and its difference from the whole model."""

    def __init__(self, subject: hc.Subject, pairs: Sequence[Pair], longest: int) -> None:
        self.subject, self.pairs, self.longest = subject, pairs, longest
        self.whole = self.counts(())
        self.whole_bleu = round(float(bleu(self.whole.sum(axis=0))), 3)

    def counts(self, gone: Sequence[Head]) -> Any:
        """What BLEU counts in each sentence, ``[sentence, 10]``."""
        model: Any = self.subject.model
        with valve(self.subject, dict.fromkeys(gone, 0.0)):
            told = translate(
                model,
                self.subject.tokenizer,
                [p.source for p in self.pairs],
                batch=640,
                longest=self.longest,
            )
        rows = zip(told, (pair.target for pair in self.pairs), strict=True)
        return np.array([bleu_counts(*row) for row in rows], dtype=float)

    def __call__(self, gone: Sequence[Head]) -> dict[str, Any]:
        """BLEU, and how far it is from the whole model's."""
        counts = self.counts(gone)
        found = bootstrap_difference(counts, self.whole, bleu)
        value = round(float(bleu(counts.sum(axis=0))), 3)
        print(len(gone), value, flush=True)
        return {
            "bleu": value,
            "delta": round(float(found.value), 3),
            "low": round(float(found.low), 3),
            "high": round(float(found.high), 3),
            "p": float(found.p),
        }


if __name__ == "__main__":
    main()
