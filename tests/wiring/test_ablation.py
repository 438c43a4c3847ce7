"""Heads exchanged: chosen by name or by row, with what stands in their place."""

from __future__ import annotations

import pytest
import torch
from surgery import answer
from tiny import INTERFACE, OUTSIDE, tiny_inputs

from headcount.errors import UnknownHead, UnsupportedModel, UsageError
from headcount.models.site import Site
from headcount.models.subject import Subject
from headcount.records.heads import Head
from headcount.rooms.standins.standins import (
    check_uniform,
    donors_of,
    means_of,
    uniform,
    uniform_weights,
)
from headcount.text.batch import ready_batch
from headcount.wiring.seam import Attended
from headcount.wiring.valves import ablated, chosen_heads, replaced, valve

HEADS = [Head("enc", 0, 0), Head("enc", 0, 1)]


def test_heads_are_chosen_by_name_or_one_by_one() -> None:
    assert chosen_heads([Head("enc", 0, 1)], HEADS).tolist() == [False, True]
    assert chosen_heads(torch.tensor([[True, False]]), HEADS).tolist() == [[True, False]]


def test_a_head_that_does_not_exist_is_told_with_those_that_do() -> None:
    subject = Subject(INTERFACE["bert"]())
    message = "There is no head enc.9.9; this model has enc.0.0 to enc.1.3."
    with pytest.raises(UnknownHead, match=message), ablated(subject, "enc.9.9"):
        pass


@pytest.mark.parametrize(
    "wrong", [torch.ones(2), torch.ones(3, dtype=torch.bool), torch.ones(1, 1, 2, dtype=torch.bool)]
)
def test_other_tensors_are_refused(wrong: torch.Tensor) -> None:
    with pytest.raises(UsageError, match=r"true or false for each of the 2, \[head\] or"):
        chosen_heads(wrong, HEADS)


def test_rows_choose_for_themselves_and_beams_with_them() -> None:
    output = torch.ones(4, 1, 2, 1)
    chosen = torch.tensor([[True, False], [False, True]])
    found = replaced(output, chosen, torch.zeros(()))
    assert found[:, 0, :, 0].tolist() == [[0, 1], [0, 1], [1, 0], [1, 0]]
    with pytest.raises(UsageError, match="chosen for 2 rows, but the model was called on 3"):
        replaced(output[:3], chosen, torch.zeros(()))


def test_each_row_alone_gives_the_same() -> None:
    subject = Subject(INTERFACE["llama"]())
    inputs = tiny_inputs(subject.model, batch=3, pad=2)
    chosen = torch.zeros(3, len(subject.heads), dtype=torch.bool)
    chosen[0, 1] = chosen[1, 2] = True
    with torch.no_grad(), ablated(subject, chosen, uniform):
        together = answer(subject.model(**inputs))
    for row in range(3):
        alone = {name: value[row : row + 1] for name, value in inputs.items()}
        with torch.no_grad(), ablated(subject, chosen[row], uniform):
            torch.testing.assert_close(answer(subject.model(**alone))[0], together[row])


@pytest.mark.parametrize("family", ["bert", "gptj"])
def test_one_inside_another_ends_with_its_own_block(family: str) -> None:
    subject = Subject((INTERFACE | OUTSIDE)[family]())
    inputs = tiny_inputs(subject.model)

    def said() -> torch.Tensor:
        with torch.no_grad():
            return answer(subject.model(**inputs))

    whole, (first, second) = said(), subject.heads[:2]
    with ablated(subject, [first, second]):
        both = said()
    with ablated(subject, [first]):
        one = said()
        with ablated(subject, [second]):
            assert torch.equal(said(), both)
        assert torch.equal(said(), one)
    assert torch.equal(said(), whole)
    with valve(subject, torch.ones(len(subject.heads))):
        assert torch.equal(said(), whole)


def test_families_whose_maps_cannot_be_replaced_are_refused_by_name() -> None:
    subject = Subject(OUTSIDE["gptj"]())
    message = r"GPTJForCausalLM \(model type 'gptj'\) does not speak .* use the mode zero, mean or"
    with pytest.raises(UnsupportedModel, match=message):
        check_uniform(subject)
    check_uniform(Subject(INTERFACE["bert"]()))


def test_uniform_weights_follow_the_mask() -> None:
    site = Site("enc", 0, heads=1, kv_heads=1, head_dim=1, module="")
    value = torch.zeros(1, 1, 4, 1)
    mask = torch.tensor([[True, True, False, False]])[:, None, None, :]
    for given in (mask, torch.zeros(1, 1, 1, 4).masked_fill(~mask, torch.finfo().min)):
        assert uniform_weights(site, given, 2, value)[0, 0].tolist() == [[0.5, 0.5, 0, 0]] * 2
    flat = torch.tensor([[1, 1, 1, 0]])  # as flash attention has it
    assert uniform_weights(site, flat, 1, value).sum().item() == pytest.approx(1)
    nothing = torch.zeros(1, 1, 1, 4, dtype=torch.bool)  # a query of padding on the left
    assert uniform_weights(site, nothing, 1, value).sum().item() == 0


def test_uniform_comes_before_dropout() -> None:
    site = Site("enc", 0, heads=1, kv_heads=1, head_dim=1, module="")
    output, value = torch.zeros(1, 1, 1, 1), torch.ones(1, 1, 1000, 1)
    torch.manual_seed(0)
    dropped = uniform(site, Attended(output, None, None, value, dropout=0.5)).item()
    assert dropped != 1.0
    assert dropped == pytest.approx(1.0, abs=0.2)
    assert uniform(site, Attended(output, None, None, value)).item() == pytest.approx(1.0)


def test_means_are_over_real_tokens_whatever_the_batches() -> None:
    subject = Subject(INTERFACE["marian"]())
    inputs = tiny_inputs(subject.model, batch=3, pad=3)
    stacks = subject.anatomy.stacks
    together = means_of(subject, [ready_batch(inputs, stacks)])
    rows = [{name: x[row : row + 1] for name, x in inputs.items()} for row in range(3)]
    apart = means_of(subject, [ready_batch(row, stacks) for row in rows])
    cut = {name: x[2:, :4] if "decoder" not in name else x[2:] for name, x in inputs.items()}
    unpadded = means_of(subject, [ready_batch(row, stacks) for row in (rows[0], rows[1], cut)])
    like = Attended(torch.zeros(()))
    for site in subject.anatomy.sites:
        mean = together(site, like)
        assert mean.shape == (1, 1, site.heads, site.head_dim)
        torch.testing.assert_close(apart(site, like), mean, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(unpadded(site, like), mean, atol=1e-5, rtol=1e-5)


def test_donors_lend_token_by_token_and_start_again() -> None:
    """A row that borrows from itself is as it was; a shorter donor goes round."""
    subject = Subject(INTERFACE["bert"]())
    inputs = tiny_inputs(subject.model, batch=2, pad=3)
    batch = ready_batch(inputs, subject.anatomy.stacks)
    site = subject.anatomy.sites[0]
    plain = answer(subject.model(**inputs))
    own = donors_of(subject, batch, [(batch, [0, 1])])
    with torch.no_grad(), ablated(subject, subject.heads[:4], own):
        torch.testing.assert_close(answer(subject.model(**inputs))[0], plain[0])
    swapped = donors_of(subject, batch, [(batch, [1, 0])])
    output = torch.zeros(2, 7, site.heads, site.head_dim)
    lent = swapped(site, Attended(output, None, None))
    torch.testing.assert_close(lent[0, 4:], lent[0, :3])  # four real tokens, then again
    torch.testing.assert_close(lent[1, :4], own(site, Attended(output, None, None))[0, :4])
