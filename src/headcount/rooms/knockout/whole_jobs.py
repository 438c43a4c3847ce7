"""Take a whole job away: all heads of a role off together, against as many other heads.

Voita et al., ACL 2019, ask which heads do the heavy lifting; Michel et al., NeurIPS 2019, section
3.2, switch heads off one at a time, which misses what heads do for each other. Here a set of heads
is off together, and so are draws of as many other heads of the same layers.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from headcount import stats
from headcount.errors import UsageError
from headcount.importance import Intervention, Sweep, check_mode, sweep
from headcount.models import Subject
from headcount.records import (
    Engine,
    EngineOptions,
    Head,
    HeadTable,
    Journal,
    Run,
    check_heads,
    old_keywords,
    parse_heads,
    writable_run,
)
from headcount.stats import Floats
from headcount.surveys.roles import KINDS, says_of
from headcount.tasks import Outcome, Task

# --- Which heads go together --------------------------------------------------------------------

#: Sets of several roles, by the names that `by_role` of the room `agreement` gives two of them.
JOINT = {
    "any function": "that do a nameable job",
    "any rest": "that look much at one place",
    "free alone": "that cost nothing alone",
}


def role_sets(table: HeadTable) -> dict[str, tuple[Head, ...]]:
    """The sets that a table of verdicts names: joint ones, then every role.

    Heads are free alone where the interval of their `ablation` reaches 0 or less: none of them
    costs anything by itself (95%).

    >>> heads = [Head("enc", 0, 0), Head("enc", 0, 1)]
    >>> roles = pd.DataFrame({"stack": "enc", "layer": 0, "head": [1], "role": "rare",
    ...                       "rests": False})
    >>> table = HeadTable.of(heads, {"ablation": [0.1, 0.2]}, low={"ablation": [-0.1, 0.1]},
    ...                      details={"roles": roles})
    >>> {name: [str(head) for head in heads] for name, heads in role_sets(table).items()}
    {'any function': ['enc.0.1'], 'free alone': ['enc.0.0'], 'rare': ['enc.0.1']}
    """
    if "roles" not in table.details:
        raise UsageError("No head was judged; survey the model with roles first (--judging roles).")
    by_role: dict[str, set[Head]] = {}
    says: dict[str, set[Head]] = {}
    for row in table.details["roles"].to_dict("records"):
        head = Head(str(row["stack"]), int(row["layer"]), int(row["head"]))
        by_role.setdefault(str(row["role"]), set()).add(head)
        says.setdefault(says_of(row), set()).add(head)
    does = says.get("job", set())
    rests = says.get("place", set()) - does
    low = table.low["ablation"].to_numpy(dtype=float) if "ablation" in table.low else ()
    free = {head for head, end in zip(table.heads, low, strict=False) if end <= 0}
    joint = {"any function": does, "any rest": rests, "free alone": free}
    return {name: tuple(sorted(heads)) for name, heads in (joint | by_role).items() if heads}


def matched_draws(
    heads: Iterable[Head], known: Iterable[Head], count: int, seed: int = 0
) -> tuple[list[tuple[Head, ...]], bool, str]:
    """As many other heads of the same layers, drawn so often; whether these are all there are; why.

    Without draws the note names the layer that has too few others.

    >>> known = [Head("enc", 0, index) for index in range(4)]
    >>> matched_draws(known[:1], known, count=8)[:2]
    ([(Head(stack='enc', layer=0, index=1),), (Head(stack='enc', layer=0, index=2),),
      (Head(stack='enc', layer=0, index=3),)], True)
    >>> matched_draws(known[:3], known, count=8)[2]
    'too few others to compare: enc.0 has 1 for 3'
    """
    chosen, by_layer = set(heads), dict[tuple[str, int], list[Head]]()
    for head in known:
        if head not in chosen:
            by_layer.setdefault(head[:2], []).append(head)
    wanted = Counter(head[:2] for head in sorted(chosen))
    for (stack, layer), size in wanted.items():
        others = len(by_layer.get((stack, layer), ()))
        if others < size:
            few = f"{stack}.{layer} has {others} for {size}"
            return [], True, f"too few others to compare: {few}"
    ways = math.prod(math.comb(len(by_layer[layer]), size) for layer, size in wanted.items())
    if ways <= count:
        parts = [combinations(by_layer[layer], size) for layer, size in wanted.items()]
        return [tuple(head for part in one for head in part) for one in product(*parts)], True, ""
    rng, draws = random.Random(seed), dict[tuple[Head, ...], None]()
    while len(draws) < count:
        picks = (rng.sample(by_layer[layer], size) for layer, size in wanted.items())
        draws[tuple(sorted(head for some in picks for head in some))] = None
    return [*draws], False, ""


# --- The knock-out --------------------------------------------------------------------------------

#: Draws of other heads for each set.
DRAWS = 8
#: The level of the answer, corrected for the joint sets, all roles, or the sets that were named.
LEVEL = 0.05
#: Resamples behind each interval.
_RESAMPLES = 4_000
_COLUMNS = (
    "set", "heads", "members", "metric", "examples", "whole", "added", "added_low", "added_high",
    "draws", "control", "control_least", "control_most", "excess", "low", "high", "p",
    "p_adjusted", "alone", "answer", "note",
)  # fmt: skip


@old_keywords()
def knockout(
    subject: Subject,
    task: Task,
    sets: HeadTable | Run | str | Path | Mapping[str, str | Iterable[str | Head]],
    *,
    draws: int = DRAWS,
    mode: str = "zero",
    metric: str | None = None,
    table: HeadTable | None = None,
    run: Run | str | Path | None = None,
    journal: Journal | None = None,
    batch_size: int = 16,
    seed: int = 0,
    engine: Engine | EngineOptions | str | None = None,
) -> pd.DataFrame:
    """Switch whole sets of heads off, each against draws of as many other heads of its layers.

    `sets` are heads by name ({"mine": "enc.0.1,enc.2"}), or a table or run with verdicts: then
    every role, all heads that do something, all that look at one place, and all that cost nothing
    alone (`role_sets`). `mode` is what stands in their place, `metric` the loss (the default) or
    the task's own. With a `run` the rows become knockout.parquet there. One row a set:

    - `added` to the loss (or lost of the metric), with an interval from resampled examples;
    - `control`, the mean of the `draws` of other heads, `control_least` and `control_most`;
    - `excess`, the difference, its interval (`low`, `high`) from resampled examples and draws, its
      `p`, and `p_adjusted` (Bonferroni) for the joint sets, for all roles, or for the sets that
      were named here, so that a role has the same answer whatever else is asked;
    - `alone`, the sum of what the heads cost one at a time, where the table has `ablation`;
    - `answer`: more or less where that is sure and every single draw is passed too (one set in
      nine would pass eight draws by chance alone), else "cannot tell".

    >>> import headcount as hc
    >>> from headcount.bundle import sample
    >>> task = hc.tasks.translation(sample.pairs()[:8], metric="loss")
    >>> found = knockout(hc.load("translator", device="cpu"), task, {"two": "enc.5.3,dec.0.1"})
    >>> found[["set", "heads", "draws", "examples"]].values.tolist()
    [['two', 2, 8, 8]]
    """
    if draws < 2:
        raise UsageError(f"draws is {draws}; 2 or more other sets of heads make a comparison.")
    how = check_mode(mode)
    named, table = _named(sets, table, subject)
    with writable_run(run) as kept:
        works: list[Intervention] = []
        controls: dict[str, tuple[list[str], bool, str]] = {}
        for name, heads in named.items():
            works.append(Intervention(heads, how, name))
            others, all_there, why = matched_draws(heads, subject.heads, draws, seed)
            labels = [f"{name}, others {number}" for number in range(1, len(others) + 1)]
            works += [
                Intervention(one, how, label) for one, label in zip(others, labels, strict=True)
            ]
            controls[name] = labels, all_there, why
        found = sweep(
            subject,
            task,
            works,
            metric=metric,  # type: ignore[arg-type]  # refused there where it is another word
            batch_size=batch_size,
            seed=seed,
            journal=journal,
            name="knockout",
            engine=engine,
        )
        # What heads cost one at a time, where that was measured by the same metric.
        alone: dict[Head, float] = {}
        if table is not None and "ablation" in table.names and found.baseline.name == "loss":
            alone = dict(zip(table.heads, table.numbers("ablation").tolist(), strict=True))
        frame = _frame(found, named, controls, alone, seed)
        if kept is not None:
            kept.write_frame("knockout", frame)
    return frame


def _named(
    sets: HeadTable | Run | str | Path | Mapping[str, str | Iterable[str | Head]],
    table: HeadTable | None,
    subject: Subject,
) -> tuple[dict[str, tuple[Head, ...]], HeadTable | None]:
    """The sets by name, and the table that has what their heads cost alone."""
    if isinstance(sets, Mapping):
        named = {str(name): tuple(sorted(set(parse_heads(one)))) for name, one in sets.items()}
    else:
        if not isinstance(sets, HeadTable):
            sets = (sets if isinstance(sets, Run) else Run.open(sets, create=False)).read_table()
        table, named = sets if table is None else table, role_sets(sets)
    for name, heads in named.items():
        check_heads(heads, subject.heads)
        if not heads:
            raise UsageError(f"The set '{name}' has no heads; name one or more, e.g. enc.0.1.")
    if not named:
        raise UsageError("No head has a role, so there is no job to take away; name sets of heads.")
    return named, table


def _frame(
    found: Sweep,
    named: Mapping[str, tuple[Head, ...]],
    controls: Mapping[str, tuple[list[str], bool, str]],
    alone: Mapping[Head, float],
    seed: int,
) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    for name, heads in named.items():
        labels, all_there, why = controls[name]
        others = [found.outcome(label) for label in labels]
        figures = _figures(found.baseline, found.outcome(name), others, all_there, seed)
        rows.append(
            figures
            | {
                "set": name,
                "heads": len(heads),
                "members": ",".join(map(str, heads)),
                "metric": found.baseline.name,
                "examples": len(found.baseline),
                "whole": found.baseline.value,
                "draws": len(others),
                "alone": sum(alone.get(head, math.nan) for head in heads),
                "note": why,
            }
        )
    frame = pd.DataFrame(rows)
    # Bonferroni over all sets of a kind that could be asked for: the same set has the same answer
    # in every call.
    own = len(set(frame["set"]) - {*JOINT, *KINDS})
    sizes = [
        len(JOINT) if name in JOINT else len(KINDS) if name in KINDS else own
        for name in frame["set"]
    ]
    frame["p_adjusted"] = (frame["p"] * sizes).clip(upper=1.0)
    frame["answer"] = [_answer(row) for row in frame.to_dict("records")]
    return frame[list(_COLUMNS)]


def _answer(row: Mapping[Any, Any]) -> str:
    """More or less where the mean of the draws is passed (95%), and so is every single draw."""
    if not row["draws"]:
        return "not compared"
    if row["p_adjusted"] <= LEVEL and row["low"] > 0 and row["added"] > row["control_most"]:
        return "more"
    if row["p_adjusted"] <= LEVEL and row["high"] < 0 and row["added"] < row["control_least"]:
        return "less"
    return "cannot tell"


def _figures(
    whole: Outcome, off: Outcome, others: list[Outcome], all_there: bool, seed: int
) -> dict[str, float]:
    """A set's figures with two-way intervals: examples are resampled, and draws of other heads."""
    sign = -1.0 if whole.higher_is_better else 1.0
    value = np.array([one.value for one in (off, *others)])
    costs = sign * (value - whole.value)
    drawn = []
    for weights in stats.resample_weights(len(whole), _RESAMPLES, seed):
        systems = np.stack([one.resample(weights) for one in (off, *others)], axis=1)
        drawn.append(sign * (systems - whole.resample(weights)[:, None]))
    resampled = np.concatenate(drawn)
    low, high = np.nanquantile(resampled[:, 0], [0.025, 0.975])
    found = {"added": costs[0], "added_low": low, "added_high": high}
    if not others:
        names = ("control", "control_least", "control_most", "excess", "low", "high", "p")
        return found | dict.fromkeys(names, math.nan)
    control = _mean_of_draws(resampled[:, 1:], all_there, seed)
    excess = resampled[:, 0] - control
    low, high = np.nanquantile(excess, [0.025, 0.975])
    tail = min(np.count_nonzero(excess <= 0), np.count_nonzero(excess >= 0))
    return found | {
        "control": float(costs[1:].mean()),
        "control_least": float(costs[1:].min()),
        "control_most": float(costs[1:].max()),
        "excess": float(costs[0] - costs[1:].mean()),
        "low": low,
        "high": high,
        "p": min(1.0, 2 * (tail + 1) / (len(excess) + 1)),
    }


def _mean_of_draws(costs: Floats, all_there: bool, seed: int) -> Floats:
    """The mean cost of other heads, draws resampled where there are more than were drawn.

    One fewer is taken than there are, which makes the variance that of the mean (Rao & Wu 1988).
    """
    count = costs.shape[1]
    if all_there or count < 2:
        return np.asarray(costs.mean(axis=1))
    picks = np.random.default_rng([seed, 1]).integers(0, count, (len(costs), count - 1))
    return np.asarray(np.take_along_axis(costs, picks, axis=1).mean(axis=1))


# --- In words -------------------------------------------------------------------------------------


def knockout_sentences(frame: pd.DataFrame) -> list[str]:
    """What the joint sets cost, a sentence each.

    >>> row = {"set": "any function", "heads": 20, "metric": "loss", "added": 0.75,
    ...        "added_low": 0.67, "added_high": 0.83, "draws": 8, "control": 0.22,
    ...        "control_least": 0.19, "control_most": 0.26, "excess": 0.53, "low": 0.45,
    ...        "high": 0.61, "answer": "more", "note": ""}
    >>> knockout_sentences(pd.DataFrame([row]))
    ['Without all 20 heads that do a nameable job loss is 0.75 [0.67, 0.83] higher; without as many
    other heads of the same layers 0.22 (8 draws, 0.19 to 0.26).']
    """
    said = []
    for row in frame[frame["set"].isin(list(JOINT))].to_dict("records"):
        what = f"Without all {row['heads']} heads {JOINT[str(row['set'])]} {row['metric']} is "
        change = "higher" if row["metric"] in ("loss", "perplexity") else "worse"
        said.append(
            f"{what}{row['added']:.2g} [{row['added_low']:.2g}, {row['added_high']:.2g}] {change}"
            + (
                f"; without as many other heads of the same layers {row['control']:.2g} "
                f"({row['draws']} draws, {row['control_least']:.2g} to {row['control_most']:.2g})."
                if row["draws"]
                else f" ({row['note']})."
            )
        )
    return said
