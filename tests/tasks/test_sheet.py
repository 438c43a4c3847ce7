from __future__ import annotations

import numpy as np

from headcount.tasks.task import Marks, Sheet


def test_batches_fill_it_in_any_order() -> None:
    sheet = Sheet(3)
    sheet.add([2, 0], Marks(np.array([[1.0], [2.0]]), ["c", "a"]))
    assert (sheet.done, sheet.missing) == (2, [1])
    sheet.add([1], Marks(np.array([[5.0]]), ["b"]))
    assert sheet.statistics.tolist() == [[2.0], [5.0], [1.0]]
    assert sheet.outputs == ["a", "b", "c"]
    assert sheet.missing == []


def test_windows_of_one_example_add_up() -> None:
    sheet = Sheet(1)
    sheet.add([0, 0], Marks(np.array([[1.0, 3.0], [2.0, 4.0]]), []))
    sheet.add([0], Marks(np.array([[4.0, 1.0]]), []))
    assert sheet.statistics.tolist() == [[7.0, 8.0]]
    assert sheet.outputs == []
