"""The title of a page: the strongest finding of its run, in one sentence that can be retold.

Every kind of finding has a sentence and a strength, both from what was measured. The strongest is
the title; of equals the earlier kind. A count of significant heads is never one: it grows with the
sample.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from headcount.records import parse_heads
from headcount.reports.parts.numbers import Source, figure, metric_title, printed, unpack_column
from headcount.reports.parts.verdicts import UD
from headcount.surveys.roles import KINDS

Data = dict[str, Any]

#: A finding weaker than this says nothing sure: twice what others cost, a fifth of the heads.
_LEAST = 2.0


class Title(NamedTuple):
    """A finding: its sentence, and how strong it is."""

    sentence: str
    strength: float


def titles(data: Data) -> Iterator[Title]:
    """Every finding of a run that can be a title, in the order in which equals are preferred."""
    yield from _jobs(data)
    yield from _together(data)
    yield from _prunable(data)
    yield from _single(data)


def headline(data: Data) -> str:
    """The strongest finding; without a sure one what a larger sample would have to show.

    >>> headline({"model": "mine", "count": 2, "compare": None, "jobs": [], "go": None,
    ...           "columns": [], "roles": None})
    'The 2 attention heads of mine'
    """
    if data["compare"] and data["compare"]["said"]:
        return str(data["compare"]["said"])
    found = [title for title in titles(data) if title.strength >= _LEAST]
    if found:
        return max(found, key=lambda title: title.strength).sentence
    return _unsure(data)


# --- What is measured in the loss, in words ------------------------------------------------------


def less_likely(nats: float) -> str:
    """What added loss means for a word.

    >>> less_likely(0.075), less_likely(2.73)
    ('7% less likely', '15 times less likely')
    """
    if nats < math.log(2):
        return f"{1 - math.exp(-max(nats, 0.0)):.0%} less likely"
    times = math.exp(min(nats, 100))
    return f"{times:.2g} times less likely" if times < 10 else f"{times:,.0f} times less likely"


def costs_in_words(metric: str, *costs: float) -> list[str]:
    """What is lost, by the metric: a word's probability for a loss, else points of the metric.

    The first cost comes as a clause, those after it as what is compared with it.

    >>> costs_in_words("loss", 0.75, 0.2), costs_in_words("BLEU", 4.1)
    (['each right word becomes 2.1 times less likely', '18% less likely'], ['BLEU falls by 4.1'])
    """
    if metric == "loss":
        lead, amounts = "each right word becomes", [less_likely(cost) for cost in costs]
    else:
        lead, amounts = f"{metric} falls by", [printed(cost, ".2g") for cost in costs]
    return [f"{lead} {amounts[0]}", *amounts[1:]]


def _of(data: Data) -> str:
    return f"{data['model']}’s {data['count']:,} heads"


# --- The findings, the preferred first ----------------------------------------------------------


def _jobs(data: Data) -> Iterator[Title]:
    """A job whose heads cost more than as many others: how many times the worst draw (95%)."""
    for row in data["jobs"]:
        if row["set"] == "free alone" or row["answer"] != "more" or not row["heads"]:
            continue
        lost, others = costs_in_words(row["metric"], row["added"], row["control"])
        heads = f"{row['heads']} head{'s' * (row['heads'] != 1)}"
        sentence = (
            f"Without the {heads} of {data['model']} {row['that']}, {lost}; without {row['heads']} "
            f"others of the same layers, {others}."
        )
        yield Title(sentence, row["lo"] / max(row["most"], row["visible"], 1e-9))


def _together(data: Data) -> Iterator[Title]:
    """Heads that cost nothing measurable alone and much together: times the sum of single costs."""
    row = next((row for row in data["jobs"] if row["set"] == "free alone"), None)
    if row is None or row["lo"] <= 0:
        return
    alone = max(row["alone"] or 0.0, row["visible"], 1e-9)
    sentence = (
        f"Alone, {row['heads']} of {_of(data)} cost nothing we can measure. Without all "
        f"{row['heads']}, {costs_in_words(row['metric'], row['added'])[0]}."
    )
    yield Title(sentence, row["lo"] / alone)


def _prunable(data: Data) -> Iterator[Title]:
    """Heads that can go together within the tolerance: ten times their share of the model."""
    by = data["go"]["by"] if data["go"] else []
    if by and by[0]["gone"]:
        gone = by[0]["gone"]
        of = f"{gone} of {_of(data)}"
        yield Title(
            f"{of} can be pruned within {by[0]['within']}, untrained.", 10 * gone / data["count"]
        )


def _single(data: Data) -> Iterator[Title]:
    """One head that the model cannot do without: its least cost beside the next head's cost."""
    column = next((one for one in data["columns"] if one["id"] == "ablation"), None)
    bounds = {} if column is None else unpack_column(column)
    if not bounds.get("lo"):
        return
    values = np.array([np.nan if v is None else v for v in bounds["values"]], dtype=float)
    lows = np.array([np.nan if v is None else v for v in bounds["lo"]], dtype=float)
    if np.isfinite(values).sum() < 2:
        return
    first, second = np.argsort(np.nan_to_num(values, nan=-np.inf))[::-1][:2]
    metric = (data["examples"].get("ablation") or {}).get("metric") or "loss"
    (lost,) = costs_in_words(metric, float(values[first]))
    name = head_name(data, int(first))
    sentence = f"One of {_of(data)}, {name}, carries the most: without it {lost}."
    yield Title(sentence, float(lows[first] / max(values[second], 1e-9)))


def _unsure(data: Data) -> str:
    """The title where nothing is sure: the clearest role, else the heads themselves."""
    verdicts = [
        (own[0]["value"] or 0.0, place, own[0])
        for place, own in enumerate(data["roles"] or ())
        if own and not KINDS[own[0]["role"]].rests
    ]
    if not verdicts:
        sharp = _sharp(data)
        return f"The {data['count']:,} attention heads of {data['model']}{sharp}"
    value, place, verdict = max(verdicts, key=lambda one: one[:2])
    share = f", {value:.0%} of the time" if 0 < value <= 1 else ""
    return f"Head {head_name(data, place)} of {data['model']} {does(verdict)}{share}."


def _sharp(data: Data) -> str:
    """What the largest weights show, where nothing more was measured."""
    column = next((one for one in data["columns"] if one["id"] == "confidence"), None)
    values = [] if column is None else unpack_column(column)["values"]
    sharp = sum(value is not None and value > 0.5 for value in values)
    give = "gives" if sharp == 1 else "give"
    return f": {sharp} {give} over half of their attention to one token." if sharp else ""


#: How a head points along a relation.
_WAYS = {
    "dep->head": "from the dependent to its head",
    "head->dep": "from the head to its dependent",
    "head<-dep": "where the head looks most at its dependent",
}


def does(verdict: Data) -> str:
    """What a head does, by its verdict.

    >>> does({"role": "syntactic", "label": "det head->dep"})
    'points along det (determiner), from the head to its dependent'
    >>> does({"role": "rare", "label": "two rarest tokens"})
    'points to the rarest token'
    """
    relation, _, way = verdict["label"].rpartition(" ")
    if KINDS[verdict["role"]].shows != "arcs" or way not in _WAYS:
        return KINDS[verdict["role"]].meaning
    meaning = UD.get(relation.partition(":")[0])
    return f"points along {relation}{f' ({meaning})' if meaning else ''}, {_WAYS[way]}"


def head_name(data: Data, place: int) -> str:
    """The name of the head at a place of the page."""
    for stack in data["stacks"]:
        size = stack["layers"] * stack["heads"]
        if place < size:
            return f"{stack['id']}.{place // stack['heads']}.{place % stack['heads']}"
        place -= size
    raise IndexError(place)


# --- Whole jobs taken away ----------------------------------------------------------------------

#: The joint sets of a knock-out: their title, and how a sentence speaks of their heads.
_JOINT = {
    "any function": ("All that do something", "that do something we can name"),
    "any rest": ("All that look at one place", "that mostly look at one place"),
    "free alone": ("All that cost nothing alone", "that cost nothing alone"),
}


def job_part(source: Source) -> list[Data]:
    """A row for every set of heads that was switched off together: jobs first, then joint sets."""
    frame = source.frame("knockout")
    if frame is None:
        return []
    rows = []
    for row in frame.to_dict("records"):
        name = str(row["set"])
        look = KINDS.get(name)
        role = f"with the role {look.title.lower()}" if look else f"in the set {name}"
        title, that = _JOINT.get(name, (look.title if look else name, role))
        places = [source.places.get(head) for head in parse_heads(str(row["members"]))]
        visible = (row["added_high"] - row["added_low"]) / 2
        rows.append(
            {
                "set": name,
                "role": name if look else None,
                "title": title,
                "that": that,
                "heads": int(row["heads"]),
                "members": [place for place in places if place is not None],
                "metric": metric_title(str(row["metric"])),
                "n": int(row["examples"]),
                "draws": int(row["draws"]),
                "answer": str(row["answer"]),
                "note": str(row["note"] or ""),
                "visible": figure(visible),
                "added": figure(row["added"]),
                "lo": figure(row["added_low"]),
                "hi": figure(row["added_high"]),
                "control": figure(row["control"]),
                "least": figure(row["control_least"]),
                "most": figure(row["control_most"]),
                "alone": figure(row["alone"]),
            }
        )
    order = [*KINDS, *_JOINT]
    return sorted(rows, key=lambda row: order.index(row["set"]) if row["set"] in order else -1)
