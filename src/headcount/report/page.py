"""Write a run as one page: template, style, script, data and maps, joined in a single pass."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from headcount.atomic import write_bytes
from headcount.errors import RunError, UsageError
from headcount.report.data import page_data, split_numbers
from headcount.report.exhibit_part import map_blocks
from headcount.report.look import role_css
from headcount.report.packing import Fineness, deflated
from headcount.report.safe_json import safe_json
from headcount.report.source import Source, read_source
from headcount.run import Run
from headcount.table import HeadTable

__all__ = ["page_html", "script", "style", "write_page"]

#: The modules of the page in the order in which they are joined: each uses those before it.
MODULES = (
    *("dom", "data", "colour", "chart", "state", "glyph", "save", "compare", "headline", "grid"),
    *("legend", "maps", "links", "attention", "dossier", "scores", "relations", "similar"),
    *("resemblance", "agreement", "pruning", "provenance", "main"),
)
#: In pages of two runs alone.
_OF_TWO = "compare"
STYLES = ("base", "overview", "dossier", "sections", "media")

#: Letters of a headline that is set smaller.
_LONG = 110
_FINENESS = ("fine", "coarse", "none")
#: Lines that import and the word export: a name is one thing in all modules.
_LEFT_OUT = re.compile(r"^(?:import [^;]*;\n|export )", re.MULTILINE)
_HOLE = re.compile(r"\{\{(\w+)\}\}")


def write_page(
    run_or_table: HeadTable | Run | str | Path,
    path: str | Path = "report.html",
    maps: Fineness = "fine",
    exhibits: bool = True,
    compare: HeadTable | Run | str | Path | None = None,
) -> Path:
    """Write the page and return where it is; it is there whole, or not at all.

    `maps` is "fine", "coarse" (smaller, for long texts) or "none"; without `exhibits` no text of
    the corpus is in the page; `compare` is a second run or table of the same architecture.
    """
    place = _checked(Path(path))
    if maps not in _FINENESS:
        raise UsageError(f"maps is '{maps}'; it is one of {', '.join(_FINENESS)}.")
    source = read_source(run_or_table, exhibits=exhibits and maps != "none")
    other = None if compare is None else read_source(compare, exhibits=False)
    write_bytes(place, page_html(source, other, maps).encode("utf-8"))
    return place


def page_html(source: Source, other: Source | None = None, maps: Fineness = "fine") -> str:
    """The page as text. The template is filled once, so data is never searched for holes."""
    data = page_data(source, other, maps)
    code, looks = script(two=data["compare"] is not None), style()
    words, numbers = split_numbers(data)
    parts = {
        "csp": f"default-src 'none'; script-src 'sha256-{_hash(code)}'; "
        f"style-src 'sha256-{_hash(looks)}'; img-src data:; base-uri 'none'; form-action 'none'",
        "title": escape(f"{source.model}: attention heads"),
        "length": "long" if len(source.model.join(words["headline"])) > _LONG else "short",
        "style": looks,
        "data": safe_json(words),
        "packed": "\n".join(_packed(numbers, source, maps)),
        "script": code,
    }
    return _HOLE.sub(lambda hole: parts[hole[1]], _asset("page.html"))


def script(two: bool = False) -> str:
    """The modules as one, as they were written; they share a scope, so imports fall away."""
    joined = [name for name in MODULES if two or name != _OF_TWO]
    return "\n".join(_LEFT_OUT.sub("", _asset(f"{name}.js")) for name in joined)


def style() -> str:
    """The style sheet."""
    return role_css() + "".join(_asset(f"{name}.css") for name in STYLES)


def _packed(numbers: dict[str, Any], source: Source, maps: Fineness) -> Iterator[str]:
    """The long lists of numbers and the maps, one element each, inflated by the page."""
    blocks = [("numbers", deflated(safe_json(numbers).encode("ascii")))]
    for name, packed in [*blocks, *map_blocks(source, maps)]:
        yield f'<script type="text/plain" id="{name}">{packed}</script>'


def _asset(name: str) -> str:
    return (files("headcount.report") / "assets" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _checked(path: Path) -> Path:
    """A place where a file can be written, before any work is done."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder; name a file, e.g. {path / 'report.html'}.")
    if not path.parent.is_dir():
        raise RunError(f"There is no folder {path.parent} to write {path.name} in; make it first.")
    return path
