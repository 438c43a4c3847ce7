"""The gradient test of the no-op reading: columns, layers, and what it cannot answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import tiny_subjects
import torch
from tiny import TINY
from tiny_tokenizers import ENGLISH, PAIRS
from torch.nn.functional import cosine_similarity

from headcount.errors import UsageError
from headcount.models.subject import Subject
from headcount.rooms.labels.labelled import embed
from headcount.rooms.resting.noop import (
    NOOP_LAYERS,
    MaskedEmbedding,
    NoOpTrial,
    loss_per_target,
    objective_of,
)
from headcount.surveys.trial import trial_table

CASES = {
    "enc": (tiny_subjects.encoder(), ENGLISH),
    "filler": (tiny_subjects.filler(), ENGLISH),
    "dec": (tiny_subjects.writer("llama"), ENGLISH),
    "enc-dec": (tiny_subjects.translator(), PAIRS),
}


@pytest.mark.parametrize("name", CASES)
def test_batch_size_never_shows(name: str) -> None:
    subject, texts = CASES[name]
    one, many = (
        NoOpTrial(texts, batch_size=size)(subject).details[NOOP_LAYERS] for size in (1, len(texts))
    )
    pd.testing.assert_frame_equal(one, many, rtol=1e-3, atol=1e-8)


def test_every_stack_has_its_rows() -> None:
    subject, texts = CASES["enc-dec"]
    layers = NoOpTrial(texts)(subject).details[NOOP_LAYERS]
    assert list(layers["stack"].unique()) == ["enc", "dec", "cross"]
    ends = layers[layers["target"] == "separator"]
    assert set(ends["stack"]) == {"enc", "cross"}  # the end of the source; a decoder sees none
    others = layers[layers["target"] == "other"]
    assert (others["share"] - 1).abs().max() < 1e-12
    assert layers["p"].isna().equals(layers["target"] == "other")
    assert (layers["gradient"].between(layers["low"], layers["high"])).all()


def test_the_columns_join_the_table_of_other_trials() -> None:
    subject, texts = CASES["enc-dec"]
    trial = NoOpTrial(texts)
    table = trial_table(subject, [trial(subject)])
    assert table.names == [column.name for column in trial.columns]
    assert table.stack("enc").frame["noop_gradient_separator"].notna().all()
    assert table.stack("dec").frame["noop_gradient_separator"].isna().all()
    assert "dec: no token of the keys" in table.notes["noop_gradient_separator"]


def test_the_layer_is_the_mean_of_its_heads() -> None:
    subject, texts = CASES["enc"]
    found = NoOpTrial(texts)(subject)
    table, layers = trial_table(subject, [found]), found.details[NOOP_LAYERS]
    for (layer, target), row in layers.groupby(["layer", "target"]):
        heads = table.frame.xs(layer, level="layer")[f"noop_gradient_{target}"]
        assert row["gradient"].item() == pytest.approx(heads.mean(), rel=1e-6)


def test_under_paper_the_first_token_is_no_kind_and_marks_are_fewer() -> None:
    subject, texts = CASES["enc"]
    layers = NoOpTrial(texts, convention="paper")(subject).details[NOOP_LAYERS]
    assert set(layers["target"]) == {"separator", "punctuation", "other"}
    own = NoOpTrial(texts)(subject).details[NOOP_LAYERS]
    marks = [frame[frame["target"] == "punctuation"]["texts"].max() for frame in (layers, own)]
    assert marks[0] < marks[1]  # a question mark is no stop


def test_only_the_beginnings_are_read(tmp_path: Path) -> None:
    subject, texts = CASES["dec"]
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(f"{text} {text}" for text in texts), encoding="utf-8")
    cut, whole = (NoOpTrial(file, most=4, words=size)(subject) for size in (5, None))
    short = [" ".join(text.split()[:5]) for text in texts[:4]]
    again = NoOpTrial(short, most=None, words=None)(subject)
    pd.testing.assert_frame_equal(cut.details[NOOP_LAYERS], again.details[NOOP_LAYERS])
    assert whole.details[NOOP_LAYERS]["texts"].max() == 4
    assert not whole.details[NOOP_LAYERS]["gradient"].equals(again.details[NOOP_LAYERS]["gradient"])


def test_few_texts_have_no_p() -> None:
    subject, texts = CASES["enc"]
    layers = NoOpTrial(texts[:1])(subject).details[NOOP_LAYERS]
    assert layers["p"].isna().all()
    assert layers["low"].isna().all()
    assert layers["gradient"].notna().all()


def test_what_it_is_not_for() -> None:
    assert "part of the graph" in str(NoOpTrial(ENGLISH).unfit(Subject(TINY["gptj"]())))
    bare = tiny_subjects.writer("llama", model_class="LlamaModel")
    assert NoOpTrial(ENGLISH).unfit(bare) == "it predicts no tokens, so plain texts give no loss"
    assert NoOpTrial(ENGLISH).unfit(tiny_subjects.encoder()) is None
    wordless = Subject(tiny_subjects.encoder().model)
    assert "no mask token" in str(NoOpTrial(ENGLISH).unfit(wordless))
    with pytest.raises(UsageError, match="does not exist under the convention 'code'"):
        NoOpTrial(ENGLISH, convention="code")


@pytest.mark.real
def test_a_real_encoder_rests_on_its_first_token(minilm: Subject) -> None:
    layers = NoOpTrial(ENGLISH)(minilm).details[NOOP_LAYERS]
    first = layers[(layers["target"] == "first") & layers["layer"].between(1, 4)]
    assert (first["share"] < 0.2).all()
    assert (first["mass"] > 0.2).all()


# --- The loss a model is asked for --------------------------------------------------------------


@pytest.mark.parametrize(
    ("subject", "texts", "kind"),
    [
        (tiny_subjects.filler(), ENGLISH, "mlm"),
        (tiny_subjects.encoder(), ENGLISH, "masked embedding"),
        (tiny_subjects.classifier(), ENGLISH, "masked embedding"),
        (tiny_subjects.writer(), ENGLISH, "lm"),
        (tiny_subjects.translator(), PAIRS, "translation"),
    ],
    ids=["filler", "encoder", "classifier", "writer", "translator"],
)
def test_every_kind_of_model_has_one(subject: Subject, texts: list[str], kind: str) -> None:
    objective = objective_of(subject, texts)
    assert objective.kind == kind
    assert len(objective) == len(texts)
    for batch in objective.batches(subject, 4):
        losses = objective.loss(subject, batch)
        assert losses.shape == (len(batch),)
        assert bool((losses > 0).all())


def test_the_vector_of_the_whole_text_is_held_fixed() -> None:
    subject = tiny_subjects.encoder()
    objective = objective_of(subject, ENGLISH)
    assert isinstance(objective, MaskedEmbedding)
    batch = next(objective.batches(subject, 3))
    whole = replace(batch, inputs=batch.inputs | {"input_ids": batch.sides["source"].ids})
    assert bool((batch.inputs["input_ids"] != whole.inputs["input_ids"]).any(dim=1).all())
    wanted = 1 - cosine_similarity(embed(subject, batch), embed(subject, whole))
    torch.testing.assert_close(objective.loss(subject, batch), wanted)


def test_a_loss_over_tokens_is_shared_out() -> None:
    subject = tiny_subjects.filler()
    objective = objective_of(subject, ENGLISH)
    batch = next(objective.batches(subject, 4))
    assert batch.labels is not None
    hidden = (batch.labels != -100).sum(-1)
    losses = torch.ones(4)
    assert loss_per_target(losses, batch).tolist() == (losses / hidden).tolist()
    assert loss_per_target(losses, replace(batch, labels=None)) is losses
    assert loss_per_target(losses, replace(batch, labels=torch.ones(4))) is losses


def test_a_model_that_predicts_nothing_is_told() -> None:
    subject = tiny_subjects.writer("llama", model_class="LlamaModel")
    with pytest.raises(UsageError, match=r"LlamaModel, which predicts no tokens.* leave it out"):
        objective_of(subject, ENGLISH)
