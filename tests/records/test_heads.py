"""Sets of heads by name: heads, layers, stacks and ranges."""

from __future__ import annotations

import pytest

from headcount.errors import UnknownHead, UsageError
from headcount.records.heads import Head, heads_named

KNOWN = [Head(stack, layer, i) for stack in ("enc", "cross") for layer in range(3) for i in (0, 1)]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("", ""),
        ("enc.0.1", "enc.0.1"),
        ("enc.2", "enc.2.0 enc.2.1"),
        ("enc.1-2.0", "enc.1.0 enc.2.0"),
        ("enc.0-1", "enc.0.0 enc.0.1 enc.1.0 enc.1.1"),
        ("cross.1.0-1, enc.0.0", "cross.1.0 cross.1.1 enc.0.0"),
        ("enc.0.1,enc.0", "enc.0.1 enc.0.0"),
        ("cross", "cross.0.0 cross.0.1 cross.1.0 cross.1.1 cross.2.0 cross.2.1"),
    ],
)
def test_what_a_set_means(names: str, expected: str) -> None:
    assert " ".join(map(str, heads_named(names, KNOWN))) == expected


@pytest.mark.parametrize("names", ["enc.9.9", "enc.9", "enc.1-3", "enc.0.1-2", "dec"])
def test_what_does_not_exist_is_refused(names: str) -> None:
    with pytest.raises(UnknownHead, match=r"this model has enc.0.0 to enc.2.1, cross.0.0 to"):
        heads_named(names, KNOWN)


@pytest.mark.parametrize("names", ["first", "enc.a", "enc.0.1.2", "enc.2-1.", "0.1"])
def test_what_is_no_name_is_refused(names: str) -> None:
    with pytest.raises(UsageError, match=r"is not a head's name; write stack\.layer\.head"):
        heads_named(names, KNOWN)


def test_a_range_that_runs_backwards_is_refused() -> None:
    with pytest.raises(UsageError, match="The range 2-1 ends before it begins; write 1-2"):
        heads_named("enc.2-1", KNOWN)
