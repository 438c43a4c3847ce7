"""The engine on Ray: workers are actors, on this machine or on a cluster that people already run.

An actor holds the model and answers pieces. One that dies, with its node or alone, is replaced, and
what it was doing is given to another. Nothing is kept in the cluster: the caller journals answers,
so a driver that is killed begins with what was not answered yet, with any number of workers.
"""

from __future__ import annotations

import logging
import math
import os
import platform
import re
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any

import torch

from headcount.errors import HeadcountError, ModelError, RunError, UsageError, install_hint
from headcount.models import Subject, capture_hooks_off, load
from headcount.records import (
    DEATHS,
    TRIES,
    Answer,
    Losses,
    MakeWorker,
    PartRange,
    Piece,
    PieceWork,
    WorkerDied,
    told,
    version,
)

#: Seconds without any worker, not even one that loads its model, before the cluster is given up.
_PATIENCE = 120.0
#: Starts in a row that may fail: because they raise, or because the worker dies, which others may
#: be to blame for.
_STARTS, _DEAD_STARTS = 6, 20
#: Pieces that may be done ahead of the oldest one that is not, for each worker.
_AHEAD = 8


@dataclass
class RayEngine:
    """Pieces are done by actors of Ray.

    `address` is a running cluster ("auto", "10.0.0.5:6379", "ray://..."); without one, Ray is used
    as this process has it, or started on this machine. Each of `workers` holds the model, on
    `gpus_per_worker` GPUs: a half shares one, two or more spread the model over them. Numbers do
    not depend on any of it.

    >>> RayEngine(workers=2).remote
    True
    """

    address: str | None = None
    workers: int | None = None
    gpus_per_worker: float = 0
    remote: bool = field(default=True, init=False)
    #: Actors that are free: a process that has loaded its libraries is worth keeping.
    _free: list[Any] = field(default_factory=list, init=False, repr=False)

    def pack(self, thing: Any) -> Callable[[], Any]:
        """A copy: what happens to the thing from now on does not travel."""
        if isinstance(thing, Subject):
            return carried(thing, self._copied, self.gpus_per_worker)
        return self._copied(thing)

    def _copied(self, thing: Any) -> Callable[[], Any]:
        return partial(_unpacked, _ray().cloudpickle.dumps(thing))

    def run(self, make: MakeWorker, pieces: Iterable[Piece]) -> Iterator[Answer]:
        """Answers as they come; actors are free when the last one is taken, or the walk ends."""
        pieces = iter(pieces)
        first = next(pieces, None)
        if first is None:
            return
        ray = self._connected()
        crew = _Crew(ray, make, self._number(ray), self.gpus_per_worker, self._free)
        try:
            yield from crew.work(chain([first], pieces))
        finally:
            crew.dismiss()

    def _connected(self) -> Any:
        ray = _ray()
        if ray.is_initialized() and self.address is None:
            return ray
        how: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
        if self.address is None:
            how |= {"num_cpus": self.workers or os.cpu_count(), "include_dashboard": False}
        try:
            _knock(self.address)
            ray.init(address=self.address, ignore_reinit_error=True, **how)
        except OSError as error:  # ConnectionError is one
            raise UsageError(
                f"There is no Ray cluster at {self.address}: {_line(error)}; start one with "
                "`ray start --head`, or leave --address out to use this machine."
            ) from error
        except (RuntimeError, ValueError) as error:
            if "ersion" in str(error):
                lines = [line.strip() for line in str(error).splitlines()]
                kept = [line for line in lines if "ython" in line or "Ray:" in line]
                raise UsageError(
                    f"The Ray cluster at {self.address} has other versions than this process "
                    f"({' and '.join(kept) or _line(error)}); use the same Python, Ray and "
                    "headcount everywhere."
                ) from error
            raise UsageError(
                f"Ray could not be reached at {self.address or 'this machine'}: {_line(error)}."
            ) from error
        return ray

    def _number(self, ray: Any) -> int:
        """How many workers there shall be; more than the cluster has room for is refused."""
        has = ray.cluster_resources()
        cores, gpus = int(has.get("CPU", 0)), has.get("GPU", 0.0)
        each = self.gpus_per_worker
        if each < 0:
            raise UsageError(f"A worker cannot have {each:g} GPUs; give 0 or more.")
        most = int(gpus / each) if each else cores
        number = self.workers or max(most, 1)
        if each and number * each > gpus:
            raise UsageError(
                f"{number} workers with {each:g} GPUs each need {number * each:g}, and the cluster "
                f"has {gpus:g}; ask for fewer (--engine ray,workers=N,gpus-per-worker=M)."
            )
        if number > cores:
            raise UsageError(
                f"{number} workers need as many cores, and the cluster has {cores}; ask for fewer "
                "(--engine ray,workers=)."
            )
        return number


def _knock(address: str | None) -> None:
    """Fail at once where nobody listens: Ray itself tries for minutes."""
    place = re.fullmatch(r"(?:ray://)?([^/:]+):(\d+)", address or "")
    if place is not None:
        socket.create_connection((place[1], int(place[2])), timeout=10).close()


def _unpacked(packed: bytes) -> Any:
    return _ray().cloudpickle.loads(packed)


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise UsageError(
            "The engine ray needs the package ray, which is not installed: "
            f"{install_hint('ray')}; or use --engine local."
        ) from error
    return ray


def _line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines or [type(error).__name__])[0].rstrip(".")


# --- The actors ---------------------------------------------------------------------------------


def _actor_class() -> type:
    """The class of the actors: made here, so that it travels whole to nodes without headcount."""

    class Actor:
        def about(self) -> dict[str, str | None]:
            """Which versions this node has."""
            import platform
            import socket

            try:
                from headcount.records import version

                own: str | None = version()
            except ImportError:
                own = None
            return {"node": socket.gethostname(), "python": platform.python_version(), "own": own}

        def start(self, packed: bytes) -> None:
            """Make the worker: load the model."""
            from ray import cloudpickle

            self.stop()
            self.opened = cloudpickle.loads(packed)()
            self.worker = self.opened.__enter__()

        def stop(self) -> None:
            """Let the worker go, and its model."""
            opened, self.opened, self.worker = getattr(self, "opened", None), None, None
            if opened is not None:
                opened.__exit__(None, None, None)

        def do(self, parts: Any) -> Any:
            """Work on some parts."""
            return self.worker(parts)

    return Actor


@dataclass
class _Slot:
    """A place for a worker: the actor that holds it now, and what it is doing."""

    actor: Any = None
    ready: bool = False
    #: Whether it is there and makes its worker: a large model takes minutes.
    loading: bool = False
    work: PieceWork | None = None
    cut: PartRange | None = None


class _Crew:
    """The actors of one call, and the pieces that are under way."""

    def __init__(
        self, ray: Any, make: MakeWorker, number: int, gpus: float, free: list[Any]
    ) -> None:
        self._ray, self._free = ray, free
        options = {"num_cpus": 1, "num_gpus": gpus, "scheduling_strategy": "SPREAD"}
        self._actors = ray.remote(**options)(_actor_class())
        #: One copy a node, whoever of its workers reads it.
        try:
            self._packed = ray.put(ray.cloudpickle.dumps(make))
        except ray.exceptions.OutOfDiskError as error:
            raise _full(error) from error
        self._slots = [_Slot() for _ in range(number)]
        self._under_way: dict[Any, _Slot] = {}
        #: By number, in the order in which they were begun, with how many were begun before.
        self._open: dict[int, int] = {}
        self._begun_so_far = 0
        self._again: deque[PieceWork] = deque()
        self._losses = Losses()
        self._failed_starts = 0
        self._last_sign = time.monotonic()

    def work(self, pieces: Iterator[Piece]) -> Iterator[Answer]:
        """All answers."""
        more = True
        for slot in self._slots:
            self._hire(slot)
        while more or self._open:
            more = self._give_out(pieces, more)
            if not self._open and not more:
                return
            ended, _ = self._ray.wait(list(self._under_way), num_returns=1, timeout=1.0)
            for ref in ended:
                slot = self._under_way.pop(ref)
                self._last_sign = time.monotonic()
                if slot.ready:
                    yield from self._take(slot, ref)
                else:
                    self._begun(slot, ref)
            alone = not any(slot.ready or slot.loading for slot in self._slots)
            if alone and time.monotonic() - self._last_sign > _PATIENCE:
                raise RunError(
                    f"The cluster gave no worker for {_PATIENCE:.0f} seconds; what is done is "
                    "safe: run the same again, with fewer workers (--engine ray,workers=) if it is "
                    "smaller now."
                )

    def dismiss(self) -> None:
        """Free the actors that have nothing to do, and end all others."""
        if not self._ray.is_initialized():
            self._free.clear()
            return
        for slot in self._slots:
            if slot.ready and slot.work is None:
                slot.actor.stop.remote()
                self._free.append(slot.actor)
            elif slot.actor is not None:
                self._ray.kill(slot.actor)

    # -- workers --

    def _hire(self, slot: _Slot) -> None:
        """A free or a new actor for a place; it is ready when it has the model."""
        slot.actor = self._free.pop() if self._free else self._actors.remote()
        slot.ready = slot.loading = False
        self._under_way[slot.actor.about.remote()] = slot

    def _begun(self, slot: _Slot, ref: Any) -> None:
        """A step of an actor's start has ended: its versions are known, or its model is there."""
        errors = self._ray.exceptions
        try:
            about = self._ray.get(ref)
        except errors.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, HeadcountError):
                raise cause from error
            if _is_full(cause):
                raise _full(cause) from error
            self._start_failed(slot, cause, _STARTS)
        except (errors.RayActorError, errors.RaySystemError, errors.ObjectLostError) as error:
            self._start_failed(slot, error, _DEAD_STARTS)
        else:
            if about is None:
                slot.ready, slot.loading, self._failed_starts = True, False, 0
                return
            # Refuse a node whose Python or headcount would give other numbers, or none.
            own = {"python": platform.python_version(), "own": version()}
            names = {"python": "Python", "own": "headcount"}
            for key, name in names.items():
                if about[key] != own[key]:
                    has = about[key] or "none"
                    raise UsageError(
                        f"The node {about['node']} has {name} {has}, and this process has "
                        f"{own[key]}; use the same Python, Ray and headcount everywhere."
                    )
            slot.loading = True
            self._under_way[slot.actor.start.remote(self._packed)] = slot

    def _start_failed(self, slot: _Slot, error: BaseException, most: int) -> None:
        self._failed_starts += 1
        if self._failed_starts >= most:
            raise RunError(
                f"No worker could be started, {most} times in a row; the last one said "
                f"{told(error)}. What is done is safe; run the same again when that is mended."
            ) from error
        self._hire(slot)

    # -- pieces --

    def _give_out(self, pieces: Iterator[Piece], more: bool) -> bool:
        """Something to do for every worker that has nothing; whether pieces may be left."""
        for slot in self._slots:
            if not slot.ready or slot.work is not None:
                continue
            work = self._again.popleft() if self._again else None
            # Others may be far behind: answers wait for those before them.
            oldest = next(iter(self._open.values()), self._begun_so_far)
            ahead = self._begun_so_far - oldest >= _AHEAD * len(self._slots)
            if work is None and more and not ahead:
                piece = next(pieces, None)
                more = piece is not None
                if piece is not None:
                    work = PieceWork(piece)
                    self._open[piece.number] = self._begun_so_far
                    self._begun_so_far += 1
            cut = None if work is None else work.next()
            if work is None or cut is None:
                continue
            slot.work, slot.cut = work, cut
            parts = work.piece.parts[cut.start : cut.stop]
            self._under_way[slot.actor.do.remote(parts)] = slot
        return more

    def _take(self, slot: _Slot, ref: Any) -> Iterator[Answer]:
        """What came back from a worker, or that it is gone."""
        errors = self._ray.exceptions
        work, cut, again = slot.work, slot.cut, 0
        assert work is not None and cut is not None  # noqa: PT018
        slot.work = slot.cut = None
        try:
            work.done(cut, self._ray.get(ref), self._losses)
        except errors.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, HeadcountError):
                raise cause from error
            if _is_full(cause) and cut.tried + 1 >= TRIES:
                raise _full(cause) from error
            again = work.failed(cut, cause, self._losses)
            if "CUDA" in str(cause):  # its context is beyond repair
                self._ray.kill(slot.actor)
                self._hire(slot)
        except errors.RayError as error:  # the worker died, or its node
            died = WorkerDied(f"its worker died ({_line(error)})")
            whole = cut.stop - cut.start == len(work.piece.parts)
            again = work.failed(cut, died, self._losses, tries=DEATHS if whole else TRIES)
            self._hire(slot)
        self._again.extend([work] * again)
        if work.ended:
            del self._open[work.piece.number]
            yield work.answer()


def _is_full(error: BaseException | None) -> bool:
    return isinstance(error, OSError) and error.errno == 28


def _full(error: BaseException) -> RunError:
    return RunError(
        f"A node of the cluster has no room left on its disk ({_line(error)}); what is done is "
        "safe: free some room there and run the same again."
    )


#: Bytes of weights above which a worker reads the model itself from where it came.
_SENT = 4 << 30


def carried(
    subject: Subject, pack: Callable[[Any], Callable[[], Any]], gpus: float = 0
) -> Callable[[], Subject]:
    """What gives a worker of an engine its model: this one, or a copy where it works.

    A copy is sent with the work, or read again from the model's source where it is large; then it
    must have the same weights. It lies on the worker's GPUs; over several, accelerate spreads it.
    """
    size = sum(weight.numel() * weight.element_size() for weight in subject.model.parameters())
    how: dict[str, Any] = {"gpus": gpus, "name": subject.name}
    if size > _SENT and subject.source != "in hand":
        where = {"dtype": str(subject.dtype).removeprefix("torch."), "revision": subject.revision}
        return partial(_read_again, subject.source, subject.weights_hash, where, **how)

    with capture_hooks_off(subject.model):
        sent = subject
        if subject.device.type != "cpu":
            sent = replace(subject, model=deepcopy(subject.model).to("cpu"))
        return partial(_sent, pack(sent), **how)


def _sent(packed: Callable[[], Subject], *, gpus: float, name: str) -> Subject:
    return _placed(packed(), gpus=gpus, name=name)


def _read_again(
    source: str, weights: str, where: dict[str, Any], *, gpus: float, name: str
) -> Subject:
    subject = load(source, device="cpu", **where)
    if subject.weights_hash != weights:
        raise ModelError(
            f"{name} has other weights where a worker reads it ({source}); put the same files on "
            "every node."
        )
    return _placed(subject, gpus=gpus, name=name)


def _placed(subject: Subject, *, gpus: float, name: str) -> Subject:
    """The subject on the GPUs of its worker, as the cluster gave them out."""
    subject.name = name
    count = min(math.ceil(gpus), torch.cuda.device_count())
    if gpus and not count:
        raise ModelError(
            f"A worker for {name} was given {gpus:g} GPUs and torch sees none there; install torch "
            "with CUDA on that node, or leave gpus-per-worker out."
        )
    if count == 1:
        subject.model.to("cuda")
    elif count > 1:
        spread_over(subject)
    return subject


def spread_over(subject: Subject, room: dict[int | str, int | str] | None = None) -> None:
    """Put a model's layers on several devices by accelerate's device map, in place.

    `room` is its `max_memory`, a device to its bytes; by default all GPUs that are seen, with what
    is free there. A model that does not fit is refused rather than left half on the disk.
    """
    from accelerate import dispatch_model, infer_auto_device_map
    from accelerate.utils import get_balanced_memory

    whole = getattr(subject.inner, "_no_split_modules", None)
    most = get_balanced_memory(subject.model, max_memory=room, no_split_module_classes=whole)
    devices = infer_auto_device_map(subject.model, max_memory=most, no_split_module_classes=whole)
    if {"disk", *({"cpu"} - set(room or ()))} & set(devices.values()):
        raise ModelError(
            f"{subject.name} does not fit into the devices of a worker; give it more of them "
            "(--engine ray,gpus-per-worker=), or use --load dtype=bfloat16."
        )
    dispatch_model(subject.model, devices)
