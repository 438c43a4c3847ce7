"""The essential things once more, in Firefox."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from firefox import Firefox, firefox
from report_runs import HOSTILE

from headcount.rooms.exhibits.exhibits import visible_token


@pytest.fixture(scope="module")
def fox() -> Iterator[Firefox]:
    program = firefox()
    if program is None:
        pytest.skip("there is no Firefox; run `python scripts/browser.py`")
    with Firefox(program) as opened:
        yield opened


def test_it_opens_offline_without_errors(fox: Firefox, pages: dict[str, Path]) -> None:
    fox.open(pages["three"])
    assert fox.wrongs == []
    asked = {url for url in fox.asked if not url.startswith(("about:", "data:"))}
    assert asked <= {pages["three"].as_uri()}  # a file is no request to Firefox
    painted = (
        "[...document.querySelector('#stage canvas').getContext('2d').getImageData(0,0,9,9).data]"
    )
    assert len(set(fox.evaluate(painted))) > 3


def test_heads_are_chosen_by_address_click_and_key(fox: Firefox, pages: dict[str, Path]) -> None:
    fox.open(pages["three"], "#dec.2.1")
    assert fox.evaluate("document.querySelector('#big').textContent") == "dec.2.1"
    fox.evaluate("document.querySelector('#grid [data-head=\"5\"]').click()")
    assert fox.evaluate("document.querySelector('#big').textContent") == "enc.1.1"
    fox.evaluate("document.querySelector('.cell[tabindex=\"0\"]').focus()")
    fox.press("\ue015")  # arrow down
    assert fox.evaluate("document.querySelector('#big').textContent") == "enc.2.1"
    assert fox.evaluate("document.querySelectorAll('#grid .sel').length") == 1


def test_hostile_text_is_shown_and_never_run(fox: Firefox, pages: dict[str, Path]) -> None:
    fox.open(pages["hostile"], "#enc.0.0")
    assert fox.evaluate("window.hit ?? null") is None
    assert fox.evaluate("document.images.length") == 0
    tokens = "[...document.querySelectorAll('.tk:not(.to) .tok')].map(e => e.textContent)"
    wanted = [visible_token(token) for token in ["[CLS]", *HOSTILE, "[SEP]"]]
    assert fox.evaluate(tokens) == wanted
    fox.evaluate(
        "(document.body.append(document.createElement('div')), "
        "document.body.lastChild.innerHTML = '<img src=x onerror=\"window.hit=1\">', 0)"
    )
    fox.evaluate("new Promise(done => setTimeout(() => done(0), 200))")
    assert fox.evaluate("window.hit ?? null") is None


@pytest.mark.parametrize("name", ["three", "hostile"])
def test_nothing_scrolls_sideways_on_a_phone(
    fox: Firefox, pages: dict[str, Path], name: str
) -> None:
    fox.ask("browsingContext.setViewport", context=fox.tab, viewport={"width": 360, "height": 800})
    fox.open(pages[name])
    assert fox.evaluate("document.documentElement.scrollWidth") <= 360
    fox.ask("browsingContext.setViewport", context=fox.tab, viewport=None)
