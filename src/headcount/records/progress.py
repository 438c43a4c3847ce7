"""Progress: how a long piece of work says how far it is."""

from __future__ import annotations

from collections.abc import Callable

#: Called as ``progress(done, total)``; where one callable watches several kinds of work, with the
#: name of the work as a third argument: ``progress(done, total, what)``.
Progress = Callable[..., None]
