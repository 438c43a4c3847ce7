"""Needles in haystacks: what the examples hold, and heads whose truth is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from made import chances, pointing, rows_of, scores, show, site_of
from subjects import subject_of
from tiny_tokenizers import ENGLISH

from headcount.bundle import sample
from headcount.errors import InputError, UsageError
from headcount.models.subject import Subject
from headcount.rooms.trials.needle import (
    Haystack,
    Needle,
    NeedleHits,
    haystacks,
    needles,
)
from headcount.wiring import hooked

GPT2 = subject_of("gpt2", "gpt2")
LLAMA = subject_of("llama", "llama", max_position_embeddings=1024)
TEXTS = sample.sentences()
SMALL = Needle(TEXTS, lengths=(360,), depths=(0.2, 0.8), each=2)
SITE = site_of("dec", 2, causal=True)


@pytest.mark.parametrize("subject", [GPT2, LLAMA], ids=repr)
def test_a_haystack_holds_its_needle_and_asks_for_it_again(subject: Subject) -> None:
    made = haystacks(subject, TEXTS, (360, 400), (0.0, 0.5, 1.0), 2, seed=0)
    assert [len(example.ids) for example in made] == [360] * 6 + [400] * 6
    for example in made:
        size = len(example.answer)
        assert example.ids[example.needle : example.needle + size] == example.answer
        assert example.ids[-size:] == example.answer
        assert example.ids[example.rows.start + 1] == example.answer[0]
    places = [example.needle for example in made[:6]]
    assert max(places[:2]) < min(places[2:4]) < max(places[2:4]) < min(places[4:])


def test_the_seed_decides() -> None:
    one, same, other = (haystacks(GPT2, TEXTS, (360,), (0.5,), 2, seed) for seed in (0, 0, 1))
    assert one == same != other


def test_needles_differ() -> None:
    assert len({*needles(20, np.random.default_rng(0))}) == 20


def test_a_head_that_points_at_the_token_to_be_said() -> None:
    # hay 1 2, needle 7 8 7, hay 3, question 9, answer 7 8 7
    example = Haystack((1, 2, 7, 8, 7, 3, 9, 7, 8, 7), needle=2, answer=(7, 8, 7), depth=0.5)
    assert example.rows == slice(6, 9)
    good = [0] * 6 + [
        2,
        3,
        4,
        0,
    ]  # row 8 has to say 7, and takes it from either place of the needle
    outside = [0] * 6 + [1, 5, 7, 0]  # the 7 at place 7 is not in the needle
    question = NeedleHits([example])
    show(question, SITE, pointing([good, outside], 10), rows_of([example.ids], ["dec"]))
    assert scores(question.finding.counts, SITE) == [1.0, 0.0]
    assert chances(question.finding.counts, SITE)[0] == pytest.approx((2 / 7 + 1 / 8 + 2 / 9) / 3)


def test_a_random_decoder_stays_near_chance_and_knows_no_answer() -> None:
    found = SMALL(GPT2)
    (accuracy,) = found.measures
    assert accuracy.name == "right tokens of the answer"
    assert accuracy.value < 0.1
    counts = found.columns[0].counts
    assert max(max(scores(counts, site)) for site in counts) < 0.1


def test_a_model_that_is_asked_for_what_it_would_say_gets_it_right() -> None:
    made = haystacks(GPT2, TEXTS, (360,), (0.2, 0.8), 2, seed=0)
    asked = []
    for example in made:
        new = len(example.answer)
        prompt = torch.tensor([example.ids[:-new]])
        how = {"do_sample": False, "max_new_tokens": new, "min_new_tokens": new}
        said = GPT2.inner.generate(prompt, attention_mask=torch.ones_like(prompt), **how)
        answer = tuple(said[0, -new:].tolist())
        asked.append(replace(example, ids=(*example.ids[:-new], *answer), answer=answer))
    assert [measure.value for measure in SMALL.asked(GPT2, asked).measures] == [1.0]


def test_the_model_runs_once_and_says_the_same_as_in_a_run_of_its_own() -> None:
    made = haystacks(GPT2, TEXTS, (120, 360), (0.2, 0.8), 2, seed=0)
    runs: list[int] = []
    with hooked([GPT2.model], lambda *_: runs.append(1)):
        found = SMALL.asked(GPT2, made)
    assert len(runs) == 2
    right = total = 0
    for example in made:
        ids = torch.tensor([example.ids])
        with torch.no_grad():
            likely = GPT2.model(input_ids=ids).logits[0].argmax(-1).tolist()
        right += sum(
            likely[row] == example.ids[row + 1] for row in range(len(ids[0]))[example.rows]
        )
        total += len(example.answer)
    assert found.measures[0].value == pytest.approx(right / total)
    assert found.measures[0].n == total


def test_who_is_not_asked_and_why() -> None:
    bert = subject_of("bert", "wordpiece")
    assert Needle(TEXTS).unfit(bert) == "only decoders that read text by themselves are asked"
    short = subject_of("llama", "llama")
    assert Needle(TEXTS).unfit(short) == (
        "the model takes 64 tokens and the longest haystack has 192"
    )
    mute = subject_of("gpt2", "gpt2", model_class="GPT2Model")
    assert Needle(TEXTS).unfit(mute) == "the model has no layer that predicts tokens"
    assert Needle(TEXTS).unfit(GPT2) is None


def test_mistakes_are_told() -> None:
    with pytest.raises(UsageError, match=r"A haystack of 20 tokens has no room for its needle; us"):
        Needle(TEXTS, lengths=(20,))(GPT2)
    with pytest.raises(UsageError, match=r"The depth of a needle is 1.5; it lies between 0 and 1"):
        Needle(TEXTS, depths=(1.5,))(GPT2)
    with pytest.raises(InputError, match=r"tokens and the trial cuts .* in one piece; give more"):
        Needle(ENGLISH[:1], lengths=(500,))(GPT2)
