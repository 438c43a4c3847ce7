"""The attention sink: on maps whose truth is known, and through a decoder."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from made import chances, rows_of, scores, show, site_of, uniform
from subjects import subject_of
from tiny_tokenizers import ENGLISH

from headcount.errors import InputError
from headcount.survey.trials.alignment import Resting, SinkTrial, sink_frame

SITE = site_of("dec", 3, causal=True)
GPT2 = subject_of("gpt2", "gpt2")  # adds no token in front
LLAMA = subject_of("llama", "llama")  # adds a begin-of-sequence token


def seen(rows: list[list[int]]) -> Resting:
    """Head 0 rests on the first token, head 1 on the token 7, head 2 looks evenly."""
    size = len(rows[0])
    question = Resting(after=2)
    for number, row in enumerate(rows):
        maps = torch.zeros(1, 3, size, size)
        maps[0, 0, :, 0] = 1
        maps[0, 1, :, row.index(7)] = 1
        maps[0, 2] = uniform(size, causal=True)
        batch = rows_of([row], ["dec"])
        batch.index[:] = [number]
        show(question, SITE, maps, batch)
    return question


def test_the_first_token_another_token_and_no_sink() -> None:
    question = seen([[5, 6, 7, 8, 9], [3, 7, 4, 8, 9]])
    marks = question.finding.marks
    assert scores(marks, SITE) == pytest.approx([1, 0, chances(marks, SITE)[2]])
    frame = sink_frame(GPT2, question, "as written")
    assert frame["first_top"].tolist()[:2] == [1, 0]
    assert frame["token_top"].tolist()[:2] == [0.5, 1]  # first tokens differ, 7 is always 7
    assert frame["token"][1] == GPT2.tokenizer.convert_ids_to_tokens(7)
    assert frame["resting_texts"].tolist()[:2] == [1, 0]


def test_early_rows_are_not_asked() -> None:
    question = seen([[5, 6, 7, 8, 9]])
    assert question.finding.marks.of(SITE).cells.tolist() == [[3, 3, 3]]
    assert chances(question.finding.marks, SITE)[0] == pytest.approx((1 / 3 + 1 / 4 + 1 / 5) / 3)


def test_texts_are_run_with_and_without_a_beginning() -> None:
    for subject, other in ((GPT2, "with BOS"), (LLAMA, "without BOS")):
        sinks = SinkTrial(ENGLISH, length=16, examples=4)(subject).details["sinks"]
        assert list(sinks["text"].unique()) == ["as written", other]
        assert len(sinks) == 2 * len(subject.heads)


def test_a_random_decoder_rests_nowhere_in_particular() -> None:
    found = SinkTrial(ENGLISH, length=16, examples=8)(subject_of("gpt2", "gpt2", seed=3))
    marks = found.columns[0].marks
    for site in marks:
        gap = np.array(scores(marks, site)) - np.array(chances(marks, site))
        assert abs(gap).max() < 0.3


def test_a_text_that_is_too_short_is_told() -> None:
    with pytest.raises(InputError, match="has 2 tokens and the trial reads windows of 64; give mo"):
        SinkTrial(["a b"])(GPT2)


def test_only_decoders_that_read_text_are_asked() -> None:
    bert = subject_of("bert", "wordpiece")
    assert SinkTrial(ENGLISH).unfit(bert) == "only decoders that read text by themselves are asked"
