"""What is known of a sentence depends on the sentence alone: not on batch, order or padding."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tiny_tokenizers import BUILDERS, DECODERS, ENCODERS, ENGLISH, GERMAN, TRANSLATORS
from torch import Tensor

from headcount.text import Batch, Intake, encode
from headcount.text.corpus import read_corpus

LAW = settings(max_examples=12, deadline=None)
SNIPPETS = [*ENGLISH, *GERMAN, "</s>", "[SEP] x", "<pad>", "🙂", "שלום, עולם", "\u200b", ".", "a b"]
snippets = st.lists(st.sampled_from(SNIPPETS), min_size=1, max_size=3).map(" ".join)
texts = st.lists(snippets, min_size=1, max_size=9)
pairs = st.lists(st.tuples(snippets, snippets), min_size=1, max_size=7)
sizes = st.integers(1, 10)
sides = st.sampled_from(["left", "right"])


def start_with_zero(labels: Tensor) -> Tensor:
    filled = labels.masked_fill(labels == -100, 0)
    return torch.cat([torch.zeros_like(filled[:, :1]), filled[:, :-1]], dim=1)


def known(batches: Iterable[Batch]) -> dict[tuple[int, int], list[object]]:
    """All that is known of each row, padding taken out."""
    found: dict[tuple[int, int], list[object]] = {}
    for batch in batches:
        for row, key in enumerate(zip(batch.index, batch.window, strict=True)):
            assert key not in found
            found[key] = [_row(batch, row, name) for name in sorted(batch.sides)]
    return found


def _row(batch: Batch, row: int, name: str) -> list[object]:
    side = batch.sides[name]
    real = side.real[row]
    flags = (side.ids, side.special, side.separator, side.punctuation, side.stops)
    prefix = "decoder_" if name == "target" and "source" in batch.sides else ""
    width = real.shape[0]
    same = [
        tensor[row][real].tolist()
        for key, tensor in sorted(batch.inputs.items())
        if tensor.shape[1] == width and key.startswith("decoder_") == bool(prefix)
        if key != "position_ids"
    ]
    assert torch.equal(batch.inputs[f"{prefix}input_ids"][row], side.ids[row])
    assert torch.equal(batch.inputs[f"{prefix}attention_mask"][row].bool(), real)
    for flag in flags[1:]:
        assert not flag[row][~real].any(), "padding is nothing"
    said = [] if batch.labels is None or not prefix else batch.labels[row][real].tolist()
    return [*(flag[row][real].tolist() for flag in flags), same, side.tokens[row], said]


def stack(kind: str) -> str:
    return "enc" if kind in ENCODERS else "dec"


@pytest.mark.parametrize("kind", [*ENCODERS, *DECODERS])
@LAW
@given(texts, sizes, sizes, sides, st.booleans(), st.sampled_from([None, 9, 20]))
def test_single_sentences(
    kind: str, found: list[str], one: int, two: int, side: str, sort: bool, limit: int | None
) -> None:
    tokenizer = BUILDERS[kind]()
    how = {"stacks": {stack(kind)}, "max_length": limit}
    plain = known(encode(found, tokenizer, batch_size=one, **how))  # type: ignore[arg-type]
    other = encode(
        found,
        tokenizer,
        batch_size=two,
        padding_side=side,  # type: ignore[arg-type]
        sort=sort,
        **how,  # type: ignore[arg-type]
    )
    assert known(other) == plain


@pytest.mark.parametrize("kind", ["wordpiece", "roberta", "t5"])
@LAW
@given(pairs, sizes, sides, st.sampled_from([None, 12]))
def test_pairs(
    kind: str, found: list[tuple[str, str]], size: int, side: str, limit: int | None
) -> None:
    tokenizer = BUILDERS[kind]()
    how = {"stacks": {"enc"}, "max_length": limit}
    plain = known(encode(found, tokenizer, batch_size=1, **how))  # type: ignore[arg-type]
    other = encode(found, tokenizer, batch_size=size, padding_side=side, **how)  # type: ignore[arg-type]
    assert known(other) == plain


@pytest.mark.parametrize("kind", TRANSLATORS)
@LAW
@given(pairs, sizes, sides, st.sampled_from([None, 12]))
def test_translations(
    kind: str, found: list[tuple[str, str]], size: int, side: str, limit: int | None
) -> None:
    tokenizer = BUILDERS[kind]()
    intake = Intake(shift=start_with_zero)
    how = {"stacks": {"enc", "dec", "cross"}, "intake": intake, "max_length": limit}
    plain = known(encode(found, tokenizer, batch_size=1, **how))  # type: ignore[arg-type]
    other = encode(found, tokenizer, batch_size=size, padding_side=side, **how)  # type: ignore[arg-type]
    assert known(other) == plain


@pytest.mark.parametrize("kind", ["wordpiece", "gpt2", "marian", "t5"])
@LAW
@given(texts, st.randoms(use_true_random=False))
def test_the_order_of_a_corpus(kind: str, found: list[str], chance: object) -> None:
    tokenizer = BUILDERS[kind]()
    stacks = {"dec"} if kind == "gpt2" else {"enc"}
    order = list(range(len(found)))
    chance.shuffle(order)  # type: ignore[attr-defined]
    plain = known(encode(found, tokenizer, stacks=stacks, batch_size=3))
    mixed = known(encode([found[i] for i in order], tokenizer, stacks=stacks, batch_size=3))
    assert {(order[index], window): row for (index, window), row in mixed.items()} == plain


@pytest.mark.parametrize("kind", ["wordpiece", "gpt2", "marian"])
@LAW
@given(texts, st.integers(1, 8))
def test_a_corpus_split_anywhere(kind: str, found: list[str], cut: int) -> None:
    assume(cut < len(found))
    tokenizer = BUILDERS[kind]()
    stacks = {"dec"} if kind == "gpt2" else {"enc"}
    whole = known(encode(found, tokenizer, stacks=stacks))
    head = known(encode(found[:cut], tokenizer, stacks=stacks))
    tail = known(encode(found[cut:], tokenizer, stacks=stacks))
    assert head | {(i + cut, window): row for (i, window), row in tail.items()} == whole


@LAW
@given(texts, st.integers(1, 9))
def test_counts_of_the_report_add_up(found: list[str], size: int) -> None:
    encoded = encode(read_corpus(found), BUILDERS["wordpiece"](), stacks={"enc"}, max_length=8)
    rows = known(encoded)
    report = encoded.report
    assert report.sentences == len(found)
    assert report.rows == len(rows)
    assert report.empty == len(found) - len({index for index, _ in rows})
    assert report.rows == report.sentences - report.empty - report.windowed + report.windows
