"""A system Firefox, driven by WebDriver BiDi over a plain socket: open a page, ask it things."""

from __future__ import annotations

import base64
import json
import os
import secrets
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

__all__ = ["Firefox", "firefox"]

NAMES = ("firefox-esr", "firefox")


def firefox() -> str | None:
    """The program, where there is one; ``HEADCOUNT_FIREFOX`` names another."""
    named = os.environ.get("HEADCOUNT_FIREFOX")
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


class Firefox:
    """One Firefox without a window, for a ``with`` block."""

    def __init__(self, program: str) -> None:
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [program, "--headless", "--no-remote", "--profile", self.profile.name]
        command += ["--remote-debugging-port", str(port), "about:blank"]
        quiet = {"HOME": self.profile.name, "MOZ_DISABLE_AUTO_SAFE_MODE": "1"}
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, **quiet},
        )  # fmt: skip
        self.events: list[dict[str, Any]] = []
        self.count = 0
        self.wire = self._connected(port)
        self.ask("session.new", capabilities={})
        self.ask("session.subscribe", events=["log.entryAdded", "network.beforeRequestSent"])
        self.tab = self.ask("browsingContext.getTree")["contexts"][0]["context"]

    def __enter__(self) -> Firefox:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.wire.close()
        self.process.terminate()
        self.process.wait(20)
        self.profile.cleanup()

    def open(self, path: Path, hash: str = "") -> None:
        """Open a file and wait until the page says that it is ready."""
        self.events.clear()
        self.ask("browsingContext.navigate", context=self.tab, url="about:blank", wait="complete")
        self.ask(
            "browsingContext.navigate", context=self.tab, url=path.as_uri() + hash, wait="complete"
        )
        until = time.monotonic() + 30
        while self.evaluate("document.documentElement.dataset.ready") is None:
            assert time.monotonic() < until, f"the page is not ready: {self.wrongs}"
            time.sleep(0.1)

    def evaluate(self, code: str) -> Any:
        """The value of an expression in the page."""
        told = self.ask(
            "script.evaluate", expression=f"JSON.stringify({code})", target={"context": self.tab},
            awaitPromise=True,
        )  # fmt: skip
        assert told["type"] == "success", told
        value = told["result"].get("value")
        return None if value is None else json.loads(value)

    def press(self, *keys: str) -> None:
        """Keys as a person presses them."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        source = {"type": "key", "id": "keyboard", "actions": actions}
        self.ask("input.performActions", context=self.tab, actions=[source])

    @property
    def wrongs(self) -> list[str]:
        """Errors that the page told."""
        logs = [e["params"] for e in self.events if e["method"] == "log.entryAdded"]
        return [str(log.get("text")) for log in logs if log.get("level") == "error"]

    @property
    def asked(self) -> list[str]:
        """Addresses that the page asked for."""
        sent = [e["params"] for e in self.events if e["method"] == "network.beforeRequestSent"]
        return [event["request"]["url"] for event in sent]

    # --- the wire: RFC 6455, text frames alone ---------------------------------------------------

    def ask(self, method: str, **params: Any) -> Any:
        """Send a command and wait for its answer; events on the way are kept."""
        self.count += 1
        self._send(json.dumps({"id": self.count, "method": method, "params": params}).encode())
        while True:
            told = json.loads(self._receive())
            if told.get("id") == self.count:
                assert told["type"] == "success", told
                return told["result"]
            if "method" in told:
                self.events.append(told)

    def _connected(self, port: int) -> socket.socket:
        until = time.monotonic() + 60
        while True:
            try:
                wire = socket.create_connection(("127.0.0.1", port), timeout=60)
                break
            except OSError:
                assert time.monotonic() < until, "Firefox did not start"
                time.sleep(0.2)
        key = base64.b64encode(secrets.token_bytes(16)).decode()
        wire.sendall(
            f"GET /session HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += wire.recv(1)
        assert b" 101 " in head.split(b"\r\n")[0], head
        return wire

    def _send(self, data: bytes) -> None:
        size, mask = len(data), secrets.token_bytes(4)
        length = bytes([0x80 | size]) if size < 126 else b"\xfe" + struct.pack(">H", size)
        if size > 65535:
            length = b"\xff" + struct.pack(">Q", size)
        masked = bytes(byte ^ mask[place % 4] for place, byte in enumerate(data))
        self.wire.sendall(b"\x81" + length + mask + masked)

    def _receive(self) -> bytes:
        whole = b""
        while True:
            first, second = self._exactly(2)
            size = second & 0x7F
            if size == 126:
                (size,) = struct.unpack(">H", self._exactly(2))
            elif size == 127:
                (size,) = struct.unpack(">Q", self._exactly(8))
            data = self._exactly(size)
            if first & 0x0F in (0x0, 0x1, 0x2):
                whole += data
                if first & 0x80:
                    return whole

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self.wire.recv(count - len(data))
            assert part, "Firefox hung up"
            data += part
        return data
