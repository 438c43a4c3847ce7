"""Gates on a live model."""

from __future__ import annotations

import pytest
import torch
from surgery import answer
from tiny import TINY, tiny_inputs
from tiny_subjects import encoder

from headcount.errors import UsageError
from headcount.models.subject import Subject
from headcount.pruning.curve import removable_units
from headcount.records.heads import Head
from headcount.rooms.gates.gates import (
    Gates,
    Price,
    Target,
    gated,
    is_open,
    p_one,
    p_open,
    pruned_by,
)
from headcount.rooms.gates.learning import learn_gates
from headcount.wiring.valves import valve

HEADS = [Head("enc", layer, index) for layer in range(2) for index in range(4)]


def test_whichever_is_likelier_is_taken() -> None:
    log_a = torch.linspace(-4, 4, 81)
    assert torch.equal(is_open(log_a), p_one(log_a) > 1 - p_open(log_a))
    assert torch.equal(is_open(log_a), log_a > 1e-6)


def test_gates_start_as_the_authors_do() -> None:
    start = Gates([Head("enc", 0, index) for index in range(8)]).log_a
    assert start.abs().max() <= (3 / 8) ** 0.5
    assert len(set(start.tolist())) == 8


def test_the_most_open_are_kept_by_number() -> None:
    gates = Gates(HEADS)
    with torch.no_grad():
        gates.log_a.copy_(torch.arange(8.0) - 5)
    assert gates.kept() == HEADS[6:]
    assert gates.kept(3) == HEADS[5:]
    assert gates.closed(3) == HEADS[:5]
    with pytest.raises(UsageError, match="9 heads cannot be kept; give a number from 0 to 8"):
        gates.kept(9)


def test_no_head_no_gate() -> None:
    with pytest.raises(UsageError, match="no head to put a gate on"):
        Gates([])


def test_a_gate_for_a_head_that_is_not_there() -> None:
    subject = encoder()
    with (
        pytest.raises(UsageError, match=r"has no head enc\.9\.9"),
        gated(subject, Gates([Head("enc", 9, 9)])),
    ):
        pass


def test_gates_in_evaluation_are_valves() -> None:
    subject = encoder()
    gates = Gates(subject.heads).eval()
    inputs = {"input_ids": torch.tensor([[5, 6, 7, 8]])}
    with torch.no_grad(), gated(subject, gates):
        through_gates = subject.model(**inputs)[0]
    with torch.no_grad(), valve(subject, gates().detach()):
        through_valve = subject.model(**inputs)[0]
    torch.testing.assert_close(through_gates, through_valve)


def test_gates_in_evaluation_are_0_or_1_but_in_the_authors_program() -> None:
    given = torch.tensor([-3.0, -0.5, 0.5, 3.0])
    ours, paper, code = (
        Gates(HEADS[:4], convention=convention).eval()
        for convention in ("headcount", "paper", "code")
    )
    for gates in (ours, paper, code):
        gates.log_a.data.copy_(given)
    assert ours().tolist() == paper().tolist() == [0, 0, 1, 1]
    expected = (1.2 * torch.sigmoid(given) - 0.1).clamp(0, 1)
    torch.testing.assert_close(code().detach(), expected)
    with pytest.raises(UsageError, match="There is no convention 'coda'"):
        Price(0.1, convention="coda")


def test_one_draw_a_forward_and_a_gradient_for_every_gate() -> None:
    subject = encoder()
    gates = Gates(subject.heads, start=0.0)
    inputs = {"input_ids": torch.tensor([[5, 6, 7, 8]])}
    with gated(subject, gates):
        torch.manual_seed(0)
        first, second = (subject.model(**inputs)[0] for _ in range(2))
        assert not torch.equal(first, second)
        torch.manual_seed(0)
        again = subject.model(**inputs)[0]
        assert torch.equal(first, again)
        again.square().sum().backward()
    assert gates.log_a.grad is not None
    assert torch.isfinite(gates.log_a.grad).all()
    assert (gates.log_a.grad != 0).any()


def test_the_papers_price_and_the_codes() -> None:
    gates = Gates(HEADS, start=0.0)
    paper, code = Price(0.3), Price(0.3, convention="code")
    assert paper(gates, 0).item() == pytest.approx(0.3 * 8 * p_open(torch.zeros(1)).item())
    assert code(gates, 0).item() == pytest.approx(paper(gates, 0).item() / 2)
    assert Price(0.3, warmup=10)(gates, 5).item() == pytest.approx(paper(gates, 0).item() / 2)


@pytest.mark.parametrize("count", [1, 3, 6])
def test_the_target_is_hit(count: int) -> None:
    """Heads of different worth under pressure: as many stay as were asked for, good ones."""
    torch.manual_seed(count)
    gates, target = Gates(HEADS, start=2.5), Target(count, steps=300)
    worth = torch.linspace(0.1, 2.0, 8)
    adam = torch.optim.Adam([gates.log_a], lr=0.05)
    for step in range(600):
        loss = (worth * (1 - gates())).sum() / 8 + target(gates, step)
        adam.zero_grad()
        loss.backward()
        adam.step()
    assert abs(len(gates.kept()) - count) <= 1
    places = [HEADS.index(head) for head in gates.kept(count)]
    assert sum(places) / count > 3.5  # what stays is worth more than what goes


def test_a_target_that_cannot_be() -> None:
    with pytest.raises(UsageError, match="A target of -1 heads in 5 steps cannot be"):
        Target(-1, steps=5)


# --- Gates between 0 and 1 in a plain model -----------------------------------------------------


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "albert", "t5"])
def test_the_model_that_is_left_has_the_authors_gates(family: str) -> None:
    subject = Subject(TINY[family]())
    units = removable_units(subject.anatomy, subject.heads)
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
