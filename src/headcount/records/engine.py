"""Engines: where the pieces of long work are done, and what becomes of a piece that fails.

A worker is made once, where it works, and holds the model; it is then given pieces: a shard of a
corpus, a batch of examples, interventions. Answers come in any order, so whoever asks puts them
back into theirs. A piece that fails is tried again, then halved until the part is found that no
worker can do; that part is named and set aside, and all others count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from headcount import plugins
from headcount.errors import HeadcountError, ModelError, RunError, UsageError
from headcount.records.options import option

#: Does some parts of a piece and gives what they came to; entered where it works, left at the end.
Worker = Callable[[Sequence[Any]], Any]
MakeWorker = Callable[[], AbstractContextManager[Worker]]


class Piece(NamedTuple):
    """Work that is done in one go: its number, and the parts that it can be cut into."""

    number: int
    parts: Sequence[Any]


class Lost(NamedTuple):
    """A part that was set aside: its place in its piece, and why."""

    place: int
    why: str


class Answer(NamedTuple):
    """What a piece came to: one result, or several in their order where it had to be cut."""

    number: int
    #: The place of the first part of each result, how many parts it is of, and the result.
    results: list[tuple[int, int, Any]]
    lost: list[Lost]


class Engine(Protocol):
    """Does pieces of work, here or elsewhere."""

    #: Whether workers live in other processes: they need a copy of the model.
    remote: bool

    def pack(self, thing: Any) -> Callable[[], Any]:
        """What gives a worker a thing, as it is now: itself, or a copy where the worker is."""

    def run(self, make: MakeWorker, pieces: Iterable[Piece]) -> Iterator[Answer]:
        """The answer of every piece, in the order in which they end; pieces are taken as needed."""


@dataclass(frozen=True)
class EngineOptions:
    """Where the work is done.

    >>> EngineOptions().made().remote
    False
    """

    engine: str = option(
        "local",
        "NAME",
        "Where the work is done: local (this process), or ray (a cluster, or all cores here).",
        panel="Running",
    )
    address: str | None = option(
        None,
        "HOST:PORT",
        "ray: the cluster; without one, Ray is started on this machine.",
        key_of="engine",
    )
    workers: int | None = option(
        None,
        "N",
        "ray: how many workers hold the model; by default one a core or GPU.",
        least=1,
        key_of="engine",
    )
    gpus_per_worker: float | None = option(
        None,
        "F",
        "ray: GPUs of each worker: 0.5 shares one, 2 spreads the model over two.",
        key_of="engine",
    )

    def made(self) -> Engine:
        """The engine; what belongs to Ray alone is refused elsewhere."""
        if self.engine != "local":
            known = plugins.names_of("engines")
            if self.engine not in known:
                raise UsageError(
                    f"There is no engine '{self.engine}'; choose {' or '.join(['local', *known])}."
                )
            made: Engine = plugins.get("engines", self.engine)(
                self.address, self.workers, self.gpus_per_worker or 0
            )
            return made
        for name in ("address", "workers", "gpus_per_worker"):
            if getattr(self, name) is not None:
                key = name.replace("_", "-")
                raise UsageError(
                    f"{key} is {getattr(self, name)}, which belongs to Ray; write --engine "
                    f"ray,{key}={getattr(self, name)}, or leave it out."
                )
        return LocalEngine()


def engine_of(given: Engine | EngineOptions | str | None) -> Engine:
    """An engine as it comes: made, as options, by name, or None for this process."""
    if given is None or isinstance(given, str):
        given = EngineOptions(given or "local")
    return given.made() if isinstance(given, EngineOptions) else given


class LocalEngine:
    """This process: one piece after another."""

    remote = False

    def pack(self, thing: Any) -> Callable[[], Any]:
        """The thing itself."""
        return lambda: thing

    def run(self, make: MakeWorker, pieces: Iterable[Piece]) -> Iterator[Answer]:
        """Each answer when its piece has ended; the worker is there until the last one is taken."""
        losses = Losses()
        with make() as worker:
            for piece in pieces:
                work = PieceWork(piece)
                while (cut := work.next()) is not None:
                    try:
                        result = worker(piece.parts[cut.start : cut.stop])
                    except HeadcountError:
                        raise
                    except Exception as error:
                        work.failed(cut, error, losses)
                    else:
                        work.done(cut, result, losses)
                yield work.answer()


# --- What becomes of a piece that fails ---------------------------------------------------------

#: How often a piece is tried before it is cut: where it raises, and where its worker dies, which
#: others may be to blame for.
TRIES, DEATHS = 2, 5
#: More parts lost than that are no single accident.
MOST_LOST = 100
#: So many parts may fail, and none succeed, before an error is taken for the program's own.
_IN_A_ROW = 8


class WorkerDied(RunError):
    """A worker ended without an answer: what it did may be to blame, or somebody else."""


@dataclass(frozen=True)
class PartRange:
    """Some parts of a piece, and how often they were tried."""

    start: int
    stop: int
    tried: int = 0


@dataclass
class Losses:
    """All that one call of an engine has done and lost."""

    done: int = 0
    lost: int = 0

    def add(self, error: BaseException) -> None:
        """One part more is lost; an error that everything meets is not an example's."""
        self.lost += 1
        if not self.done and self.lost >= _IN_A_ROW:
            if isinstance(error, WorkerDied):
                raise ModelError(
                    f"The first {self.lost} pieces of work all ended their workers, the last one "
                    f"so: {error}; it may be too little memory for the model or its batches."
                ) from error
            raise error
        if self.lost > MOST_LOST:
            raise ModelError(
                f"More than {MOST_LOST} examples were set aside, the last one for "
                f"{told(error)}; that is no single bad example: look into it, and run again."
            ) from error


@dataclass(eq=False)
class PieceWork:
    """A piece on its way: which parts are to be done, done, or lost."""

    piece: Piece
    _cuts: list[PartRange] = field(default_factory=list)
    _open: int = 0
    _results: dict[int, tuple[int, int, Any]] = field(default_factory=dict)
    _lost: dict[int, Lost] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._cuts = [PartRange(0, len(self.piece.parts))]

    def next(self) -> PartRange | None:
        """What to do next; None where nothing is left to give out."""
        if not self._cuts:
            return None
        self._open += 1
        return self._cuts.pop(0)

    @property
    def ended(self) -> bool:
        """Whether every part is done or lost."""
        return not self._cuts and not self._open

    def done(self, cut: PartRange, result: Any, losses: Losses) -> None:
        """Some parts came to a result."""
        self._open -= 1
        losses.done += 1
        self._results[cut.start] = (cut.start, cut.stop - cut.start, result)

    def failed(
        self, cut: PartRange, error: BaseException, losses: Losses, tries: int = TRIES
    ) -> int:
        """Some parts failed: again, then in halves, then without the one that cannot be done.

        Gives how many cuts that makes to be done.
        """
        self._open -= 1
        before = len(self._cuts)
        if cut.tried + 1 < tries:
            self._cuts.insert(0, PartRange(cut.start, cut.stop, cut.tried + 1))
        elif cut.stop - cut.start > 1:
            middle = (cut.start + cut.stop) // 2
            self._cuts[:0] = [PartRange(cut.start, middle), PartRange(middle, cut.stop)]
        else:
            self._lost[cut.start] = Lost(cut.start, told(error))
            losses.add(error)
        died = isinstance(error, WorkerDied)
        if self.ended and not self._results and not losses.done and not died:
            raise error  # nothing ever worked: the fault lies with the work, not with a part
        return len(self._cuts) - before

    def answer(self) -> Answer:
        """All of it."""
        results = [self._results[start] for start in sorted(self._results)]
        return Answer(self.piece.number, results, [self._lost[one] for one in sorted(self._lost)])


def told(error: BaseException) -> str:
    """An error in a few words: its kind and the first line of what it says."""
    line = (str(error).strip().splitlines() or [""])[0]
    if isinstance(error, WorkerDied):
        return line
    return f"{type(error).__name__}: {line[:200]}" if line else type(error).__name__
