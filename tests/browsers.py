"""A system Chromium for tests that look at pages, found by scripts/browser.py."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

__all__ = ["axe_script", "chromium"]

#: As a test machine needs it: often root, no screen, no network.
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


def _script() -> Any:
    """scripts/browser.py, which knows where the browser is."""
    file = Path(__file__).parents[1] / "scripts" / "browser.py"
    spec = importlib.util.spec_from_file_location("browser_script", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def axe_script() -> str:
    """The text of axe-core."""
    place = _script().axe()
    if not place.exists():
        pytest.skip("axe-core is not in the cache; run `python scripts/browser.py`")
    return str(place.read_text(encoding="utf8"))


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A system Chromium, one for all tests of a process."""
    program = _script().chromium()
    if program is None:
        pytest.skip("there is no Chromium; run `python scripts/browser.py`")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()
