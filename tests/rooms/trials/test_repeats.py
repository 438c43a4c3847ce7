"""Random tokens said twice: what the rows hold."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from made import chances, rows_of, scores, show, site_of, uniform
from subjects import subject_of
from tiny import FIRST_WORD, TINY, VOCAB

from headcount.models.site import Site
from headcount.models.subject import Subject
from headcount.rooms.trials.inputs import Layout
from headcount.rooms.trials.repeats import (
    Copying,
    Repeats,
    WeightAtOffset,
    duplicate_metric,
    induction_metric,
    plain_ids,
    previous_metric,
)
from headcount.wiring import valve
from headcount.wiring.sighting import look

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


# --- Induction, duplicate and previous token on maps whose truth is known -----------------------


LENGTH, BEFORE = 5, 1
LAYOUT = Layout(LENGTH, {"source": BEFORE, "target": BEFORE})
QUESTIONS = {
    "induction": induction_metric,
    "duplicate": duplicate_metric,
    "previous": previous_metric,
}
ROW = [1, *range(10, 15), *range(10, 15)]


def perfect(offset: int) -> torch.Tensor:
    """A map with all weight at one offset, on the first token where there is no such place."""
    size = len(ROW)
    maps = torch.zeros(size, size)
    for query in range(size):
        key = query + offset
        maps[query, key if 0 <= key < size else 0] = 1
    return maps


def ask(name: str, maps: list[torch.Tensor], site: Site) -> WeightAtOffset:
    question = QUESTIONS[name](LAYOUT)
    show(question, site, torch.stack(maps)[None], rows_of([ROW], [site.stack]))
    return question


@pytest.mark.parametrize(
    ("name", "offset"), [("induction", 1 - LENGTH), ("duplicate", -LENGTH), ("previous", -1)]
)
def test_a_head_that_does_it_has_1_and_the_others_0(name: str, offset: int) -> None:
    site = site_of("dec", 3, causal=True)
    offsets = [1 - LENGTH, -LENGTH, -1]
    question = ask(name, [perfect(one) for one in offsets], site)
    assert scores(question.finding.counts, site) == [float(one == offset) for one in offsets]


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("causal", [True, False])
def test_even_attention_gets_exactly_chance(name: str, causal: bool) -> None:
    if name == "induction" and not causal:
        pytest.skip("nobody asks encoders for induction")
    site = site_of("dec" if causal else "enc", 1, causal=causal)
    question = ask(name, [uniform(len(ROW), causal=causal)], site)
    counts = question.finding.counts
    assert scores(counts, site) == pytest.approx(chances(counts, site))


def test_chance_counts_what_each_query_may_see() -> None:
    site = site_of("dec", 1, causal=True)
    counts = ask("induction", [perfect(0)], site).finding.counts
    seen = range(BEFORE + LENGTH + 1, BEFORE + 2 * LENGTH + 1)  # keys that the repeat's rows see
    assert chances(counts, site) == pytest.approx([sum(1 / n for n in seen) / LENGTH])


def test_an_encoder_is_asked_for_duplicates_both_ways_and_not_for_induction() -> None:
    site = site_of("enc", 1)
    maps = perfect(-LENGTH)
    for query in range(BEFORE, BEFORE + LENGTH):
        maps[query] = 0
        maps[query, query + LENGTH] = 1
    assert scores(ask("duplicate", [maps], site).finding.counts, site) == [1.0]
    assert not list(ask("induction", [maps], site).finding.counts)


def test_a_window_that_ends_before_the_repeat_has_no_score() -> None:
    site = site_of("dec", 1, causal=True)
    question = induction_metric(LAYOUT)
    near = torch.ones(len(ROW), len(ROW)).tril() * torch.ones(len(ROW), len(ROW)).triu(-2)
    mask = torch.where(near > 0, 0.0, torch.finfo(torch.float32).min)[None, None]
    batch = rows_of([ROW], ["dec"])
    question.update(
        look(site, (near / near.sum(-1, keepdim=True))[None, None], mask, batch, question.needs)
    )
    assert not question.finding.counts.of(site).cells.any()
    assert question.finding.skipped["dec"] == "the windows of some layers end before the repeat"


# --- What a head adds to the right token --------------------------------------------------------


REPEATS = Repeats(length=6, examples=3, batch_size=2)
SUBJECTS = {
    "llama": Subject(TINY["llama"]().double()),
    "gpt2": Subject(TINY["gpt2"]().double()),
    "marian": Subject(TINY["marian"]().double()),
}


def spoken(subject: Subject, scales: dict[str, float], example: int) -> float:
    """The mean log-probability of the repeat's tokens of one example, one at a time."""
    batch = next(iter(Repeats(length=6, examples=3, batch_size=3).batches(subject)))
    place = REPEATS.layout(subject).second("target")
    ids = batch.sides["target"].ids[example]
    with torch.no_grad(), valve(subject, scales):
        logits = subject.model(**batch.inputs).logits[example]
    rows = range(place.start, place.stop - 1)
    return sum(float(logits[row].log_softmax(-1)[ids[row + 1]]) for row in rows) / len(rows)


@pytest.mark.parametrize("family", SUBJECTS)
def test_it_is_the_derivative_of_the_right_token(family: str) -> None:
    subject, step = SUBJECTS[family], 5e-3
    counts = Copying(REPEATS)(subject).columns[0].counts
    for site in list(counts)[::2]:
        counted = counts.of(site)
        for head in (0, site.heads - 1):
            name = str(site.names[head])
            for example in range(3):
                up, down = (spoken(subject, {name: 1 + sign * step}, example) for sign in (1, -1))
                found = counted.hits[example, head] / counted.cells[example, head]
                assert found == pytest.approx((up - down) / (2 * step), abs=2e-4)


def test_only_a_decoder_s_own_heads_are_asked() -> None:
    counts = Copying(REPEATS)(SUBJECTS["marian"]).columns[0].counts
    assert {site.stack for site in counts} == {"dec"}


def test_nothing_is_left_on_the_model() -> None:
    subject = Subject(TINY["llama"]().train())
    Copying(REPEATS)(subject)
    assert all(weight.grad is None for weight in subject.model.parameters())
    assert subject.model.training
    assert all(module.training for module in subject.model.modules())


def test_the_model_s_own_figures() -> None:
    measures = {one.name: one for one in Copying(REPEATS)(SUBJECTS["llama"]).measures}
    subject = SUBJECTS["llama"]
    loss = -np.mean([spoken(subject, {}, example) for example in range(3)])
    assert measures["loss in the repeat"].value == pytest.approx(loss)
    assert 0 <= measures["right tokens of the repeat"].value <= 1
    assert measures["loss before the repeat"].n == 3


def test_who_is_not_asked_and_why() -> None:
    assert Copying().unfit(subject_of("bert", "wordpiece")) == "the model has no decoder"
    mute = Subject(TINY["gpt2"](model_class="GPT2Model"))
    assert Copying().unfit(mute) == "the model has no layer that predicts tokens"
