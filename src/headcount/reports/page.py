"""`hc.report`: a run as one page; template, style, script, data and maps are joined once."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headcount import plugins
from headcount.errors import RunError, UsageError
from headcount.models import Subject
from headcount.pruning import read_tolerance
from headcount.records import HeadTable, Run, write_bytes
from headcount.reports.parts import argument, look, numbers, scoreboard, title, verdicts, wording
from headcount.reports.parts.numbers import Fineness, Source, read_source

if TYPE_CHECKING:
    from headcount.reports.stories import StageStatus


# --- Everything the page shows, as one JSON value -----------------------------------------------

#: Parts of which some is packed and the rest stays readable.
_BOTH = ("columns", "relations", "map")
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


def page_data(
    source: Source,
    other: Source | None = None,
    maps: Fineness = "fine",
    tolerance: str | None = None,
) -> dict[str, Any]:
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
        "relations": verdicts.relation_part(source),
        "map": verdicts.pair_part(source),
        "agreement": scoreboard.agreement_part(source),
        "function": scoreboard.function_part(source),
        "curve": scoreboard.curve_part(source),
        "jobs": title.job_part(source),
        "lesions": verdicts.lesion_part(source),
        "exhibits": verdicts.exhibit_part(source) if maps != "none" else [],
        "compare": scoreboard.compare_part(source, other),
        "examples": _examples(source),
        "provenance": wording.provenance_part(source),
        "commands": wording.commands(source),
        "missing": wording.missing_part(source),
        "ramps": look.ramps(),
    }
    strip = plugins.part("strip")
    data["strip"] = None if strip is None else strip(source, tolerance)
    data["times"] = data["strip"] and data["strip"].pop("times")
    data["misses"] = verdicts.miss_part(source, data["roles"])
    data |= {"costly": argument.costly(data), "go": scoreboard.could_go(source, tolerance)}
    return data | {
        "headline": title.headline(data),
        "about": argument.about(data),
        "path": argument.path_part(data),
        "opening": argument.opening(data),
    }


def finding(source: Source) -> str:
    """The title of a run's page."""
    return str(page_data(source, maps="none")["headline"])


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
            }
    return found


# --- Write a run as one page --------------------------------------------------------------------

#: The modules of the page in the order in which they are joined: each uses those before it.
MODULES = (
    *(
        "dom",
        "data",
        "colour",
        "chart",
        "state",
        "glyph",
        "save",
        "compare",
        "headline",
        "together",
        "jobs",
    ),
    *(
        "survivors",
        "changes",
        "grid",
        "legend",
        "maps",
        "lesions",
        "gallery",
        "evidence",
        "links",
        "attention",
        "dossier",
        "scores",
    ),
    *("relations", "similar", "resemblance", "agreement", "pruning", "provenance", "main"),
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


def page_html(
    source: Source,
    other: Source | None = None,
    maps: Fineness = "fine",
    tolerance: str | None = None,
) -> str:
    """The page as text. The template is filled once, so data is never searched for holes."""
    data = page_data(source, other, maps, tolerance)
    code, looks = script(two=data["compare"] is not None), style()
    words, lists = split_numbers(data)
    parts = {
        "csp": f"default-src 'none'; script-src 'sha256-{_hash(code)}'; "
        f"style-src 'sha256-{_hash(looks)}'; img-src data:; base-uri 'none'; form-action 'none'",
        "title": escape(f"{source.model}: attention heads"),
        "length": "long" if len(words["headline"]) > _LONG else "short",
        "style": looks,
        "data": numbers.safe_json(words),
        "packed": "\n".join(_packed(lists, source, maps)),
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


def _packed(lists: dict[str, Any], source: Source, maps: Fineness) -> Iterator[str]:
    """The long lists of numbers and the maps, one element each, inflated by the page."""
    blocks = [("numbers", numbers.deflated(numbers.safe_json(lists).encode("ascii")))]
    for name, packed in [*blocks, *verdicts.map_blocks(source, maps)]:
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
    if isinstance(run_or_table, Subject):
        raise UsageError(
            "report draws a run or a table, not a Subject; to measure a model and write its page: "
            "hc.story(subject, page='report.html')."
        )
    place = check_page(path, maps)
    allowed = None if tolerance is None else str(read_tolerance(tolerance))
    source = read_source(run_or_table, exhibits=exhibits and maps != "none")
    other = None if compare is None else read_source(compare, exhibits=False)
    write_bytes(place, page_html(source, other, maps, allowed).encode("utf-8"))
    if isinstance(run_or_table, HeadTable):
        return Report(place)
    return Report(place, run_or_table.path if isinstance(run_or_table, Run) else Path(run_or_table))
