"""Previous-token heads: random text decides, natural text is told beside it."""

from __future__ import annotations

from trial_tables import trial_table

from headcount.records.heads import Head
from headcount.records.table import HeadTable
from headcount.survey.roles.resting import Previous

FOUND = trial_table({"previous_random": {"dec.0.0": (0.9, 0.05, 0.001)}})


def test_natural_text_beside_it() -> None:
    survey = HeadTable.of([Head("dec", 0, 0)], {"previous": [0.42]})
    (verdict,) = Previous().judge(FOUND.join(survey))
    assert verdict.evidence == (
        "the token before 0.90 [0.85, 0.95], uniform attention 0.05, on natural text 0.42"
    )
    (alone,) = Previous().judge(FOUND)
    assert "natural" not in alone.evidence
