"""The live page answers any request with a status below 500."""

from __future__ import annotations

import json
from random import Random
from urllib.parse import quote

import pytest
from fuzz.damage import damaged
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("starlette")
from starlette.testclient import TestClient
from tiny_subjects import classifier

from headcount.rooms.serve import app_of, inspector_of, new_token

TOKEN = new_token()
BODY = json.dumps({"text": "Rain fell.", "second": "", "shut": ["enc.0.1"]}).encode()


@pytest.fixture(scope="module")
def page() -> TestClient:
    app = app_of(inspector_of(classifier()), TOKEN)
    return TestClient(app, base_url="http://127.0.0.1:8000")


@settings(max_examples=60)
@given(rng=st.randoms(use_true_random=False))
def test_bodies(page: TestClient, rng: Random) -> None:
    reply = page.post(f"/{TOKEN}/look", content=damaged(BODY, rng))
    assert reply.status_code < 500


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
