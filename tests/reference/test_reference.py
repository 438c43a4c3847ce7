"""The figures of the authors' own programs, matched on a real model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sightings import table_of, tally_up
from torch import Tensor

import headcount as hc
from headcount.models.subject import Subject
from headcount.rooms.families.divergence import Divergence
from headcount.surveys.surface import Confidence
from headcount.surveys.surveying import survey
from headcount.text.batch import Batch, Side
from headcount.wiring import Needs, tap

HERE = Path(__file__).parent
CLS, SEP = 101, 102

#: Our column, their name.
CLARK = {
    "self": "avg_self",
    "next": "avg_right",
    "previous": "avg_left",
    "first": "avg_cls",
    "separator": "avg_sep",
    "separator_to_separator": "avg_sep_sep",
    "rest_to_separator": "avg_rest_sep",
    "punctuation": "avg_punct",
    "entropy": "entropies",
    "entropy_first": "entropies_cls",
}

pytestmark = pytest.mark.real


def inputs(which: str) -> list[dict[str, Any]]:
    return json.loads((HERE / "inputs.json").read_text())[which]


def figures(name: str) -> dict[str, np.ndarray]:
    with np.load(HERE / f"{name}.npz") as found:
        return {key: found[key] for key in found.files}


def batches(which: str, size: int) -> Iterator[Batch]:
    """The reference's own token ids, padded: no tokenizer in between."""
    items = inputs(which)
    for start in range(0, len(items), size):
        part = items[start : start + size]
        ids, real = padded([item["input_ids"] for item in part])
        types, _ = padded([item.get("token_type_ids", [0] * len(item["tokens"])) for item in part])
        stops, _ = padded([[token in (".", ",") for token in item["tokens"]] for item in part])
        separator = ids == SEP
        tokens = [item["tokens"] for item in part]
        side = Side(ids, real, separator | (ids == CLS), separator, stops > 0, stops > 0, tokens)
        fed = {"input_ids": ids, "attention_mask": real.long(), "token_type_ids": types}
        yield Batch(fed, {"source": side}, list(range(start, start + len(part))))


def padded(rows: list[list[int]]) -> tuple[Tensor, Tensor]:
    tensors = [torch.tensor(row) for row in rows]
    real = [torch.ones(len(row), dtype=torch.bool) for row in rows]
    pad = torch.nn.utils.rnn.pad_sequence
    return pad(tensors, batch_first=True).long(), pad(real, batch_first=True)


@pytest.mark.parametrize("size", [1, 16])
@pytest.mark.parametrize("which", ["own_single", "own_pairs"])
def test_clarks_averages_and_entropies(minilm: Subject, which: str, size: int) -> None:
    tallies = tally_up(minilm, batches(which, size), "code")
    frame = table_of(minilm, tallies, "code").frame
    theirs = figures("clark_general")
    for ours, name in CLARK.items():
        np.testing.assert_allclose(
            frame[ours].to_numpy(), theirs[f"{which}/{name}"].ravel(), atol=2e-6, err_msg=ours
        )
    uniform = theirs[f"{which}/uniform_attn_entropy"]
    np.testing.assert_allclose(frame["entropy_uniform"], uniform, atol=1e-9)
    assert frame["confidence"].isna().all()
    assert frame["best_offset"].isna().all()


def test_the_survey_of_the_texts_themselves(minilm: Subject) -> None:
    """The same figures from strings to table: tokenizer, batches, padding and all."""
    texts = [" ".join(item["words"]) for item in inputs("own_single")]
    corpora: dict[str, list[Any]] = {
        "own_single": texts,
        "own_pairs": list(zip(texts[::2], texts[1::2], strict=True)),
    }
    for which, corpus in corpora.items():
        frame = survey(minilm, corpus, reading=hc.ReadingOptions(convention="code")).frame
        for ours, name in CLARK.items():
            theirs = figures("clark_general")[f"{which}/{name}"].ravel()
            np.testing.assert_allclose(frame[ours].to_numpy(), theirs, atol=2e-6, err_msg=ours)


def test_the_paper_convention_takes_clarks_figures_too(minilm: Subject) -> None:
    tallies = tally_up(minilm, batches("own_pairs", 8), "paper")
    frame = table_of(minilm, tallies, "paper").frame
    for ours, name in CLARK.items():
        theirs = figures("clark_general")[f"own_pairs/{name}"].ravel()
        np.testing.assert_allclose(frame[ours].to_numpy(), theirs, atol=2e-6, err_msg=ours)
    assert frame["confidence"].notna().all()


@pytest.mark.parametrize(
    ("convention", "reading"),
    [("headcount", "confidence_drop_sep_and_cls"), ("paper", "confidence_drop_sep")],
)
def test_voitas_confidence_and_offsets(minilm: Subject, convention: str, reading: str) -> None:
    tallies = tally_up(minilm, batches("own_single", 16), convention)
    frame = table_of(minilm, tallies, convention).frame
    theirs = figures("voita_confidence")
    np.testing.assert_allclose(frame["confidence"], theirs[reading].ravel(), atol=2e-6)
    np.testing.assert_array_equal(frame["best_offset"], theirs["positional_best_offset"].ravel())
    np.testing.assert_allclose(
        frame["best_offset_share"], theirs["positional_best_share"].ravel(), atol=1e-12
    )


def test_confidence_without_the_first_token(minilm: Subject) -> None:
    tally = Confidence(drop=frozenset({"separator", "first"}))
    with tap(minilm, tally.needs) as watch:
        for batch in batches("own_single", 16):
            watch(batch, receive=tally.update)
    values = np.concatenate([reading.value for reading in tally.compute()])
    theirs = figures("voita_confidence")["confidence_drop_sep_and_cls"].ravel()
    np.testing.assert_allclose(values, theirs, atol=2e-6)


@pytest.mark.parametrize("which", ["own_single", "own_pairs"])
def test_clarks_divergences_of_all_pairs_of_heads(minilm: Subject, which: str) -> None:
    theirs = figures("clark_js")[f"{which}/js_sum"]
    exact, quick = Divergence("code"), Divergence()
    with tap(minilm, Needs(maps=True)) as watch:
        for batch in batches(which, 16):
            for sighting in watch(batch):
                exact.update(sighting)
                quick.update(sighting)
    # Sums up to 500 over hundreds of rows of float32 maps, which padding changes in the last bits.
    np.testing.assert_allclose(exact.pairs()["enc"].js_sum, theirs, rtol=5e-6)
    np.testing.assert_allclose(quick.pairs()["enc"].js_sum, theirs, rtol=5e-5)
