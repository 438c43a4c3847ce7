"""The menu and the reference of the documentation, made from what is there.

A hook of mkdocs (see mkdocs.yml). A folder in the menu becomes the list of its pages, and every
room of the package gets a page of its docstrings; those pages live only while the site is
built. So nothing has to be added by hand when a page or a module is. The JSON of results, which
lies outside the documentation, is published with it.
"""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "headcount"
REFERENCE = "reference/"
RESULTS = "research/results/"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put pages in the place of the folders of the menu."""
    for entry in config.nav or []:
        for title, target in entry.items():
            if target.endswith("/"):
                entry[title] = _pages(Path(config.docs_dir), target)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Write the pages of the reference, and bring the JSON of results along."""
    for path in sorted((ROOT / RESULTS).rglob("*.json")):
        name = path.relative_to(ROOT).as_posix()
        files.append(File.generated(config, name, abs_src_path=str(path)))
    for room, modules in _rooms().items():
        blocks = [f"# {room}", *(f"::: {module}" for module in modules)]
        files.append(File.generated(config, f"{REFERENCE}{room}.md", content="\n\n".join(blocks)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Point links at the results where the site has them."""
    up = "../" * page.file.src_uri.count("/")
    return re.sub(rf"\]\((?:\.\./)+{RESULTS}", f"]({up}{RESULTS}", markdown)


def _pages(docs: Path, folder: str) -> list[str]:
    """The pages of a folder, its README first."""
    if folder == REFERENCE:
        return [f"{REFERENCE}{room}.md" for room in _rooms()]
    names = (path.name for path in (docs / folder).glob("*.md"))
    return [folder + name for name in sorted(names, key=lambda name: (name != "README.md", name))]


def _rooms() -> dict[str, list[str]]:
    """The modules of each room, by their dotted names; a lone module is a room of its own."""
    rooms: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        if not path.stem.startswith("_"):
            rooms.setdefault(parts[1], []).append(".".join(parts))
    return rooms
