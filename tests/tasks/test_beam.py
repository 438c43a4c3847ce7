from __future__ import annotations

import copy

import pytest
import torch
from tiny_subjects import translator
from tiny_tokenizers import ENGLISH, GERMAN, PAIRS

from headcount import tasks
from headcount.models.subject import Subject
from headcount.tasks import translation as beam
from headcount.tasks.translation import longest_output, translate
from headcount.text.batch import Batch

FAMILIES = ["marian", "t5", "bart", "mbart", "m2m100"]


def batch_of(subject: Subject, pairs: list[tuple[str, str]]) -> Batch:
    [batch] = tasks.translation(pairs).batches(subject, batch_size=len(pairs))
    return batch


def in_order(subject: Subject, pairs: list[tuple[str, str]], **options: int) -> list[str]:
    batch = batch_of(subject, pairs)
    told = dict(zip(batch.index, translate(subject, batch, **options), strict=True))  # type: ignore[arg-type]
    return [told[number] for number in range(len(pairs))]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("beams", [1, 3])
def test_a_translation_does_not_depend_on_its_neighbours(family: str, beams: int) -> None:
    subject = translator(family)
    pairs = PAIRS[:5]
    together = in_order(subject, pairs, beams=beams)
    alone = [in_order(subject, [pair], beams=beams)[0] for pair in pairs]
    assert together == alone
    assert len(set(together)) > 1


def test_a_taught_translator_translates(taught: Subject) -> None:
    told = in_order(taught, PAIRS, beams=4)
    assert sum(one == right for one, right in zip(told, GERMAN, strict=True)) >= 5
    assert in_order(taught, PAIRS, beams=4) == told


def test_beams_find_what_the_models_own_generate_finds(taught: Subject) -> None:
    inputs = taught.tokenizer(ENGLISH[:4], return_tensors="pt", padding=True)  # type: ignore[misc]
    ids = taught.model.generate(**inputs, num_beams=3, max_new_tokens=40, do_sample=False)
    told = taught.tokenizer.batch_decode(ids, skip_special_tokens=True)  # type: ignore[union-attr]
    assert in_order(taught, PAIRS[:4], beams=3, max_new_tokens=40) == told


@pytest.mark.parametrize("family", FAMILIES)
def test_the_decoder_starts_as_the_reference_does(family: str) -> None:
    subject = translator(family)
    batch = batch_of(subject, PAIRS[:3])
    started: list[torch.Tensor] = []

    def look(_: object, args: object, kwargs: dict[str, torch.Tensor]) -> None:
        started.append(kwargs["decoder_input_ids"])

    handle = subject.model.register_forward_pre_hook(look, with_kwargs=True)
    try:
        translate(subject, batch, beams=1, max_new_tokens=2)
    finally:
        handle.remove()
    first = started[0]
    assert torch.equal(first, batch.sides["target"].ids[:, : first.shape[1]])
    # M2M100's language code and BART's <s> follow the start token.
    assert first.shape[1] == (2 if family in ("m2m100", "bart") else 1)


def test_the_longest_output_is_the_sources_own() -> None:
    lengths = torch.tensor([4, 10])
    assert longest_output(lengths, None).tolist() == [24, 36]
    assert longest_output(lengths, 7).tolist() == [7, 7]


@pytest.mark.parametrize("beams", [1, 2])
def test_no_output_is_longer_than_asked(beams: int, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = translator()
    said: list[torch.Tensor] = []
    monkeypatch.setattr(beam, "_texts", lambda _, ids: said.append(ids) or [""] * len(ids))
    in_order(subject, PAIRS[:3], beams=beams, max_new_tokens=5)
    assert said[0].shape == (3, 1 + 5)  # the start token, then as many as asked for


def test_positions_are_never_exceeded() -> None:
    subject = translator(max_position_embeddings=24)
    assert len(in_order(subject, PAIRS, beams=2)) == 10


def test_the_models_own_settings_are_left_alone() -> None:
    subject = translator()
    settings = copy.deepcopy(subject.model.generation_config.to_dict())
    translate(subject, batch_of(subject, PAIRS[:2]), beams=3, max_new_tokens=3, length_penalty=0.5)
    assert subject.model.generation_config.to_dict() == settings


def test_special_tokens_are_not_spoken(taught: Subject) -> None:
    assert not any("<" in told or "▁" in told for told in in_order(taught, PAIRS, beams=2))
