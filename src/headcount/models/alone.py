"""One thread at a time: what hangs on a model reads and scales every forward, whoever calls it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from headcount.errors import UsageError
from headcount.models.probe import core_of

__all__ = ["alone"]

#: The threads that have something open on a model, one entry for each block, by the model's id.
_HOLDERS: dict[int, list[int]] = {}
_guard = threading.Lock()


@contextmanager
def alone(model: nn.Module) -> Iterator[None]:
    """Keep other threads from opening a tap or valve on this model, for this block.

    Their forwards would be counted in here, and their exit would take the seam away.
    """
    core, me = core_of(model), threading.get_ident()
    with _guard:
        holders = _HOLDERS.setdefault(id(core), [])
        if any(holder != me for holder in holders):
            raise UsageError(
                f"{type(core).__name__} is being read or scaled in another thread; wait until that "
                "has ended, or give each thread a copy of the model."
            )
        holders.append(me)
    try:
        yield
    finally:
        with _guard:
            holders.remove(me)
            if not holders:
                _HOLDERS.pop(id(core), None)
