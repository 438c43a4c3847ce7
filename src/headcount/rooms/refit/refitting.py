"""Refit: the remaining heads of a layer replace the removed ones, in closed form.

Kwon et al. 2022 (A Fast Post-Training Pruning Framework for Transformers) and Park et al. 2024
(K-prune) solve for the weights that stay by least squares. Here the squares are weighted by the
squared gradient of the loss at the layer's output: unweighted, a few tokens with huge outputs
decide, and the result is worse than the cut itself.

With inputs x_t of an output projection W (heads side by side, and 1 for the bias), gradients g_t at
its output, and weights w_t = |g_t|^2:

    C = sum_t w_t x_t x_t'                                  second moments
    W_K <- W_K + W_R C_RK (C_KK + ridge)^-1                 K stays, R goes

The order asks what a head costs after the refit: the squared error that the rest of its layer
cannot make up for, tr(G W_R S_R W_R'), with S_R the Schur complement of the columns that stay
(optimal brain surgery: Hassibi & Stork 1992) and G the shares of the gradient's directions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from headcount.errors import ModelError, UsageError
from headcount.importance import Intervention, Sweep
from headcount.models import HeadWeight, Subject, eval_mode, frozen, on_exit, output_of
from headcount.pruning import prune, read_heads
from headcount.records import Head, Journal, working
from headcount.tasks import Outcome, Task
from headcount.wiring import hooked

#: The pull towards the old weights: a share of the mean second moment of an input.
RIDGE = 0.01


@dataclass
class Output:
    """One output projection: its weights, whose columns are whose, and its moments so far."""

    module: nn.Module
    place: HeadWeight
    #: The heads of every site that the module serves, by their place in the module.
    heads: tuple[tuple[Head, ...], ...]
    #: Second moments of the inputs (last the 1 of the bias), weighted; `[input, input]`.
    moments: Tensor = field(default_factory=lambda: torch.zeros(()))
    #: Second moments of the gradient at the output; `[output, output]`.
    gradients: Tensor = field(default_factory=lambda: torch.zeros(()))

    @property
    def matrix(self) -> Tensor:
        """The weights `[output, input]`, the bias as the last column where there is one."""
        weight = self.module.get_parameter("weight").detach().double()
        weight = weight.t() if self.place.axis == 0 else weight
        return weight if self.bias is None else torch.cat([weight, self.bias.double()[:, None]], 1)

    @property
    def bias(self) -> Tensor | None:
        """The bias, where the projection has one."""
        return None if self.module.bias is None else self.module.get_parameter("bias").detach()

    def columns(self, heads: Sequence[Head]) -> Tensor:
        """The columns of heads, and False for the bias."""
        going = [
            place for place, names in enumerate(self.heads) if set(names) & set(heads)
        ]  # a module that serves several layers loses a head in all of them
        gone = torch.isin(self.place.owner, torch.tensor(going, dtype=torch.long))
        return gone if self.bias is None else torch.cat([gone, torch.zeros(1, dtype=torch.bool)])

    def add(self, taken: Tensor, gradient: Tensor) -> None:
        """Take in the inputs of some tokens and the gradients at their outputs."""
        rows, slopes = taken.flatten(0, -2).double(), gradient.flatten(0, -2).double()
        if self.bias is not None:
            rows = torch.cat([rows, rows.new_ones(len(rows), 1)], 1)
        weighted = rows * slopes.square().sum(1, keepdim=True)
        self.moments = self.moments + (weighted.t() @ rows).cpu()
        self.gradients = self.gradients + (slopes.t() @ slopes).cpu()

    def ridged(self) -> Tensor:
        """The moments with the ridge, none on the bias."""
        count = len(self.place.owner)
        ridge = torch.zeros(len(self.moments), dtype=torch.float64)
        ridge[:count] = RIDGE * self.moments.diagonal()[:count].mean().clamp_min(1e-30)
        return self.moments + torch.diag(ridge)

    def without(self, heads: Sequence[Head]) -> Tensor:
        """The matrix with the columns of these heads 0 and the others making up for them."""
        gone = self.columns(heads)
        matrix, stays = self.matrix.cpu(), ~gone
        if bool(stays.any()):
            moments = self.ridged()
            shares = torch.linalg.solve(moments[stays][:, stays], moments[stays][:, gone])
            matrix[:, stays] += matrix[:, gone] @ shares.t()
        matrix[:, gone] = 0
        return matrix

    def write(self, matrix: Tensor) -> None:
        """Put another matrix in the place of the weights."""
        weight = self.module.get_parameter("weight")
        count = len(self.place.owner)
        made = matrix[:, :count].t() if self.place.axis == 0 else matrix[:, :count]
        weight.data = made.to(weight).contiguous()
        if self.bias is not None:
            bias = self.module.get_parameter("bias")
            bias.data = matrix[:, count].to(bias)


class _Surgery:
    """What each unit of heads of one output would cost now, while heads go one after another."""

    def __init__(self, output: Output) -> None:
        self.output = output
        self.matrix = output.matrix.cpu()
        self.inverse = torch.linalg.inv(output.ridged())
        self.places = torch.arange(len(self.inverse))
        trace = output.gradients.trace().clamp_min(1e-300)
        self.directions = output.gradients / trace

    def _gone(self, heads: Sequence[Head]) -> Tensor:
        return self.output.columns(heads)[self.places]

    def cost(self, heads: Sequence[Head]) -> float:
        """tr(G W_R S_R W_R'): the weighted squared error that the others cannot make up for."""
        gone = self._gone(heads)
        left_over = torch.linalg.inv(self.inverse[gone][:, gone])
        going = self.matrix[:, gone]
        return float(((going @ left_over) * (self.directions @ going)).sum())

    def drop(self, heads: Sequence[Head]) -> None:
        """Let heads go: the others take over what they can."""
        gone = self._gone(heads)
        stays = ~gone
        block = torch.linalg.inv(self.inverse[gone][:, gone])
        crossing = self.inverse[gone][:, stays]
        self.matrix = self.matrix[:, stays] - self.matrix[:, gone] @ block @ crossing
        self.inverse = self.inverse[stays][:, stays] - crossing.t() @ block @ crossing
        self.places = self.places[stays]


class Refit:
    """What a model's output projections become without some heads: measured once, asked often.

    >>> import headcount as hc
    >>> from headcount.bundle import sample
    >>> task = hc.tasks.translation(sample.pairs()[:24], metric="loss")
    >>> refit = Refit(hc.load("translator", device="cpu"), task)
    >>> small = refit.prune("enc.0.1,enc.3.2")
    >>> len(small.heads)
    142
    """

    def __init__(self, subject: Subject, task: Task, *, batch_size: int = 16) -> None:
        self.subject, self.task = subject, task
        self.outputs = _outputs(subject)
        self._measure(batch_size)

    def __repr__(self) -> str:
        return f"Refit({self.subject.name}, {len(self.outputs)} layers, {len(self.task)} examples)"

    def _measure(self, batch_size: int) -> None:
        """One forward and backward over all examples."""
        subject, task = self.subject, self.task
        for output in self.outputs:
            width = len(output.place.owner) + (output.bias is not None)
            output.moments = torch.zeros(width, width, dtype=torch.float64)
        listeners = {output.module: output for output in self.outputs}
        with (
            torch.inference_mode(False),
            torch.enable_grad(),
            eval_mode(subject.model),
            frozen(subject.model),
            hooked(listeners, partial(_listen, listeners), after=True),
            working("Measuring for the refit", len(task)) as shown,
        ):
            for batch in task.batches(subject, batch_size):
                loss = task.loss(subject, batch).sum()
                if not loss.requires_grad:
                    raise UsageError(
                        f"The loss of {task.name} does not depend on the heads of {subject.name} "
                        "in a way that can be differentiated, so nothing can be refitted; leave "
                        "out the refit, or give a task whose loss torch computes."
                    )
                loss.backward()
                shown(len(batch))
        self.outputs = [output for output in self.outputs if output.gradients.dim()]
        for output in self.outputs:
            if not bool(torch.isfinite(output.moments).all()):
                raise ModelError(
                    f"What {output.place.name} takes in or its gradient is not a number for some "
                    f"example of {task.name}; load the model with dtype='float32'."
                )

    def order(self, units: Sequence[tuple[Head, ...]]) -> list[tuple[tuple[Head, ...], float]]:
        """Units in the order in which they cost least after the refit, each with its cost then.

        The cheapest goes first; its layer is refitted, and asked again.
        """
        surgeries = [_Surgery(output) for output in self.outputs]
        homes = {
            unit: [one for one in surgeries if bool(one.output.columns(unit).any())]
            for unit in units
        }
        costs = {unit: sum(one.cost(unit) for one in homes[unit]) for unit in units}
        order = []
        while costs:
            cheapest = min(costs, key=lambda unit: costs[unit])
            order.append((cheapest, costs.pop(cheapest)))
            for home in homes[cheapest]:
                home.drop(cheapest)
            for unit in costs:
                if any(home in homes[cheapest] for home in homes[unit]):
                    costs[unit] = sum(one.cost(unit) for one in homes[unit])
        return order

    def worth(self, units: Sequence[tuple[Head, ...]]) -> dict[Head, float]:
        """A score by which heads go in that order: the cost so far at which each one goes."""
        worth, so_far = dict[Head, float](), 0.0
        for unit, cost in self.order(units):
            so_far += max(cost, 0.0) + 1e-300
            worth |= dict.fromkeys(unit, so_far / len(unit))
        return worth

    def sweep(
        self,
        task: Task,
        points: Mapping[str, Sequence[Head]],
        *,
        batch_size: int = 16,
        journal: Journal | None = None,
    ) -> Sweep:
        """A task without the heads of each point, refitted; as `importance.sweep`.

        `task` must have other examples than those that the refit was measured on.
        """
        done = {} if journal is None else journal.done
        batches = list(task.batches(self.subject, batch_size))
        outcomes: list[Outcome] = []
        with working("Judging refitted models", len(points) + 1) as shown:
            for name, heads in {"whole": (), **points}.items():
                unit = f"refit {task.metric.name} {name}"
                if unit in done:
                    outcome = replace(outcomes[0], statistics=np.array(done[unit], dtype=float))
                else:
                    with self.applied(heads):
                        outcome = task.evaluate(self.subject, batches=batches)
                    if journal is not None and heads:
                        journal.append(unit, outcome.statistics.tolist())
                outcomes.append(outcome)
                shown()
        made = tuple(Intervention(tuple(heads), name=name) for name, heads in points.items())
        return Sweep(task, made, outcomes[0], tuple(outcomes[1:]), len(task), fast=False)

    @contextmanager
    def applied(self, heads: Sequence[Head]) -> Iterator[None]:
        """Within the block the model is refitted and these heads give nothing; then as before."""
        parameters = [
            parameter
            for output in self.outputs
            for parameter in (output.module.weight, output.module.bias)
            if isinstance(parameter, nn.Parameter)
        ]
        before = [parameter.data for parameter in parameters]

        def restore() -> None:
            for parameter, data in zip(parameters, before, strict=True):
                parameter.data = data

        with on_exit(restore):
            for output in self.outputs:
                if bool(output.columns(heads).any()):
                    output.write(output.without(heads))
            yield

    def prune(self, heads: Any) -> Subject:
        """A smaller, refitted copy without these heads; `hc.prune` checks it."""
        going = read_heads(heads, self.subject.heads)
        with self.applied(going):
            return prune(self.subject, going)


# --- The projections of a model, and how they are listened to -----------------------------------


def _outputs(subject: Subject) -> list[Output]:
    """Every output projection, with the heads of all sites that it serves."""
    by_module: dict[str, list[Any]] = {}
    for site in subject.anatomy.sites:
        by_module.setdefault(site.module, []).append(site)
    outputs = []
    for sites in by_module.values():
        place = output_of(subject.model, sites[0])
        module = subject.model.get_submodule(place.name.rpartition(".")[0])
        heads = tuple(zip(*(site.names for site in sites), strict=True))
        outputs.append(Output(module, place, heads))
    return outputs


def _listen(outputs: Mapping[nn.Module, Output], module: nn.Module, args: Any, given: Any) -> Any:
    """A forward hook: hear the gradient of what a projection gives, beside what it took."""
    if not given.requires_grad:  # the first of the forward: nothing before asks for a gradient
        given = given.requires_grad_()
    taken = args[0].detach()
    given.register_hook(lambda gradient: outputs[module].add(taken, gradient))
    return given
