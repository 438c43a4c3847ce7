"""The local page answers this machine, with the token, and nobody else."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("starlette")
from starlette.testclient import TestClient

from headcount.errors import UsageError
from headcount.records.heads import Head, check_heads, parse_heads
from headcount.records.table import HeadTable
from headcount.reports.parts.numbers import Source
from headcount.rooms.serve.server import HOST, LONGEST, address, app_of, new_token, taken_socket

HEADS = [Head("enc", 0, 0), Head("enc", 0, 1)]
TOKEN = new_token()


class Parrot:
    """Says what it hears, in capitals; without heads, nothing."""

    subject = SimpleNamespace(name="<i>parrot</i>", heads=HEADS)

    def about(self) -> dict[str, Any]:
        return {"model": self.subject.name, "heads": [str(head) for head in HEADS]}

    def ask(self, text: str, second: str = "", off: Sequence[str] = ()) -> dict[str, Any]:
        check_heads(parse_heads(list(off)), HEADS)
        if text == "boom":
            raise ZeroDivisionError("no such \x1b[31membedding")
        return {"whole": text.upper(), "cut": "" if off else None}

    def look(self, text: str, second: str = "", off: Sequence[str] = ()) -> Source:
        return Source(
            HeadTable.of(HEADS, {"sharpness": [0.1, 0.9]}, provenance={"model": self.subject.name})
        )


@pytest.fixture
def page() -> TestClient:
    return TestClient(app_of(Parrot(), TOKEN), base_url="http://127.0.0.1:8000")


def test_the_page_and_its_parts(page: TestClient) -> None:
    index = page.get(f"/{TOKEN}/")
    assert index.status_code == 200
    assert "<title>headcount" in index.text
    for name in ("report.css", "serve.css", "serve.js"):
        assert page.get(f"/{TOKEN}/{name}").status_code == 200
    policy = index.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "innerHTML" not in page.get(f"/{TOKEN}/serve.js").text


def test_a_sentence_is_answered_and_shown(page: TestClient) -> None:
    asked = {"text": " rain ", "off": ["enc.0.1"]}
    assert page.get(f"/{TOKEN}/about").json()["heads"] == ["enc.0.0", "enc.0.1"]
    assert page.post(f"/{TOKEN}/ask", json=asked).json() == {"whole": "RAIN", "cut": ""}
    reply = page.post(f"/{TOKEN}/look", json=asked).json()
    shown = page.get(f"/{TOKEN}/page/{reply['page']}")
    assert shown.status_code == 200
    assert shown.headers["content-security-policy"] == "frame-ancestors 'self'"
    assert "<i>parrot" not in shown.text


def test_old_pages_go(page: TestClient) -> None:
    first = page.post(f"/{TOKEN}/look", json={"text": "a"}).json()["page"]
    for _ in range(8):
        page.post(f"/{TOKEN}/look", json={"text": "a"})
    assert page.get(f"/{TOKEN}/page/{first}").status_code == 404


@pytest.mark.parametrize(
    "path",
    ["/", "/wrong/", f"/{TOKEN[:-1]}/", f"/x{TOKEN}/", f"/{TOKEN}/app.py", "//", "/wrong/look"],
    ids=["none", "wrong", "cut", "longer", "source", "empty", "wrong look"],  # the token is random
)
def test_without_the_token_there_is_nothing(page: TestClient, path: str) -> None:
    assert page.get(path).status_code == 404


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", ""]
)
def test_another_name_for_this_machine_is_refused(page: TestClient, host: str) -> None:
    assert page.get(f"/{TOKEN}/", headers={"host": host}).status_code == 404
    assert page.get(f"/{TOKEN}/", headers={"host": "localhost:8000"}).status_code == 200


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"{", "must be JSON"),
        (b"[]", "must be JSON"),
        (b'{"text": 3}', "must be texts"),
        (b'{"text": "a", "off": "enc.0.0"}', "off a list of heads"),
        (b'{"text": "a", "heads": []}', "has the key 'heads'; there are text, second and off"),
        (b'{"text": "  "}', "The sentence is empty"),
        (b'{"text": "%s"}' % (b"a" * (LONGEST + 1)), "over 2,000 characters"),
        (b'{"text": "a", "off": ["enc.7.0"]}', "There is no head enc.7.0"),
    ],
)
def test_what_cannot_be_asked_is_told(page: TestClient, body: bytes, told: str) -> None:
    reply = page.post(f"/{TOKEN}/ask", content=body)
    assert reply.status_code == 400
    assert told in reply.json()["error"]


def test_what_breaks_the_model_is_told_in_a_sentence(page: TestClient) -> None:
    reply = page.post(f"/{TOKEN}/ask", json={"text": "boom"})
    assert reply.status_code == 400
    told = "The model breaks on this: ZeroDivisionError: no such \\x1b[31membedding."
    assert reply.json() == {"error": told}
    assert page.post(f"/{TOKEN}/ask", json={"text": "rain"}).json()["whole"] == "RAIN"


@pytest.mark.parametrize("word", [0, -5, 10**30, True, "x", None])
def test_a_word_is_of_one_question_and_others_do_not_mind(page: TestClient, word: Any) -> None:
    assert page.post(f"/{TOKEN}/ask", json={"text": "a", "word": word}).json()["whole"] == "A"


def test_a_request_that_is_too_large_is_refused_before_it_is_read(page: TestClient) -> None:
    read = []

    def parts() -> Iterator[bytes]:
        for _ in range(1000):
            read.append(1)
            yield b" " * 10_000

    reply = page.post(f"/{TOKEN}/ask", content=parts())
    assert reply.status_code == 400
    assert reply.json() == {"error": "The request is over 100,000 bytes; shorten the text."}


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/a/b/c"), ("PUT", "/ask"), ("GET", "/ask"), ("GET", "/")]
)
def test_every_answer_forbids_what_is_foreign(page: TestClient, method: str, path: str) -> None:
    reply = page.request(method, f"/{TOKEN}{path}")
    assert reply.headers["content-security-policy"].startswith("default-src 'none'")
    assert reply.headers["x-content-type-options"] == "nosniff"


def test_it_listens_on_this_machine_alone() -> None:
    with taken_socket(0) as taken:
        assert taken.getsockname()[0] == HOST == "127.0.0.1"
        port = taken.getsockname()[1]
        assert address(taken, "word") == f"http://127.0.0.1:{port}/word/"
        with pytest.raises(UsageError, match=f"Port {port} cannot be had"):
            taken_socket(port)
    with pytest.raises(UsageError, match="Port 99999 cannot be had"):
        taken_socket(99999)


REQUESTS = {
    "OPTIONS * HTTP/1.1": 404,
    "CONNECT 127.0.0.1:443 HTTP/1.1": 404,
    "GET nothing HTTP/1.1": 404,
    "GET http://127.0.0.1/ HTTP/1.1": 404,
    "GET {path}%00 HTTP/1.1": 404,
    "GET {path}%ff/../.. HTTP/1.1": 404,
    "PUT {path}ask HTTP/1.1": 405,
    "GET {path} HTTP/1.1": 200,
}


def test_what_is_no_request_of_the_page_gets_no_error_of_the_server() -> None:
    """The command itself, by hand on its socket, from the moment that it prints its address."""
    command = [sys.executable, "-m", "headcount", "serve", "translator"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            lines = iter(server.stdout.readline, "")
            where = next(
                found for line in lines if (found := re.search(r"http://(\S+)(/\S+/)", line))
            )
            host, path = where[1], where[2]
            ends = host.partition(":")[0], int(host.rpartition(":")[2])
            for line, status in REQUESTS.items():
                with socket.create_connection(ends, timeout=60) as sent:
                    head = f"{line.format(path=path)}\r\nHost: {host}\r\nConnection: close\r\n\r\n"
                    sent.sendall(head.encode())
                    assert int(sent.makefile().readline().split()[1]) == status, line
        finally:
            server.send_signal(signal.SIGINT)
    assert server.returncode == 0
