"""Which layer of its stack a module is: the number in its name, where that says so."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["layer_numbers"]


def layer_numbers(modules: Sequence[str]) -> list[int]:
    """A layer number for each attention module of a stack, given in the order they run.

    The number in the names that differs from module to module, so that a model in which only
    some layers attend keeps its own numbers; the order where names do not tell.

    >>> layer_numbers(["layers.1.attn", "layers.3.attn"])
    [1, 3]
    >>> layer_numbers(["block.0.layer.1.attn", "block.1.layer.1.attn"])
    [0, 1]
    >>> layer_numbers(["shared.0.attn", "shared.0.attn"])
    [0, 1]
    """
    rows = [[int(part) for part in re.findall(r"\d+", name)] for name in modules]
    if len({len(row) for row in rows}) == 1:
        columns = [list(column) for column in zip(*rows, strict=True)]
        differing = [column for column in columns if len(set(column)) > 1]
        if len(differing) == 1 and len(set(differing[0])) == len(modules):
            return differing[0]
    return list(range(len(modules)))
