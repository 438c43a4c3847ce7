"""show: the map of one head on one sentence is the model's own, drawn to fit."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch
from rich.cells import cell_len
from rich.console import Console
from subjects import subject_of

from headcount.errors import InputError, ModelError, UsageError
from headcount.models.subject import Subject
from headcount.records.heads import Head
from headcount.rooms.show.showing import LayerView, View, show

SENTENCE = "The old ferry leaves at noon."


def printed(view: View, width: int = 80) -> list[str]:
    console = Console(width=width, file=io.StringIO(), highlight=False)
    console.print(view)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined, no-any-return]


def test_the_map_is_the_models_own() -> None:
    subject = subject_of("bert", "wordpiece")
    view = show(subject, SENTENCE, "enc.1.2")
    ids = subject.tokenizer(SENTENCE, return_tensors="pt")  # type: ignore[misc]
    subject.model.set_attn_implementation("eager")
    own = subject.model(**ids, output_attentions=True).attentions[1][0, 2]
    np.testing.assert_allclose(view.weights, own.detach(), atol=1e-6)
    assert view.head == Head("enc", 1, 2)
    assert view.queries == view.keys == subject.tokenizer.convert_ids_to_tokens(ids.input_ids[0])  # type: ignore[union-attr]


@pytest.mark.parametrize("head", ["enc.1.0", "dec.2.1", "cross.0.3"])
def test_a_translators_three_stacks(head: str) -> None:
    view = show(subject_of("marian", "marian"), "Rain fell.", head, target="Regen fiel, oft.")
    sides = {"enc": ("</s>", "</s>"), "dec": ("<pad>", "<pad>"), "cross": ("<pad>", "</s>")}
    asking, answering = sides[view.head.stack]
    assert asking in view.queries
    assert answering in view.keys
    assert view.weights.shape == (len(view.queries), len(view.keys))
    np.testing.assert_allclose(view.weights.sum(-1), 1, atol=1e-5)


def test_nothing_of_the_model_changes() -> None:
    subject = subject_of("gpt2", "gpt2")
    subject.model.train()
    before = subject.weights_hash
    show(subject, SENTENCE, "dec.0.0")
    assert subject.model.training
    assert subject.model.config._attn_implementation == "sdpa"
    assert Subject(subject.model).weights_hash == before


def test_half_precision_shows_nearly_the_same() -> None:
    full, half = subject_of("bert", "wordpiece"), subject_of("bert", "wordpiece")
    half.model.to(torch.bfloat16)
    maps = [show(subject, SENTENCE, "enc.0.1").weights for subject in (full, half)]
    assert maps[1].dtype == np.float32
    np.testing.assert_allclose(*maps, atol=0.03)


def test_the_strongest_keys_come_first_and_equals_in_order() -> None:
    weights = np.array([[0.2, 0.5, 0.2, 0.1]], dtype=np.float32)
    view = View(Head("enc", 0, 0), ["q"], ["a", "b", "c", "d"], weights, top=3)
    assert [key for key, _ in view.strongest(0)] == ["b", "a", "c"]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_breaks_and_shades_are_drawn_where_they_fit(width: int) -> None:
    tokens = [f"w{number}" for number in range(45)]
    view = View(Head("enc", 0, 0), tokens, tokens, np.eye(45, dtype=np.float32))
    lines = printed(view, width)
    assert len(lines) == 1 + 45 + 1
    assert max(map(cell_len, lines)) <= width
    assert ("█" in lines[1]) == (width > 45)


def test_shades_grow_with_the_weight() -> None:
    weights = np.array([[0.0, 0.03, 0.12, 0.3, 0.5, 1.0]], dtype=np.float32)
    view = View(Head("enc", 0, 0), ["q"], [*"abcdef"], weights)
    assert printed(view)[1].startswith("q  ·░▒▓█")


def test_odd_tokens_stay_in_their_columns_and_in_their_place() -> None:
    tokens = ["a", "🙂", "שלום", "\x1b[2J", "[red]", "</td><script>"]
    view = View(Head("enc", 0, 0), tokens, tokens, np.full((6, 6), 1 / 6, dtype=np.float32))
    lines = printed(view, 120)[1:-1]
    assert len({cell_len(line.split("·")[0]) for line in lines}) == 1
    assert "\x1b" not in "".join(lines)
    assert "[red]" in lines[4]
    html = view._repr_html_()
    assert "<script>" not in html
    assert "&lt;/td&gt;&lt;script&gt;" in html
    assert html.count("<td") == 36
    assert html.count("<line") == 36 - 6  # five of six equal weights hold 80 %


def test_what_cannot_be_shown() -> None:
    subject = subject_of("bert", "wordpiece")
    with pytest.raises(UsageError, match="top is 0; name 1 key or more"):
        show(subject, "Rain.", "enc.0.0", top=0)
    with pytest.raises(UsageError, match=r"There is no head enc\.2\.0; this model has enc\.0\.0"):
        show(subject, "Rain.", "enc.2.0")
    with pytest.raises(InputError, match=r"longer than the 64 tokens that bert takes; shorten it"):
        show(subject, "rain " * 80, "enc.0.0")
    with pytest.raises(UsageError, match="needs a tokenizer and this subject has none"):
        show(Subject(subject.model), "Rain.", "enc.0.0")
    with pytest.raises(UsageError, match="The sentence is empty"):
        show(subject, "Rain.", "enc.0.0", target="")


def test_attention_that_is_no_number_is_refused() -> None:
    subject = subject_of("bert", "wordpiece")
    assert subject.heads  # found while all was well
    token = subject.tokenizer.convert_tokens_to_ids("the")  # type: ignore[union-attr]
    with torch.no_grad():
        subject.model.embeddings.word_embeddings.weight[token] = float("nan")
    with pytest.raises(ModelError, match=r"weight embeddings\.word_embeddings\.weight of bert"):
        show(subject, "the", "enc.0.0")


@pytest.mark.real
def test_minilm_has_a_head_that_looks_back(minilm: Subject) -> None:
    view = show(minilm, SENTENCE, "enc.0.2")
    assert (view.weights[2:].argmax(-1) == np.arange(1, len(view.keys) - 1)).all()


def test_all_heads_of_a_layer() -> None:
    subject = subject_of("bert", "wordpiece")
    layer = show(subject, SENTENCE, layer=1)
    assert isinstance(layer, LayerView)
    assert repr(layer).startswith("LayerView(enc.1: 4 heads, ")
    for view in layer.views:
        alone = show(subject, SENTENCE, view.head)
        np.testing.assert_array_equal(view.weights, alone.weights)
    assert layer._repr_html_().count('class="small"') == 4
    assert str(layer).splitlines()[0] == "Layer enc.1"
    assert len(str(layer).splitlines()) == 1 + 4 + 1
    assert repr(show(subject, SENTENCE, layer="enc.1")) == repr(layer)


@pytest.mark.parametrize("asked", [{}, {"head": "enc.0.0", "layer": 0}])
def test_a_head_or_a_layer_is_named(asked: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=r"show has no head|one head or one layer"):
        show(subject_of("bert", "wordpiece"), SENTENCE, **asked)
    with pytest.raises(UsageError, match="is no layer; write a number counted from 0"):
        show(subject_of("bert", "wordpiece"), SENTENCE, layer="enc.0.0")
