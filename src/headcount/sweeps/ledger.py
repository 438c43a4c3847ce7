"""What a sweep has done, unit by unit: in a journal where there is one, else in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from headcount.errors import RunError
from headcount.exact_json import decode, encode
from headcount.journal import Journal

__all__ = ["Ledger"]


class Ledger:
    """Counts by unit, `[intervention, row, column]`; a unit that is there is not run again.

    >>> ledger = Ledger(None, "sweep")
    >>> ledger.get("batch 0 whole", lambda: np.zeros((1, 2, 2))).shape
    (1, 2, 2)
    >>> "batch 0 whole" in ledger
    True
    """

    def __init__(self, journal: Journal | None, name: str) -> None:
        self._journal = journal
        self._name = name
        self._here: dict[str, npt.NDArray[np.float64]] = {}

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Write down what the units belong to, or refuse to mix them with others."""
        if self._journal is None:
            return
        unit = self._full("settings")
        if unit not in self._journal.done:
            self._journal.append(unit, dict(settings))
        before, after = self._journal.done[unit], decode(encode(dict(settings)))
        for key in [*before, *(key for key in after if key not in before)]:
            was, now = before.get(key, "nothing"), after.get(key, "nothing")
            if was != now:
                raise RunError(
                    f"{self._journal.path} has units of '{self._name}' with {key} = {was}, and now "
                    f"{key} = {now}; run it as before to go on, choose another folder, or delete "
                    "that file to begin afresh."
                )

    def __contains__(self, unit: str) -> bool:
        if self._journal is None:
            return unit in self._here
        return self._full(unit) in self._journal.done

    def get(
        self, unit: str, compute: Callable[[], npt.NDArray[np.float64]]
    ) -> npt.NDArray[np.float64]:
        """What a unit counted; computed, and on the disk, before this returns."""
        if self._journal is None:
            if unit not in self._here:
                self._here[unit] = compute()
            return self._here[unit]
        if unit not in self:
            self._journal.append(self._full(unit), compute().tolist())
        return np.array(self._journal.done[self._full(unit)], dtype=np.float64)

    def _full(self, unit: str) -> str:
        return f"{self._name} {unit}"
