"""Whole sets of heads off against as many others of their layers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from report_runs import ENCODER, made_roles, made_table
from subjects import subject_of

from headcount import tasks
from headcount.errors import UsageError
from headcount.models import Subject
from headcount.records import Head, HeadTable, Run
from headcount.rooms.knockout.whole_jobs import (
    _answer,
    _figures,
    _mean_of_draws,
    knockout,
    knockout_sentences,
    matched_draws,
    role_sets,
)
from headcount.tasks import LOSS, Outcome


@pytest.fixture(scope="module")
def translator() -> Subject:
    return subject_of("marian", "marian")


def losses(per_example: np.ndarray) -> Outcome:
    return Outcome(LOSS, np.stack([per_example, np.ones(len(per_example))], axis=1))


def test_other_heads_are_of_the_same_layers_and_never_of_the_set() -> None:
    known = [Head("enc", layer, index) for layer in range(3) for index in range(8)]
    heads = [known[0], known[1], known[9]]
    draws, all_there, why = matched_draws(heads, known, 8)
    assert (len(set(draws)), all_there, why) == (8, False, "")
    for draw in draws:
        assert sorted(head.layer for head in draw) == [0, 0, 1]
        assert not set(draw) & set(heads)
    assert draws == matched_draws(heads, known, 8)[0]


def test_a_layer_with_too_few_other_heads_leaves_the_set_without_a_control() -> None:
    known = [Head("dec", 2, index) for index in range(4)]
    assert matched_draws(known[:3], known, 8) == (
        [],
        True,
        "too few others to compare: dec.2 has 1 for 3",
    )


def test_the_interval_knows_of_examples_and_of_draws() -> None:
    rng = np.random.default_rng(0)
    base = rng.normal(2.0, 0.1, 400)
    off = losses(base + 0.5)
    alike = [losses(base + 0.1) for _ in range(8)]
    unlike = [losses(base + cost) for cost in np.linspace(-0.1, 0.3, 8)]
    narrow = _figures(losses(base), off, alike, False, 0)
    wide = _figures(losses(base), off, unlike, False, 0)
    assert narrow["excess"] == pytest.approx(0.4) == wide["excess"]
    assert narrow["high"] - narrow["low"] < 1e-9  # every example says the same
    assert 0.1 < wide["high"] - wide["low"] < 0.4  # the draws do not
    assert _figures(losses(base), off, unlike, True, 0)["high"] - 0.4 < 1e-9  # all draws there are


def test_resampled_draws_vary_as_a_mean_does() -> None:
    costs = np.tile(np.array([0.0, 1.0, 2.0, 3.0]), (20_000, 1))
    means = _mean_of_draws(costs, False, 0)
    assert means.var() == pytest.approx(np.var([0, 1, 2, 3], ddof=1) / 4, rel=0.05)


def test_a_set_that_is_one_more_draw_is_seldom_called_more() -> None:
    called, rounds = 0, 80
    for seed in range(rounds):
        rng = np.random.default_rng(seed)
        base = rng.normal(2.0, 0.3, 100)
        costs = rng.normal(0.2, 0.05, 9)
        systems = [losses(base + cost + rng.normal(0, 0.1, 100)) for cost in costs]
        figures = _figures(losses(base), systems[0], systems[1:], False, seed)
        called += _answer(figures | {"draws": 8, "p_adjusted": figures["p"]}) == "more"
    assert called / rounds <= 1 / 9 + 2 * np.sqrt(8 / 81 / rounds)


def test_a_translator_without_sets(translator: Subject, tmp_path) -> None:  # type: ignore[no-untyped-def]
    task = tasks.translation([("a b c", "d e"), ("b c", "e"), ("c a", "d d e")] * 2, metric="loss")
    heads = translator.heads
    roles = pd.DataFrame(
        {
            "stack": [heads[0].stack, heads[1].stack],
            "layer": [heads[0].layer, heads[1].layer],
            "head": [heads[0].index, heads[1].index],
            "role": ["positional", "sink"],
            "rests": [False, True],
        }
    )
    table = HeadTable.of(heads, {"ablation": np.full(len(heads), 0.5)}, details={"roles": roles})
    assert list(role_sets(table)) == ["any function", "any rest", "positional", "sink"]
    with Run.open(tmp_path / "run") as run:
        frame = knockout(translator, task, table, draws=2, run=run)
        assert run.read_frame("knockout")["set"].tolist() == frame["set"].tolist()
    assert frame["draws"].tolist() == [2, 2, 2, 2]
    assert (frame["alone"] == 0.5).all()
    assert len(knockout_sentences(frame)) == 2
    both = knockout(translator, task, {"both": heads[:2], "all": heads}, draws=2)
    assert both["answer"].tolist()[1] == "not compared"
    assert both["note"].tolist()[1].startswith("too few others")


@pytest.mark.parametrize(
    ("sets", "options", "told"),
    [
        ({"x": "enc.9.9"}, {}, "enc.9.9"),
        ({}, {}, "No head has a role, so there is no job to take away; name sets of heads."),
        ({"x": ""}, {}, "has no heads"),
        ({"x": "enc.0.0"}, {"draws": 1}, "draws is 1; 2 or more"),
    ],
)
def test_what_cannot_be_taken_away_is_said(
    translator: Subject, sets: dict[str, str], options: dict[str, int], told: str
) -> None:
    task = tasks.translation([("a b", "d")], metric="loss")
    with pytest.raises(UsageError, match=told):
        knockout(translator, task, sets, **options)  # type: ignore[arg-type]


def test_a_kind_of_word_that_is_looked_at_is_no_job() -> None:
    """Also in tables from before it was an observation, where `rests` is false."""
    heads = [Head("enc", 0, index) for index in range(3)]
    roles = pd.DataFrame(
        {
            "stack": "enc", "layer": 0, "head": [0, 1, 2], "role": ["rare", "feature", "sink"],
            "rests": [False, False, True],
        }
    )  # fmt: skip
    sets = role_sets(HeadTable.of(heads, {}, details={"roles": roles}))
    assert sets["any function"] == (heads[0],)
    assert sets["any rest"] == (heads[2],)
    assert sets["feature"] == (heads[1],)


def test_no_head_with_an_interval_above_0_costs_nothing_alone() -> None:
    """What the page's title calls "nothing we can measure" are these heads, and no others."""
    table = made_table()
    table.details["roles"] = made_roles(ENCODER).assign(rests=False)
    low = dict(zip(table.heads, table.low["ablation"], strict=True))
    assert any(end > 0 for end in low.values())
    assert set(role_sets(table)["free alone"]) == {head for head, end in low.items() if end <= 0}
