"""Refit against least squares by hand, on every kind of model, and what it must leave alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import tiny_subjects as made
import torch
from model_state import assert_same, state_of
from small_tasks import PAIRS, TEXTS

import headcount as hc
from headcount import tasks
from headcount.errors import UsageError
from headcount.models import Subject, output_of
from headcount.pruning import prune, prune_plan, removable_units
from headcount.rooms.refit import Refit

Made = tuple[Subject, tasks.Task]

KINDS: dict[str, Callable[[], Made]] = {
    "marian": lambda: (made.translator(), tasks.translation(PAIRS, metric="loss")),
    "t5": lambda: (made.translator("t5"), tasks.translation(PAIRS, metric="loss")),
    "bert": lambda: (made.filler(), tasks.mlm(TEXTS)),
    "gpt2": lambda: (made.writer(), tasks.lm(TEXTS)),
    "llama": lambda: (made.writer("llama"), tasks.lm(TEXTS)),
}


@pytest.fixture(params=KINDS)
def pair(request: pytest.FixtureRequest) -> Made:
    return KINDS[request.param]()


def by_hand(subject: Subject, task: tasks.Task, heads: tuple, site_at: int) -> torch.Tensor:
    """W_K + W_R C_RK (C_KK + ridge)^-1, from inputs and gradients kept token by token."""
    site = subject.anatomy.sites[site_at]
    place = output_of(subject.model, site)
    module = subject.model.get_submodule(place.name.rpartition(".")[0])
    taken: list[torch.Tensor] = []
    slopes: list[torch.Tensor] = []

    def keep(_: object, args: tuple[torch.Tensor], output: torch.Tensor) -> None:
        taken.append(args[0].detach().flatten(0, -2).double())
        output.register_hook(lambda slope: slopes.append(slope.flatten(0, -2).double()))

    hook = module.register_forward_hook(keep)
    subject.model.eval()
    for batch in task.batches(subject):
        task.loss(subject, batch).sum().backward()
    hook.remove()
    inputs, weights = torch.cat(taken), torch.cat(slopes).square().sum(1)
    if module.bias is not None:
        inputs = torch.cat([inputs, torch.ones(len(inputs), 1, dtype=torch.float64)], 1)
    gone = torch.zeros(inputs.shape[1], dtype=torch.bool)
    gone[: site.heads * site.head_dim] = torch.tensor(
        [name in heads for name in site.names]
    ).repeat_interleave(site.head_dim)
    moments = (inputs * weights[:, None]).t() @ inputs
    ridge = torch.full((inputs.shape[1],), 0.01, dtype=torch.float64)
    ridge *= moments.diagonal()[: site.heads * site.head_dim].mean()
    ridge[site.heads * site.head_dim :] = 0
    inner = (moments + torch.diag(ridge))[~gone][:, ~gone]
    weight = module.weight.detach().double()
    weight = weight.t() if place.axis == 0 else weight
    if module.bias is not None:
        weight = torch.cat([weight, module.bias.detach().double()[:, None]], 1)
    return weight[:, ~gone] + weight[:, gone] @ moments[gone][:, ~gone] @ torch.linalg.inv(inner)


def test_what_stays_is_the_weighted_least_squares_of_what_goes(pair: Made) -> None:
    subject, task = pair
    unit = removable_units(subject.anatomy, subject.heads)[-1]
    refit = Refit(subject, task)
    output = next(one for one in refit.outputs if bool(one.columns(unit).any()))
    wanted = by_hand(subject, task, unit, len(subject.anatomy.sites) - 1)
    stays = ~output.columns(unit)
    assert torch.allclose(output.without(unit)[:, stays], wanted, rtol=1e-3, atol=1e-5)


def test_the_small_model_gives_what_the_refitted_one_gives_and_nothing_stays(pair: Made) -> None:
    subject, task = pair
    before = state_of(subject)
    refit = Refit(subject, task)
    units = [unit for unit, _ in refit.order(removable_units(subject.anatomy, subject.heads))]
    assert sorted(head for unit in units for head in unit) == sorted(subject.heads)
    going = units[0]
    with refit.applied(going):
        inside = task.evaluate(subject).scores
    small = refit.prune(going)
    assert_same(before, state_of(subject))
    assert task.evaluate(small).scores == pytest.approx(inside, abs=1e-4)
    assert set(small.heads) == set(subject.heads) - set(going)


def test_a_head_that_another_repeats_costs_nothing_after_the_refit() -> None:
    subject, task = KINDS["bert"]()
    site = subject.anatomy.sites[0]
    attention = subject.model.get_submodule(site.module)
    size = site.head_dim
    with torch.no_grad():  # head 1 does what head 0 does
        for part in (attention.query, attention.key, attention.value):
            part.weight[size : 2 * size] = part.weight[:size]
            part.bias[size : 2 * size] = part.bias[:size]
    first = site.names[:1]
    whole = task.evaluate(subject).value
    cut = task.evaluate(prune(subject, first)).value
    small = task.evaluate(Refit(subject, task).prune(first)).value
    assert abs(small - whole) < 0.1 * abs(cut - whole)


def test_the_curve_is_measured_on_refitted_models_and_goes_on_after_a_kill() -> None:
    subject, task = KINDS["marian"]()
    refit = Refit(subject, task)
    order = [unit[0] for unit, _ in refit.order(removable_units(subject.anatomy, subject.heads))]
    points = {"first": order[:2], "second": order[:5]}
    swept = refit.sweep(task, points)
    assert swept.outcome("second").value == pytest.approx(
        task.evaluate(refit.prune(order[:5])).value, abs=1e-5
    )

    class Kept:
        def __init__(self) -> None:
            self.done: dict[str, object] = {}

        def append(self, unit: str, kept: object) -> None:
            self.done[unit] = kept

    journal = Kept()
    refit.sweep(task, points, journal=journal)  # type: ignore[arg-type]
    assert list(journal.done) == ["refit loss first", "refit loss second"]
    again = refit.sweep(task, points, journal=journal)  # type: ignore[arg-type]
    assert [one.value for one in again.outcomes] == [one.value for one in swept.outcomes]


def test_a_loss_that_torch_cannot_differentiate_is_refused() -> None:
    subject = made.encoder()

    def score(subject: Subject, examples: list[str]) -> list[float]:
        return [0.0 for _ in examples]

    task = tasks.custom(TEXTS, score=score)
    with pytest.raises(UsageError, match=r"refit|loss|differentiat"):
        Refit(subject, task)


def test_a_plan_judges_refitted_models_and_removes_as_it_judged() -> None:
    subject, task = KINDS["marian"]()
    plan = prune_plan(
        subject,
        task,
        drop_share=0.25,
        ranking=hc.RankingOptions(step=25.0, refit=True),
    )
    assert [order.name for order in plan.orders] == ["refit"]
    small = plan.prune(subject)
    judged = plan.sweep.outcome(plan.sweep.interventions[0].name)
    assert plan.sweep.task.evaluate(small).value == pytest.approx(judged.value, abs=1e-4)
    named = prune(subject, plan.going, refit=plan.choose)
    assert task.evaluate(named).value == pytest.approx(task.evaluate(small).value, abs=1e-4)
    with pytest.raises(UsageError, match=r"add refit=True \(--refit\)"):
        prune_plan(subject, task, by="refit", keep=10)
