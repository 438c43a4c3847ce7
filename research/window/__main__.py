"""`python -m research.window --data DIR --case NAME`: how many key groups need only a window.

Groups are ordered on some documents of GUM and on retrieval in templates that are shown; judged on
other documents and in templates that no order has seen. Orders: the largest share of what any task
loses (ours), the absolute slope, the loss of text alone, the attention that reaches beyond the
window, the cheap score of kvpress, and at random; each restricted, at equal memory; ours also
removed. Every finished figure is on the disk at once, and the same command goes on after a kill.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import rankdata
from transformers import AutoModelForCausalLM

import headcount as hc
from headcount import tasks
from headcount.errors import StatsError
from headcount.importance import sets, sweep
from headcount.pruning.curve import loss_bounds
from headcount.records import Head, provenance
from headcount.rooms.window import SHOWN, restrictable, save_windowed
from headcount.rooms.window.planning import Judge, Unit, largest_share, lookup, needle, repeated
from headcount.rooms.window.restricting import SIMPSON, Window, path_slopes, read_window
from headcount.stats import Floats
from headcount.tasks import Task
from research import RESULTS
from research.window.cheap import cumulated_attention

COMMAND = "python -m research.window --data DIR --case NAME"


@dataclass(frozen=True)
class Case:
    """One model, and how much is measured on it: documents, and pages of each retrieval."""

    model: str
    window: str
    length: int
    #: To order groups by, to choose among orders, and to judge.
    learn: tuple[int, int]
    choose: tuple[int, int]
    judge: tuple[int, int]
    asked: int = 10
    dtype: str = "float32"
    #: Shares of the groups at which our order is judged, and at which the others are.
    shares: tuple[float, ...] = (1 / 3, 1 / 6, 1 / 2, 2 / 3, 1.0)
    beside: tuple[float, ...] = (1 / 3,)
    others: tuple[str, ...] = ("random", "text alone", "kvpress")
    #: Of needles, lookups and repeats, how many judge.
    kinds: int = 3
    truth: int = 4


CASES = {
    "smollm2": Case("smollm2", "4+44", 384, (8, 3), (4, 2), (14, 16), 8, kinds=1),
    "smollm2-1k": Case(
        "smollm2", "16+240", 1024, (8, 3), (4, 2), (14, 12), 14, shares=(2 / 3, 1 / 2),
        others=("random",),
    ),
    "gemma3": Case(
        "gemma3-270m", "16+112", 768, (6, 3), (4, 2), (12, 12), 10, shares=(2 / 3, 1 / 3, 1.0),
        others=("random",),
    ),
    "qwen": Case(
        "qwen2.5-coder-1.5b", "4+44", 288, (4, 2), (2, 1), (8, 12), 6, "bfloat16",
        shares=(2 / 3, 1 / 2), others=("random",),
    ),
}  # fmt: skip


# --- Texts --------------------------------------------------------------------------------------


def documents(data: Path, parts: Sequence[str], length: int) -> list[str]:
    """Documents of OntoGUM, as text; those of far fewer words than tokens are left out."""
    found = []
    for part in parts:
        with lzma.open(data / f"coref/ontogum-{part}.jsonl.xz", "rt", encoding="utf8") as file:
            found += [_text(json.loads(line)) for line in file]
    return [text for text in found if len(text.split()) > 0.6 * length]


def _text(document: dict[str, Any]) -> str:
    text = " ".join(word for sentence in document["sents"] for word in sentence)
    for mark in (",", ".", ";", ":", "!", "?", "'s", "n't", ")", "]"):
        text = text.replace(f" {mark}", mark)
    return text.replace("( ", "(").replace("[ ", "[")


def lm_of(
    subject: hc.Subject, texts: Sequence[str], first: int, count: int, length: int, name: str
) -> Task:
    """The first `length` tokens of so many documents that have them, from one on."""
    tokenizer: Any = subject.tokenizer
    cut = []
    for text in texts:
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        if len(ids) >= length and len(cut) < first + count:
            cut.append(tokenizer.decode(ids[: length - 1]))
    return replace(tasks.lm(cut[first:]), name=name)


def retrieval(texts: Sequence[str], pages: int, **how: Any) -> list[Task]:
    """All three: `pages` of needles, half as many lookups, and a third of repeats."""
    plain = {key: value for key, value in how.items() if key != "asked"}
    half, third = max(pages // 2, 1), max(pages // 3, min(pages // 2, 6), 1)
    lines = lookup(texts, pages=half, **how)
    return [needle(texts, pages=pages, **how), lines, repeated(texts, pages=third, **plain)]


# --- Orders -------------------------------------------------------------------------------------


def costs_of(
    subject: hc.Subject, task: Task, window: Window, units: Sequence[Unit]
) -> dict[str, Any]:
    """What each group costs along the path and its absolute slope, and what all cost together."""
    begun, heads = time.perf_counter(), subject.heads
    paths, slopes, losses, tokens = [], [], [], []
    with path_slopes(subject, task, window) as measure:
        for batch in task.batches(subject, 1):
            found = measure(batch)
            paths.append(np.tensordot(SIMPSON, found["slopes"][0], axes=(0, 0)))
            slopes.append(np.abs(found["slopes"][0, 0]))
            losses.append(found["losses"][0])
            tokens.append(float(found["tokens"][0, 0]))
    by_text = np.array(paths) / np.array(tokens)[:, None]
    total = sum(tokens)

    def by_unit(values: Any) -> list[float]:
        worth = dict(zip(heads, np.asarray(values).tolist(), strict=True))
        return [sum(worth[head] for head in unit) for unit in units]

    whole, _, near = np.sum(losses, axis=0) / total
    return {
        "examples": len(tokens),
        "path": by_unit(np.sum(paths, axis=0) / total),
        "slope": by_unit(np.sum(slopes, axis=0) / total),
        "halves": [by_unit(by_text[part::2].mean(0)) for part in (0, 1) if len(tokens) > 1],
        "whole": whole,
        "all restricted": near,
        "sum": float(np.sum(paths) / total),
        "seconds": round(time.perf_counter() - begun),
    }


def ranks(values: Any) -> Floats:
    """Ranks from 0 to 1."""
    return np.asarray(rankdata(values)) / len(values)


def worths(
    costs: dict[str, dict[str, Any]], cheap: Any, units: Sequence[Unit]
) -> dict[str, Floats]:
    """What each group is worth, by the name of the order."""
    found = [*costs.values()]
    path, slope = ([np.array(one[kind]) for one in found] for kind in ("path", "slope"))
    rng = np.random.default_rng(0)
    return {
        "path share": largest_share(path),
        "slope share": largest_share(slope),
        "path rank": np.max([ranks(one) for one in path], axis=0),
        "path and slope": np.maximum(ranks(largest_share(path)), ranks(largest_share(slope))),
        "text alone": path[0],
        "kvpress": np.array(cheap),
        "random": rng.random(len(units)),
    }


OURS = ("path share", "path and slope")


def nearest(worth: Floats, count: int, units: Sequence[Unit]) -> list[Head]:
    """The heads of the groups that are restricted first."""
    return [head for place in np.argsort(worth, kind="stable")[:count] for head in units[place]]


# --- Judging ------------------------------------------------------------------------------------


def row_of(judge: Judge, name: str, heads: Sequence[Head]) -> dict[str, Any]:
    """A task with these heads restricted: value, what it costs, its interval and its bound."""
    found = judge.sweep(judge.task, {name: heads})
    low = high = bound = None
    with suppress(StatsError):  # too few to test: the figure alone
        cost = found.losses(correction="none")
        low, high = float(cost.low[0]), float(cost.high[0])
        bound = float(loss_bounds(found)[0])
    return {
        "task": judge.task.name,
        "metric": found.baseline.name,
        "n": len(found.baseline),
        "asked": float(found.baseline.statistics[:, 1].sum()),
        "whole": found.baseline.value,
        "value": found.outcomes[0].value,
        "cost": found.costs()[0],
        "low": low,
        "high": high,
        "bound": bound,
    }


def removed_row(subject: hc.Subject, judge: Judge, heads: Sequence[Head]) -> dict[str, Any]:
    """The same with these heads removed."""
    made = sets({"removed": heads})
    found = sweep(subject, judge.task, made, metric="task", batch_size=1, fast=False)
    return {
        "task": judge.task.name,
        "value": found.outcomes[0].value,
        "cost": found.costs()[0],
    }


def measured(case: Case, data: Path, kept: dict[str, Any], save: Callable[[], None]) -> None:
    """Everything of one case; what is there already is not measured again."""
    torch.manual_seed(0)
    subject = hc.load(case.model, dtype=case.dtype, device="cpu")
    window, units = read_window(case.window), restrictable(subject)
    train, held = documents(data, ("train",), case.length), documents(data, ("dev", "test"), 1)
    count, ask = case.learn[0], {"length": case.length, "asked": case.asked}
    kept |= {
        "model": case.model, "window": case.window, "length": case.length, "groups": len(units),
        "heads": len(subject.heads), "dtype": case.dtype,
    }  # fmt: skip
    learn = [lm_of(subject, train, 0, count, case.length, "text")]
    learn += retrieval(train, case.learn[1], part=SHOWN, metric="loss", seed=1, **ask)
    for task in learn:
        if task.name not in kept.setdefault("costs", {}):
            kept["costs"][task.name] = costs_of(subject, task, window, units)
            save()
    if "cheap" not in kept:
        few = lm_of(subject, train, 0, 8, case.length, "text")
        kept["cheap"] = cumulated_attention(subject, few, units)
        save()
    worth = worths(kept["costs"], kept["cheap"], units)

    def judged(where: str, judges: Sequence[Judge], order: str, share: float) -> None:
        n = round(share * len(units))
        rows = kept.setdefault(where, {})
        name = f"{order} {n}"
        for judge in judges:
            there = rows.setdefault(name, {})
            if judge.task.name not in there:
                there[judge.task.name] = row_of(judge, name, nearest(worth[order], n, units))
                save()
                print(where, name, json.dumps(there[judge.task.name]), flush=True)

    if "order" not in kept:  # which of ours, on documents and templates that are shown
        few = [lm_of(subject, train, count, case.choose[0], case.length, "text")]
        few += retrieval(train, case.choose[1], part=SHOWN, seed=2, **ask)
        trying = [Judge(subject, task, window) for task in few]
        for order in OURS:
            for share in (2 / 3,):
                judged("choosing", trying, order, share)
        kept["order"] = best(kept["choosing"])
        save()
    tried = [lm_of(subject, held, 0, case.judge[0], case.length, "text")]
    tried += retrieval(train, case.judge[1], seed=3, **ask)[: case.kinds]
    judges = [Judge(subject, task, window) for task in tried]
    points = [(kept["order"], share) for share in case.shares]
    points += [(order, share) for order in case.others for share in case.beside]
    for order, share in points:
        judged("judged", judges, order, share)
    heads = nearest(worth[kept["order"]], len(units) // 3, units)
    for judge in judges:
        there = kept.setdefault("removed", {})
        if judge.task.name not in there:
            there[judge.task.name] = removed_row(subject, judge, heads)
            save()


def best(rows: dict[str, dict[str, dict[str, Any]]]) -> str:
    """The order whose worst excess over 0.02 nats and one point is the least, over its points."""
    worst: dict[str, float] = {}
    for name, by_task in rows.items():
        order = name.rpartition(" ")[0]
        over = max(
            one["cost"] / (0.02 if one["metric"] == "loss" else 0.01) for one in by_task.values()
        )
        worst[order] = worst.get(order, 0.0) + over
    return min(worst, key=lambda order: worst[order])


def truth(case: Case, data: Path, kept: dict[str, Any], save: Callable[[], None]) -> None:
    """Each group restricted alone, on the first texts that ordered, by text and by needles."""
    subject = hc.load(case.model, dtype=case.dtype, device="cpu")
    window, units = read_window(case.window), restrictable(subject)
    train = documents(data, ("train",), case.length)
    ask = {"length": case.length, "asked": case.asked}
    how: dict[str, Any] = {"part": SHOWN, "metric": "loss", "seed": 1, **ask}
    few = [lm_of(subject, train, 0, case.truth, case.length, "text")]
    few += [needle(train, pages=case.truth // 2, **how)]
    for task in few:
        judge = Judge(subject, task, window)
        there = kept.setdefault("truth", {}).setdefault(task.name, {"examples": len(task)})
        if "path" not in there:
            there["path"] = costs_of(subject, task, window, units)["path"]
        for place, unit in enumerate(units):
            if str(place) not in there.setdefault("alone", {}):
                there["alone"][str(place)] = judge.sweep(judge.task, {str(unit[0]): unit}).costs()[
                    0
                ]
                save()


# --- Memory and time of generate() ----------------------------------------------------------------


def generated(case: Case, data: Path, kept: dict[str, Any], save: Callable[[], None]) -> None:
    """Bytes that caches hold and seconds that steps take, whole and with half of the groups."""
    subject = hc.load(case.model, dtype=case.dtype, device="cpu")
    window, units = read_window("16+240"), restrictable(subject)
    worth = worths(kept["costs"], kept["cheap"], units)[kept["order"]]
    heads = nearest(worth, len(units) // 2, units)
    texts = " ".join(documents(data, ("train",), 1))
    tokenizer: Any = subject.tokenizer
    ids = tokenizer(texts, return_tensors="pt")["input_ids"]
    with tempfile.TemporaryDirectory() as folder:
        place = save_windowed(subject, heads, window, Path(folder, "near"))
        near = AutoModelForCausalLM.from_pretrained(
            place, trust_remote_code=True, dtype=subject.dtype
        ).eval()
        for length in (1024, 2048, 4096):
            there = kept.setdefault("generate", {}).setdefault(str(length), {})
            for name, model in (("whole", subject.model), ("half near", near)):
                if name not in there:
                    there[name] = timed(model, ids[:, :length])
                    save()
                    print(length, name, there[name], flush=True)


def timed(model: Any, ids: torch.Tensor) -> dict[str, float]:
    """One prefill and 16 steps: seconds, and what the cache holds after them."""
    with torch.no_grad():
        begun = time.perf_counter()
        out = model(ids, logits_to_keep=1)
        prefill, steps = time.perf_counter() - begun, []
        for _ in range(16):
            begun = time.perf_counter()
            last = out.logits[:, -1:].argmax(-1)
            out = model(last, past_key_values=out.past_key_values)
            steps.append(time.perf_counter() - begun)
    held = 0
    for layer in out.past_key_values.layers:
        for name in ("keys", "values", "near_keys", "near_values"):
            one = getattr(layer, name, None)
            held += 0 if one is None else one.numel() * one.element_size()
    return {
        "prefill seconds": round(prefill, 3),
        "step milliseconds": round(1000 * float(np.median(steps)), 1),
        "cache megabytes": round(held / 1e6, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="research.window", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("HEADCOUNT_DATA"))
    parser.add_argument("--case", choices=[*CASES], default="smollm2")
    parser.add_argument("--part", choices=["curves", "truth", "generate"], default="curves")
    parser.add_argument("--out", type=Path, default=RESULTS / "window.json")
    given = parser.parse_args()
    if given.data is None:
        parser.error("say where the corpora are: --data DIR, or HEADCOUNT_DATA")

    def read() -> dict[str, Any]:
        new: dict[str, Any] = {"command": COMMAND, "cases": {}}
        if given.out.exists():
            new = json.loads(given.out.read_text(encoding="utf8"))
        return new

    own: dict[str, Any] = read()["cases"].get(given.case, {})

    def save() -> None:
        whole = read()
        whole["cases"][given.case] = own
        whole["provenance"] = provenance.collect() | {"command": COMMAND}
        given.out.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf8")

    work = {"curves": measured, "truth": truth, "generate": generated}[given.part]
    work(CASES[given.case], Path(given.data), own, save)


if __name__ == "__main__":
    main()
