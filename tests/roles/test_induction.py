"""Induction heads: those that copy are told from those that only look."""

from __future__ import annotations

from trial_tables import trial_table

from headcount.survey.roles.recall import Induction

LOOKING = {"dec.0.0": (0.8, 0.02, 0.001), "dec.0.1": (0.6, 0.02, 0.001)}


def test_heads_that_look_and_copy() -> None:
    effects = {"dec.0.0": (0.5, 0.0, 0.001), "dec.0.1": (-0.2, 0.0, 1.0)}
    first, second = Induction().judge(
        trial_table({"induction": LOOKING, "induction_effect": effects})
    )
    assert (first.label, second.label) == ("matches and copies", "matches prefixes")
    assert str(first) == (
        "dec.0.0 induction: what followed this token before 0.80 [0.75, 0.85], "
        "uniform attention 0.02, adds +0.50 nats to the right token"
    )
    assert "adds -0.20 nats" in second.evidence


def test_a_model_that_says_nothing_has_heads_that_look() -> None:
    found = Induction().judge(trial_table({"induction": LOOKING}))
    assert {verdict.label for verdict in found} == {"matches prefixes"}
    assert "nats" not in found[0].evidence
