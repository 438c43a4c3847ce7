"""`python -m research.figures [PAGE ...]`: draw the figures of docs/results from research/results.

Nothing is measured; the pages are those of PAGES, all when none is named.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

from research import DOCS, RESULTS

__all__ = ["PAGES", "draw_pages"]

#: Page to the studies that draw its figures.
PAGES = {
    "surface": ("surface",),
    "roles": ("roles",),
    "importance": ("importance",),
    "pruning": ("gates", "pruning", "orders", "stacks"),
    "together": ("together", "patterns", "disabling"),
    "translator": ("translator",),
    "speed": ("speed",),
}


def draw_pages(pages: list[str], results: Path, out: Path) -> None:
    """Draw all figures of some pages; each study's `draw` reads the JSON and writes SVG."""
    for page in pages:
        for name in PAGES[page]:
            import_module(f"research.{name}.draw").draw(results, out)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="research.figures", description=__doc__)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help=", ".join(PAGES))
    parser.add_argument("--out", type=Path, default=DOCS)
    given = parser.parse_args(arguments)
    for page in given.pages:
        if page not in PAGES:
            parser.error(f"there is no page '{page}' with figures; there is {', '.join(PAGES)}")
    given.out.mkdir(parents=True, exist_ok=True)
    draw_pages(given.pages or list(PAGES), RESULTS, given.out)


if __name__ == "__main__":
    main()
