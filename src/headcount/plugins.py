"""The registry: commands, roles, scores and more that rooms and other packages add.

A room is a package that says in its ``__init__`` what it adds, group by group, each thing by its
name and its place within the package: ``module:attribute``, ``:attribute``, or ``.`` for itself::

    ADDS = {
        "commands": {"shy": "command:shy_command"},
        "roles": {"shy": "role:Shy"},
    }

Rooms of headcount lie in ``headcount.rooms`` and are found there. A package of anybody comes in by
the same door, an entry point of its ``pyproject.toml``: the package whose ``ADDS`` is read, or one
thing of one group::

    [project.entry-points."headcount.rooms"]
    shy = "shy_heads"

    [project.entry-points."headcount.roles"]
    shy = "shy_heads.role:Shy"

A notebook needs neither: ``@hc.plugins.role`` above a class is enough, for this process.

Nothing is loaded before it is used, so that ``headcount --help`` starts at once. What cannot be
loaded is named in one sentence, and everything else works. The first of a name stays: headcount's
own, then those of packages in the order of their names.

>>> "survey" in names_of("commands")
True
>>> get("roles", "nonesuch")
Traceback (most recent call last):
headcount.errors.UsageError: There is no role 'nonesuch'; there are ...
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, TypeVar

from headcount.errors import HeadcountError, UsageError

#: What can be added: the group, what one of it is called, and what it is.
GROUPS: dict[str, tuple[str, str]] = {
    "commands": ("command", "a verb of the command line: a function with typer's annotations"),
    "roles": ("role", "a rule that reads a table of heads: `headcount.surveys.roles.Role`"),
    "scores": ("score", "how much heads matter to a task: `headcount.importance.Score`"),
    "tallies": ("tally", "a statistic that streams over attention: `headcount.surveys.Tally`"),
    "trials": ("trial", "inputs made to ask one question: `headcount.surveys.Trial`"),
    "tasks": ("task", "what good means, of a file: a function that reads it"),
    "stages": ("stage", "a part of the story that `headcount report` tells"),
    "views": ("view", "a part of the page: a function of a `Source` and what was `Asked` for"),
    "formats": ("format", "a format of corpora: `headcount.text.CorpusFormat`"),
    "exporters": ("exporter", "a format that models are written in"),
    "engines": ("engine", "where work is done: `headcount.records.Engine`"),
    "names": ("name", "a name of the façade, `hc.<name>`"),
    "parts": ("part", "what the core uses by a name that it knows, where it is there"),
}


class PluginError(HeadcountError):
    """What a room or a package adds cannot be loaded."""


@dataclass(frozen=True)
class Plugin:
    """One plug-in; it is loaded at first use."""

    group: str
    name: str
    #: ``package.module:attribute``, or ``package.module`` for a module itself.
    target: str
    #: Who adds it: "headcount", a package with its version, or "this session".
    origin: str
    #: What a session registered; it lies in no module.
    thing: Any = None

    @property
    def kind(self) -> str:
        """What one of its group is called."""
        return GROUPS.get(self.group, (self.group, ""))[0]

    @property
    def ours(self) -> bool:
        """Whether headcount itself adds it."""
        return self.target.startswith("headcount.")

    def load(self) -> Any:
        """The thing itself; one sentence where it cannot be had."""
        if self.thing is not None:
            return self.thing
        module, _, attributes = self.target.partition(":")
        try:
            loaded: Any = importlib.import_module(module)
            for attribute in filter(None, attributes.split(".")):
                loaded = getattr(loaded, attribute)
        except HeadcountError:
            raise
        except Exception as error:  # a stranger's module may raise anything
            raise PluginError(
                f"The {self.kind} '{self.name}' of {self.origin} cannot be loaded from "
                f"{self.target}: {type(error).__name__}: {error}. Mend or uninstall that package; "
                "all else works without it."
            ) from error
        return loaded


# --- Where they come from -----------------------------------------------------------------------

_session: dict[tuple[str, str], Plugin] = {}
_faults: dict[str, None] = {}


@cache
def _own() -> tuple[Plugin, ...]:
    """What the packages of headcount add, then its rooms."""
    top = Path(__file__).parent
    found: list[Plugin] = []
    for folder in ("", "rooms"):
        for door in sorted(top.joinpath(folder).glob("*/__init__.py")):
            package = ".".join(["headcount", *door.parent.relative_to(top).parts])
            found += _adds_of(package, "headcount" if not folder else f"room {door.parent.name}")
    return tuple(found)


def _adds_of(package: str, origin: str) -> Iterator[Plugin]:
    """What a package says that it adds."""
    adds: Mapping[str, Mapping[str, str]] = vars(importlib.import_module(package)).get("ADDS", {})
    for group, things in adds.items():
        if group not in GROUPS:
            _tell(f"{origin} adds to '{group}', which is no group; there are {', '.join(GROUPS)}.")
            continue
        for name, place in things.items():
            inner = "" if place == "." else place if place.startswith(":") else f".{place}"
            yield Plugin(group, name, package + inner, origin)


@cache
def _foreign() -> tuple[Plugin, ...]:
    """What installed packages add: whole rooms, then single things."""
    points = entry_points()
    found: list[Plugin] = []
    for point in _sorted(points.select(group="headcount.rooms")):
        try:
            found += _adds_of(point.value, _package_of(point))
        except Exception as error:  # a stranger's module may raise anything
            _tell(
                f"The room '{point.name}' of {_package_of(point)} cannot be loaded from "
                f"{point.value}: {type(error).__name__}: {error}. Mend or uninstall that package; "
                "all else works without it."
            )
    for group in GROUPS:
        for point in _sorted(points.select(group=f"headcount.{group}")):
            found.append(Plugin(group, point.name, point.value, _package_of(point)))
    return tuple(found)


def _sorted(points: Any) -> list[EntryPoint]:
    return sorted(points, key=lambda point: (_package_of(point), point.name))


def _package_of(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else "a package"


def _tell(sentence: str) -> None:
    """Keep a fault, and warn of it once."""
    shown = str(HeadcountError(sentence))
    if shown not in _faults:
        _faults[shown] = None
        warnings.warn(shown, stacklevel=3)


# --- What is there ------------------------------------------------------------------------------


def listed(group: str | None = None) -> list[Plugin]:
    """Everything that is there, of one group or of all; nothing is loaded."""
    first: dict[tuple[str, str], Plugin] = {}
    for plugin in (*_own(), *_foreign(), *_session.values()):
        known = first.setdefault((plugin.group, plugin.name), plugin)
        if known is not plugin and known.target != plugin.target:
            _tell(
                f"The {plugin.kind} '{plugin.name}' of {plugin.origin} is left out: {known.origin} "
                "has one of that name; give it another."
            )
    order = [*GROUPS]
    there = [plugin for plugin in first.values() if group in (None, plugin.group)]
    return sorted(there, key=lambda plugin: order.index(plugin.group))


def names_of(group: str) -> list[str]:
    """The names of a group."""
    return [plugin.name for plugin in listed(group)]


def plugin_of(group: str, name: str) -> Plugin | None:
    """One thing by its name; other packages are looked at only where headcount has none such."""
    for plugin in _own():
        if (plugin.group, plugin.name) == (group, name):
            return plugin
    return next((plugin for plugin in listed(group) if plugin.name == name), None)


def get(group: str, name: str) -> Any:
    """One thing by its name, loaded; a name that is not there is refused with those that are."""
    plugin = plugin_of(group, name)
    if plugin is None and group == "parts":
        raise UsageError(
            f"This needs '{name}', and no room here has it; install headcount with all its rooms."
        )
    if plugin is None:
        raise UsageError(
            f"There is no {GROUPS.get(group, (group,))[0]} '{name}'; there are "
            f"{', '.join(names_of(group)) or 'none'}."
        )
    return plugin.load()


def part(name: str) -> Any:
    """A part that the core uses where a room has it; else None."""
    plugin = plugin_of("parts", name)
    return None if plugin is None else plugin.load()


def every(group: str) -> dict[str, Any]:
    """All of a group that can be loaded; of what cannot be, a warning tells once."""
    loaded = {plugin.name: tried(plugin) for plugin in listed(group)}
    return {name: thing for name, thing in loaded.items() if thing is not None}


def tried(plugin: Plugin) -> Any:
    """The thing, or None with a warning where it cannot be loaded."""
    try:
        return plugin.load()
    except PluginError as error:
        _tell(str(error))
        return None


def faults() -> list[str]:
    """What could not be loaded so far, a sentence each."""
    return list(_faults)


# --- By hand, for a notebook --------------------------------------------------------------------

Thing = TypeVar("Thing")


def plug_in(group: str, thing: Thing, name: str | None = None) -> Thing:
    """Add a thing for this process; a second one of the same name takes the first one's place.

    >>> class Tiny:
    ...     name = "tiny"
    >>> plug_in("exporters", Tiny) is get("exporters", "tiny")
    True
    """
    if group not in GROUPS:
        raise UsageError(f"There is no group '{group}' to add to; there are {', '.join(GROUPS)}.")
    called = name or getattr(thing, "name", None) or getattr(thing, "__name__", "")
    called = str(called).removesuffix(f"_{GROUPS[group][0]}")
    known = plugin_of(group, called)
    if known is not None and known.thing is None:
        raise UsageError(
            f"There is a {known.kind} '{called}' already, of {known.origin}; give yours another "
            "name."
        )
    _session[group, called] = Plugin(group, called, "", "this session", thing)
    return thing


def unplug(group: str, name: str) -> None:
    """Take away what `plug_in` added; nothing happens where there is none."""
    _session.pop((group, name), None)


def _decorator(group: str) -> Callable[[Thing], Thing]:
    def added(thing: Thing) -> Thing:
        return plug_in(group, thing)

    added.__doc__ = f"Add {GROUPS[group][1].split(':')[0]}, for this process."
    return added


command = _decorator("commands")
role = _decorator("roles")
score = _decorator("scores")
tally = _decorator("tallies")
trial = _decorator("trials")
task = _decorator("tasks")
stage = _decorator("stages")
exporter = _decorator("exporters")
engine = _decorator("engines")
