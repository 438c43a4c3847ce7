"""The door of a package: the names that other packages may use, loaded when they are asked for.

A package's ``__init__`` lists them once, as imports under ``if TYPE_CHECKING:``, where editors and
mypy read them, and ends with ``open_door(__name__)``. So ``import headcount`` and the command line
start at once, and a name that only one verb needs loads nothing for the others.
"""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any


class _Door(ModuleType):
    """A package whose names are loaded when they are used."""

    __homes__: dict[str, tuple[str, str]]
    __all__: list[str]
    #: Whether rooms and other packages put names on this door: the façade's.
    __open__: bool

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            known = [*self.__homes__, *self._added()]
            return sorted(name for name in known if not name.startswith("_"))
        if name not in self.__homes__:
            if not name.startswith("_") and name in (added := self._added()):
                return added[name].load()
            raise AttributeError(f"{self.__name__} has no '{name}'; it has {', '.join(dir(self))}")
        module, attribute = self.__homes__[name]
        # Not kept here: whoever replaces the name in its module (a test) is seen through the door.
        if module != self.__name__:
            home = importlib.import_module(module)
            if hasattr(home, attribute):
                return getattr(home, attribute)
        return importlib.import_module(f"{module}.{attribute}")  # a package within: hc.tasks

    def __dir__(self) -> list[str]:
        return list(self.__all__)

    def _added(self) -> dict[str, Any]:
        """The names that the registry has for the façade."""
        if not self.__open__:
            return {}
        plugins = importlib.import_module("headcount.plugins")
        return {plugin.name: plugin for plugin in plugins.listed("names")}


def open_door(package: str, to_rooms: bool = False) -> None:
    """Let a package give out the names that it imports under ``if TYPE_CHECKING:``.

    With `to_rooms` also those that rooms add (`headcount.plugins`).
    """
    module = sys.modules[package]
    homes: dict[str, tuple[str, str]] = {}
    for block in ast.parse(Path(str(module.__file__)).read_text(encoding="utf8")).body:
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            for line in block.body:
                if isinstance(line, ast.ImportFrom) and line.module is not None:
                    for alias in line.names:
                        homes[alias.asname or alias.name] = (line.module, alias.name)
    module.__class__ = _Door
    module.__dict__.update(__homes__=homes, __open__=to_rooms)
    if not to_rooms:
        public = sorted(name for name in homes if not name.startswith("_"))
        module.__dict__.setdefault("__all__", public)  # a package may show users fewer
