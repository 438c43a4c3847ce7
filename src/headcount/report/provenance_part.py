"""Where the numbers come from, and what was not measured, each with the command that would."""

from __future__ import annotations

from typing import Any

from headcount.provenance import version
from headcount.report.source import Source

__all__ = ["missing_part", "provenance_part"]


def provenance_part(source: Source) -> list[list[Any]]:
    """Pairs of a name and its value, in the order in which they are read."""
    facts = source.table.provenance
    subject = facts.get("subject") or {}
    told: list[list[Any]] = [
        [
            "Model",
            _joined(
                facts.get("model"), subject.get("class"), _parameters(subject), subject.get("dtype")
            ),
        ],
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
    told += [[f"Stage {name}", _stage(stage)] for name, stage in _stages(source).items()]
    told += [[f"Probe {row['probe']}", _probe(row)] for row in _probes(source)]
    told += [["Remark", remark] for remark in dict.fromkeys(facts.get("remarks") or [])]
    told += [["Remark", note] for note in source.record.get("notes", [])]
    return [[name, str(value)] for name, value in told if value not in (None, "")]


def commands(source: Source) -> list[str]:
    """Every command that wrote into the run, once."""
    own = [stage.get("provenance", {}).get("command") for stage in _stages(source).values()]
    told = [source.table.provenance.get("command"), *own]
    return list(dict.fromkeys(str(command) for command in told if command))


def missing_part(source: Source) -> list[list[str]]:
    """What a run may hold and this one does not: its name, and how to measure it."""
    names = source.table.names
    wanted = [
        ("roles", "Roles", "headcount survey MODEL --treebank FILE", "roles" in source.frames),
        (
            "relations",
            "Relations of words",
            "headcount survey MODEL --treebank FILE",
            source.frame("relations") is not None,
        ),
        (
            "ablation",
            "What removing a head costs",
            "headcount score MODEL --task ... --by ablation",
            "ablation" in names,
        ),
        (
            "gradient",
            "Gradient importance",
            "headcount score MODEL --task ... --by gradient",
            "gradient" in names,
        ),
        (
            "curve",
            "Pruning curve",
            "headcount prune MODEL --task ... -o DIR",
            source.frame("curve") is not None,
        ),
        (
            "pairs",
            "Which heads resemble one another",
            "headcount report MODEL",
            bool(source.pairs),
        ),
        (
            "agreement",
            "Agreement of measures",
            "headcount score MODEL --by gradient,ablation",
            source.frame("agreement") is not None,
        ),
        (
            "exhibits",
            "Exhibits",
            "headcount report RUN without --no-exhibits",
            bool(source.exhibits),
        ),
        ("pattern", "Patterns of maps", "headcount survey MODEL --patterns", "pattern" in names),
        (
            "probe_weight",
            "Weight in the attention-only probe",
            "headcount probe MODEL --treebank FILE",
            "probe_weight" in names,
        ),
    ]
    return [[key, title, how] for key, title, how, there in wanted if not there]


def _probes(source: Source) -> list[dict[Any, Any]]:
    frame = source.frame("probes")
    return [] if frame is None or "uas" not in frame else frame.to_dict("records")


def _probe(row: dict[Any, Any]) -> str:
    """How well trees are read from attention alone, beside what needs no model."""
    bounds = f" [{row['low']:.3f}, {row['high']:.3f}]" if "low" in row and "high" in row else ""
    return f"UAS {row['uas']:.3f}{bounds}, n = {row.get('n', '?')}"


def _stages(source: Source) -> dict[str, dict[str, Any]]:
    return dict(source.record.get("stages") or {})


def _stage(stage: dict[str, Any]) -> str:
    task = stage.get("provenance", {}).get("task") or {}
    settings = stage.get("settings") or {}
    said = [
        f"{key} {settings[key]}" for key in ("metric", "mode", "convention") if settings.get(key)
    ]
    examples = f"{task['examples']} examples" if task.get("examples") else None
    seconds = f"{stage['seconds']:.0f} s" if stage.get("seconds") else None
    return _joined(task.get("data"), examples, *said, seconds)


def _counted(facts: dict[str, Any]) -> str:
    counts = facts.get("counts") or {}
    tokens = counts.get("tokens")
    total = sum(tokens.values()) if isinstance(tokens, dict) else tokens
    rows = counts.get("sentences") or counts.get("rows")
    return _joined(
        f"{rows:,} {facts.get('unit') or 'sentences'}" if rows else None,
        f"{total:,} tokens" if total else None,
    )


def _parameters(subject: dict[str, Any]) -> str | None:
    count = subject.get("parameters")
    return f"{count / 1e6:.1f} M parameters" if count else None


def _joined(*parts: Any) -> str:
    return ", ".join(str(part) for part in parts if part not in (None, ""))
