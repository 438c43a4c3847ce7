"""Costs of whole and pruned models, against PyTorch's own counter and against arithmetic."""

from __future__ import annotations

import pytest
import torch
from tiny import TINY
from torch.utils.flop_counter import FlopCounterMode

from headcount.errors import UsageError
from headcount.models.loading import load
from headcount.models.subject import Subject
from headcount.models.switch import switched
from headcount.pruning.remove import prune
from headcount.rooms.bench.costs import model_costs, trial_inputs

FAMILIES = (
    *("bert", "roberta", "distilbert", "albert", "modernbert", "vit", "gpt2", "gpt_neox", "opt"),
    *("llama", "mistral", "qwen3", "gptj", "bart", "marian", "t5", "whisper", "xlm", "roformer"),
)


def counted(subject: Subject, tokens: int) -> float:
    """PyTorch's count of the plain formula: rotary angles are products too."""
    inputs = trial_inputs(subject, tokens, 1)
    counter = FlopCounterMode(display=False)
    with switched(subject.model, lambda _: "eager"), counter, torch.no_grad():
        subject.model.eval()(**inputs)
    return float(counter.get_total_flops())


@pytest.mark.parametrize("family", FAMILIES)
def test_operations_are_those_that_pytorch_counts(family: str) -> None:
    subject = Subject(TINY[family](), name=family)
    assert model_costs(subject, tokens=9).flops == pytest.approx(counted(subject, 9), rel=0.01)


def test_a_pruned_model_is_counted_as_it_is() -> None:
    whole = Subject(TINY["llama"](), name="llama")
    site = whole.anatomy.sites[0]
    size = site.heads // site.kv_heads
    small = prune(whole, site.names[:size])
    before, after = model_costs(whole, tokens=9), model_costs(small, tokens=9)
    assert after.flops == pytest.approx(counted(small, 9), rel=0.01)
    assert before.kv_bytes - after.kv_bytes == 2 * site.head_dim * 4
    assert before.parameters - after.parameters == (
        before.attention_parameters - after.attention_parameters
    )
    assert before.parts["feed-forward"] == after.parts["feed-forward"]


def test_a_layer_without_heads_still_runs_a_dead_one() -> None:
    whole = Subject(TINY["bert"](), name="bert")
    small = prune(whole, whole.anatomy.sites[0].names)
    assert model_costs(small, tokens=9).flops == pytest.approx(counted(small, 9), rel=0.01)


def test_operations_grow_with_rows_and_maps_with_the_square_of_the_length() -> None:
    subject = Subject(TINY["bert"](), name="bert")
    one, four = model_costs(subject, 8), model_costs(subject, 8, batch=4)
    assert four.flops == 4 * one.flops
    twice = model_costs(subject, 16)
    assert twice.parts["maps"] == 4 * one.parts["maps"]
    assert twice.parts["feed-forward"] == 2 * one.parts["feed-forward"]


def test_the_translator_keeps_keys_of_both_sides() -> None:
    costs = model_costs(load("translator", device="cpu"), tokens=4)
    width = 2 * 6 * 8 * 4  # keys and values, layers, heads, bytes
    assert costs.kv_bytes == costs.source_kv_bytes
    assert costs.kv_bytes % width == 0
    assert costs.to_json()["flops"] == costs.flops


def test_half_the_heads_of_bert_base_give_the_limit_of_the_promise() -> None:
    """The matrices of one layer of BERT-base at 128 tokens: +21.3% is all there is to gain."""
    tokens, width, inner = 128, 768, 3072
    rest = 2 * tokens * 2 * width * inner
    attention = 2 * tokens * 4 * width * width + 4 * tokens * tokens * width
    assert (rest + attention) / (rest + attention / 2) == pytest.approx(1.213, abs=0.001)


def test_lengths_that_a_model_does_not_take_are_refused() -> None:
    subject = Subject(TINY["bert"](), name="tiny")
    most = subject.model.config.max_position_embeddings
    with pytest.raises(UsageError, match=f"tiny takes {most} tokens at most, and {most + 1}"):
        trial_inputs(subject, most + 1, 1)
    with pytest.raises(UsageError, match="0 rows of 4 tokens cannot be run"):
        trial_inputs(subject, 4, 0)
