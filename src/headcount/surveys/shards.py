"""A pass over a corpus in shards: done by an engine, merged in their order, kept as they end.

Where a corpus is cut depends on the corpus alone, and shards are merged in its order, so that
numbers depend neither on the number of workers nor on who answers first, nor on where a survey was
broken off. A folder keeps what every finished shard came to: the same survey goes on from there.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np
import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from headcount.errors import RunError, UsageError
from headcount.models import Site, SiteGroup, Subject, fingerprint_of
from headcount.records import (
    Answer,
    Engine,
    InnerPath,
    Journal,
    Lost,
    Piece,
    Worker,
    engine_of,
    json_decode,
    json_encode,
    reason,
    working,
)
from headcount.surveys.tally import BatchCache, Sums, Tally
from headcount.text import Corpus, CorpusPart, EncodeReport, Item, Ready, texts_of

#: A shard ends after so many items, or so many characters: some seconds of work.
SHARD_ITEMS, SHARD_CHARACTERS = 1024, 1 << 20
#: The same where nobody waits for a shard, neither a journal nor another process: the more texts
#: are sorted together, the fewer batches, and the less padding.
ITEMS_AT_ONCE = 8192
#: Of so many finished shards one file is made.
TOGETHER = 32

Numbered = tuple[int, Item]
#: Called with how many items of a part are done by now.
Told = Callable[[int], None]
#: Goes through a part of a corpus with tallies of its own: `passes.run_part`.
RunPart = Callable[[Subject, Corpus | Ready, Sequence[Tally], Told], EncodeReport]


@dataclass(frozen=True)
class ShardWork:
    """Where the shards of a survey are done, and where finished ones are kept."""

    engine: Engine | None = None
    folder: InnerPath | None = None

    def of(self, name: str) -> ShardWork:
        """The same for one pass, in a folder of its own."""
        inner = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        return ShardWork(self.engine, None if self.folder is None else self.folder / inner)


def cut_into_shards(corpus: Corpus, first: int = 0, most: int | None = None) -> Iterator[Piece]:
    """The shards of a corpus from a number on, each with its items and their numbers."""
    most = most or SHARD_ITEMS
    number, room, items = 0, SHARD_CHARACTERS, list[Numbered]()
    for index, item in enumerate(corpus):
        items.append((index, item))
        room -= sum(map(len, texts_of(item)))
        if room <= 0 or len(items) == most:
            if number >= first:
                yield Piece(number, items)
            number, room, items = number + 1, SHARD_CHARACTERS, []
    if items and number >= first:
        yield Piece(number, items)


def run_shards(
    subject: Subject,
    source: Corpus | Ready,
    tallies: Sequence[Tally],
    run: RunPart,
    *,
    work: ShardWork,
    settings: Mapping[str, Any],
    title: str = "Reading",
    most: int | None = None,
) -> tuple[EncodeReport, list[str]]:
    """Update the tallies with a whole corpus; what was read, and which items were set aside.

    `most` items make a shard: fewer than usual where they come to much, which is then never put
    together into one file.
    """
    report = EncodeReport()
    if isinstance(source, Ready):  # in memory, and cut into batches by the caller
        with working(title, len(source)) as shown:
            report.add(run(subject, source, tallies, shown.to))
        return report, []
    engine, fresh = engine_of(work.engine), deepcopy(tuple(tallies))
    opened: AbstractContextManager[_Kept | None] = nullcontext()
    if work.folder is not None:
        about = _fingerprint(subject, source, fresh, {**settings, "most": most})
        opened = _Kept(work.folder, about, classes_kept(fresh))
    with opened as kept, working(title, len(source)) as shown:
        if work.folder is None and not engine.remote:
            most = most or ITEMS_AT_ONCE
        merged = _Merged(source, tallies, fresh, report, kept, shown.to, engine.remote, most)
        make = partial(
            _worker,
            engine.pack(subject),
            fresh,
            run,
            (source.name, source.paired, source.annotated),
            (lambda done: None) if engine.remote else merged.show,
            engine.remote,
        )
        for answer in engine.run(make, merged.left()):
            merged.take(answer)
        merged.close()
    return report, merged.set_aside


@contextmanager
def _worker(
    subject_of: Callable[[], Subject],
    fresh: Sequence[Tally],
    run: RunPart,
    about: tuple[str, bool, bool],
    told: Told,
    remote: bool,
) -> Iterator[Worker]:
    """Holds the model, and gives what fresh tallies come to on some items."""
    subject, (name, paired, annotated) = subject_of(), about

    def work(items: Sequence[Numbered]) -> dict[str, Any] | bytes:
        part = CorpusPart(name, items, paired=paired, annotated=annotated)
        own = deepcopy(fresh)
        report = run(subject, part, own, told)
        clean = deepcopy(fresh)  # what a tally remembers of its last batch does not travel
        for mine, theirs in zip(clean, own, strict=True):
            mine.merge(theirs)
        state = {"report": dict(vars(report)), "tallies": [state_of(one) for one in clean]}
        return state_bytes(state, classes_kept(fresh)) if remote else state

    yield work


# --- Shards come back, in any order ---------------------------------------------------------------


@dataclass
class _Merged:
    """What has come back: merged as far as every earlier shard is there."""

    source: Corpus
    tallies: Sequence[Tally]
    fresh: Sequence[Tally]
    report: EncodeReport
    kept: _Kept | None
    told: Told
    #: Else the worker shows how far it is, batch by batch.
    remote: bool
    most: int | None

    def __post_init__(self) -> None:
        self.set_aside: list[str] = []
        self._kinds = classes_kept(self.fresh)
        self._next = 0
        self._under_way: dict[int, Sequence[Numbered]] = {}
        self._waiting: dict[int, dict[str, Any]] = {}
        if self.kept is not None:
            self._next, units = self.kept.read()
            for unit in units:
                self._merge_kept(self.kept, unit)
            self._waiting = {number: {} for number in self.kept.ahead(self._next)}
            if self._next:
                self.show(0)

    def left(self) -> Iterator[Piece]:
        """The shards that nobody has done."""
        for piece in cut_into_shards(self.source, self._next, self.most):
            if piece.number >= self._next and piece.number not in self._waiting:
                self._under_way[piece.number] = piece.parts
                yield piece

    def take(self, answer: Answer) -> None:
        """Keep what a shard came to, and merge it when its turn has come."""
        parts = self._under_way.pop(answer.number)
        lost = [self._named(parts[one.place], one) for one in answer.lost]
        found = [
            state_from(one, self._kinds) if isinstance(one, bytes) else one
            for _, _, one in answer.results
        ]
        state = {"parts": found, "lost": lost}
        if self.kept is not None:
            self.kept.write(answer.number, state)
        self._waiting[answer.number] = state
        self._merge_waiting()

    def close(self) -> None:
        """Nothing may be left that was not merged: shards done ahead of a resumed survey are."""
        self._merge_waiting()
        if self._waiting:
            raise RunError(
                f"{self.source.name} gave other shards than before: {sorted(self._waiting)} are "
                "too many; it changed while it was being read: run again."
            )

    def show(self, done: int) -> None:
        """Tell how far it is: what is merged, and `done` sentences of the shard under way."""
        self.told(self.report.sentences + done)

    def _merge_waiting(self) -> None:
        while self._next in self._waiting:
            state = self._waiting.pop(self._next)
            if not state and self.kept is not None:
                self._merge_kept(self.kept, f"shard {self._next}")
            else:
                self._merge(state)
            self._next += 1
            if self.remote:
                self.show(0)
            if self.kept is not None and self.most is None and self._next % TOGETHER == 0:
                self.kept.join(self._next, self._whole())

    def _merge_kept(self, kept: _Kept, unit: str) -> None:
        """Merge what a file says; one that says anything else than a survey would is refused."""
        try:
            self._merge(kept.load(unit))
        except _DAMAGE as error:
            raise RunError(
                f"{kept.file(unit)} is not what a survey keeps; delete {kept.folder}/ to begin "
                "afresh."
            ) from error

    def _merge(self, state: Mapping[str, Any]) -> None:
        for part in state["parts"]:
            self.report.add(EncodeReport(**part["report"]))
            for tally, fresh, own in zip(self.tallies, self.fresh, part["tallies"], strict=True):
                tally.merge(with_state(fresh, own))
        self.set_aside += state["lost"]

    def _whole(self) -> dict[str, Any]:
        """All that is merged, as one shard."""
        clean = deepcopy(tuple(self.fresh))
        for mine, theirs in zip(clean, self.tallies, strict=True):
            mine.merge(theirs)
        own = [state_of(one) for one in clean]
        part = {"report": dict(vars(self.report)), "tallies": own}
        return {"parts": [part], "lost": list(self.set_aside)}

    def _named(self, part: Numbered, lost: Lost) -> str:
        index, item = part
        line = "" if item.line is None else f" (line {item.line})"
        return f"Item {index + 1} of {self.source.name}{line} was set aside: {lost.why}"


# --- What a tally has counted, without its settings -----------------------------------------------


def state_of(tally: Tally) -> dict[str, Any]:
    """What a tally has counted: the fields of a dataclass that are not given, else all it has."""
    own = dict(vars(tally))
    if is_dataclass(tally):
        own = {one.name: getattr(tally, one.name) for one in fields(tally) if not one.init}
    return own


def with_state(fresh: Tally, state: Mapping[str, Any]) -> Tally:
    """A tally of the same settings that has counted this."""
    made = deepcopy(fresh)
    if state.keys() != state_of(fresh).keys():
        raise ValueError(f"a {type(fresh).__name__} counts other things")
    for name, value in state.items():
        object.__setattr__(made, name, value)
    return made


def _fingerprint(
    subject: Subject, source: Corpus, fresh: Sequence[Tally], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """What must be the same for shards to be of one survey; the size of batches need not."""
    return {
        "what": "headcount survey",
        **fingerprint_of(subject),
        "data": source.hash,
        "shards": f"{SHARD_ITEMS} items or {SHARD_CHARACTERS} characters",
        "settings": dict(settings),
        "tallies": [_described(tally) for tally in fresh],
    }


def _described(value: Any) -> Any:
    """A tally's settings as JSON has them; of functions only that there is one."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if is_dataclass(value):
        own = {one.name: _described(getattr(value, one.name)) for one in fields(value) if one.init}
        return {"kind": type(value).__name__, **own}
    if isinstance(value, Mapping):
        return {str(key): _described(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        described = [_described(one) for one in value]
        return described if isinstance(value, list | tuple) else sorted(map(str, described))
    return type(value).__name__


# --- A folder of finished shards ------------------------------------------------------------------


class _Kept:
    """Finished shards: a journal that says which, and a file for each, or for many together.

    The file is whole before the journal names it. Files hold tensors, and JSON with a closed list
    of types (`state_bytes`).
    """

    def __init__(self, folder: InnerPath, fingerprint: Mapping[str, Any], kinds: Kinds) -> None:
        self.folder = folder
        self._fingerprint = fingerprint
        self._kinds = kinds
        #: Nothing is written before there is something to keep.
        self._journal = self._begun() if self.file("journal").exists() else None

    def __enter__(self) -> _Kept:
        return self

    def __exit__(self, *_: object) -> None:
        if self._journal is not None:
            self._journal.close()

    def _begun(self) -> Journal:
        """Begin, or go on with shards of the same survey; those of another one are refused."""
        try:
            self.folder.make()
        except OSError as error:
            raise RunError(f"{self.folder} cannot be made: {reason(error)}.") from error
        return Journal.open(self.file("journal"), self._fingerprint)

    def read(self) -> tuple[int, list[str]]:
        """How many shards are there from the first on, and the units that hold them, in order."""
        joined = max((int(u.split()[1]) for u in self._done("until")), default=0)
        single = {int(unit.split()[1]) for unit in self._done("shard")}
        until = joined
        while until in single:
            until += 1
        first = [f"until {joined}"] if joined else []
        return until, first + [f"shard {number}" for number in range(joined, until)]

    def ahead(self, until: int) -> list[int]:
        """Shards that were done though an earlier one was not."""
        numbers = (int(unit.split()[1]) for unit in self._done("shard"))
        return sorted(number for number in numbers if number > until)

    def write(self, number: int, state: Mapping[str, Any]) -> None:
        """Keep a shard; it is on the disk when this returns."""
        self._write(f"shard {number}", state)

    def join(self, until: int, state: Mapping[str, Any]) -> None:
        """Put one file in the place of all shards so far."""
        self._write(f"until {until}", state)
        for unit in [*self._done("shard"), *self._done("until")]:
            kind, number = unit.split()
            if int(number) < until:
                self.file(f"{kind} {number}").remove()

    def _done(self, kind: str) -> list[str]:
        done = {} if self._journal is None else self._journal.done
        return [unit for unit in done if unit.startswith(kind)]

    def file(self, unit: str) -> InnerPath:
        """Where a unit lies, or the journal."""
        ending = "jsonl" if unit == "journal" else "safetensors"
        return self.folder / f"{unit.replace(' ', '-')}.{ending}"

    def _write(self, unit: str, state: Mapping[str, Any]) -> None:
        data = state_bytes(state, self._kinds)
        self._journal = self._journal or self._begun()
        self.file(unit).write(data, tidy=False)  # the folder goes when all is done
        self._journal.append(unit, {"sha256": hashlib.sha256(data).hexdigest()})

    def load(self, unit: str) -> dict[str, Any]:
        """What a unit came to."""
        file = self.file(unit)
        assert self._journal is not None  # who named the unit
        try:
            data = file.read()
        except OSError as error:
            raise RunError(
                f"{file} cannot be read: {reason(error)}; restore it, or delete "
                f"{self.folder}/ to begin afresh."
            ) from error
        if hashlib.sha256(data).hexdigest() != self._journal.done[unit]["sha256"]:
            raise RunError(
                f"{file} is not what was written there; restore it, or delete {self.folder}/ to "
                "begin afresh."
            )
        return state_from(data, self._kinds)


# --- What a shard came to, as bytes: tensors, and JSON with a closed list of types --------------
# A list of nodes, each after all that it holds: `["tuple", [1, [0]]]` is a number and the node 0.
# Classes are named, their fields set, and nothing of theirs is called.

_STATE = "state"
_CONTAINERS: dict[str, type] = {one.__name__: one for one in (list, tuple, set, frozenset)}
#: What reading a file raises where it is not what was written.
_DAMAGE = (LookupError, TypeError, ValueError, AttributeError, RuntimeError, SafetensorError)

Kinds = Mapping[str, type]


def classes_kept(tallies: Sequence[Tally]) -> Kinds:
    """The classes that a shard of these tallies may hold: theirs (`kept`) and those of all."""
    kept = [one for tally in tallies for one in getattr(tally, "kept", ())]
    shared = (Sums, BatchCache, Site, SiteGroup)
    return {f"{one.__module__}.{one.__qualname__}": one for one in (*shared, *kept)}


def state_bytes(state: Mapping[str, Any], kinds: Kinds) -> bytes:
    """What shards came to, to be sent or kept; equal objects that are one stay one.

    >>> found = state_from(state_bytes({"n": {3: (1.5, None)}, "x": torch.ones(2)}, {}), {})
    >>> found["n"], found["x"]
    ({3: (1.5, None)}, tensor([1., 1.]))
    """
    nodes: list[list[Any]] = []
    tensors: dict[str, Tensor] = {}
    places: dict[int, int] = {}

    def node(value: Any) -> list[Any]:
        name = f"{type(value).__module__}.{type(value).__qualname__}"
        if isinstance(value, Tensor) or (
            isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
        ):
            made = value if isinstance(value, Tensor) else torch.from_numpy(np.array(value))
            tensors[str(len(nodes))] = made.detach().cpu().contiguous().clone()
            return ["tensor" if made is value else "array", None]
        if type(value) in (dict, defaultdict, Counter):
            of = "Counter" if type(value) is Counter else "dict"
            return [of, [[put(key), put(one)] for key, one in value.items()]]
        if type(value) in _CONTAINERS.values():
            return [type(value).__name__, [put(one) for one in value]]
        if kinds.get(name) is not type(value):
            raise UsageError(
                f"A tally holds a {name}, which is not kept with what a survey is done with; name "
                "the class in the tally's `kept`, or hold numbers, text, arrays and lists."
            )
        own = getattr(value, "_asdict", lambda: vars(value))()
        return [name, {key: put(one) for key, one in own.items()}]

    def put(value: Any) -> Any:
        value = value.item() if isinstance(value, np.generic) else value
        if value is None or type(value) in (bool, int, float, str):
            return value
        if id(value) not in places:
            found = node(value)
            places[id(value)] = len(nodes)
            nodes.append(found)
        return [places[id(value)]]

    put(dict(state))
    text = torch.frombuffer(bytearray(json_encode(nodes).encode()), dtype=torch.uint8)
    return safetensors.torch.save({**tensors, _STATE: text})


def state_from(data: bytes, kinds: Kinds) -> dict[str, Any]:
    """What `state_bytes` wrote; raises one of `_DAMAGE` for anything else."""
    tensors = safetensors.torch.load(data)
    built: list[Any] = []

    def get(value: Any) -> Any:
        if isinstance(value, list):
            (place,) = value
            return built[place]
        if isinstance(value, dict):
            raise TypeError("a value is a dictionary")
        return value

    for number, (name, own) in enumerate(json_decode(tensors.pop(_STATE).numpy().tobytes())):
        if name in ("tensor", "array"):
            found = tensors[str(number)]
            built.append(found if name == "tensor" else found.numpy())
        elif name in ("dict", "Counter"):
            entries = {get(key): get(one) for key, one in own}
            built.append(Counter(entries) if name == "Counter" else entries)
        elif name in _CONTAINERS:
            built.append(_CONTAINERS[name](get(one) for one in own))
        else:
            built.append(_made(kinds[name], {key: get(one) for key, one in own.items()}))
    whole = built[-1]
    if not isinstance(whole, dict):
        raise TypeError("it is no dictionary")
    return whole


def _made(kind: type, own: Mapping[str, Any]) -> Any:
    """An object of these fields; its class has all of them, and its methods stay its own."""
    if issubclass(kind, tuple):
        return kind._make(own[name] for name in kind._fields)  # type: ignore[attr-defined]
    if is_dataclass(kind) and own.keys() != {one.name for one in fields(kind)}:
        raise TypeError(f"{kind.__name__} has other fields")
    made = object.__new__(kind)
    for key, one in own.items():
        if callable(getattr(kind, key, None)):
            raise TypeError(f"'{key}' is a method of {kind.__name__}")
        object.__setattr__(made, key, one)
    return made
