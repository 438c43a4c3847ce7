"""Who goes next: ties, groups, layers that keep heads, scores estimated again."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tiny import GROUPED, TINY, row

from headcount.errors import UsageError
from headcount.models.subject import Subject
from headcount.pruning.curve import candidates, ordered, random_scores, spared, worth_of
from headcount.pruning.cut import keeps
from headcount.pruning.goal import removed_counts
from headcount.records.heads import Head

HEADS = [Head("enc", layer, index) for layer in range(3) for index in range(4)]
UNITS = [(head,) for head in HEADS]


def names(heads: tuple[Head, ...]) -> list[str]:
    return [str(head) for head in heads]


def test_the_least_important_go_first_and_ties_as_the_model_has_them() -> None:
    scores = dict.fromkeys(HEADS, 1.0) | {Head("enc", 2, 3): 0.5, Head("enc", 0, 0): 2.0}
    order = ordered(UNITS, scores, [1, 3, 12])
    assert [names(step) for step in order.steps[:2]] == [["enc.2.3"], ["enc.0.1", "enc.0.2"]]
    assert order.gone(3)[-1] == Head("enc", 0, 0)
    assert set(order.gone(3)) == set(HEADS)


def test_every_layer_keeps_its_best() -> None:
    scores = {head: float(place) for place, head in enumerate(HEADS)}
    order = ordered(UNITS, scores, [6, 9], at_least=1)
    left = set(HEADS) - set(order.gone(len(order)))
    assert left == {Head("enc", 0, 3), Head("enc", 1, 3), Head("enc", 2, 3)}
    assert order.steps[0] == tuple(HEADS[0:3] + HEADS[4:7])


def test_of_equals_the_last_is_kept() -> None:
    """The authors sort once and protect from the other end."""
    order = ordered(UNITS, dict.fromkeys(HEADS, 1.0), [3, 9], at_least=1)
    assert names(order.steps[0]) == ["enc.0.0", "enc.0.1", "enc.0.2"]
    left = set(HEADS) - set(order.gone(2))
    assert left == {Head("enc", 0, 3), Head("enc", 1, 3), Head("enc", 2, 3)}


def test_scores_are_asked_for_again_without_those_that_are_gone() -> None:
    asked = []

    def rank(gone: tuple[Head, ...]) -> Mapping[Head, float]:
        asked.append(gone)
        sign = -1.0 if gone else 1.0  # after the first step the order turns round
        return {head: sign * place for place, head in enumerate(HEADS) if head not in gone}

    order = ordered(UNITS, rank, [2, 4])
    assert [names(step) for step in order.steps] == [["enc.0.0", "enc.0.1"], ["enc.2.3", "enc.2.2"]]
    assert asked == [(), order.steps[0]]


def test_groups_go_whole_by_the_sum_of_their_scores() -> None:
    subject = Subject(row("LlamaForCausalLM", "LlamaConfig", GROUPED)())
    units = candidates(subject.anatomy)
    assert {len(unit) for unit in units} == {2}
    scores = dict.fromkeys(subject.heads, 1.0)
    scores |= {units[1][0]: 0.0, units[1][1]: 1.5, units[2][0]: 0.6, units[2][1]: 0.7}
    order = ordered(units, scores, [1, 2, 5])
    assert order.steps == (units[2], units[1])  # one head cannot go, and the fifth neither
    keeps(subject.anatomy, order.gone(2))


def test_a_layer_used_again_loses_a_head_everywhere() -> None:
    subject = Subject(TINY["albert"]())
    units = candidates(subject.anatomy)
    assert [head.layer for head in units[0]] == [0, 1, 2]
    order = ordered(units, random_scores(subject.heads, 3), [3, 6, 9, 12], at_least=1)
    keeps(subject.anatomy, order.gone(len(order)))
    assert len(order.gone(len(order))) == 9
    assert spared(units, 1) == 3


def test_some_stacks_alone() -> None:
    subject = Subject(TINY["marian"]())
    units = candidates(subject.anatomy, ["cross"])
    assert {head.stack for unit in units for head in unit} == {"cross"}
    with pytest.raises(UsageError, match="There is no stack 'cross' in this model; it has enc"):
        candidates(Subject(TINY["bert"]()).anatomy, ["cross"])


def test_a_head_without_a_score_is_told() -> None:
    with pytest.raises(UsageError, match=r"enc\.0\.1 has no score, so it has no place"):
        worth_of(UNITS, {HEADS[0]: 1.0, HEADS[1]: float("nan")})
    with pytest.raises(UsageError, match="At least -1 heads a layer"):
        ordered(UNITS, dict.fromkeys(HEADS, 1.0), [1], at_least=-1)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"total": 144}, [14, 28, 43, 57, 72, 86, 100, 115, 129]),
        ({"total": 144, "convention": "paper"}, [14, 28, 43, 57, 72, 86, 100, 115, 129, 144]),
    ],
)
def test_how_many_are_gone(given: dict, expected: list[int]) -> None:
    assert removed_counts(**given) == expected


def test_the_list_ends_where_layers_need_their_heads() -> None:
    found = removed_counts(72, 5, convention="code", spared=12)
    assert found == [int(72 * p / 100) for p in range(5, 84, 5)]
    assert found[-1] == 57


def test_a_step_that_is_none() -> None:
    with pytest.raises(UsageError, match="The step is 0; it must be above 0"):
        removed_counts(10, 0)
