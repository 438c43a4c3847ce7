"""What the page argues: its title, the path through it, and its opening.

Everything here is a rule over what the run holds, so that it is true for any model: what was not
measured is left out, never guessed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from headcount.reports.parts.look import UD
from headcount.reports.parts.numbers import printed, unpack_column
from headcount.reports.parts.verdicts import TOO_FEW
from headcount.surveys.roles import KINDS

#: A head matters by itself when its test says so after correction.
_LEVEL = 0.05
Data = dict[str, Any]


# --- Who does something, who looks at one place, who costs something -----------------------------


def costly(data: Data) -> list[int] | None:
    """Heads whose removal alone costs something, by the test; None if unknown."""
    column = _column(data, "ablation")
    if column is None or all(p is None for p in column.get("p", ())):
        return None
    rows = zip(column["values"], column["p"], strict=True)
    return [
        place
        for place, (value, p) in enumerate(rows)
        if value is not None and p is not None and value > 0 and p < _LEVEL
    ]


def visible_alone(column: Data) -> float | None:
    """The minimum detectable cost of one head: the median over heads.

    Half of a 95% interval, widened to the level of the first of so many tests (Holm); None where
    there are no intervals.
    """
    bounds = unpack_column(column)
    ends = zip(bounds.get("lo") or (), bounds.get("hi") or (), strict=False)
    halves = [(high - low) / 2 for low, high in ends if low is not None and high is not None]
    if not halves:
        return None
    tests = len(halves) if column.get("corrected") else 1
    normal = NormalDist()
    wider = normal.inv_cdf(1 - _LEVEL / 2 / tests) / normal.inv_cdf(1 - _LEVEL / 2)
    return float(np.median(halves)) * wider


def _with(data: Data, role: str) -> list[int]:
    """The heads whose first role it is: every count of the page goes by a head's first role."""
    return [
        place for place, own in enumerate(data["roles"] or ()) if own and own[0]["role"] == role
    ]


def _tested(data: Data) -> int:
    column = _column(data, "ablation") or {}
    return sum(p is not None for p in column.get("p", ()))


def _column(data: Data, name: str | None) -> Data | None:
    return next((one for one in data["columns"] if one["id"] == name), None)


def _values(data: Data, name: str | None) -> list[float | None]:
    column = _column(data, name)
    return [] if column is None else unpack_column(column)["values"]


# --- Below the title ----------------------------------------------------------------------------


def about(data: Data) -> str:
    """Model and texts, and the metric, sample and test by which a head matters."""
    texts = next((value for name, value in data["provenance"] if name == "Texts"), "")
    words = f"{data['model']}{f', {texts}' if texts else ''}."
    if data["costly"] is None:
        return words
    told = data["examples"].get("ablation", {})
    column = _column(data, "ablation") or {}
    examples = f", n = {told['n']}" if "n" in told else ""
    tested = "after correction for all heads" if column.get("corrected") else "not corrected"
    least = visible_alone(column)
    unseen = "" if least is None else f"; minimum detectable cost {least:.2g}"
    metric = told.get("metric") or "quality"
    return f"{words} Cost in {metric}{examples}; p < .05, {tested}{unseen}."


# --- The path: a few sentences, each a link that selects what it speaks of ------------------------


def path_part(data: Data) -> list[Data]:
    """At most four sentences: a `link`, the `text` after it, and its target (`to`)."""
    column = opening(data)["col"]
    worth = _values(data, column)
    costs = set(data["costly"] or ())
    found = [
        *_telling(data, worth, column, costs),
        *_unknown(data, worth, costs),
        *_resting(data, costs),
        *_going(data),
        *_kinds(data, worth, costs),
    ]
    return found[:4]


def _telling(data: Data, worth: list[float | None], column: str, costs: set[int]) -> Iterator[Data]:
    """The head that does something and matters most: what it does, and what it costs."""
    place = telling_head(data, worth)
    if place is None:
        return
    verdict = data["roles"][place][0]
    tail = f" {does(verdict)}"
    if place in costs:
        rank = 1 + sum(value is not None and value > (worth[place] or 0) for value in worth)
        most = "more than any other head" if rank == 1 else f"rank {rank} of {_tested(data)}"
        metric = data["examples"].get("ablation", {}).get("metric") or "quality"
        (lost,) = costs_in_words(metric, abs(worth[place] or 0), of=_judged(data))
        nats = metric == "loss" and _judged(data)
        nats = f" ({printed(abs(worth[place] or 0), '.2g')} nats)" if nats else ""
        tail += f"; without it {lost}{nats}, {most}"
    yield {"link": head_name(data, place), "text": f"{tail}.", "to": {"head": place}}


def _unknown(data: Data, worth: list[float | None], costs: set[int]) -> Iterator[Data]:
    """The costliest head that no rule names."""
    if data["roles"] is None:
        return
    nameless = [place for place in costs if not data["roles"][place]]
    if nameless:
        place = max(nameless, key=lambda one: worth[one] or 0)
        rank = 1 + sum(value is not None and value > (worth[place] or 0) for value in worth)
        few = TOO_FEW in (data.get("misses") or {place: ""})[place]
        why = f"; {TOO_FEW}." if few else ", and no rule names what it does."
        text = f" matters alone, rank {rank} of {_tested(data)}{why}"
        yield {"link": head_name(data, place), "text": text, "to": {"head": place}}


def _resting(data: Data, costs: set[int]) -> Iterator[Data]:
    """The largest group that looks at one place."""
    yield from _group(data, costs, [role for role, kind in KINDS.items() if kind.says == "place"])


def _going(data: Data) -> Iterator[Data]:
    """How many can be pruned by the metric that allows most, and what the strictest says."""
    by = data["go"]["by"] if data["go"] else []
    if not by or not by[-1]["gone"]:
        return
    strict, most = by[0], by[-1]
    heads = "1 head" if most["gone"] == 1 else f"{most['gone']} heads"
    text = f" can be pruned within {most['within']}, untrained"
    if strict["gone"] < most["gone"]:
        text += f"; within {strict['within']} {strict['gone'] or 'none'} (95% bound)"
    yield {"link": heads, "text": f"{text}.", "to": {"step": [most["order"], most["step"]]}}


def _kinds(data: Data, worth: list[float | None], costs: set[int]) -> Iterator[Data]:
    """The largest other group that does something, where there is room."""
    place = telling_head(data, worth)
    told = None if place is None else data["roles"][place][0]["role"]
    doing = [role for role, kind in KINDS.items() if not kind.rests and role != told]
    yield from _group(data, costs, doing)


def _group(data: Data, costs: set[int], roles: list[str]) -> Iterator[Data]:
    sizes = {role: _with(data, role) for role in roles}
    role = max(sizes, key=lambda one: len(sizes[one]), default=None)
    if role is None or len(sizes[role]) < 2:
        return
    verb, _, rest = KINDS[role].meaning.partition(" ")
    costly_ones = len(costs & set(sizes[role]))
    matter = f"; {costly_ones or 'none'} matter{'s' if costly_ones == 1 else ''} alone"
    matter = "" if data["costly"] is None else matter
    plural = f"{verb[:-3] + 'y' if verb.endswith('ies') else verb.removesuffix('s')} {rest}"
    yield {"link": f"{len(sizes[role])} heads", "text": f" {plural}{matter}.", "to": {"role": role}}


# --- What the page shows first ------------------------------------------------------------------


def opening(data: Data) -> Data:
    """The column of most interest, and a head worth seeing; in the colours of roles, if judged."""
    ids = [column["id"] for column in data["columns"]]
    column = next(
        (one for one in ("ablation", "gradient", "confidence") if one in ids),
        ids[0] if ids else None,
    )
    gaps = set(data["absent"])
    there = [place for place in range(data["count"] + len(gaps)) if place not in gaps]
    worth = _values(data, column)
    head = telling_head(data, worth)
    if head is None:
        ranked = [-np.inf if value is None else value for value in worth]
        head = (
            max(there, key=lambda place: ranked[place], default=0) if ranked else (there or [0])[0]
        )
    return {"head": head, "col": column, "paint": "role" if any(data["roles"] or ()) else column}


def telling_head(data: Data, worth: list[float | None]) -> int | None:
    """Of the most telling role the head that costs most alone; the clearest, if no cost is known.

    >>> roles = [[{"role": "induction", "value": 0.3}], [{"role": "induction", "value": 0.9}]]
    >>> telling_head({"roles": roles, "costly": None}, [2.0, 1.0])
    1
    """
    telling = {role: kind.telling for role, kind in KINDS.items() if kind.telling is not None}
    for role in sorted(telling, key=lambda role: telling[role]):
        own = _with(data, role)
        if own and data["costly"]:
            return max(own, key=lambda one: worth[one] or 0.0)
        if own:
            return max(own, key=lambda one: data["roles"][one][0]["value"] or 0.0)
    return None


# --- The title: the strongest finding of the run, in one sentence that can be retold --------------
# Every kind of finding has a sentence and a strength, both from what was measured. The strongest is
# the title; of equals the earlier kind. A count of significant heads is never one: it grows with
# the sample.


#: A weaker finding is no title: more than any draw of others cost, or a tenth of the heads.
_LEAST = 1.0


class Title(NamedTuple):
    """A finding: its sentence, and how strong it is."""

    sentence: str
    strength: float


def titles(data: Data) -> Iterator[Title]:
    """Every finding of a run that can be a title, in the order in which equals are preferred."""
    yield from _jobs(data)
    yield from _together(data)
    yield from (*_prunable(data), *_pruned(data))
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


#: Of what a task's loss is the surprise, in nats; that of other tasks is a squared error.
OF = {
    **dict.fromkeys(("translation", "lm"), "each right word"),
    **{"mlm": "each hidden word", "classification": "the right class"},
}


def costs_in_words(metric: str, *costs: float, of: str = OF["lm"]) -> list[str]:
    """What is lost, by the metric: a probability for a loss in nats, else the metric's change.

    The first cost comes as a clause, those after it as what is compared with it.

    >>> costs_in_words("loss", 0.75, 0.2), costs_in_words("BLEU", 4.1)
    (['each right word becomes 2.1 times less likely', '18% less likely'], ['BLEU falls by 4.1'])
    >>> costs_in_words("loss", 0.75, of="")
    ['loss rises by 0.75']
    """
    if metric == "loss" and of:
        lead, amounts = f"{of} becomes", [less_likely(cost) for cost in costs]
    else:
        lead = f"{metric} {'rises' if metric == 'loss' else 'falls'} by"
        amounts = [printed(cost, ".2g") for cost in costs]
    return [f"{lead} {amounts[0]}", *amounts[1:]]


def _judged(data: Data) -> str:
    """Of what the run's loss is the surprise; empty where it is a squared error, or unknown."""
    scores = (data["examples"].get(name) for name in ("ablation", "gradient"))
    return next((str(score["of"]) for score in scores if score and score.get("of")), "")


def _model(data: Data) -> str:
    """A name as a sentence has it: a plain word, as the bundled model's, takes its article."""
    return f"the {data['model']}" if data["model"] == "translator" else str(data["model"])


def _of(data: Data) -> str:
    return f"{_model(data)}’s {data['count']:,} heads"


# --- The findings, the preferred first ----------------------------------------------------------


def _jobs(data: Data) -> Iterator[Title]:
    """A job whose heads cost more than as many others: how many times the worst draw (95%)."""
    for row in data["jobs"]:
        if row["set"] == "free alone" or row["answer"] != "more" or not row["heads"]:
            continue
        costs = row["added"], row["control"]
        lost, others = costs_in_words(row["metric"], *costs, of=_judged(data))
        heads = f"{row['heads']} head{'s' * (row['heads'] != 1)}"
        sentence = (
            f"Without the {heads} of {_model(data)} {row['that']}, {lost}; without {row['heads']} "
            f"others of the same layers, {others}."
        )
        yield Title(sentence, row["lo"] / max(row["most"], row["visible"], 1e-9))


def _together(data: Data) -> Iterator[Title]:
    """Heads that cost nothing measurable alone and much together: times the sum of single costs."""
    row = next((row for row in data["jobs"] if row["set"] == "free alone"), None)
    if row is None or row["lo"] <= 0:
        return
    alone = max(row["alone"] or 0.0, row["visible"], 1e-9)
    (lost,) = costs_in_words(row["metric"], row["added"], of=_judged(data))
    sentence = (
        f"Alone, {row['heads']} of {_of(data)} cost nothing we can measure. Without all "
        f"{row['heads']}, {lost}."
    )
    yield Title(sentence, row["lo"] / alone)


def _prunable(data: Data) -> Iterator[Title]:
    """Heads that can be pruned within the tolerance: ten times their share of the model."""
    by = data["go"]["by"] if data["go"] else []
    if by and (gone := by[0]["gone"]):
        alike = [one for one in by if one["gone"] == gone]
        within = min(alike, key=lambda one: one.get("metric") == "loss")["within"]
        sentence = f"{gone} of {_of(data)} can be pruned within {within}, untrained."
        yield Title(sentence, 10 * gone / data["count"])


def _pruned(data: Data) -> Iterator[Title]:
    """What is left of a model that was pruned and trained, and its cost; as `_prunable`."""
    for order in data.get("curve") or ():
        last, sign = order["points"][-1], 1 if order["more"] == "worse" else -1
        metric, gone = order["metric"], data["count"] - last["left"]
        cost = sign * (last.get("delta") or 0.0)
        if order["healed"] and gone > 0:
            (lost,) = costs_in_words(metric, cost, of=_judged(data))
            so = lost if cost > 0 else f"{metric} is no worse"
            left = f"{last['left']} of {_of(data)} are left, and {so}."
            yield Title(left, 10 * gone / data["count"])


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
    (lost,) = costs_in_words(metric, float(values[first]), of=_judged(data))
    name = head_name(data, int(first))
    sentence = f"One of {_of(data)}, {name}, carries the most: without it {lost}."
    yield Title(sentence, float(lows[first] / max(values[second], 1e-9)))


def _unsure(data: Data) -> str:
    """The title where nothing is sure: the clearest role, else the heads themselves."""
    verdicts = [
        (own[0]["value"] or 0.0, place, own[0])
        for place, own in enumerate(data["roles"] or ())
        if own and own[0]["role"] != "other" and not KINDS[own[0]["role"]].rests
    ]
    if not verdicts:
        sharp = _sharp(data)
        return f"The {data['count']:,} attention heads of {_model(data)}{sharp}"
    value, place, verdict = max(verdicts, key=lambda one: one[:2])
    share = f", {value:.0%} of the time" if 0 < value <= 1 else ""
    return f"Head {head_name(data, place)} of {_model(data)} {does(verdict)}{share}."


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
    "head<-dep": "each dependent looked at most by its head word",
}


def does(verdict: Data) -> str:
    """What a head does, by its verdict.

    >>> does({"role": "syntactic", "label": "det head->dep"})
    'points along det (determiner), from the head to its dependent'
    >>> does({"role": "rare", "label": "two rarest tokens"})
    'points to the rarest token'
    """
    relation, _, way = verdict["label"].rpartition(" ")
    offset = verdict.get("dir")
    if KINDS[verdict["role"]].shows == "offset" and offset:
        side = "after" if offset > 0 else "before"
        return f"looks {abs(offset)} token{'s' * (abs(offset) > 1)} {side} each word"
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
