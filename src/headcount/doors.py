"""The door of a package: the names that other packages may use, loaded at first use.

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
    #: The group of the registry whose things have their names on this door too; empty for none.
    __group__: str
    __shown__: list[str]

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return sorted({*self.__shown__, *self._added()})
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
        """What the registry has for this door: by its name, or a role by the name of its class."""
        if not self.__group__:
            return {}
        plugins = importlib.import_module("headcount.plugins")
        # hc.roles has classes of the registry by their names, and what is called "roles.<name>".
        prefix = "" if self.__group__ == "names" else f"{self.__group__}."
        names = [plugin for plugin in plugins.listed("names") if plugin.name.startswith(prefix)]
        added = {one.name.removeprefix(prefix): one for one in names}
        classes = plugins.listed(self.__group__) if prefix else ()
        added |= {plugin.target.rpartition(":")[2]: plugin for plugin in classes}
        return {name: plugin for name, plugin in added.items() if "." not in name}


def open_door(package: str, group: str = "") -> None:
    """Let a package give out the names that it imports under ``if TYPE_CHECKING:``.

    With a `group` also what the registry has of that (`headcount.plugins`).
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
    public = sorted(name for name in homes if not name.startswith("_"))
    shown = module.__dict__.pop("__all__", public)  # a package may show users fewer
    module.__dict__.update(__homes__=homes, __group__=group, __shown__=shown)
    if not group:
        module.__dict__["__all__"] = shown
