"""Gates between 0 and 1 in a plain model: it says what the gated one says."""

from __future__ import annotations

import pytest
import torch
from surgery import answer
from tiny import TINY, tiny_inputs

from headcount.errors import UsageError
from headcount.models.subject import Subject
from headcount.pruning.gates import Gates, gated, pruned_by
from headcount.pruning.learn import learn_gates
from headcount.pruning.order import removable_units


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "albert", "t5"])
def test_the_model_that_is_left_has_the_authors_gates(family: str) -> None:
    subject = Subject(TINY[family]())
    units = removable_units(subject.anatomy)
    gates = Gates(subject.heads, units=units, convention="code").eval()
    gates.log_a.data.copy_(torch.linspace(-3.5, 3.5, len(gates.log_a)))
    inputs = tiny_inputs(subject.model, pad=2)
    with torch.no_grad():
        plain = answer(subject.model(**inputs))
        with gated(subject, gates):
            wanted = answer(subject.model(**inputs))
        small = pruned_by(subject, gates)
        torch.testing.assert_close(answer(small.model(**inputs)), wanted, atol=1e-5, rtol=1e-5)
        assert torch.equal(answer(subject.model(**inputs)), plain)
    assert 0 < len(small.heads) < len(subject.heads)
    assert small.heads == gates.kept()


def test_gates_that_are_all_closed_are_told() -> None:
    subject = Subject(TINY["bert"]())
    with pytest.raises(UsageError, match=r"All 8 gates are closed.* lower the price"):
        pruned_by(subject, Gates(subject.heads, start=-5.0))
    assert len(pruned_by(subject, Gates(subject.heads, start=-5.0), keep=2).heads) == 2


def test_a_head_goes_where_the_authors_gate_is_exactly_0() -> None:
    heads = Subject(TINY["bert"]()).heads[:4]
    paper, code = (Gates(heads, convention=one).eval() for one in ("paper", "code"))
    for gates in (paper, code):
        gates.log_a.data.copy_(torch.tensor([-2.5, -2.3, -0.1, 0.1]))
    assert [len(gates.closed()) for gates in (paper, code)] == [3, 1]
    assert (code() > 0).tolist() == code.open().tolist()


def test_learning_under_the_authors_convention() -> None:
    subject = Subject(TINY["bert"](model_class="BertForSequenceClassification"))
    rows = [{"input_ids": torch.randint(5, 90, (4, 6)), "labels": torch.arange(4) % 2}]
    logs = {
        one: learn_gates(subject, rows, penalty=0.1, steps=1, train="gates", convention=one)
        for one in ("headcount", "code")
    }
    assert logs["code"].gates.convention == "code"
    prices = [logs[one].log["price"].iloc[0] for one in ("headcount", "code")]
    assert prices[0] == pytest.approx(2 * prices[1])  # the mean over two modules, not the sum
