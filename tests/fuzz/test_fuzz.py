"""A damaged file is read, or refused in one sentence that names it; soon, and in little memory.

A short search with the same examples every time; ``make fuzz`` looks for as long as it may.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from fuzz.damage import TEXT, damaged
from fuzz.targets import Target, targets
from fuzz.trial import complaint, try_out
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

#: All readers together stay within half a minute: what a trial costs, and what there is to spend.
_COSTS = {1: 20, 2: 6, 8: 3, 20: 3}


@pytest.mark.parametrize("target", targets(), ids=lambda target: target.name)
def test_damaged_files_are_read_or_refused(target: Target, tmp_path: Path) -> None:
    target.make(tmp_path)
    sound = target.unpack((tmp_path / target.file).read_bytes())
    whole = try_out(target, tmp_path, sound)
    assert whole.ended == "read", whole.why

    @settings(
        max_examples=_COSTS[target.cost], suppress_health_check=list(HealthCheck), database=None
    )
    @given(rng=st.randoms(use_true_random=False))
    def search(rng: Random) -> None:
        trial = try_out(target, tmp_path, damaged(sound, rng, text=target.text))
        assert trial.ended != "crash", trial.why

    search()


@pytest.mark.parametrize("kind", TEXT, ids=lambda kind: kind.__name__)
def test_damage_is_done_to_anything(kind: object) -> None:
    for data in (b"", b"\n", b"x", b'{"a": [1, {"b": null}]}', b"a\tb\n1\t2\n"):
        assert isinstance(kind(data, Random(1)), bytes)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("message", "wrong"),
    [
        ("a.txt is empty.", ""),
        ("It is empty.", "does not name a.txt"),
        ("a.txt:\nTraceback", "more than one line"),
        ("a.txt has \x1b[31m.", "a control character"),
        ("a.txt is <class 'int'>.", "words from inside"),
        ("a.txt " + "x" * 2_000, "2006 characters"),
    ],
)
def test_a_sentence_is_judged(message: str, wrong: str) -> None:
    assert complaint(message, "a.txt") == wrong
