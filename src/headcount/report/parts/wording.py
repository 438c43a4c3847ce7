"""The page in words: its title, the four figures next to it, where the numbers come from.

Also what was not measured, each with the command that would.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np

from headcount.records import version
from headcount.report.parts.numbers import Source, unpack_column

# --- The finding as a sentence ------------------------------------------------------------------

#: A head matters by itself when its test says so after correction.
_LEVEL = 0.05
#: Roles that a single picture shows.
_PICTURED = ("syntactic", "alignment", "coreference", "positional")


def headline(data: dict[str, Any]) -> list[str]:
    """What stands before and after the model's name; the name itself may not be broken."""
    heads = data["count"]
    roles = data["roles"]
    named = sum(bool(verdicts) for verdicts in roles) if roles is not None else None
    go = data["go"]
    gone = f"{go['gone']} can go within {go['within']}" if go and go["gone"] else ""
    if named is None:
        found = gone or _focused(data)
        return [f"The {heads} attention heads of ", f": {found}" if found else ""]
    has = "has" if named == 1 else "have"
    tail = f" {has} a role we can name"
    return [
        f"{named or 'None'} of the {heads} attention heads of ",
        f"{tail}; {gone}" if gone else tail,
    ]


def _focused(data: dict[str, Any]) -> str:
    """What the largest weights show, where nothing more was measured."""
    column = next((one for one in data["columns"] if one["id"] == "confidence"), None)
    if column is None:
        return ""
    known = [value for value in unpack_column(column)["values"] if value is not None]
    sharp = sum(value > 0.5 for value in known)
    give = "gives" if sharp == 1 else "give"
    return f"{sharp} {give} on average over half of their attention to one token" if sharp else ""


def costly(data: dict[str, Any]) -> list[int] | None:
    """Heads whose removal by itself costs something, by the test; None where that is unknown."""
    column = next((one for one in data["columns"] if one["id"] == "ablation"), None)
    if column is None or all(p is None for p in column.get("p", ())):
        return None
    rows = zip(column["values"], column["p"], strict=True)
    return [
        place
        for place, (value, p) in enumerate(rows)
        if value is not None and p is not None and value > 0 and p < _LEVEL
    ]


def opening(data: dict[str, Any]) -> dict[str, Any]:
    """What the page shows first: the column of most interest, and a head worth seeing."""
    ids = [column["id"] for column in data["columns"]]
    column = next(
        (one for one in ("ablation", "gradient", "confidence") if one in ids),
        ids[0] if ids else None,
    )
    return {"head": _first_head(data, column), "col": column}


def _first_head(data: dict[str, Any], column: str | None) -> int:
    """The head that matters most among those with a role; else the first that is there."""
    gaps = set(data["absent"])
    there = [place for place in range(data["count"] + len(gaps)) if place not in gaps]
    named = [
        place
        for place in there
        if data["roles"] and any(one["role"] in _PICTURED for one in data["roles"][place])
    ]
    values = next((one["values"] for one in data["columns"] if one["id"] == column), None)
    if not values:
        return (named or there or [0])[0]
    worth = [-np.inf if value is None else value for value in values]
    return max(named or there, key=lambda place: worth[place])


# --- The figures next to the title ---------------------------------------------------------------

Fact = dict[str, Any]


def fact_part(data: dict[str, Any]) -> list[Fact]:
    """Four figures, each with what it counts and a note; without `n` where nobody measured it."""
    return [_heads(data), _named(data), _costs(data), _going(data)]


def _heads(data: dict[str, Any]) -> Fact:
    count, lost = data["count"], len(data["absent"])
    note = _sizes(data["stacks"]) + (f"; {lost} were removed before" if lost else "")
    return {"id": "heads", "n": str(count), "of": "head" if count == 1 else "heads", "note": note}


def _sizes(stacks: list[dict[str, Any]]) -> str:
    """Layers by heads, once where all stacks have the same.

    >>> _sizes([{"id": "enc", "layers": 6, "heads": 8}, {"id": "dec", "layers": 6, "heads": 8}])
    'enc, dec: each 6 layers × 8 heads'
    """
    sizes = {(stack["layers"], stack["heads"]) for stack in stacks}
    if len(sizes) > 1:
        return ", ".join(f"{one['id']} {one['layers']} × {one['heads']}" for one in stacks)
    ((layers, heads),) = sizes
    before = f"{', '.join(one['id'] for one in stacks)}: each " if len(stacks) > 1 else ""
    return f"{before}{layers} layers × {heads} heads"


def _named(data: dict[str, Any]) -> Fact:
    if data["roles"] is None:
        return _unknown(data, "roles", "with a role")
    named = sum(bool(verdicts) for verdicts in data["roles"])
    return {"id": "roles", "n": str(named), "of": "with a role"}


def _costs(data: dict[str, Any]) -> Fact:
    if data["costly"] is None:
        return _unknown(data, "ablation", "matter by themselves")
    column = next(one for one in data["columns"] if one["id"] == "ablation")
    costly, about = len(data["costly"]), data["examples"].get("ablation", {})
    known = sum(p is not None for p in column["p"])
    examples = f", n = {about['n']}" if "n" in about else ""
    tested = "corrected for all heads" if column.get("corrected") else "not corrected"
    least = visible_alone(column)
    unseen = "" if least is None else f" A cost below {least:.2g} could mostly not have been seen."
    return {
        "id": "ablation",
        "n": str(costly),
        "of": "matters by itself" if costly == 1 else "matter by themselves",
        "note": f"Switched off one at a time, {known - costly} of {known} have no measurable cost "
        f"in {about.get('metric') or 'quality'} (p < .05, {tested}{examples}).{unseen}",
        "least": least,
    }


def visible_alone(column: dict[str, Any]) -> float | None:
    """The smallest cost of one head that its test could have told from none, for half of the heads.

    Half of a 95% interval, widened to the level of the first of so many tests (Holm); None where
    there are no intervals.
    """
    column = unpack_column(column)
    ends = zip(column.get("lo") or (), column.get("hi") or (), strict=False)
    halves = [(high - low) / 2 for low, high in ends if low is not None and high is not None]
    if not halves:
        return None
    tests = len(halves) if column.get("corrected") else 1
    normal = NormalDist()
    wider = normal.inv_cdf(1 - _LEVEL / 2 / tests) / normal.inv_cdf(1 - _LEVEL / 2)
    return float(np.median(halves)) * wider


def _going(data: dict[str, Any]) -> Fact:
    """The strictest metric decides; those that allow more are named after it."""
    go = data["go"]
    if go is None:
        return _unknown(data, "curve", "can go")
    others = [f"By {one['metric']} alone: {one['sentence']}" for one in go["by"][1:]]
    note = " ".join([go["sentence"], *others])
    name = "go" if go["gone"] else "curve"
    return {"id": name, "n": str(go["gone"]), "of": "can go", "note": note}


def _unknown(data: dict[str, Any], key: str, of: str) -> Fact:
    """A figure that was not measured, with the command that would."""
    how = next((how for name, _, how in data["missing"] if name == key), "")
    return {"id": key, "n": None, "of": of, "how": how}


# --- Where the numbers come from ----------------------------------------------------------------


def provenance_part(source: Source) -> list[list[Any]]:
    """Pairs of a name and its value, in the order in which they are read."""
    facts = source.table.provenance
    subject = facts.get("subject") or {}
    count = subject.get("parameters")
    size = f"{count / 1e6:.1f} M parameters" if count else None
    model = facts.get("model"), subject.get("class"), size, subject.get("dtype")
    rows: list[list[Any]] = [
        ["Model", _joined(*model)],
        ["Weights", facts.get("weights") or subject.get("weights_hash")],
        ["Revision", facts.get("revision")],
        ["Texts", _joined(facts.get("corpus"), _counted(facts))],
        ["Texts, hash", facts.get("data")],
        ["Convention", facts.get("convention")],
        ["Seed", facts.get("seed")],
        ["Made", _joined(facts.get("time"), facts.get("platform"))],
        ["Versions", ", ".join(f"{k} {v}" for k, v in (facts.get("versions") or {}).items() if v)],
        ["This page", f"headcount {version()}"],
    ]
    rows += [[f"Stage {name}", _stage(stage)] for name, stage in _stages(source).items()]
    rows += [[f"Probe {row['probe']}", _probe(row)] for row in _probes(source)]
    rows += [["Remark", remark] for remark in dict.fromkeys(facts.get("remarks") or [])]
    rows += [["Remark", note] for note in source.record.get("notes", [])]
    return [[name, str(value)] for name, value in rows if value not in (None, "")]


def commands(source: Source) -> list[str]:
    """Every command that wrote into the run, once."""
    own = [stage.get("provenance", {}).get("command") for stage in _stages(source).values()]
    found = [source.table.provenance.get("command"), *own]
    return list(dict.fromkeys(str(command) for command in found if command))


#: What a run may hold: its title, and the command that measures it.
_MEASURED = {
    "roles": ("Roles", "headcount survey MODEL --treebank FILE"),
    "relations": ("Relations of words", "headcount survey MODEL --treebank FILE"),
    "ablation": ("What removing a head costs", "headcount score MODEL --task ... --by ablation"),
    "gradient": ("Gradient importance", "headcount score MODEL --task ... --by gradient"),
    "curve": ("Pruning curve", "headcount prune MODEL --task ... -o DIR"),
    "pairs": ("Which heads resemble one another", "headcount report MODEL"),
    "agreement": ("Agreement of measures", "headcount score MODEL --by gradient,ablation"),
    "exhibits": ("Exhibits", "headcount report RUN without --no-exhibits"),
    "pattern": ("Patterns of maps", "headcount survey MODEL --patterns"),
    "probe_weight": (
        "Weight in the attention-only probe",
        "headcount probe MODEL --treebank FILE",
    ),
}


def missing_part(source: Source) -> list[list[str]]:
    """What a run may hold and this one does not: its key, its title, and how to measure it."""
    there = {*source.table.names, *(name for name in source.frames if len(source.frames[name]))}
    there |= {"roles"} & source.frames.keys()  # judged, though no head may have one
    there |= {name for name in ("pairs", "exhibits") if getattr(source, name)}
    return [[key, *words] for key, words in _MEASURED.items() if key not in there]


def _probes(source: Source) -> list[dict[Any, Any]]:
    frame = source.frame("probes")
    return [] if frame is None or "uas" not in frame else frame.to_dict("records")


def _probe(row: dict[Any, Any]) -> str:
    """How well trees are read from nothing but attention."""
    bounds = f" [{row['low']:.3f}, {row['high']:.3f}]" if "low" in row and "high" in row else ""
    return f"UAS {row['uas']:.3f}{bounds}, n = {row.get('n', '?')}"


def _stages(source: Source) -> dict[str, dict[str, Any]]:
    return dict(source.record.get("stages") or {})


def _stage(stage: dict[str, Any]) -> str:
    task = stage.get("provenance", {}).get("task") or {}
    settings = stage.get("settings") or {}
    kept = ("metric", "mode", "convention")
    how = [f"{key} {settings[key]}" for key in kept if settings.get(key)]
    examples = f"{task['examples']} examples" if task.get("examples") else None
    seconds = f"{stage['seconds']:.0f} s" if stage.get("seconds") else None
    return _joined(task.get("data"), examples, *how, seconds)


def _counted(facts: dict[str, Any]) -> str:
    counts = facts.get("counts") or {}
    tokens = counts.get("tokens")
    total = sum(tokens.values()) if isinstance(tokens, dict) else tokens
    rows = counts.get("sentences") or counts.get("rows")
    return _joined(
        f"{rows:,} {facts.get('unit') or 'sentences'}" if rows else None,
        f"{total:,} tokens" if total else None,
    )


def _joined(*parts: Any) -> str:
    return ", ".join(str(part) for part in parts if part not in (None, ""))
