"""A few sentences of a story: which word needs which head, in the run and on its page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_runs import THREE, made_run

from headcount.records.heads import Head
from headcount.records.run import Run
from headcount.reports.page import page_data
from headcount.reports.parts.numbers import read_source
from headcount.rooms.lesions import Lesions
from headcount.rooms.lesions.word_by_head import lesion_frame


def test_sentences_lie_in_the_run_and_on_its_page(tmp_path: Path) -> None:
    heads = (Head("enc", 0, 1), Head("cross", 2, 3))
    added = np.array([[0.0, 1.2], [0.3, -0.1]])
    one = Lesions("Hi all.", "Hallo alle.", heads, ("Hallo", "alle"), np.array([0.5, 2.0]), added)
    place = made_run(tmp_path / "run", THREE)
    Run.open(place).write_frame("lesions", lesion_frame([one, one]))
    parts: list[dict[str, Any]] = page_data(read_source(place))["lesions"]
    assert len(parts) == 2
    assert parts[0]["words"] == ["Hallo", "alle"]
    assert parts[0]["heads"] == [1, 35]
    assert parts[0]["added"] == [pytest.approx(row) for row in added.tolist()]
    assert page_data(read_source(place, exhibits=False))["lesions"] == []
