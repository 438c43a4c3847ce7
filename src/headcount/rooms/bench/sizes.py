"""What can be pruned and what it buys, size by size: the strip of a page, and its timing.

Michel et al. 2019, section 4.2: quality as heads go; table 4: heads are removed, not masked, and
each size is timed in turns with the whole model. Beside it what gates and healing of Voita et al.
2019, section 6, made of the same sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import pandas as pd

from headcount.errors import HeadcountError
from headcount.models import Subject, eval_mode, quiet
from headcount.pruning import can_go, in_points, prune
from headcount.records import Head, Run, parse_heads
from headcount.reports import (
    Source,
    StageMaker,
    StoryContext,
    StoryStage,
    could_go,
    curve_part,
    figure,
    forward_steps,
    metric_title,
    places_gone,
    read_source,
)
from headcount.rooms.bench.costs import trial_inputs
from headcount.rooms.bench.speed import interleaved, median_interval, ready
from headcount.rooms.gates import freed_sentences, known_heads

# --- What gates or healing reached: the run's own, else what comes with the translator ------------

#: The frames of sizes that gates chose, or that were healed; the figures of a cell.
_TRAINED = ("gates", "refitted", "healed")
_CELL = ("value", "delta", "delta_low", "delta_high")


def trained_part(source: Source, curve: list[dict[str, Any]] | None) -> dict[str, Any] | None:
    """What gates or healing reached: the run's own figures, else the bundled ones.

    `columns` are titles; each row has the heads that went, and for each column quality and its
    difference to the whole model, with the interval. `said` is what can be pruned by the
    rule. `whole` has the whole model's quality in each column, where other examples judged.
    """
    frames = {name: frame for name in _TRAINED if (frame := source.frame(name)) is not None}
    if frames:
        return {
            "note": _trained_note(source, frames),
            "said": freed_sentences(source),
            **_trained_table(source, frames),
        }
    own = [one for one in curve or () if one["healed"] and one["points"]]
    if own:
        metric = own[0]["metric"]
        columns, note = [f"{metric} healed"], f"Measured in this run, n = {own[0]['n']}."
        points = [one["points"][-1] for one in own if one["metric"] == metric]
        rows = [
            {"left": at["left"], "gone": at["gone"], "cells": [[at.get(k) for k in _CELL]]}
            for at in points
        ]
        return {"note": note, "said": [], "columns": columns, "rows": rows}
    known = known_heads(source.table.provenance.get("weights"))
    if known is None:
        return None
    kept = known["gates"]
    metric = metric_title(kept["metric"])
    rows = [
        {
            "left": len(row["kept"]),
            "gone": [n for head, n in source.places.items() if str(head) not in row["kept"]],
            "cells": [
                [figure(row["untouched"], 3)],
                [figure(row["bleu"], 3), *(figure(row[name], 2) for name in _CELL[1:])],
            ],
        }
        for row in kept["rows"]
    ]
    note = (
        f"{metric} of pruned sizes is not of this run: heads chosen by gates, healed for "
        f"{kept['steps']:,} steps on a GPU, judged on {kept['n']:,} sentences against the whole "
        f"model trained on as long. For this run: headcount report --gates --heal."
    )
    columns = [f"{metric} as is", f"{metric} healed"]
    whole = [[figure(kept[name], 3)] for name in ("untouched", "whole")]
    return {"note": note, "said": [], "columns": columns, "rows": rows, "whole": whole}


def _trained_note(source: Source, frames: dict[str, pd.DataFrame]) -> str:
    """Where the figures come from."""
    first = next(iter(frames.values()))
    judged = ", ".join(
        f"n = {rows['n'].iloc[0]:,} by {metric_title(str(metric))}"
        for metric, rows in first.groupby("metric", sort=False)
    )
    alone = " The whole model did not learn on." if "healed" in frames else ""
    return (
        f"Measured in this run: learned on one half of the examples, judged on the other "
        f"({judged}); differences are to the whole model, with 95% intervals.{alone}"
    )


def _trained_table(source: Source, frames: dict[str, pd.DataFrame]) -> dict[str, Any]:
    """A row for each set of heads, a column a metric and way: weights as is, or healed."""
    ways = {"gates": "as is", "refitted": "refitted", "healed": "healed"}
    metrics = sorted({str(m) for frame in frames.values() for m in frame["metric"]} - {"loss"})
    asked = [
        (metric, name)
        for metric in [*metrics, "loss"]
        for name, frame in frames.items()
        if (frame["metric"] == metric).any()
    ]
    rows: dict[str, dict[str, Any]] = {}
    for column, (metric, name) in enumerate(asked):
        points = frames[name][(frames[name]["metric"] == metric) & (frames[name]["step"] > 0)]
        for point in in_points(points).to_dict("records"):
            gone = places_gone(point["removed"], source.places)
            fresh = {"left": int(point["heads_left"]), "gone": gone, "cells": [[None]] * len(asked)}
            row = rows.setdefault(point["removed"], fresh)
            row["cells"][column] = [figure(point[key]) for key in _CELL]
    return {
        "columns": [f"{metric_title(metric)} {ways[name]}" for metric, name in asked],
        "rows": sorted(rows.values(), key=lambda row: -row["left"]),
    }


# --- One strip of sizes ---------------------------------------------------------------------------

#: Sizes of the curve that the strip shows, the whole model among them.
_SIZES = 7


def strip_part(source: Source) -> dict[str, Any] | None:
    """A stop per size: removed heads, quality as is, healed or refitted, time and bytes.

    All steps of the order that decides are there, so that any can be framed; `shown` are the whole
    model and the sizes that gates or healing reached, or a few of the steps. `step` is the place in
    `curve_part`, None for sizes of other orders. `times` has an entry for every stop.
    """
    curve, go = curve_part(source), could_go(source)
    if not curve:
        return None
    trained = trained_part(source, curve) or {"columns": [], "rows": []}
    first, whole = curve[go["order"] if go else 0], trained.get("whole")
    alike = [one for one in curve if all(one[key] == first[key] for key in _SAME)]
    alike.sort(key=lambda one: one["metric"] == "loss")
    longest = max(alike, key=lambda one: len(one["points"]))
    titles = {f"{one['metric']} {_way(one)}": one for one in alike}
    columns = trained["columns"] if whole else list(dict.fromkeys([*trained["columns"], *titles]))
    points = {name: {at["left"]: at for at in one["points"]} for name, one in titles.items()}
    gone, stops = list[int](), list[dict[str, Any]]()
    every = [all(at["left"] in own for own in points.values()) for at in longest["points"]]
    thin = [k for k, there in enumerate(every) if there or sum(every) <= _SIZES // 2 + 1]
    few = {thin[round(at)] for at in np.linspace(0, len(thin) - 1, min(_SIZES, len(thin)))}
    for step, point in enumerate(longest["points"]):
        gone = [*gone, *point["gone"]]
        known = [points.get(name, {}).get(point["left"], {}) for name in columns]
        cells = [[cell.get(name) for name in _CELL] for cell in known]
        if whole:  # other examples: differences can be compared, values cannot
            cells = [*([None, *cell[1:]] for cell in cells[:-1]), []] if step else whole
        shown = not step if trained["rows"] else step in few
        about = {"left": point["left"], "gone": gone, "cells": cells, "chance": point.get("chance")}
        stops.append({**about, "step": step, "shown": shown})
    for row in trained["rows"]:
        named = dict(zip(trained["columns"], row["cells"], strict=True))
        about = {"left": row["left"], "gone": row["gone"], "step": None, "shown": True}
        stops.append({**about, "cells": [named.get(name, []) for name in columns]})
    order = {"order": curve.index(longest), "columns": columns, "stops": stops}
    notes = {"note": trained.get("note", ""), "said": trained.get("said", [])}
    return {**order, **notes, "times": _times(source, stops)}


_SAME = ("id", "scope", "healed")


def _way(order: dict[str, Any]) -> str:
    return "healed" if order["healed"] else "refitted" if order["id"] == "refit" else "as is"


def _times(source: Source, stops: list[dict[str, Any]]) -> dict[str, Any]:
    """Milliseconds, megabytes and the gain of every stop, None where it was not timed; and how."""
    frame, at = source.frame("bench"), source.places
    if frame is None:
        return {"how": "", "of": [None] * len(stops)}
    rows = {frozenset(places_gone(one["removed"], at)): one for one in frame.to_dict("records")}
    found = [rows.get(frozenset(stop["gone"])) for stop in stops]
    names, about = ("gain", "gain_low", "gain_high"), frame.iloc[0]
    of = [
        row
        and [
            figure(1e3 * row["seconds"], 3),
            figure(row["megabytes"], 3),
            *(figure(row[name], 2) for name in names),
        ]
        for row in found
    ]
    texts = "1 text" if about["texts"] == 1 else f"{about['texts']} texts"
    how = f"{texts} of {about['tokens']} tokens, {str(about['device']).upper()}"
    return {"how": how, "of": of}


def strip_sets(run: Run) -> list[tuple[Head, ...]]:
    """The removed heads at each size that the page of a run shows."""
    source = read_source(run, exhibits=False)
    names, strip = list(source.places), strip_part(source) or {"stops": []}
    return [tuple(names[at] for at in stop["gone"]) for stop in strip["stops"] if stop["shown"]]


# --- Time and bytes of these sizes, as a stage of the story ---------------------------------------

#: Tokens of a text, texts of a small model's batch, and pairs of runs.
TOKENS, TEXTS, PAIRS = 64, 4, 9
#: Weights of a small model; bytes of a model that is not copied for this.
_SMALL, _LARGEST = 30e6, 4e9


def megabytes(subject: Subject) -> float:
    """What the weights of a model take."""
    return sum(w.numel() * w.element_size() for w in subject.model.parameters()) / 1e6


def bench_frame(subject: Subject, sets: Sequence[tuple[Head, ...]]) -> pd.DataFrame:
    """Seconds and megabytes whole, then without each set; the frame `bench` of a run.

    Seconds of a set are those of the whole model by the median ratio of their pairs, so that all
    have one baseline; `gain` is how much faster, less 1, with its interval.
    """
    count = sum(weight.numel() for weight in subject.model.parameters())
    texts = TEXTS if count < _SMALL else 1
    inputs = trial_inputs(subject, TOKENS, texts)
    rows: list[dict[str, object]] = []
    walls: list[float] = []
    with quiet(), eval_mode(subject.model):
        for heads in sets:
            small = prune(subject, heads)
            with ExitStack() as stack:
                stack.enter_context(eval_mode(small.model))
                works = {"whole": subject, "small": small}
                taken = interleaved({n: ready(s, inputs, "plain") for n, s in works.items()}, PAIRS)
            walls += taken["whole"]
            gain = np.array(median_interval(np.divide(taken["whole"], taken["small"]))) - 1
            names = ",".join(map(str, sorted(heads)))
            size = {"heads_left": len(small.heads), "megabytes": megabytes(small)}
            rows.append({"removed": names, **size, **dict(zip(_GAIN, gain, strict=True))})
    whole = {"removed": "", "heads_left": len(subject.heads), "megabytes": megabytes(subject)}
    frame = pd.DataFrame([whole | dict.fromkeys(_GAIN, 0.0), *rows])
    about: dict[str, Any] = {
        "texts": texts,
        "tokens": TOKENS,
        "pairs": PAIRS,
        "device": subject.device.type,
    }
    return frame.assign(seconds=float(np.median(walls)) / (1 + frame["gain"]), **about)


_GAIN = ("gain", "gain_low", "gain_high")


def _sets(run: Run) -> Iterator[tuple[Head, ...]]:
    """What the page frames, by each metric, and what its strip shows."""
    for one in can_go(run.read_frame("curve")) if "curve" in run.frames else []:
        yield tuple(parse_heads(",".join(one.names)))
    yield from strip_sets(run)


def bench_stage(context: StoryContext) -> StoryStage:
    """The whole model timed against itself without the heads that the page shows as pruned."""
    name, title, run = "bench", "What pruning buys", context.run
    size = megabytes(context.subject) * 1e6
    why = context.why_no_task
    if size > _LARGEST:
        why = f"{size / 1e9:.1f} GB of weights are not copied; time it with headcount bench"
    if why:
        return StoryStage(name, title, why_not=why)

    def work() -> list[str]:
        sets = list(dict.fromkeys(tuple(sorted(one)) for one in _sets(run) if one))
        if not sets:
            return []
        try:
            run.write_frame(name, bench_frame(context.subject, sets))
        except HeadcountError as error:  # heads that no surgery removes
            return [str(error)]
        return []

    needed = ("curve", "gates", "refitted", "healed", "can-go")
    settings = {one: run.stages[one]["finished"] for one in needed if one in run.stages}
    runs = forward_steps(context, 8.0 * 2 * PAIRS * TEXTS)
    return StoryStage(name, title, settings, work, runs=runs, derived=True)


STAGE = StageMaker(bench_stage, after="healed")
