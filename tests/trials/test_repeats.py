"""Random tokens said twice: what the rows hold."""

from __future__ import annotations

import pytest
import torch
from subjects import subject_of
from tiny import FIRST_WORD, TINY, VOCAB

from headcount.models.subject import Subject
from headcount.survey.trials.repeats import Repeats, plain_ids

WITH_TOKENIZER = {
    "bert": subject_of("bert", "wordpiece"),
    "llama": subject_of("llama", "llama"),
    "gpt2": subject_of("gpt2", "gpt2"),
    "marian": subject_of("marian", "marian"),
    "t5": subject_of("t5", "t5"),
}
WITHOUT = {
    family: Subject(TINY[family]()) for family in ("bert", "ibert", "llama", "marian", "fsmt")
}


def sides_of(subject: Subject, trial: Repeats) -> dict[str, torch.Tensor]:
    batches = list(trial.batches(subject))
    names = batches[0].sides
    return {name: torch.cat([batch.sides[name].ids for batch in batches]) for name in names}


@pytest.mark.parametrize("subject", [*WITH_TOKENIZER.values(), *WITHOUT.values()], ids=repr)
def test_a_row_is_distinct_plain_tokens_and_then_the_same_again(subject: Subject) -> None:
    trial = Repeats(examples=3)
    layout = trial.layout(subject)
    for name, ids in sides_of(subject, trial).items():
        first, second = ids[:, layout.first(name)], ids[:, layout.second(name)]
        assert torch.equal(first, second)
        plain = {*plain_ids(subject, target=name == "target" and subject.kind == "enc-dec")}
        for row in first.tolist():
            assert len({*row}) == layout.length
            assert {*row} <= plain


def test_rows_are_wrapped_as_the_tokenizer_wraps_texts() -> None:
    bert, tokenizer = WITH_TOKENIZER["bert"], WITH_TOKENIZER["bert"].tokenizer
    ids = sides_of(bert, Repeats(examples=1))["source"][0].tolist()
    assert (ids[0], ids[-1]) == (tokenizer.cls_token_id, tokenizer.sep_token_id)
    marian = WITH_TOKENIZER["marian"]
    target = sides_of(marian, Repeats(examples=1))["target"][0].tolist()
    assert target[0] == marian.inner.config.decoder_start_token_id


def test_two_sides_are_drawn_apart() -> None:
    sides = sides_of(WITHOUT["marian"], Repeats(examples=2, length=20))
    layout = Repeats(length=20).layout(WITHOUT["marian"])
    assert not torch.equal(
        sides["source"][:, layout.first("source")], sides["target"][:, layout.first("target")]
    )


@pytest.mark.parametrize("subject", [WITH_TOKENIZER["llama"], WITHOUT["marian"]], ids=repr)
def test_the_seed_decides_and_the_batch_size_does_not(subject: Subject) -> None:
    one = sides_of(subject, Repeats(examples=5, batch_size=2))
    for name, ids in sides_of(subject, Repeats(examples=5, batch_size=5)).items():
        assert torch.equal(ids, one[name])
    other = sides_of(subject, Repeats(examples=5, seed=1))
    assert not torch.equal(other["target"], one["target"])


def test_a_model_with_few_positions_gets_a_shorter_sequence() -> None:
    llama = WITHOUT["llama"]  # 64 positions
    assert Repeats(length=100).fitted(llama) == 32
    assert sides_of(llama, Repeats(length=100, examples=1))["target"].shape == (1, 64)


def test_models_that_are_not_asked() -> None:
    assert Repeats().unfit(Subject(TINY["vit"]())) == "the model reads no token ids"
    short = Subject(TINY["llama"](max_position_embeddings=6))
    assert Repeats().unfit(short) == "the model takes fewer than 8 tokens"
    assert Repeats().unfit(WITHOUT["llama"]) is None


def test_plain_ids_leave_out_what_is_no_text() -> None:
    assert plain_ids(WITHOUT["llama"]) == [*range(3, VOCAB)]  # 0 to 2 are named by the config
    assert FIRST_WORD > 3
    bert = WITH_TOKENIZER["bert"]
    plain = {*plain_ids(bert)}
    assert not plain & {*bert.tokenizer.all_special_ids}
    assert bert.tokenizer.unk_token_id not in plain
    assert bert.tokenizer.convert_tokens_to_ids("[unused0]") not in plain
