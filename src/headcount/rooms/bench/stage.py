"""What pruning buys, among the stages of a story: time and bytes at the sizes that the page shows.

Michel et al. 2019, table 4: heads are removed, not masked, and each size is timed in turns with the
whole model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import pandas as pd

from headcount.errors import HeadcountError
from headcount.models import Subject, eval_mode, quiet
from headcount.pruning import can_go, prune, trial_inputs
from headcount.records import Head, Run, parse_heads
from headcount.reports import StageMaker, StoryContext, StoryStage, forward_steps
from headcount.rooms.bench.speed import interleaved, ready
from headcount.rooms.bench.strip import strip_sets
from headcount.stats import median_interval

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

    needed = ("curve", "gates", "healed", "can-go")
    settings = {one: run.stages[one]["finished"] for one in needed if one in run.stages}
    runs = forward_steps(context, 8.0 * 2 * PAIRS * TEXTS)
    return StoryStage(name, title, settings, work, runs=runs, derived=True)


STAGE = StageMaker(bench_stage, after="healed")
