"""Measure a page: bytes of its script and style, time until it is ready, time to choose a head.

python scripts/page_speed.py [report.html ...] [--rounds 5]

Without a page one of 1,024 made-up heads is measured. Prints JSON; times are medians.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from browser import chromium
from playwright.sync_api import sync_playwright

import headcount as hc
from headcount.records import Head, HeadTable
from headcount.reports import page

FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
#: Heads of the page that is made: 32 layers of 32.
LAYERS = HEADS = 32
#: Until the frame after the click was painted.
CHOOSE = """index => new Promise(done => {
    const cells = document.querySelectorAll('.cell'), begun = performance.now();
    cells[index].click();
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - begun)));
})"""


def made(folder: Path) -> Path:
    """A page of 1,024 heads with five columns."""
    draw = np.random.default_rng(0)
    heads = [Head("dec", layer, index) for layer in range(LAYERS) for index in range(HEADS)]
    names = ("confidence", "entropy", "first", "gradient", "ablation")
    values = {name: draw.uniform(0, 1, len(heads)) for name in names}
    about = {"model": f"{LAYERS} layers of {HEADS} heads"}
    return hc.report(HeadTable.of(heads, values, provenance=about), folder / "large.html").path


def measured(browser: Any, place: Path, rounds: int) -> dict[str, Any]:
    """How large a page is, and how fast."""
    ready, chosen = [], []
    for number in range(rounds):
        tab = browser.new_page(viewport={"width": 1440, "height": 900})
        tab.goto(place.resolve().as_uri())
        tab.wait_for_selector("html[data-ready]")
        ready.append(float(tab.get_attribute("html", "data-ready")))
        count = len(tab.query_selector_all(".cell"))
        chosen += [tab.evaluate(CHOOSE, (7 * number + 13 * k) % count) for k in range(1, 6)]
        tab.close()
    about = {"page": place.name, "bytes": place.stat().st_size, "heads": count}
    times = {"ready_ms": statistics.median(ready), "choose_ms": statistics.median(chosen)}
    return about | {name: round(value) for name, value in times.items()} | {"rounds": rounds}


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure pages of reports.")
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        places = given.pages or [made(Path(folder))]
        found = [measured(browser, place, given.rounds) for place in places]
        browser.close()
    sizes = {"script": len(page.script().encode()), "style": len(page.style().encode())}
    print(json.dumps({"bytes": sizes, "pages": found}, indent=1))


if __name__ == "__main__":
    main()
