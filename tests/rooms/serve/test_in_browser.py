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
from headcount.rooms.serve.inspector import inspector_of
from headcount.rooms.serve.server import address, app_of, new_token, taken_socket

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
    opened.wait_for_selector("html[data-ready]", timeout=WAIT)
    yield opened
    opened.close()


def answered(page: Any, deed: Any) -> dict[str, Any]:
    """Do something that asks the model, and what came back."""
    with page.expect_response(lambda reply: reply.url.endswith("/ask"), timeout=WAIT) as reply:
        deed()
    found: dict[str, Any] = reply.value.json()
    page.wait_for_function("() => !document.body.classList.contains('busy')", timeout=WAIT)
    return found


def off(page: Any) -> list[str]:
    marks = "all => all.map(e => e.dataset.head)"
    return list(page.eval_on_selector_all('.key[aria-pressed="true"]', marks))


def test_heads_are_keys_that_are_switched_and_everything_stays_in_sight(page: Any) -> None:
    whole = page.inner_text("#whole")
    found = answered(page, lambda: page.click('[data-head="cross.1.5"]'))
    assert off(page) == found["off"] == ["cross.1.5"]
    assert page.inner_text("#whole").split() == whole.split() == found["whole"].split()
    assert page.inner_text("#cut").split() == found["cut"].split()
    shown = page.eval_on_selector_all("#bars b", "all => all.map(e => e.textContent)")
    assert len(shown) == len(found["bars"])
    for text, (_, _, now) in zip(shown, found["bars"], strict=True):
        assert float(text.removesuffix("%")) == pytest.approx(100 * now, abs=0.6)
    below = "e => e.getBoundingClientRect().bottom <= innerHeight"
    for part in ("#text", "#cut", "#board", "#sets"):
        assert page.eval_on_selector(part, below), part
    answered(page, lambda: page.click('[data-head="cross.1.5"]'))
    assert off(page) == []
    assert page.inner_text("#cut") == ""
    assert page.wrongs == []


def test_sets_layers_and_all_but_these_are_one_click(page: Any) -> None:
    answered(page, lambda: page.click("#sets .btn:has-text('sink')"))
    sinks = set(off(page))
    assert sinks
    answered(page, lambda: page.click("#invert"))
    assert set(off(page)).isdisjoint(sinks)
    assert len(off(page)) + len(sinks) == 144
    assert page.inner_text("#cut") != page.inner_text("#whole")
    assert page.query_selector("#cut ins, #whole del") is not None
    answered(page, lambda: page.click("#all"))
    answered(page, lambda: page.click("[aria-label='Switch layer 0 of the encoder']"))
    assert off(page) == [f"enc.0.{head}" for head in range(8)]
    assert "off=enc.0.0" in page.url
    assert page.wrongs == []


def test_an_unknown_head_is_refused_and_not_kept(page: Any) -> None:
    page.fill("#head", "enc.9.9, enc.0.1")
    page.click("#byname .btn")
    assert "There is no head enc.9.9" in page.inner_text("#state")
    assert off(page) == []
    page.fill("#head", "enc.0.1")
    answered(page, lambda: page.click("#byname .btn"))
    assert off(page) == ["enc.0.1"]


def test_every_head_is_seen_inside_when_asked_for(page: Any, place: str) -> None:
    page.fill("#text", "Rain fell on the old mill.")
    answered(page, lambda: page.click("#go"))
    assert "Regen" in page.inner_text("#whole")
    page.click("#inside summary")
    page.frame_locator("#page").locator("html[data-ready]").wait_for(state="attached", timeout=WAIT)
    frame = page.frames[1]
    frame.click('.cell[aria-label^="enc.0.0,"]')
    pieces = "all => all.map(e => e.textContent)"

    def asked() -> str:
        return "".join(frame.eval_on_selector_all(".tk:not(.to) .tok", pieces))

    assert eventually(page, lambda: asked().startswith("Rainfellonthe"), seconds=10)
    assert len(frame.query_selector_all(".cell")) == 144
    assert not frame.is_visible(".lede")
    assert {url.split("/")[2] for url in page.asked} == {place.split("/")[2]}
    assert page.wrongs == []


def test_hostile_text_is_text(page: Any) -> None:
    page.fill("#text", BITE)
    answered(page, lambda: page.click("#go"))
    page.fill("#head", "<img/src=x/onerror=window.hit=1>")
    page.click("#byname .btn")
    assert "<img/src=x" in page.inner_text("#state")
    assert page.evaluate("window.hit") is None
    assert page.query_selector("img, .out b, #state b") is None


def test_axe_finds_nothing_on_the_live_page(chromium: Any, place: str, axe_script: str) -> None:
    page = chromium.new_page(viewport={"width": 1440, "height": 900}, bypass_csp=True)
    page.goto(f"{place}#off=enc.5.3")
    page.wait_for_selector("html[data-ready]", timeout=WAIT)
    page.evaluate(axe_script)
    rules = "{ rules: { 'target-size': { enabled: true } } }"
    found = page.evaluate(f"async () => (await axe.run({rules})).violations")
    page.close()
    assert [(one["id"], [node["html"][:120] for node in one["nodes"][:3]]) for one in found] == []


def test_without_the_token_there_is_nothing(chromium: Any, place: str) -> None:
    opened = chromium.new_page()
    for url in (place[:-2] + "/", place.rsplit("/", 2)[0] + "/"):
        assert opened.goto(url).status == 404
        assert opened.inner_text("body") == "Not found."
    opened.close()


def test_every_change_says_what_it_did_to_words(page: Any) -> None:
    page.fill(
        "#text", "My grandmother remembers the winter when the building was used as a school."
    )
    answered(page, lambda: page.click("#go"))
    assert page.inner_text("#said") == ""
    found = answered(page, lambda: page.click('[data-head="enc.5.3"]'))
    word, was, now = max(found["bars"], key=lambda bar: bar[1] / max(bar[2], 1e-4))
    assert was / now > 1.27
    said = page.inner_text("#said")
    assert said.startswith(f"“{word.strip()}” ")
    assert "less likely" in said
    assert not page.is_visible("#offer")


def test_the_fewest_heads_that_change_a_word_are_found(page: Any) -> None:
    whole = answered(page, lambda: page.click("#go"))
    word = int(page.get_attribute("#fewest", "data-word"))
    assert whole["bars"][word][0].strip() in page.inner_text("#fewest")
    found = answered(page, lambda: page.click("#fewest"))
    assert found["off"] == off(page)
    assert 1 <= len(found["off"]) <= 24
    assert found["cut"] != found["whole"]
    assert page.wrongs == []


def test_where_nothing_changes_a_sentence_is_offered(page: Any) -> None:
    found = answered(page, lambda: page.click('[data-head="enc.0.0"]'))
    assert found["cut"] == found["whole"]
    assert page.inner_text("#said") == "Nothing changes: no word here becomes clearly less likely."
    before = page.input_value("#text")
    again = answered(page, lambda: page.click("#offer"))
    assert page.input_value("#text") != before
    assert any(was > 1.05 * now for _, was, now in again["bars"])


def test_signs_point_where_they_do_on_the_page(page: Any) -> None:
    """enc.0.1 looks ahead and enc.0.7 back: the same mirrored sign as in the report."""
    turned = {name: page.get_attribute(f'[data-head="{name}"] path', "transform") for name in AHEAD}
    assert turned == AHEAD


AHEAD = {
    "enc.0.1": "translate(16 0) scale(-1 1)",
    "enc.0.7": None,
    "dec.3.0": "rotate(-90 8 8)",
}


def test_the_page_inside_knows_the_roles_of_the_board(page: Any) -> None:
    page.click("#inside summary")
    page.frame_locator("#page").locator("html[data-ready]").wait_for(state="attached", timeout=WAIT)
    cells = "all => all.map(e => e.getAttribute('aria-label').split(', ').slice(0, 2))"
    inside = dict(page.frames[1].eval_on_selector_all(".cell", cells))
    keys = "all => all.map(e => [e.dataset.head, e.className])"
    for name, look in page.eval_on_selector_all(".key", keys):
        role = look.split("r-")[1].split()[0]
        assert inside[name] == ("no role found" if role == "none" else role)
