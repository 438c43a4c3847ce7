"""Alignment heads: when they look, and how far above the diagonal."""

from __future__ import annotations

from trial_tables import trial_table

from headcount.records.heads import Head
from headcount.survey.roles.linguistic import Alignment

TABLE = trial_table(
    {
        "alignment": {"cross.0.0": (0.2, 0.4, 1.0), "cross.3.1": (0.6, 0.4, 0.001)},
        "alignment_read": {
            "cross.0.0": (0.85, 0.4, 0.001),
            "cross.3.1": (0.45, 0.4, 0.01),  # below half
            "cross.0.2": (0.55, 0.48, 0.001),  # hardly above the diagonal
        },
    }
)


def test_heads_and_when_they_look() -> None:
    first, second = Alignment().judge(TABLE)
    assert (first.head, first.label) == (Head("cross", 0, 0), "when read")
    assert (second.head, second.label) == (Head("cross", 3, 1), "when predicted")
    assert first.evidence == (
        "the source of a token when read 0.85 [0.80, 0.90], the diagonal 0.40"
    )


def test_thresholds_are_fields() -> None:
    assert len(Alignment(margin=0.0).judge(TABLE)) == 3
    assert len(Alignment(least=0.8).judge(TABLE)) == 1


def test_the_twin_is_asked_the_same_question() -> None:
    twin = trial_table(
        {"alignment": {"cross.0.0": (0.1, 0, 1)}, "alignment_read": {"cross.0.0": (0.2, 0, 1)}}
    )
    read, predicted = Alignment().judge(TABLE)
    assert (Alignment().chance(twin, read), Alignment().chance(twin, predicted)) == (0.2, 0.1)
