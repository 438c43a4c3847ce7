"""Keywords of an earlier release go on, with a warning that names the new way."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import pytest

from headcount.errors import UsageError
from headcount.records import Renamed, WorkOptions, announce, old_keywords, working


@dataclass(frozen=True)
class Paint(WorkOptions):
    """A value whose fields were keywords."""

    colour: str = "red"


def _doubled(given: dict[str, Any], value: Any) -> str:
    given["coats"] = 2 * value
    return "coats=..."


@old_keywords({"layers": Renamed(0, _doubled)}, paint=Paint)
def fence(wood: str, coats: int = 1, *, paint: Paint = Paint(), limit: int | None = None) -> Any:
    """Something that is called."""
    with working("Painting", coats) as advance:
        for _ in range(coats):
            advance()
    announce("Dry.")
    return wood, coats, paint.limited(limit)


def old(*args: Any, **given: Any) -> tuple[Any, list[str]]:
    """What an old call gives, and what it warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = fence(*args, **given)
    assert all(one.category is FutureWarning for one in caught)
    return found, [str(one.message) for one in caught]


def test_a_field_of_a_value_is_taken_as_a_keyword() -> None:
    found, said = old("oak", colour="blue", batch_size=2)
    assert found == ("oak", 1, Paint(colour="blue", batch_size=2))
    assert said == [
        f"fence({name}=...) is paint=hc.Paint({name}=...) now; the old keyword will be "
        "removed in the next release."
        for name in ("colour", "batch_size")
    ]


def test_it_joins_a_value_that_is_given() -> None:
    found, _ = old("oak", paint=Paint(seed=3), colour="blue")
    assert found[2] == Paint(seed=3, colour="blue")


def test_what_the_function_still_takes_is_no_old_keyword() -> None:
    assert old("oak", limit=3) == (("oak", 1, Paint(limit=3)), [])


def test_what_became_something_else_is_put_there() -> None:
    found, said = old("oak", layers=2)
    assert found[1] == 4
    assert said == [
        "fence(layers=...) is coats=... now; the old keyword will be removed in the next release."
    ]


def test_progress_and_announce_are_still_called() -> None:
    seen: list[Any] = []
    found, (said,) = old("oak", 2, progress=lambda *step: seen.append(step), announce=seen.append)
    assert (found[1], seen) == (2, [(1, 2), (2, 2), "Dry."])
    assert "is `with hc.progress(...):` now" in said


def test_a_word_that_nobody_knows_is_refused_as_ever() -> None:
    with pytest.raises(TypeError, match="colours"):
        fence("oak", colours=2)  # type: ignore[call-arg]
    with pytest.raises(UsageError, match=r"paint is 'blue'; give hc.Paint\(...\), e.g. paint=hc.P"):
        old("oak", paint="blue", colour="red")
