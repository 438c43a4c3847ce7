"""Runs made up for the page: every part a run can hold, in any size, with tokens that bite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from headcount.records.columns import Column
from headcount.records.heads import Head
from headcount.records.run import Run
from headcount.records.table import HeadTable
from headcount.rooms.exhibits.exhibits import SIDES, Exhibit, Text, write_exhibits

Sizes = Mapping[str, tuple[int, int]]
ENCODER: Sizes = {"enc": (6, 12)}
THREE: Sizes = {"enc": (3, 4), "dec": (3, 4), "cross": (3, 4)}

#: Each would do harm, or lie, if it ever reached the page as markup.
HOSTILE = [
    '</script><img src=x onerror="window.hit=1">',
    "<b>bold</b>",
    "<br>",
    "&amp;",
    "{{script}}",
    "$&",
    "\u202egnp",
    "\u200b",
    "a b",
    "",
    "'\"`",
]
COLUMNS = [
    Column(
        "confidence",
        meaning="How sure.",
        range=(0, 1),
        direction="higher",
        more="surer",
        group="How focused it is",
    ),
    Column(
        "entropy",
        meaning="How broad.",
        unit="nats",
        range=(0, None),
        more="broader",
        group="How focused it is",
    ),
    Column("next", meaning="Weight on the next token.", range=(0, 1), group="Where it looks"),
    Column(
        "gradient", range=(0, None), direction="higher", format=".3g", group="How much it matters"
    ),
    Column(
        "ablation",
        meaning="What it costs.",
        unit="loss",
        direction="higher",
        format="+.3g",
        diverging=True,
        group="How much it matters",
    ),
    Column("ablation_p_adjusted", format=".2g", group="How much it matters"),
]


def heads_of(sizes: Sizes) -> list[Head]:
    return [
        Head(stack, layer, index)
        for stack, (layers, heads) in sizes.items()
        for layer in range(layers)
        for index in range(heads)
    ]


def made_table(sizes: Sizes = ENCODER, model: str = "made", seed: int = 0) -> HeadTable:
    """A table with bounds, a column that is NA on two stacks, and an ablation with p values."""
    rng = np.random.default_rng(seed)
    heads = heads_of(sizes)
    n = len(heads)
    ablation = rng.normal(0.01, 0.03, n)
    values = {
        "confidence": rng.uniform(0, 1, n),
        "entropy": rng.uniform(0, 3, n),
        "next": [rng.uniform() if head.stack == "enc" else np.nan for head in heads],
        "gradient": rng.uniform(0, 2, n),
        "ablation": ablation,
        "ablation_p_adjusted": np.where(ablation > 0.03, 0.001, 0.6),
    }
    wide = {"confidence": 0.02, "ablation": 0.01}
    return HeadTable.of(
        heads,
        values,
        COLUMNS,
        low={name: np.asarray(values[name]) - width for name, width in wide.items()},
        high={name: np.asarray(values[name]) + width for name, width in wide.items()},
        notes={"next": "dec: a causal head cannot look ahead; cross: two texts"},
        provenance={"model": model, "command": "headcount survey made", "corpus": "made.txt"},
    )


def made_roles(sizes: Sizes, said: str = "offset -1 for 0.93 of tokens") -> pd.DataFrame:
    """A verdict for every third head, in turn positional, syntactic and of another kind."""
    roles = ["positional", "syntactic", "sink", "other"]
    rows = [
        {
            "stack": head.stack,
            "layer": head.layer,
            "head": head.index,
            "role": roles[k % 4],
            "label": "offset -1",
            "value": 0.9,
            "low": 0.8,
            "high": 0.95,
            "n": 100,
            "baseline": 0.1,
            "control": np.nan,
            "p": 0.001,
            "p_adjusted": 0.01,
            "evidence": said,
        }
        for k, head in enumerate(heads_of(sizes)[::3])
    ]
    return pd.DataFrame(rows)


def made_relations(sizes: Sizes, names: Sequence[str] = ("nsubj", "obj")) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    rows = [
        {
            "stack": head.stack,
            "layer": head.layer,
            "head": head.index,
            "relation": name,
            "direction": "dep->head",
            "split": "all",
            "n": 120,
            "accuracy": accuracy,
            "low": accuracy - 0.05,
            "high": accuracy + 0.05,
            "baseline": 0.4,
            "offset": -1.0,
            "p": 0.001,
            "p_adjusted": 0.01 if accuracy > 0.6 else 1.0,
        }
        for name in names
        for head in heads_of(sizes)
        if head.stack == "enc"
        for accuracy in [float(rng.uniform(0.1, 0.9))]
    ]
    return pd.DataFrame(rows)


def made_curve(sizes: Sizes, orders: Sequence[str] = ("ablation", "random 0")) -> pd.DataFrame:
    """Five steps; nothing is lost for two, then ever more."""
    heads, rows = heads_of(sizes), []
    for order in orders:
        shuffled = np.random.default_rng(len(order)).permutation(len(heads))
        each = len(heads) // 6
        for step in range(6):
            gone = shuffled[each * (step - 1) : each * step] if step else []
            lost = -4.0 * max(0, step - 2)
            rows.append(
                {
                    "order": order,
                    "scope": "all",
                    "step": step,
                    "heads_left": len(heads) - each * step,
                    "removed": ",".join(str(heads[k]) for k in gone),
                    "metric": "bleu",
                    "more": "better",
                    "value": 30 + lost,
                    "low": 29 + lost,
                    "high": 31 + lost,
                    "delta": lost,
                    "delta_low": lost - 1,
                    "delta_high": lost + 1,
                    "p": 0.001 if lost else 0.7,
                    "n": 50,
                    "part": "held-out",
                    "healed": False,
                }
            )
    return pd.DataFrame(rows)


def made_sizes(sizes: Sizes, *, healed: bool = False) -> pd.DataFrame:
    """Three sets of heads that gates chose, by BLEU and loss; healed, less is lost."""
    names = [str(head) for head in heads_of(sizes)]
    rows = []
    for metric, sign, whole in (("loss", 1.0, 1.5), ("bleu", -1.0, 30.0)):
        for step in range(4):
            lost = (0.001 if healed else 0.01) * whole * step**2
            rows.append(
                {
                    "order": "gates",
                    "scope": "all",
                    "step": step,
                    "heads_left": len(names) - 4 * step,
                    "removed": ",".join(names[step : 5 * step]),
                    "metric": metric,
                    "more": "worse" if sign > 0 else "better",
                    "value": whole + sign * lost,
                    "delta": sign * lost,
                    "delta_low": sign * lost - 0.002,
                    "delta_high": sign * lost + 0.002,
                    "bound": lost + 0.002 if step else 0.0,
                    "p": 0.2,
                    "n": 60 if metric == "loss" else 50,
                    "part": "held-out",
                    "healed": healed and step > 0,
                }
            )
    return pd.DataFrame(rows)


def made_agreement() -> pd.DataFrame:
    rows = [
        {
            "first": first,
            "second": second,
            "stack": "all",
            "kind": "spearman",
            "value": value,
            "low": value - 0.1,
            "high": value + 0.1,
            "heads": 36,
            "note": "",
        }
        for first, second, value in [
            ("confidence", "gradient", -0.3),
            ("confidence", "ablation", 0.1),
            ("gradient", "ablation", 0.6),
        ]
    ]
    return pd.DataFrame(rows)


def made_pairs(sizes: Sizes) -> dict[str, np.ndarray]:
    heads = heads_of(sizes)
    rng = np.random.default_rng(2)
    places = rng.normal(size=(len(heads), 2))
    stacks = np.array([head.stack for head in heads])
    js = np.linalg.norm(places[:, None] - places[None], axis=-1).astype("float32")
    js[stacks[:, None] != stacks[None]] = np.nan
    order = np.argsort(np.where(np.eye(len(heads), dtype=bool), np.inf, np.nan_to_num(js, nan=1e9)))
    return {
        "heads": np.array([str(head) for head in heads]),
        "js": js,
        "js_sum": js,
        "tokens": np.full(len(heads), 500),
        "mds": places,
        "stress": np.full(len(sizes), 0.2),
        "stacks": np.array(list(sizes)),
        "cluster": np.zeros(len(heads), dtype=int),
        "nearest": order[:, :3].astype("int32"),
        "silhouette": np.full(len(sizes), 0.1),
        "silhouette_shuffled": np.tile([-0.1, 0.05], (len(sizes), 1)),
    }


def text_of(tokens: Sequence[str]) -> Text:
    """Words of one or two pieces in turn, the first and the last token special."""
    last = len(tokens) - 1
    words = [-1 if k in (0, last) else (k - 1) // 2 for k in range(len(tokens))]
    joined = ["".join(tokens[k : min(k + 2, last)]) for k in range(1, last, 2)]
    return Text(list(tokens), [k in (0, last) for k in range(len(tokens))], words, joined)


def made_exhibit(
    sizes: Sizes,
    source: Sequence[str],
    target: Sequence[str] = (),
    *,
    name: str = "made-001",
    title: str = "",
    own: bool = False,
) -> Exhibit:
    """Maps as heads have them: a few weights carry each row."""
    rng = np.random.default_rng(3)
    texts = {"src": text_of(source)} | ({"tgt": text_of(target)} if target else {})
    sides = {stack: SIDES[stack] if target else ("src", "src") for stack in sizes}
    maps: dict[tuple[str, int], Any] = {}
    for stack, (layers, heads) in sizes.items():
        queries, keys = (len(texts[side].tokens) for side in sides[stack])
        for layer in range(layers):
            scores = rng.normal(0, 3, (heads, queries, keys))
            maps[stack, layer] = _softmax(scores).astype("float32")
    return Exhibit(name, title or " ".join(source), texts, sides, maps, own_text=own)


def made_run(
    path: Path,
    sizes: Sizes = ENCODER,
    *,
    model: str = "made",
    source: Sequence[str] = ("[CLS]", "the", "old", "mill", "stands", "still", "[SEP]"),
    target: Sequence[str] = (),
    evidence: str = "offset -1 for 0.93 of tokens",
    relations: Sequence[str] = ("nsubj", "obj"),
    exhibits: Sequence[Exhibit] | None = None,
) -> Path:
    """A whole run in a folder."""
    with Run.open(path) as run:
        run.write_table(made_table(sizes, model))
        run.write_frame("roles", made_roles(sizes, evidence))
        if "enc" in sizes:
            run.write_frame("relations", made_relations(sizes, relations))
        run.write_frame("curve", made_curve(sizes))
        run.write_frame("agreement", made_agreement())
        run.write_arrays("pairs", made_pairs(sizes))
        shown = [
            made_exhibit(sizes, source, target),
            made_exhibit(sizes, source[:5], target[:4], name="made-002"),
        ]
        write_exhibits(run, shown if exhibits is None else exhibits)
    return path


def _softmax(scores: np.ndarray) -> np.ndarray:
    raised = np.exp(scores - scores.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)
