"""Run the application on this machine alone, until Ctrl-C."""

from __future__ import annotations

import socket
from typing import Any

from headcount.errors import UsageError

__all__ = ["HOST", "address", "run", "taken_socket"]

#: Never anything else: what is typed stays on this machine.
HOST = "127.0.0.1"


def taken_socket(port: int) -> socket.socket:
    """A socket on this machine; port 0 lets the system choose a free one."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((HOST, port))
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


def run(app: Any, taken: socket.socket) -> None:
    """Answer until the user ends it; nothing is logged, nothing is sent anywhere."""
    import uvicorn

    config = uvicorn.Config(app, log_level="error", access_log=False, server_header=False)
    uvicorn.Server(config).run(sockets=[taken])
