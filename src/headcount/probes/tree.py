"""The best tree: one head for each word, one word under ROOT, no circle (Chu-Liu/Edmonds).

Chu & Liu 1965 and Edmonds 1967; that one word hangs from ROOT is enforced by trying each, as
McDonald et al. 2005 do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["best_tree"]

Scores = NDArray[np.float64]


def best_tree(scores: Scores) -> list[int]:
    """The heads, one a word, of the highest sum; ``scores[word, candidate]``, candidate 0 is ROOT.

    >>> best_tree(np.array([[1.0, 0.0, 9.0], [0.5, 9.0, 0.0]]))
    [0, 1]
    """
    words = len(scores)
    square = np.full((words + 1, words + 1), -np.inf)
    square[1:] = scores
    np.fill_diagonal(square, -np.inf)
    free = _heads(square)
    if int((free[1:] == 0).sum()) == 1:
        return free[1:].tolist()
    tried = [_heads(_only_root(square, word)) for word in range(1, words + 1)]
    sums = [square[np.arange(1, words + 1), heads[1:]].sum() for heads in tried]
    return tried[int(np.argmax(sums))][1:].tolist()


def _only_root(square: Scores, word: int) -> Scores:
    """Scores under which ROOT has this word alone."""
    found = square.copy()
    found[:, 0] = -np.inf
    found[word, 0] = square[word, 0]
    found[word, 1:] = -np.inf
    return found


def _heads(square: Scores) -> NDArray[np.int64]:
    """The best heads of nodes 1 and up; node 0 is the root, ``square[node, head]``."""
    heads = square.argmax(1)
    heads[0] = 0
    circle = _circle(heads)
    return heads if circle is None else _broken(square, heads, circle)


def _circle(heads: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """The nodes of a circle, if there is one."""
    seen = np.zeros(len(heads), dtype=int)
    for start in range(1, len(heads)):
        node = start
        while node and not seen[node]:
            seen[node] = start
            node = int(heads[node])
        if node and seen[node] == start:
            found = [node]
            while int(heads[found[-1]]) != node:
                found.append(int(heads[found[-1]]))
            return np.array(found)
    return None


def _broken(
    square: Scores, heads: NDArray[np.int64], circle: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Treat the circle as one node, find the best tree, and open the circle where it is entered."""
    rest = np.setdiff1d(np.arange(len(heads)), circle)  # 0 stays first
    gain = square[circle] - square[circle, heads[circle]][:, None]
    small = np.full((len(rest) + 1, len(rest) + 1), -np.inf)
    small[:-1, :-1] = square[np.ix_(rest, rest)]
    entered, left = gain[:, rest].argmax(0), square[np.ix_(rest, circle)].argmax(1)
    small[-1, :-1] = gain[:, rest].max(0)
    small[:-1, -1] = square[np.ix_(rest, circle)].max(1)
    small[0] = -np.inf
    inner = _heads(small)
    found = heads.copy()
    for place, node in enumerate(rest[1:], start=1):
        to = inner[place]
        found[node] = circle[left[place]] if to == len(rest) else rest[to]
    door = inner[len(rest)]
    found[circle[entered[door]]] = rest[door]
    return found
