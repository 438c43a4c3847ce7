"""Room for the maps of a whole treebank: in memory, or where that is too small in a file."""

from __future__ import annotations

import tempfile
from math import prod
from pathlib import Path

import torch
from torch import Tensor

__all__ = ["Room"]

#: So many bytes are held in memory; more go to a file that the system pages in and out.
IN_MEMORY = 4 * 2**30


class Room:
    """Numbers of a known total, handed out in blocks of any shape.

    >>> room = Room(10, torch.float16)
    >>> room.block(2, 3).shape, room.block(4).shape
    (torch.Size([2, 3]), torch.Size([4]))
    """

    def __init__(self, size: int, dtype: torch.dtype, in_memory: int = IN_MEMORY) -> None:
        self._taken = 0
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        if size * dtype.itemsize <= in_memory:
            self._flat = torch.empty(size, dtype=dtype)
            return
        self._folder = tempfile.TemporaryDirectory(prefix="headcount-maps-")
        file = str(Path(self._folder.name, "maps"))
        self._flat = torch.from_file(file, shared=True, size=size, dtype=dtype)

    @property
    def on_disk(self) -> bool:
        """Whether it is a file."""
        return self._folder is not None

    def block(self, *shape: int) -> Tensor:
        """The next block."""
        begin, self._taken = self._taken, self._taken + prod(shape)
        return self._flat[begin : self._taken].view(shape)
