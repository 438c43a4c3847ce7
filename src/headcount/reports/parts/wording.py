"""Where the numbers of a page come from, and what was not measured, with the command that would."""

from __future__ import annotations

from typing import Any

from headcount.records import version
from headcount.reports.parts.numbers import Source

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
    "roles": ("Roles", "headcount survey MODEL --treebank FILE -o RUN"),
    "relations": ("Relations of words", "headcount survey MODEL --treebank FILE -o RUN"),
    "ablation": (
        "What removing a head costs",
        "headcount score MODEL --task ... --by ablation -o RUN",
    ),
    "gradient": ("Gradient importance", "headcount score MODEL --task ... --by gradient -o RUN"),
    "curve": ("Pruning curve", "headcount prune MODEL --task ... -o DIR"),
    "gates": ("What learned gates free", "headcount report MODEL --gates"),
    "healed": ("What healing gives back", "headcount report MODEL --heal"),
    "pairs": ("Which heads resemble one another", "headcount report MODEL"),
    "agreement": (
        "Agreement of measures",
        "headcount score MODEL --task ... --by gradient,ablation -o RUN",
    ),
    "exhibits": ("Exhibits", "headcount report MODEL, without --no-exhibits"),
    "pattern": ("Patterns of maps", "headcount survey MODEL --text FILE --patterns -o RUN"),
    "probe_weight": (
        "Weight in the attention-only probe",
        "headcount probe MODEL --treebank FILE --test FILE -o RUN",
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
    task = _part(_part(stage, "provenance"), "task")
    settings = _part(stage, "settings")
    kept = ("metric", "mode", "convention", "steps")
    how = [f"{key} {settings[key]}" for key in kept if settings.get(key)]
    examples = f"{task['examples']} examples" if task.get("examples") else None
    seconds = f"{stage['seconds']:.0f} s" if stage.get("seconds") else None
    return _joined(task.get("data"), examples, *how, seconds)


def _part(of: Any, name: str) -> dict[str, Any]:
    """A part of a record; nothing where the record is damaged there."""
    found = of.get(name) if isinstance(of, dict) else None
    return found if isinstance(found, dict) else {}


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
