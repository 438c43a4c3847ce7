"""Where a number comes from: versions, command, time and hashes; no names of people or machines.

A table's provenance is a dict. The words that everything in the project uses:

=============  ====================================================================
``model``      what the user called it            ``revision``  its commit, if known
``weights``    hash of the weights                ``data``      hash of the texts
``versions``   see `versions`                     ``platform``  see `platform_name`
``command``    see `command_line`                 ``time``      see `now`
``seed``       of everything drawn at random      ``convention``  headcount, paper, code
``counts``     sentences, tokens, truncated, windows
=============  ====================================================================
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
import shlex
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

_PACKAGES = ("torch", "transformers", "tokenizers", "numpy")


def collect(**facts: Any) -> dict[str, Any]:
    """What is always known (versions, platform, command, time), and the facts given.

    >>> collect(model="translator", seed=0)["model"]
    'translator'
    """
    return {
        **facts,
        "versions": versions(),
        "platform": platform_name(),
        "command": command_line(),
        "time": now(),
    }


def version() -> str:
    """The version of headcount; "unknown" where it runs from a folder and is not installed."""
    return _version_of("headcount") or "unknown"


def versions() -> dict[str, str | None]:
    """Versions of headcount, Python and the libraries below it, without importing them.

    >>> sorted(versions())
    ['headcount', 'numpy', 'python', 'tokenizers', 'torch', 'transformers']
    """
    libraries = {package: _version_of(package) for package in _PACKAGES}
    return {"headcount": version(), "python": platform.python_version(), **libraries}


def platform_name() -> str:
    """The kind of machine, such as ``Linux x86_64``; not its name, which may be a person's."""
    return f"{platform.system()} {platform.machine()}"


def command_line(arguments: Sequence[str] | None = None) -> str:
    """The command as typed: the program's bare name and what the user passed to it.

    >>> command_line(["/somewhere/bin/headcount", "survey", "my model"])
    "headcount survey 'my model'"
    """
    program, *rest = (arguments if arguments is not None else sys.argv) or [""]
    name = Path(program).name
    if "kernel" in name:
        return "notebook"  # a kernel's arguments are files in the user's home, not the user's words
    if name == "__main__.py":
        return shlex.join(["python", "-m", Path(program).parent.name, *rest])
    return shlex.join([name or "python", *rest])


def now() -> str:
    """The time in UTC, to the second.

    >>> now().endswith("Z")
    True
    """
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def hash_strings(strings: Iterable[str]) -> str:
    """SHA-256 of strings in their order; where one ends and the next begins counts too.

    >>> hash_strings(["ab", "c"]) == hash_strings(["a", "bc"])
    False
    """
    digest = hashlib.sha256()
    for string in strings:
        data = string.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return f"sha256:{digest.hexdigest()}"


@cache
def _version_of(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


#: Loaded with `headcount.__version__`, so that importing headcount looks nothing up.
__version__ = version()
