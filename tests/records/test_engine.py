"""Tests of `records/engine.py`: pieces that fail are tried again, cut, and at last set aside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.errors import InputError, ModelError, UsageError
from headcount.records.engine import MOST_LOST, EngineOptions, LocalEngine, Piece, engine_of


def making(work: Callable[[Sequence[Any]], Any]) -> Any:
    @contextmanager
    def make() -> Iterator[Any]:
        yield work

    return make


def breaking_on(*poison: int) -> Callable[[Sequence[int]], list[int]]:
    def work(parts: Sequence[int]) -> list[int]:
        if set(parts) & set(poison):
            raise ValueError(f"poison in {len(parts)} parts")
        return list(parts)

    return work


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=5),
    st.sets(st.integers(0, 40), max_size=4),
)
def test_all_but_the_poisoned_parts_are_done_once_and_in_order(
    sizes: list[int], poison: set[int]
) -> None:
    numbers = iter(range(100))
    pieces = [Piece(n, [next(numbers) for _ in range(size)]) for n, size in enumerate(sizes)]
    sound = {part for piece in pieces for part in piece.parts} - poison
    if not sound & set(pieces[0].parts):
        return  # then it is the work's own fault
    for piece, answer in zip(
        pieces, LocalEngine().run(making(breaking_on(*poison)), pieces), strict=True
    ):
        done = [part for _, _, result in answer.results for part in result]
        assert done == [part for part in piece.parts if part not in poison]
        assert [piece.parts[one.place] for one in answer.lost] == [
            part for part in piece.parts if part in poison
        ]
        for start, count, result in answer.results:
            assert result == list(piece.parts[start : start + count])
        assert all(one.why == "ValueError: poison in 1 parts" for one in answer.lost)


def test_what_fails_once_is_done() -> None:
    tried: Counter[int] = Counter()

    def work(parts: Sequence[int]) -> str:
        tried[parts[0]] += 1
        if tried[parts[0]] == 1:
            raise OSError("away for a moment")
        return "done"

    answers = list(LocalEngine().run(making(work), [Piece(0, [1, 2]), Piece(1, [3])]))
    assert [answer.results for answer in answers] == [[(0, 2, "done")], [(0, 1, "done")]]


def test_a_sentence_of_ours_and_ctrl_c_are_not_tried_again() -> None:
    for error in (InputError("no such thing"), KeyboardInterrupt()):
        tried = []

        def work(parts: Sequence[int], error: BaseException = error, tried: Any = tried) -> None:
            tried.append(parts)
            raise error

        with pytest.raises(type(error)):
            list(LocalEngine().run(making(work), [Piece(0, [1, 2])]))
        assert len(tried) == 1


def test_too_many_are_no_accident() -> None:
    pieces = [Piece(0, range(3 * MOST_LOST))]
    with pytest.raises(ModelError, match="More than 100 examples were set aside, the last one for"):
        list(LocalEngine().run(making(breaking_on(*range(1, 3 * MOST_LOST))), pieces))


def test_engines_by_name() -> None:
    assert not engine_of(None).remote
    assert not engine_of("local").remote
    assert engine_of("ray").remote
    assert engine_of(EngineOptions("ray", workers=3, gpus_per_worker=0.5)).gpus_per_worker == 0.5
    with pytest.raises(UsageError, match="There is no engine 'spark'; choose local or ray"):
        engine_of("spark")
    with pytest.raises(UsageError, match="workers is 2, which belongs to Ray; write --engine ray"):
        EngineOptions(workers=2).made()
