"""What every role of a trial shares: thresholds, tests, order, the twin, and the same names."""

from __future__ import annotations

import math

import pytest
from trial_tables import trial_table

from headcount.records.heads import Head
from headcount.survey.roles.recall import Duplicate, Induction
from headcount.survey.roles.resting import Previous, SourceEnd
from headcount.survey.roles.role import ANSWERS, MEASURES, Role, trial_figure
from headcount.survey.trials import trial as answer

ROLES = {
    "induction": (Induction(), "induction", "dec"),
    "duplicate": (Duplicate(), "duplicate", "dec"),
    "previous": (Previous(), "previous_random", "dec"),
    "source-end": (SourceEnd(), "source_end", "cross"),
}


def figures(stack: str, least: float) -> dict[str, tuple[float, float, float]]:
    """Heads above the line, below it, and above it by chance."""
    return {
        f"{stack}.0.0": (least + 0.05, 0.02, 0.01),
        f"{stack}.0.1": (least - 0.01, 0.02, 0.001),
        f"{stack}.0.2": (least + 0.30, 0.02, 0.2),
        f"{stack}.0.3": (least + 0.20, 0.02, 0.001),
        f"{stack}.0.4": (least + 0.20, 0.02, float("nan")),
    }


@pytest.mark.parametrize("name", ROLES)
def test_only_what_reaches_the_line_and_is_no_chance_the_strongest_first(name: str) -> None:
    role, column, stack = ROLES[name]
    table = trial_table({column: figures(stack, role.least)})
    found = role.judge(table)
    assert [verdict.head for verdict in found] == [Head(stack, 0, 3), Head(stack, 0, 0)]
    assert {verdict.role for verdict in found} == {role.name} == {name}
    best = found[0]
    assert (best.value, best.baseline, best.n) == (role.least + 0.2, 0.02, 300)
    assert (best.p, best.p_adjusted) == (0.0001, 0.001)
    assert f"{best.value:.2f} [{best.low:.2f}, {best.high:.2f}], uniform attention 0.02" in str(
        best
    )


@pytest.mark.parametrize("name", ROLES)
def test_thresholds_are_fields(name: str) -> None:
    role, column, stack = ROLES[name]
    table = trial_table({column: figures(stack, role.least)})
    assert len(type(role)(least=0.0, level=1.0).judge(table)) == 4
    assert not type(role)(least=0.99).judge(table)


@pytest.mark.parametrize("name", ROLES)
def test_the_twin_s_best_head_of_the_same_stack(name: str) -> None:
    role, column, stack = ROLES[name]
    (first, *_) = role.judge(trial_table({column: figures(stack, role.least)}))
    twin = trial_table({column: {f"{stack}.0.0": (0.1, 0.1, 1.0), f"{stack}.0.1": (0.2, 0.1, 1.0)}})
    assert role.chance(twin, first) == 0.2


@pytest.mark.parametrize("name", ROLES)
def test_a_role_says_what_it_reads(name: str) -> None:
    role: Role = ROLES[name][0]
    assert {*role.reads} == {ROLES[name][1], ANSWERS}


def test_roles_and_trials_mean_the_same_details() -> None:
    assert (ANSWERS, MEASURES) == (answer.ANSWERS, answer.MEASURES)


def test_a_figure_of_the_model_that_nobody_took() -> None:
    assert math.isnan(trial_figure(trial_table({}), "needle", "right tokens of the answer"))
