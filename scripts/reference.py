"""Pages of the reference: one a room of the package, written from its docstrings.

A hook of mkdocs (see mkdocs.yml): the pages live only while the site is built, so no file has
to be added by hand when a module is.
"""

from __future__ import annotations

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

PACKAGE = Path(__file__).parent.parent / "src" / "headcount"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put a page for every room under the entry "Reference" of the navigation."""
    for entry in config.nav or []:
        if "Reference" in entry:
            entry["Reference"] = [{room: _page(room)} for room in _rooms()]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Write the pages."""
    for room, modules in _rooms().items():
        blocks = [f"# {room}", *(f"::: {module}" for module in modules)]
        files.append(File.generated(config, _page(room), content="\n\n".join(blocks) + "\n"))
    return files


def _page(room: str) -> str:
    return f"reference/{room}.md"


def _rooms() -> dict[str, list[str]]:
    """The modules of each room, by their dotted names; a lone module is a room of its own."""
    rooms: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        if not path.stem.startswith("_"):
            rooms.setdefault(parts[1], []).append(".".join(parts))
    return rooms
