"""A model hub of one folder on this machine: what huggingface_hub asks, and no more."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

COMMIT = "c0ffee" * 6 + "abcd"


class Hub(BaseHTTPRequestHandler):
    """Answers ``/api/models/<id>`` and ``/<id>/resolve/<revision>/<file>`` for folders."""

    root: Path

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path = self.path.split("?")[0].strip("/")
        if "/tree/" in path:
            self._list(path.removeprefix("api/models/").partition("/tree/")[0])
        elif path.startswith("api/models/"):
            name, _, revision = path.removeprefix("api/models/").partition("/revision/")
            self._describe(name, revision or "main")
        elif "/resolve/" in path:
            name, _, rest = path.partition("/resolve/")
            self._send_file(self.root / name / rest.partition("/")[2])
        else:
            self._refuse("RepoNotFound")

    def _list(self, name: str) -> None:
        files = sorted((self.root / name).iterdir())
        rows = [
            {"type": "file", "path": file.name, "size": file.stat().st_size, "oid": "0" * 40}
            for file in files
        ]
        self._send(json.dumps(rows).encode(), "application/json")

    def _describe(self, name: str, revision: str) -> None:
        if not (self.root / name).is_dir():
            return self._refuse("RepoNotFound")
        if revision not in ("main", COMMIT):
            return self._refuse("RevisionNotFound")
        files = [{"rfilename": file.name} for file in sorted((self.root / name).iterdir())]
        told = {"id": name, "modelId": name, "sha": COMMIT, "siblings": files}
        return self._send(json.dumps(told).encode(), "application/json")

    def _send_file(self, file: Path) -> None:
        if not file.is_file():
            return self._refuse("EntryNotFound")
        return self._send(file.read_bytes(), "application/octet-stream")

    def _send(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()}"')
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def _refuse(self, code: str) -> None:
        self.send_response(404)
        self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *words: object) -> None:
        """Say nothing."""


@contextmanager
def serving(root: Path) -> Iterator[str]:
    """The address of a hub that has the folders of `root`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("HubOf", (Hub,), {"root": root}))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
