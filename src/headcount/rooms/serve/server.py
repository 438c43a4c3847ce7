"""`headcount serve`: a page on this machine only, where a model is tried sentence by sentence."""

from __future__ import annotations

import secrets
import socket
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from headcount.errors import HeadcountError, ModelError, UsageError
from headcount.reports import asset, page_html, style

if TYPE_CHECKING:
    from headcount.rooms.serve.inspector import Inspector

# --- Who may connect ------------------------------------------------------------------------------

#: Headers of every response: nothing from elsewhere, nothing kept, shown in no foreign frame.
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

        async def guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                own = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    own.setdefault(name, value)
            await send(message)

        await self.app({**scope, "path": inner, "root_path": ""}, receive, guarded)

    def _may(self, scope: Any) -> bool:
        host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        # A request may also name "*", or a host to connect to, in place of a path.
        root, _, rest = scope["path"].partition("/")
        given = rest.partition("/")[0].encode(errors="replace")
        return not root and name in _NAMES and secrets.compare_digest(given, self.token.encode())


# --- The pages and the one request of `headcount serve` -------------------------------------------

#: Characters of a text, and bytes of a request, most of which names heads.
LONGEST, _LARGEST = 2_000, 100_000
#: Pages that can still be looked at; older ones go.
_KEPT = 8
_FILES = {"report.css": "text/css", "serve.css": "text/css", "serve.js": "text/javascript"}


def app_of(inspector: Inspector, token: str) -> Guard:
    """The application; it answers only below ``/token/``."""
    desk = _Desk(inspector)
    routes = [
        Route("/", desk.index),
        Route("/about", desk.about),
        Route("/ask", desk.ask, methods=["POST"]),
        Route("/look", desk.look, methods=["POST"]),
        Route("/fewest", desk.fewest, methods=["POST"]),
        Route("/offer", desk.offer, methods=["POST"]),
        Route("/page/{number}", desk.page),
        Route("/{name}", desk.file),
    ]
    return Guard(Starlette(routes=routes), token)


class _Desk:
    """One request at a time; the last pages are kept."""

    def __init__(self, inspector: Inspector) -> None:
        self.inspector = inspector
        self._pages: OrderedDict[str, str] = OrderedDict()
        self._count = 0
        self._turn = threading.Lock()

    async def index(self, request: Request) -> Response:
        """The page to type in."""
        return HTMLResponse(asset("serve.html"))

    async def file(self, request: Request) -> Response:
        """Style and script of that page."""
        name = request.path_params["name"]
        if name not in _FILES:
            return PlainTextResponse("Not found.", 404)
        text = style() if name == "report.css" else asset(name)
        return Response(text, media_type=_FILES[name])

    async def page(self, request: Request) -> Response:
        """The report of one sentence; it brings its own policy, and stands in our frame only."""
        found = self._pages.get(request.path_params["number"])
        if found is None:
            return PlainTextResponse("This page has gone; reload.", 404)
        return HTMLResponse(found, headers={"Content-Security-Policy": _IN_OUR_FRAME})

    async def about(self, request: Request) -> Response:
        """The model and its heads."""
        return JSONResponse(self.inspector.about())

    async def ask(self, request: Request) -> Response:
        """What the model says, whole and without heads: fast enough to play with."""
        return await self._answered(request, self.inspector.ask)

    async def fewest(self, request: Request) -> Response:
        """A few heads that change one word."""
        return await self._answered(request, self.inspector.fewest, "word")

    async def offer(self, request: Request) -> Response:
        """A sentence in which the heads that are off matter."""
        return await self._answered(request, self.inspector.offer)

    async def look(self, request: Request) -> Response:
        """Every head's map of a sentence, as a page."""
        return await self._answered(request, self._page_of)

    async def _answered(
        self, request: Request, answer: Callable[..., dict[str, Any]], more: str = ""
    ) -> Response:
        def in_turn(asked: dict[str, Any]) -> dict[str, Any]:
            with self._turn:
                return answer(**{name: asked[name] for name in asked if name != "word" or more})

        try:
            body = b""
            async for part in request.stream():
                body += part
                if len(body) > _LARGEST:
                    raise UsageError(f"The request is over {_LARGEST:,} bytes; shorten the text.")
            return JSONResponse(await run_in_threadpool(in_turn, _read_request(body)))
        except Exception as error:  # not ours: of the model's code, on a text that it cannot take
            why = f"The model breaks on this: {type(error).__name__}: {error}."
            told = error if isinstance(error, HeadcountError) else ModelError(why)
            return JSONResponse({"error": str(told)}, 400)

    def _page_of(self, text: str, second: str, off: list[str]) -> dict[str, Any]:
        self._count += 1
        self._pages[str(self._count)] = page_html(self.inspector.look(text, second, off))
        while len(self._pages) > _KEPT:
            self._pages.popitem(last=False)
        return {"page": self._count}


_IN_OUR_FRAME = "frame-ancestors 'self'"


def _read_request(body: bytes) -> dict[str, Any]:
    """The text, the second text and the heads that are off; anything else is refused."""
    from headcount.records import json_decode

    try:
        given = json_decode(body)
        text, second, off = given["text"], given.get("second", ""), given.get("off", [])
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        raise UsageError("The request must be JSON with text, second and off.") from None
    unknown = sorted(set(given) - {"text", "second", "off", "word"})
    if unknown:
        raise UsageError(
            f"The request has the key '{str(unknown[0])[:40]}'; there are text, second and off."
        )
    if not isinstance(text, str) or not isinstance(second, str) or not isinstance(off, list):
        raise UsageError("text and second must be texts, and off a list of heads.")
    if not text.strip():
        raise UsageError("The sentence is empty; type one with a word in it.")
    if max(len(text), len(second)) > LONGEST:
        raise UsageError(f"The text has over {LONGEST:,} characters; shorten it.")
    asked = {"text": text.strip(), "second": second.strip(), "off": [str(head) for head in off]}
    return asked | ({"word": given["word"]} if type(given.get("word")) is int else {})


# --- Run the application on this machine, until Ctrl-C --------------------------------------------

#: Never anything else: what is typed stays on this machine.
HOST = "127.0.0.1"


def taken_socket(port: int) -> socket.socket:
    """A socket on this machine; port 0 lets the system choose a free one."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((HOST, port))
        found.listen()  # whoever comes before the first answer waits for it
    except (OSError, OverflowError) as error:
        found.close()
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"Port {port} cannot be had: {why.lower()}. Choose another one (--port)."
        ) from error
    return found


def address(taken: socket.socket, token: str) -> str:
    """Where the page is."""
    return f"http://{HOST}:{taken.getsockname()[1]}/{token}/"


def run_server(app: Any, taken: socket.socket) -> None:
    """Answer until the user ends it; nothing is logged, nothing is sent anywhere."""
    import uvicorn

    config = uvicorn.Config(app, log_level="error", access_log=False, server_header=False)
    uvicorn.Server(config).run(sockets=[taken])
