"""BLEU of translations, counted by sacreBLEU sentence by sentence, so that resampling is cheap."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from sacrebleu.metrics import BLEU

from headcount.errors import UsageError
from headcount.stats.results import Floats
from headcount.stats.statistic import bleu
from headcount.tasks.metric import Metric

__all__ = ["COLUMNS", "bleu_counts", "bleu_metric", "sentence_bleu"]

COLUMNS = (
    "length",
    "reference length",
    *(f"{order}-gram matches" for order in range(1, 5)),
    *(f"{order}-grams" for order in range(1, 5)),
)


def bleu_metric(tokenize: str | None = None) -> Metric:
    """Corpus BLEU as sacreBLEU has it (Post 2018), with its signature.

    >>> bleu_metric().signature
    'nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:...'
    """
    judge = _judge(tokenize, effective_order=False)
    judge.corpus_score(["a"], [["a"]])  # the number of references is part of the signature
    return Metric(
        "bleu", COLUMNS, bleu, each=sentence_bleu, signature=judge.get_signature().format()
    )


def bleu_counts(hypothesis: str, reference: str, tokenize: str | None = None) -> list[float]:
    """What BLEU counts in one translation, in the order that `headcount.stats.bleu` takes.

    >>> bleu_counts("a b c", "a b d")
    [3, 3, 2, 1, 0, 0, 3, 2, 1, 0]
    """
    score = _judge(tokenize, effective_order=True).sentence_score(hypothesis, [reference])
    return [score.sys_len, score.ref_len, *score.counts, *score.totals]


def sentence_bleu(counts: Floats) -> Floats:
    """BLEU of each sentence alone, over the orders it is long enough for: ``[..., 10]``.

    What sacreBLEU's sentence_bleu gives: zero matches smoothed (Chen & Cherry 2014, method 3).

    >>> sentence_bleu(np.array(bleu_counts("a b c", "a b d"), dtype=float)).round(2)
    np.float64(55.03)
    """
    length, reference = counts[..., 0], counts[..., 1]
    matches, totals = counts[..., 2:6], counts[..., 6:10]
    there = totals > 0
    misses = np.cumsum((matches == 0) & there, axis=-1)
    smoothed = np.where(matches == 0, 0.5**misses, matches)
    with np.errstate(invalid="ignore", divide="ignore"):
        logs = np.where(there, np.log(smoothed / totals), 0.0).sum(axis=-1)
        score = 100 * np.exp(logs / there.sum(axis=-1) + np.minimum(0.0, 1 - reference / length))
    return np.where(np.any(matches > 0, axis=-1), score, 0.0)[()]


@lru_cache
def _judge(tokenize: str | None, effective_order: bool) -> BLEU:
    known = [name for name in BLEU.TOKENIZERS if name != "none"]
    if tokenize is not None and tokenize not in BLEU.TOKENIZERS:
        raise UsageError(
            f"sacreBLEU has no tokenizer '{tokenize}'; choose one of {', '.join(known)}, or leave "
            "tokenize out for 13a."
        )
    return BLEU(tokenize=tokenize, effective_order=effective_order)
