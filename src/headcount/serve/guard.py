"""Who may ask: only this machine, only by its own name, only with the token of this session."""

from __future__ import annotations

import secrets
from typing import Any

from starlette.responses import PlainTextResponse

__all__ = ["HEADERS", "Guard", "new_token"]

#: What every answer says: nothing from elsewhere, nothing kept, shown in no foreign frame.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}

_NAMES = ("127.0.0.1", "localhost", "[::1]")


def new_token() -> str:
    """A word that nobody guesses.

    >>> len(new_token()) >= 32, new_token() != new_token()
    (True, True)
    """
    return secrets.token_urlsafe(24)


class Guard:
    """Let through what is addressed to this machine and begins with the token; 404 for all else.

    The name is checked since a web page elsewhere can make its own name point to this machine.
    """

    def __init__(self, app: Any, token: str) -> None:
        self.app, self.token = app, token

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http" or not self._may(scope):
            await PlainTextResponse("Not found.", 404, headers=HEADERS)(scope, receive, send)
            return
        inner = scope["path"][len(self.token) + 1 :] or "/"
        await self.app({**scope, "path": inner, "root_path": ""}, receive, send)

    def _may(self, scope: Any) -> bool:
        host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        given = scope["path"].split("/")[1].encode()
        return name in _NAMES and secrets.compare_digest(given, self.token.encode())
