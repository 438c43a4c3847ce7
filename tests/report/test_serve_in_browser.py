"""The local page in a real browser, with the bundled translator behind it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from browsers import eventually

pytest.importorskip("uvicorn", reason="headcount[serve] is not installed")
import uvicorn

import headcount as hc
from headcount.report.inspector import inspector_of
from headcount.report.serve import address, app_of, new_token, taken_socket

BITE = '</script><img src=x onerror="window.hit=1"> <b>bold</b>'
WAIT = 60_000


@pytest.fixture(scope="module")
def place() -> Iterator[str]:
    """Where the page is, while the server runs."""
    token, taken = new_token(), taken_socket(0)
    app = app_of(inspector_of(hc.load("translator", device="cpu")), token)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    yield address(taken, token)
    server.should_exit = True
    thread.join(10)


@pytest.fixture
def page(chromium: Any, place: str) -> Iterator[Any]:
    """The page after its first answer, with what went wrong, and what it asked for."""
    opened = chromium.new_page(viewport={"width": 1440, "height": 900})
    opened.wrongs, opened.asked = [], []
    opened.on("pageerror", lambda error: opened.wrongs.append(str(error)))
    opened.on("console", lambda said: said.type == "error" and opened.wrongs.append(said.text))
    opened.on("request", lambda request: opened.asked.append(request.url))
    opened.goto(place)
    answered(opened)
    yield opened
    opened.close()


def answered(page: Any) -> Any:
    """The frame with every head, once it is drawn."""
    page.frame_locator("#page").locator("html[data-ready]").wait_for(state="attached", timeout=WAIT)
    return page.frames[1]


def asked(page: Any, button: str) -> Any:
    """Press a button that asks the model, and wait for the frame that comes of it."""
    with page.frames[1].expect_navigation(timeout=WAIT):
        page.click(button)
    return answered(page)


def tokens(frame: Any) -> str:
    """The text that asks, put together again from its pieces."""
    pieces = frame.eval_on_selector_all(".tk:not(.to) .tok", "all => all.map(e => e.textContent)")
    return "".join(pieces).replace("\u2581", " ")


def test_a_sentence_is_translated_and_every_head_is_shown(page: Any, place: str) -> None:
    page.fill("#text", "Rain fell on the old mill.")
    frame = asked(page, "#go")
    frame.click('.cell[aria-label^="enc.0.0,"]')
    assert eventually(page, lambda: " Rain fell on the old mill." in tokens(frame), seconds=10)
    assert "Regen" in page.inner_text(".answer")
    assert len(frame.query_selector_all(".cell")) == 144
    assert not frame.is_visible(".lede")
    assert {url.split("/")[2] for url in page.asked} == {place.split("/")[2]}
    assert page.wrongs == []


def test_a_head_is_switched_off_and_on_again(page: Any) -> None:
    frame = answered(page)
    frame.click('.cell[aria-label^="enc.5.3,"]')
    assert page.inner_text("#chosen") == "Switch off enc.5.3"
    frame = asked(page, "#chosen")
    frame.wait_for_selector(".cell.off", timeout=WAIT)
    off = frame.eval_on_selector_all(".cell.off", "all => all.map(e => e.ariaLabel.split(',')[0])")
    assert off == ["enc.5.3"]
    assert frame.input_value("#col") == "changed"
    page.click('[aria-label="Switch enc.5.3 on"]')
    page.wait_for_selector(".answer.cut", state="detached", timeout=WAIT)
    assert page.wrongs == []


def test_without_what_reads_the_source_the_translation_changes(page: Any) -> None:
    whole = page.inner_text(".answer p")
    page.fill("#head", " ".join(f"cross.{layer}.{head}" for layer in range(6) for head in range(8)))
    asked(page, "#add")
    assert page.inner_text(".answer:not(.cut) p") == whole
    assert page.inner_text(".answer.cut p") != whole
    assert page.inner_text(".answer.cut .note") == "Changed."
    assert page.query_selector(".answer.cut mark") is not None
    page.click("#all")
    page.wait_for_selector(".answer.cut", state="detached", timeout=WAIT)


def test_hostile_text_is_text(page: Any) -> None:
    page.fill("#text", BITE)
    page.click("details summary")
    page.fill("#second", BITE)
    frame = asked(page, "#go")
    frame.click('.cell[aria-label^="enc.0.0,"]')
    assert eventually(page, lambda: "window.hit<unk>1" in tokens(frame), seconds=10)
    assert BITE in frame.eval_on_selector("#ex", "e => e.selectedOptions[0].textContent")
    page.fill("#head", "<img/src=x/onerror=window.hit=1>")
    page.click("#add")
    page.wait_for_selector("#state:has-text('<img/src=x')", timeout=WAIT)
    for part in (page, frame):
        assert part.evaluate("window.hit") is None
        assert part.query_selector("img, .tok b, #answers b") is None
    assert all("400" in wrong for wrong in page.wrongs)  # the answer that there is no such head


def test_what_cannot_be_asked_is_said(page: Any) -> None:
    page.fill("#head", "enc.9.9")
    page.click("#add")
    page.wait_for_selector("#state:has-text('There is no head enc.9.9')", timeout=WAIT)


def test_without_the_token_there_is_nothing(chromium: Any, place: str) -> None:
    opened = chromium.new_page()
    for url in (place[:-2] + "/", place.rsplit("/", 2)[0] + "/"):
        assert opened.goto(url).status == 404
        assert opened.inner_text("body") == "Not found."
    opened.close()
