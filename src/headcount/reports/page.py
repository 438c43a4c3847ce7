"""`hc.report`: a run as one page; template, style, script, data and maps are joined once."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headcount import plugins
from headcount.errors import RunError, UsageError
from headcount.models import Subject
from headcount.pruning import read_tolerance
from headcount.records import HeadTable, Run, old_keywords, version, write_bytes
from headcount.reports.options import Fineness
from headcount.reports.parts import argument, curve, look, numbers, verdicts
from headcount.reports.parts.numbers import Source, read_source

if TYPE_CHECKING:
    from headcount.reports.stories import StageStatus

# --- Everything the page shows, as one JSON value -----------------------------------------------

#: Parts that are packed whole.
_PACKED = ("roles", "curve", "misses", "lesions", "strip")
#: What a column, and what the map of heads, holds in numbers, one for each head.
_LISTS = ("u", "values", "lo", "hi", "p")
_MAP_LISTS = ("x", "y", "near")

_TITLES = {
    "enc": "Encoder self-attention",
    "dec": "Decoder self-attention",
    "cross": "Decoder to encoder",
}


#: What rooms tell the page, where none does.
_NOT_TOLD: dict[str, Any] = {
    **dict.fromkeys(("relations", "map", "agreement", "compare", "strip")),
    **{"function": {}, "jobs": [], "lesions": [], "exhibits": []},
}


def page_data(source: Source) -> dict[str, Any]:
    """The parts of the page, each None or empty where the run does not hold it."""
    data: dict[str, Any] = {
        "model": source.model,
        "stacks": _stacks(source),
        "count": len(source.table),
        "absent": _absent(source),
        "kinds": verdicts.kind_part(),
        "roles": verdicts.role_part(source),
        "columns": numbers.column_part(source),
        "words": numbers.text_columns(source),
        "curve": curve.curve_part(source),
        "examples": _examples(source),
        "provenance": provenance_part(source),
        "commands": commands(source),
        "missing": missing_part(source),
        "ramps": look.ramps(),
        **_NOT_TOLD,
        **{name: view(source) for name, view in plugins.every("views").items()},
    }
    data["times"] = data["strip"] and data["strip"].pop("times")
    data["misses"] = verdicts.miss_part(source, data["roles"])
    data |= {"costly": argument.costly(data), "go": curve.could_go(source)}
    return data | {
        "headline": argument.headline(data),
        "about": argument.about(data),
        "path": argument.path_part(data),
        "opening": argument.opening(data),
    }


def split_numbers(data: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What stays readable in the page, and the long lists, one entry a head, that are packed.

    >>> column = {"id": "self", "values": [1]}
    >>> words, numbers = split_numbers({"columns": [column], "relations": None, "map": None})
    >>> words["columns"], numbers["columns"]
    ([{'id': 'self'}], [{'values': [1]}])
    """
    relations, places = data["relations"], data["map"]
    numbers = {
        "columns": [_some(column, _LISTS, True) for column in data["columns"]],
        "relations": relations and relations["heads"],
        "map": places and _some(places, _MAP_LISTS, True),
    } | {key: data.get(key) for key in _PACKED}
    words = {key: part for key, part in data.items() if key not in _PACKED} | {
        "columns": [_some(column, _LISTS, False) for column in data["columns"]],
        "relations": relations and _some(relations, ("heads",), False),
        "map": places and _some(places, _MAP_LISTS, False),
    }
    return words, numbers


def _some(parts: dict[str, Any], keys: tuple[str, ...], wanted: bool) -> dict[str, Any]:
    return {key: part for key, part in parts.items() if (key in keys) is wanted}


def _stacks(source: Source) -> list[dict[str, Any]]:
    return [
        {
            "id": stack,
            "title": _TITLES[stack],
            "layers": layers,
            "heads": heads,
            "silent": _silent(source, stack),
        }
        for stack, layers, heads in source.shape
    ]


def _silent(source: Source, stack: str) -> str:
    """The columns that say nothing of a stack, by the reason that the table gives."""
    table, reasons = source.table, dict[str, list[str]]()
    own = [head.stack == stack for head in table.heads]
    for name in numbers.measured_columns(table):
        if np.isnan(table.numbers(name)[own]).all():
            why = re.search(rf"(?:^|; ){stack}: ([^;]*)", table.notes.get(name, ""))
            reasons.setdefault(why[1] if why else "", []).append(table.column(name).title)
    words = [f"{', '.join(names)}{f' ({why})' if why else ''}" for why, names in reasons.items()]
    return f"for {_TITLES[stack].lower()}: {'; '.join(words)}." if words else ""


def _absent(source: Source) -> list[int]:
    """The places of heads that the model no longer has."""
    there = set(source.table.heads)
    return [place for head, place in source.places.items() if head not in there]


def _examples(source: Source) -> dict[str, Any]:
    """On how many examples, and by which metric, each score was measured."""
    found = {}
    for name, origin in source.table.origins.items():
        task, settings = origin.get("task") or {}, origin.get("settings") or {}
        if task.get("examples"):
            found[name] = {
                "n": task["examples"],
                "metric": settings.get("metric") or task.get("metric"),
                "of": argument.OF.get(str(task.get("kind")), ""),
            }
    return found


# --- Write a run as one page --------------------------------------------------------------------

#: The modules of the page in the order in which they are joined: each uses those before it.
MODULES = (
    *("dom", "data", "colour", "chart", "state", "glyph", "save", "compare"),
    *("headline", "together", "jobs", "survivors", "changes", "grid", "legend", "maps"),
    *("lesions", "gallery", "evidence", "links", "attention", "dossier", "scores", "relations"),
    *("similar", "resemblance", "agreement", "pruning", "provenance", "main"),
)
#: Only in pages of two runs.
_OF_TWO = ("compare", "changes")
STYLES = ("base", "overview", "dossier", "sections", "media")

#: Letters of a headline that is set smaller.
_LONG = 150
_FINENESS = ("fine", "coarse", "none")
#: Lines that import or comment, and the word export: a name is one thing in all modules.
_LEFT_OUT = re.compile(r"^(?:import [^;]*;\n|export | *//[^\n]*\n)", re.MULTILINE)
_HOLE = re.compile(r"\{\{(\w+)\}\}")


def page_html(source: Source) -> str:
    """The page as text. The template is filled once, so data is never searched for holes."""
    data = page_data(source)
    code, looks = script(two=data["compare"] is not None), style()
    words, lists = split_numbers(data)
    parts = {
        "csp": f"default-src 'none'; script-src 'sha256-{_hash(code)}'; "
        f"style-src 'sha256-{_hash(looks)}'; img-src data:; base-uri 'none'; form-action 'none'",
        "title": escape(f"{source.model}: attention heads"),
        "length": "long" if len(words["headline"]) > _LONG else "short",
        "style": looks,
        "data": numbers.safe_json(words),
        "packed": "\n".join(_packed(lists, source)),
        "script": code,
    }
    return _HOLE.sub(lambda hole: parts[hole[1]], look.asset("page.html"))


def script(two: bool = False) -> str:
    """The modules as one, as they were written; they share a scope, so imports fall away."""
    joined = [name for name in MODULES if two or name not in _OF_TWO]
    return "\n".join(_LEFT_OUT.sub("", look.asset(f"{name}.js")) for name in joined)


def style() -> str:
    """The style sheet."""
    return look.role_css() + "".join(look.asset(f"{name}.css") for name in STYLES)


def _packed(lists: dict[str, Any], source: Source) -> Iterator[str]:
    """The long lists of numbers and the maps, one element each, inflated by the page."""
    blocks = [("numbers", numbers.deflated(numbers.safe_json(lists).encode("ascii")))]
    exhibits = plugins.part("exhibits")
    for name, packed in [*blocks, *(exhibits.map_blocks(source) if exhibits else ())]:
        yield f'<script type="text/plain" id="{name}">{packed}</script>'


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def check_page(path: str | Path, maps: str = "fine") -> Path:
    """Refuse, before any work is done, a place where no page can be written."""
    place = Path(path)
    if maps not in _FINENESS:
        raise UsageError(f"maps is '{maps}'; it is one of {', '.join(_FINENESS)}.")
    if place.is_dir():
        raise UsageError(f"{place} is a folder; name a file, e.g. {place / 'report.html'}.")
    if place.exists() and not place.is_file():
        raise UsageError(f"{place} is a pipe or a device; name a file, e.g. report.html.")
    if not place.parent.is_dir():
        raise RunError(
            f"There is no folder {place.parent} to write {place.name} in; make it first."
        )
    if not os.access(place if place.exists() else place.parent, os.W_OK):
        raise RunError(f"{place} cannot be written: permission denied. Choose another place.")
    return place


# --- `hc.report` --------------------------------------------------------------------------------

#: Bytes of a page that a notebook may hold; above it, a notebook points to the file.
INLINE = 5_000_000
_HEIGHT = 900


@dataclass(frozen=True, repr=False)
class Report:
    """A page that was written; shown inline by a notebook, opened by a browser."""

    path: Path
    #: The run that it shows; None for a table by itself.
    run: Path | None = None
    #: What `hc.story` did before: each stage done, kept from before, or left out and why.
    stages: tuple[StageStatus, ...] = ()

    def __repr__(self) -> str:
        return f"Report('{self.path}', {self.bytes / 1e6:.2f} MB)"

    def __fspath__(self) -> str:
        return str(self.path)

    @property
    def bytes(self) -> int:
        """How large the file is."""
        return self.path.stat().st_size

    @property
    def html(self) -> str:
        """The whole page."""
        return self.path.read_text(encoding="utf-8")

    def open(self) -> bool:
        """Show it in the browser; False where there is none."""
        import webbrowser

        return webbrowser.open(self.path.resolve().as_uri())

    def _repr_html_(self) -> str:
        """The page in a frame that can reach nothing else; a large one only as a path."""
        if self.bytes > INLINE:
            title = self.html.partition("<title>")[2].partition("</title>")[0]  # escaped there
            return (
                f"<p><b>{title}</b><br>This report has {self.bytes / 1e6:.1f} MB, too much for a "
                f"notebook; open <code>{escape(str(self.path))}</code> in a browser.</p>"
            )
        # srcdoc, since some notebooks show no file; sandboxed, so that styles stay inside
        note = escape(f"This report is in {self.path}; trust the notebook to see it here.")
        return (
            f'<iframe sandbox="allow-scripts allow-downloads" title="headcount report" '
            f'width="100%" height="{_HEIGHT}" style="border:1px solid rgba(128,128,128,.4)" '
            f'srcdoc="{escape(self.html, quote=True)}">{note}</iframe><noscript>{note}</noscript>'
        )


@old_keywords()
def report(
    run_or_table: Run | HeadTable | str | Path,
    path: str | Path = "report.html",
    exhibits: bool = True,
    maps: Fineness = "fine",
    compare: Run | HeadTable | str | Path | None = None,
    tolerance: str | float | None = None,
) -> Report:
    """Write a run directory, or a table, as one HTML file that needs nothing else.

    What the run does not hold is shown as not measured. Without `exhibits` no text of the corpus
    is in the page; `maps` is "fine", "coarse" (smaller) or "none"; `compare` is a second run of
    the same architecture. `tolerance` is the loss that may be when heads go ("0.5", "1%",
    "bleu=0.5,loss=1%"), by default that of the run. The file is there whole, or not at all.

    >>> import tempfile
    >>> from headcount.records.heads import Head
    >>> from headcount.records.table import HeadTable
    >>> table = HeadTable.of([Head("enc", 0, 0), Head("enc", 0, 1)], {"confidence": [0.2, 0.9]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(report(table, Path(folder, "report.html")).path.name)
    report.html
    """
    if not isinstance(run_or_table, Run | HeadTable | str | Path):
        model = "subject" if isinstance(run_or_table, Subject) else "hc.Subject(model, tokenizer)"
        raise UsageError(
            f"report draws a run or a table, not {type(run_or_table).__name__}; to measure a model "
            f"and write its page: hc.story({model}, page='report.html')."
        )
    place = check_page(path, maps)
    allowed = None if tolerance is None else str(read_tolerance(tolerance))
    source = read_source(run_or_table, exhibits=exhibits and maps != "none")
    other = None if compare is None else read_source(compare, exhibits=False)
    source = replace(source, other=other, maps=maps, tolerance=allowed)
    write_bytes(place, page_html(source).encode("utf-8"))
    if isinstance(run_or_table, HeadTable):
        return Report(place)
    return Report(place, run_or_table.path if isinstance(run_or_table, Run) else Path(run_or_table))


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
    "refitted": ("What refitting gives back", "headcount report MODEL --training refit=yes"),
    "healed": ("What healing gives back", "headcount report MODEL --heal"),
    "pairs": ("Which heads resemble one another", "headcount report MODEL"),
    "agreement": (
        "Agreement of measures",
        "headcount score MODEL --task ... --by gradient,ablation -o RUN",
    ),
    "exhibits": ("Exhibits", "headcount report MODEL, without --page no-exhibits"),
    "pattern": ("Patterns of maps", "headcount survey MODEL --text FILE --show patterns -o RUN"),
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
