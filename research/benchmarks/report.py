"""The page against its budgets: how large it is, how soon it is ready, how fast a head is chosen.

Sizes come from real maps of MiniLM (72 heads) on 128 and 512 tokens, and from made-up tables of
24 x 16 and 32 x 32 heads. Ready: from the start of navigation to the first full paint. Chosen: from
a click on a head of another layer until it is painted. Budgets of time are for a quiet machine of
two cores; budgets of size are also asserted by the tests.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from headcount.bundle.sample import read as sample
from headcount.models.loading import load
from headcount.models.subject import Subject
from headcount.records import provenance
from headcount.records.columns import Column
from headcount.records.heads import Head
from headcount.records.table import HeadTable
from headcount.reports.page import page_html
from headcount.reports.parts.numbers import Source
from headcount.rooms.exhibits.exhibits import Exhibit, Text
from headcount.text import Sentence, encode, intake_of
from headcount.wiring import Needs, Sighting, tap
from scripts.browser import chromium

RESULTS = Path(__file__).parent / "results"
ROUNDS = 5
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
#: Name: bytes, seconds until ready, seconds until chosen.
BUDGETS = {
    "72 heads, no maps": (150_000, 2.0, 0.3),
    "72 heads, 128 tokens": (3_000_000, 2.0, 0.3),
    "72 heads, 512 tokens": (15_000_000, 2.0, 0.3),
    "24 x 16 heads, no maps": (1_000_000, 2.0, 0.3),
    "32 x 32 heads, no maps": (1_000_000, 2.0, 0.3),
}
CHOOSE = """async i => {
  const start = performance.now();
  document.querySelector(`.cell[data-head="${i}"]`).click();
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  return performance.now() - start;
}"""


def table_of(layers: int, heads: int, columns: int = 45) -> HeadTable:
    """A table as wide as a survey with scores."""
    rng = np.random.default_rng(0)
    names = [f"column_{k}" for k in range(columns)]
    every = [Head("enc", layer, index) for layer in range(layers) for index in range(heads)]
    values = {name: rng.uniform(0, 1, len(every)) for name in names}
    described = [Column(name, meaning="Made up.", range=(0, 1), group="Made up") for name in names]
    bounds = {
        side: {name: values[name] + width for name in names}
        for side, width in (("low", -0.02), ("high", 0.02))
    }
    return HeadTable.of(every, values, described, **bounds, provenance={"model": "made"})


def exhibit_of(subject: Subject, tokens: int) -> Exhibit:
    """Sentences of the sample in a row, as long as wanted."""
    text = " ".join(sample.path("sample.txt").read_text(encoding="utf8").split("\n"))
    intake = intake_of(subject.model, subject.tokenizer)
    whole = [Sentence(text * 3)]
    batch = next(
        iter(
            encode(
                whole,
                subject.tokenizer,
                stacks=("enc",),
                intake=intake,
                max_length=tokens,
                long="truncate",
            )
        )
    )
    maps: dict[tuple[str, int], Any] = {}

    def receive(sighting: Sighting) -> None:
        assert sighting.maps is not None
        maps["enc", sighting.site.layer] = sighting.maps[0].float().numpy()

    with tap(subject, Needs(maps=True)) as watch:
        watch(batch, receive=receive)
    side = next(iter(batch.sides.values()))
    special = [bool(one) for one in side.special[0]]
    kept = Text(list(side.tokens[0]), special)
    return Exhibit("long", f"{tokens} tokens", {"src": kept}, {"enc": ("src", "src")}, maps)


def sources() -> Iterator[tuple[str, Source]]:
    subject = load("minilm", device="cpu", dtype="float32")
    small = table_of(6, 12)
    yield "72 heads, no maps", Source(small)
    for tokens in (128, 512):
        yield f"72 heads, {tokens} tokens", Source(small, exhibits=[exhibit_of(subject, tokens)])
    for layers, heads in ((24, 16), (32, 32)):
        yield f"{layers} x {heads} heads, no maps", Source(table_of(layers, heads))


def measured(browser: Any, page: Path, heads: int) -> dict[str, Any]:
    """Medians over fresh tabs."""
    ready, choose = [], []
    for turn in range(ROUNDS):
        tab = browser.new_page(viewport={"width": 1440, "height": 900})
        tab.goto(page.as_uri())
        tab.wait_for_selector("html[data-ready]", timeout=60_000)
        ready.append(float(tab.get_attribute("html", "data-ready")) / 1000)
        places = np.random.default_rng(turn).permutation(heads)[:4]
        choose += [tab.evaluate(CHOOSE, int(place)) / 1000 for place in places]
        tab.close()
    return {
        "ready": round(statistics.median(ready), 3),
        "choose": round(statistics.median(choose), 3),
    }


def main() -> None:
    from playwright.sync_api import sync_playwright

    program = chromium()
    if program is None:
        print("There is no Chromium; run `python scripts/browser.py`.")
        return
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        for name, source in sources():
            page = Path(folder, "page.html")
            page.write_text(page_html(source), encoding="utf8")
            times = measured(browser, page, len(source.table))
            limits = dict(zip(("bytes", "ready", "choose"), BUDGETS[name], strict=True))
            found[name] = {"bytes": page.stat().st_size, **times, "budget": limits}
            print(name, found[name], flush=True)
        browser.close()
    result = {
        "what": f"the page in Chromium, median of {ROUNDS} fresh tabs; seconds",
        "pages": found,
        "provenance": provenance.collect() | {"command": "python -m research.benchmarks.report"},
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "report.json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
