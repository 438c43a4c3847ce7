from __future__ import annotations

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

from headcount.errors import StatsError
from headcount.stats import bleu, ratio

PAIRS = [
    ("the cat sat on the mat", "the cat sat on a mat"),
    ("a dog", "the dog barked"),
    ("there is no such thing here at all", "there is no such thing there at all"),
    ("the small cat sat down", "the small cat sat down on the mat"),  # too short
    ("", "it"),
    ("yes yes", "no"),
    ("one two three four five", "five six one seven"),  # words match, longer runs do not
    ("alpha beta gamma delta", "nothing of this kind"),  # nothing matches
]
OUTPUTS, REFERENCES = ([pair[side] for pair in PAIRS] for side in (0, 1))


def sufficient(outputs: list[str], references: list[str]) -> np.ndarray:
    """sacreBLEU's own sufficient statistics: lengths, 4 matches, 4 totals per sentence."""
    scorer = BLEU()
    return np.array(scorer._extract_corpus_statistics(outputs, [references]), dtype=float)


def test_bleu_is_that_of_sacrebleu() -> None:
    rows = sufficient(OUTPUTS, REFERENCES)
    assert bleu(rows.sum(axis=0)) == pytest.approx(
        BLEU().corpus_score(OUTPUTS, [REFERENCES]).score, abs=1e-9
    )


def test_bleu_of_every_sentence_smoothed_short_and_empty() -> None:
    rows = sufficient(OUTPUTS, REFERENCES)
    expected = [
        BLEU(effective_order=False).corpus_score([output], [[reference]]).score
        for output, reference in zip(OUTPUTS, REFERENCES, strict=True)
    ]
    assert bleu(rows) == pytest.approx(expected, abs=1e-9)
    assert 0 < expected[0] < 100
    assert 0 < expected[6] < 20
    assert expected[4] == expected[7] == 0


def test_bleu_keeps_leading_axes() -> None:
    rows = sufficient(OUTPUTS, REFERENCES)
    assert bleu(np.stack([rows, rows])).shape == (2, 8)


def test_wrong_numbers_of_statistics_are_named() -> None:
    with pytest.raises(
        StatsError, match="ratio is made of 2 statistics, hits and counts, not of 3"
    ):
        ratio(np.ones((4, 3)))
    with pytest.raises(StatsError, match="BLEU is made of 10 statistics, not of 9"):
        bleu(np.ones((4, 9)))


def test_rounding_is_no_negative_count() -> None:
    tiny = np.array([[1.0, 3.0], [0.0, -1e-17]])
    assert ratio(tiny) == pytest.approx([1 / 3, np.nan], nan_ok=True)
    with pytest.raises(StatsError, match="A count is -1"):
        ratio(np.array([[1.0, 3.0], [0.0, -1.0]]))
