"""The bundled translator: whole, small, quick to open, and it translates."""

from __future__ import annotations

from pathlib import Path

import pytest
import sacrebleu
import torch

import headcount
from headcount.bundle import sample
from headcount.bundle.packed import PACKED, read_packed
from headcount.errors import ModelError
from headcount.models.loading import load
from headcount.models.subject import Subject
from headcount.text import encode, intake_of
from headcount.wiring import tap

FOLDER = Path(headcount.__file__).parent / "bundle" / "translator"


@pytest.fixture(scope="module")
def translator() -> Subject:
    return load("translator", device="cpu")


def translate(subject: Subject, sources: list[str]) -> list[str]:
    inputs = subject.tokenizer(sources, padding=True, return_tensors="pt")
    with torch.no_grad():
        ids = subject.model.generate(**inputs, num_beams=4, max_new_tokens=64)
    return subject.tokenizer.batch_decode(ids, skip_special_tokens=True)


def test_it_has_forty_eight_heads_of_each_kind(translator: Subject) -> None:
    stacks = [head.stack for head in translator.heads]
    assert {stack: stacks.count(stack) for stack in set(stacks)} == {
        "enc": 48,
        "dec": 48,
        "cross": 48,
    }
    assert translator.source == "bundled"


def test_it_fits_the_package() -> None:
    size = sum(file.stat().st_size for file in FOLDER.iterdir() if file.is_file())
    assert size <= 16_000_000


def test_fixed_sentences_are_translated_as_ever(translator: Subject) -> None:
    assert translate(
        translator,
        ["I have never seen such a beautiful house.", "Tom doesn't want to go home.", "Thank you!"],
    ) == [
        "Ich habe noch nie so ein schönes Haus gesehen.",
        "Tom will nicht nach Hause gehen.",
        "Danke!",
    ]


def test_the_sample_is_translated_above_a_floor(translator: Subject) -> None:
    pairs = list(sample.pairs())[:60]
    hypotheses = translate(translator, [source for source, _ in pairs])
    score = sacrebleu.corpus_bleu(hypotheses, [[target for _, target in pairs]]).score
    assert score > 40


def test_cross_attention_sums_to_one_over_the_source(translator: Subject) -> None:
    pairs = [("Tom is here.", "Tom ist hier."), ("I was not at home last night.", "Ich war weg.")]
    intake = intake_of(translator.model, translator.tokenizer)
    encoded = encode(pairs, translator.tokenizer, stacks=("enc", "dec", "cross"), intake=intake)
    with tap(translator, stacks={"cross"}) as watch:
        sightings = [sighting for batch in encoded for sighting in watch(batch)]
    assert len(sightings) == 6
    for sighting in sightings:
        padding = sighting.maps.masked_fill(sighting.keys.real[:, None, None, :], 0.0)
        assert padding.max() == 0
        rows = sighting.maps.sum(-1)
        torch.testing.assert_close(rows, torch.ones_like(rows), atol=1e-5, rtol=0)


def test_damaged_weights_are_an_error(tmp_path: Path) -> None:
    (tmp_path / PACKED).write_bytes((FOLDER / PACKED).read_bytes()[:100_000])
    with pytest.raises(ModelError, match=r"cannot be read: it is cut off or damaged"):
        read_packed(tmp_path)
