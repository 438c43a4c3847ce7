"""Every column again, in loops, from its definition."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from sightings import SEPARATOR, batch_of, draw_texts, table_of, tally_up
from tiny import INTERFACE

from headcount.models.subject import Subject
from headcount.records.heads import Head
from headcount.wiring import tap

TEXTS = draw_texts(9, seed=4)
SUBJECTS = {
    "enc": Subject(INTERFACE["bert"]()),
    "dec": Subject(INTERFACE["llama"]()),
    "enc-dec": Subject(INTERFACE["bart"]()),
}

Map = np.ndarray  # [query, key] of one head and one sentence, padding never there
Case = tuple[Map, tuple[int, ...], tuple[int, ...]]  # map, query ids, key ids


def cases(kind: str, head: Head) -> list[Case]:
    """The maps of one head, one sentence at a time."""
    subject, found = SUBJECTS[kind], []
    with tap(subject) as watch:
        for text in TEXTS:
            for sighting in watch(batch_of([text], kind)):
                if (sighting.site.stack, sighting.site.layer) == head[:2]:
                    asks = text.source if kind != "enc-dec" or head.stack == "enc" else text.target
                    answers = (
                        text.target if head.stack == "dec" and kind == "enc-dec" else text.source
                    )
                    weights = sighting.maps[0, head.index].double().numpy()
                    found.append((weights, asks, answers))
    return found


def macro(values: list[float | None]) -> float:
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else math.nan


def slow_confidence(found: list[Case], convention: str) -> float:
    dropped = (
        {SEPARATOR} if convention == "paper" else {SEPARATOR, 1}
    )  # texts that end begin with 1
    largest = [
        max(weights[i, j] for j in range(len(keys)) if keys[j] not in dropped)
        for weights, queries, keys in found
        for i in range(len(queries))
        if queries[i] not in dropped
    ]
    return sum(largest) / len(largest)


def row_entropy(row: np.ndarray, smooth: float) -> float:
    mixed = [(1 - smooth) * a + smooth / len(row) for a in row]
    return -sum(a * math.log(a) for a in mixed if a > 0)


def slow_entropy(found: list[Case], convention: str) -> float:
    smooth = 0.0 if convention == "headcount" else 0.0001
    return macro([macro([row_entropy(row, smooth) for row in weights]) for weights, _, _ in found])


def slow_entropy_first(found: list[Case], convention: str) -> float:
    smooth = 0.0 if convention == "headcount" else 0.0001
    return macro([row_entropy(weights[0], smooth) for weights, _, _ in found])


def slow_neighbour(offset: int) -> Callable[[list[Case], str], float]:
    def measure(found: list[Case], convention: str) -> float:
        values: list[float | None] = []
        for weights, queries, _ in found:
            n = len(queries)
            total = sum(weights[i, i + offset] for i in range(n) if 0 <= i + offset < n)
            cells = n - abs(offset) if convention == "headcount" else n
            values.append(total / cells if cells else None)
        return macro(values)

    return measure


def slow_first(found: list[Case], convention: str) -> float:
    return macro([weights[:, 0].sum() / len(queries) for weights, queries, _ in found])


def slow_separator(which: str) -> Callable[[list[Case], str], float]:
    def measure(found: list[Case], convention: str) -> float:
        values: list[float | None] = []
        for weights, queries, keys in found:
            columns = [j for j, key in enumerate(keys) if key == SEPARATOR]
            ends = [i for i, query in enumerate(queries) if query == SEPARATOR]
            rest = [i for i, query in enumerate(queries) if query != SEPARATOR]
            rows = {"all": ends + rest, "ends": ends, "rest": rest}[which]
            cells = len(rows)
            if convention != "headcount" and which != "all":
                cells = (
                    2 if which == "ends" and ends else 0 if which == "ends" else len(queries) - 2
                )
            if not columns or cells <= 0:
                values.append(None)
                continue
            values.append(sum(weights[i, j] for i in rows for j in columns) / cells)
        return macro(values)

    return measure


def slow_punctuation(found: list[Case], convention: str) -> float:
    marks = {5, 6} if convention == "headcount" else {5}
    if not any(key in marks for _, _, keys in found for key in keys):
        return math.nan
    return macro(
        [
            sum(weights[:, j].sum() for j, key in enumerate(keys) if key in marks) / len(queries)
            for weights, queries, keys in found
        ]
    )


def slow_offsets(found: list[Case]) -> tuple[int, float]:
    seen: Counter[int] = Counter()
    for weights, queries, keys in found:
        allowed = [j for j, key in enumerate(keys) if key != SEPARATOR]
        for i, query in enumerate(queries):
            if query != SEPARATOR:
                seen[max(allowed, key=lambda j: weights[i, j]) - i] += 1
    most = max(seen.values())
    best = min((o for o, n in seen.items() if n == most), key=lambda o: (abs(o), o))
    return best, most / sum(seen.values())


SLOW: dict[str, Callable[[list[Case], str], float]] = {
    "confidence": slow_confidence,
    "entropy": slow_entropy,
    "entropy_first": slow_entropy_first,
    "self": slow_neighbour(0),
    "previous": slow_neighbour(-1),
    "next": slow_neighbour(1),
    "first": slow_first,
    "separator": slow_separator("all"),
    "separator_to_separator": slow_separator("ends"),
    "rest_to_separator": slow_separator("rest"),
    "punctuation": slow_punctuation,
}
CODELESS = {"confidence", "best_offset", "best_offset_share"}
NOT_ON_CROSS = {"self", "previous", "next", "best_offset", "best_offset_share"}


@pytest.mark.parametrize("convention", ["headcount", "paper", "code"])
@pytest.mark.parametrize("kind", ["enc", "dec", "enc-dec"])
def test_columns_equal_their_definitions(kind: str, convention: str) -> None:
    subject = SUBJECTS[kind]
    frame = table_of(
        subject, tally_up(subject, [batch_of(TEXTS, kind)], convention), convention
    ).frame
    for head in subject.heads[:: max(1, len(subject.heads) // 8)]:
        found = cases(kind, head)
        for name, slow in SLOW.items():
            value = frame.loc[tuple(head), name]
            missing = (name in CODELESS and convention == "code") or (
                (head.stack == "cross" and name in NOT_ON_CROSS)
                or (head.stack == "dec" and name == "next")
            )
            expected = math.nan if missing else slow(found, convention)
            assert value == pytest.approx(expected, abs=2e-6, nan_ok=True), (name, head)


@pytest.mark.parametrize("kind", ["enc", "dec"])
def test_best_offset_equals_its_definition(kind: str) -> None:
    subject = SUBJECTS[kind]
    frame = table_of(
        subject, tally_up(subject, [batch_of(TEXTS, kind)], "headcount"), "headcount"
    ).frame
    for head in subject.heads:
        offset, share = slow_offsets(cases(kind, head))
        assert frame.loc[tuple(head), "best_offset"] == offset
        assert frame.loc[tuple(head), "best_offset_share"] == pytest.approx(share)


@pytest.mark.parametrize("convention", ["headcount", "code"])
def test_uniform_entropy_counts_the_visible_keys(convention: str) -> None:
    for kind in ("enc", "dec", "enc-dec"):
        subject = SUBJECTS[kind]
        frame = table_of(
            subject, tally_up(subject, [batch_of(TEXTS, kind)], convention), convention
        ).frame
        for head in subject.heads[::5]:
            causal = head.stack == "dec" and convention == "headcount"
            expected = macro(
                [
                    macro([math.log(i + 1 if causal else len(keys)) for i in range(len(queries))])
                    for _, queries, keys in cases(kind, head)
                ]
            )
            assert frame.loc[tuple(head), "entropy_uniform"] == pytest.approx(expected, abs=1e-9)
