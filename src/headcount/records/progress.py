"""Progress: how a long piece of work says how far it is."""

from __future__ import annotations

from collections.abc import Callable

#: Called with how much is done and how much there is in all.
Progress = Callable[[int, int], None]
