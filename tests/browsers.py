"""A system Chromium for tests that look at pages, found by scripts/browser.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from scripts_of import script

__all__ = ["axe_script", "chromium", "eventually"]

#: As a test machine needs it: often root, no screen, no network.
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


def eventually(page: Any, holds: Callable[[], bool], seconds: int = 4) -> bool:
    """Whether something comes true within some time: pages draw when they get round to it."""
    for _ in range(10 * seconds):
        if holds():
            return True
        page.wait_for_timeout(100)
    return holds()


@pytest.fixture(scope="session")
def axe_script() -> str:
    """The text of axe-core."""
    place = script("browser").axe()
    if not place.exists():
        pytest.skip("axe-core is not in the cache; run `python scripts/browser.py`")
    return str(place.read_text(encoding="utf8"))


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A system Chromium, one for all tests of a process."""
    program = script("browser").chromium()
    if program is None:
        pytest.skip("there is no Chromium; run `python scripts/browser.py`")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()
