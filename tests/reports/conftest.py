"""A browser for the page, and pages of runs that are made up once a session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from report_runs import HOSTILE, THREE, made_exhibit, made_run

from headcount.reports.page import report

SOURCE = ["<s>", "the", "old", "mill", "stands", "still", "now", "</s>"]
TARGET = ["<pad>", "die", "alte", "Mühle", "steht", "</s>"]


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs by name: one encoder, three stacks with two texts, and one that bites."""
    folder = tmp_path_factory.mktemp("runs")
    bite = ["[CLS]", *HOSTILE, "[SEP]"]
    hostile = [made_exhibit(THREE, bite, bite[:9], title=HOSTILE[0], own=True)]
    return {
        "encoder": made_run(folder / "encoder"),
        "three": made_run(folder / "three", THREE, source=SOURCE, target=TARGET),
        "hostile": made_run(
            folder / "hostile",
            THREE,
            model=HOSTILE[0],
            evidence=HOSTILE[0],
            relations=HOSTILE[:2],
            exhibits=hostile,
        ),
    }


@pytest.fixture(scope="session")
def pages(runs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The page of each run."""
    folder = tmp_path_factory.mktemp("pages")
    return {name: report(run, folder / f"{name}.html").path for name, run in runs.items()}


Opener = Callable[..., Any]


@pytest.fixture
def visit(chromium: Any, pages: dict[str, Path]) -> Iterator[Opener]:
    """Open a page, by name or path, with what went wrong in `page.wrongs`."""
    contexts = []

    def opened(
        name: str | Path, hash: str = "", width: int = 1440, unfold: bool = True, **context: Any
    ) -> Any:
        contexts.append(chromium.new_context(viewport={"width": width, "height": 900}, **context))
        page = contexts[-1].new_page()
        page.wrongs = []
        page.on("pageerror", lambda error: page.wrongs.append(str(error)))
        page.on("console", lambda said: said.type == "error" and page.wrongs.append(said.text))
        path = pages[name] if isinstance(name, str) else name
        page.goto(path.as_uri() + hash)
        page.wait_for_selector("html[data-ready]", timeout=20_000)
        if unfold:
            page.eval_on_selector_all("details.fold", "all => all.forEach(e => { e.open = true; })")
        return page

    yield opened
    for context in contexts:
        context.close()
