"""The live page answers any request with a status below 500."""

from __future__ import annotations

import json
from functools import cache
from random import Random
from urllib.parse import quote

import pytest
from fuzz.damage import damaged
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("starlette")
import tiny_subjects
from starlette.testclient import TestClient

from headcount.rooms.serve import app_of, inspector_of, new_token

TOKEN = new_token()
BODY = json.dumps({"text": "Rain fell.", "second": "", "off": ["enc.0.1"], "word": 0}).encode()


QUESTIONS = ("ask", "look", "fewest", "offer")
TEXTS = ["a " * 999, "\u0301" * 1500, "\U0001f469\u200d" * 600, "\u200b", "\x00", "[MASK] [MASK]"]
HEADS = ["enc.0.1", "dec.0", "cross.1.3", "enc.9.9", "enc", "", "\u202e"]


@cache
def page_of(kind: str) -> TestClient:
    app = app_of(inspector_of(getattr(tiny_subjects, kind)()), TOKEN)
    return TestClient(app, base_url="http://127.0.0.1:8000")


@pytest.fixture(scope="module")
def page() -> TestClient:
    return page_of("classifier")


@settings(max_examples=60)
@given(rng=st.randoms(use_true_random=False), question=st.sampled_from(QUESTIONS))
def test_bodies(page: TestClient, rng: Random, question: str) -> None:
    reply = page.post(f"/{TOKEN}/{question}", content=damaged(BODY, rng))
    assert reply.status_code < 500
    assert "breaks" not in reply.text


@pytest.mark.parametrize("kind", ["classifier", "encoder", "filler", "writer", "translator"])
@settings(max_examples=20)
@given(data=st.data())
def test_questions(kind: str, data: st.DataObject) -> None:
    """Any text, heads and word: an answer, or a sentence that says what is wrong with them."""
    texts = st.text(max_size=40) | st.sampled_from(TEXTS)
    asked = {
        "text": data.draw(texts),
        "second": data.draw(st.just("") | texts),
        "off": data.draw(st.lists(st.sampled_from(HEADS), max_size=2)),
        "word": data.draw(st.integers() | st.booleans() | st.none()),
    }
    reply = page_of(kind).post(f"/{TOKEN}/{data.draw(st.sampled_from(QUESTIONS))}", json=asked)
    assert reply.status_code < 500
    assert "breaks" not in reply.text


@pytest.mark.parametrize(
    "body", [b"9" * 5_000, b"[" * 200_000, b'{"text": 1' + b"0" * 5_000 + b"}"]
)
def test_odd_bodies(page: TestClient, body: bytes) -> None:
    assert 400 <= page.post(f"/{TOKEN}/look", content=body).status_code < 500


@settings(max_examples=150)
@given(path=st.text(max_size=40) | st.sampled_from(["page/1", "page/" + "9" * 5_000, "page/-1"]))
def test_paths(page: TestClient, path: str) -> None:
    reply = page.get(f"/{TOKEN}/{quote(path, errors='replace')}")
    assert reply.status_code < 500


@settings(max_examples=50)
@given(host=st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=30))
def test_hosts(page: TestClient, host: str) -> None:
    reply = page.get(f"/{TOKEN}/", headers={"host": host})
    own = host.split(":")[0] in ("127.0.0.1", "localhost") or host.startswith("[::1]")
    assert reply.status_code == 404 or own
