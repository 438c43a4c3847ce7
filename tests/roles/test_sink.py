"""Sinks: the first place or a token, with and without a beginning."""

from __future__ import annotations

from trial_tables import sinks_of, trial_table

from headcount.survey.roles.resting import Sink

TABLE = trial_table(
    {"sink": {"dec.0.0": (0.9, 0.04, 0.001), "dec.0.1": (0.5, 0.04, 0.001)}},
    sinks=sinks_of(
        {
            "dec.0.0": {"as written": (0.9, 0.99, "the", 0.1), "with BOS": (0.8, 1.0, "<s>", 1.0)},
            "dec.0.1": {"as written": (0.5, 0.3, "the", 0.6), "with BOS": (0.1, 0.0, "the", 0.7)},
        }
    ),
)


def test_which_token_is_the_sink() -> None:
    first, second = Sink().judge(TABLE)
    assert (first.label, second.label) == ("first token", "'the'")
    assert str(first) == (
        "dec.0.0 sink: first token 0.90 [0.85, 0.95], uniform attention 0.04, in 75% of texts, "
        "with BOS 0.80"
    )
    assert second.evidence.endswith("with BOS 0.10")


def test_thresholds_are_fields() -> None:
    assert len(Sink(least=0.6).judge(TABLE)) == 1
    assert Sink().chance(TABLE, Sink().judge(TABLE)[0]) == 0.9
