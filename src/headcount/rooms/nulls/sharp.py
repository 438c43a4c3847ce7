"""A random twin as sharp as the model: the control that a plain random twin cannot be.

Weights as drawn before training give nearly uniform attention, which points nowhere in particular;
beating that says little (Clark et al., BlackBoxNLP 2019, section 5, have no other). Here queries
are scaled up, layer by layer, until the twin's mean confidence is the model's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch

from headcount.errors import ModelError, UnsupportedModel
from headcount.models import Site, Subject, head_weights
from headcount.records import HeadTable
from headcount.rooms.twins import random_twin
from headcount.surveys import Confidence, Pass
from headcount.text import Corpus, Ready

#: Texts that confidence is measured on, steps of the search, and how near it must come.
TEXTS = 48
_STEPS = 18
_NEAR = 0.01

Layer = tuple[str, int]


def sharp_twin(
    subject: Subject, like: Pass, *, seed: int = 0, goal: Mapping[Layer, float] | None = None
) -> Subject:
    """A random twin whose layers are, on the texts of a pass, as confident as the model's.

    `goal` is what `layer_confidence` says of the model, where that is known. The twin notes how
    far each layer stayed from it. Only queries are scaled: scores are products of queries and keys.
    """
    goal = layer_confidence(subject, like) if goal is None else goal
    twin = random_twin(subject, seed=seed)
    sites = {(site.stack, site.layer): site for site in twin.anatomy.sites}
    step = dict.fromkeys(goal, 2.0)
    last = dict.fromkeys(goal, 0)
    for _ in range(_STEPS):
        off = {k: goal[k] - one for k, one in layer_confidence(twin, like).items() if k in goal}
        if all(abs(one) < _NEAR for one in off.values()):
            break
        for layer, gap in off.items():
            way = int(math.copysign(1, gap)) if abs(gap) >= _NEAR else 0
            step[layer] *= 0.4 if way and way == -last[layer] else 1.0
            last[layer] = way or last[layer]
            _scale_queries(twin, sites[layer], math.exp(way * step[layer]))
    worst = max((abs(one) for one in off.values()), default=0.0)
    twin.notes.append(f"Its layers are as confident as those of {subject.name}, to {worst:.2f}.")
    twin.name = f"sharp {twin.name}"
    return twin


def layer_confidence(subject: Subject, like: Pass) -> dict[Layer, float]:
    """The mean confidence of the heads of each layer, on the first texts of a pass."""
    source = like.source if isinstance(like.source, Ready) else _first(like.source)
    tally = Confidence.without("special")
    table: HeadTable = Pass("Confidence", source, (tally,), like.inputs, tally.columns).run(subject)
    values: dict[Layer, list[float]] = {}
    for head, value in zip(table.heads, table.numbers("confidence").tolist(), strict=True):
        if not math.isnan(value):
            values.setdefault(head[:2], []).append(value)
    return {layer: math.fsum(own) / len(own) for layer, own in values.items()}


def _first(source: Corpus) -> Corpus:
    return source.limit(TEXTS) if len(source) > TEXTS else source


def _scale_queries(subject: Subject, site: Site, factor: float) -> None:
    """Multiply the queries of a site; raises where the family keeps them where nobody knows."""
    if factor == 1:
        return
    norm = dict(subject.model.get_submodule(site.module).named_parameters()).get("q_norm.weight")
    with torch.no_grad():
        if norm is not None:  # it undoes what is done to the queries before it
            norm.mul_(factor)
            return
        try:
            weights = head_weights(subject.model, site)
        except UnsupportedModel as error:
            raise ModelError(
                f"A random twin of {subject.name} cannot be made as sharp as the model: the "
                f"queries of {site.module} are not known by name; leave out the sharp twin."
            ) from error
        first = weights[0].name.rpartition(".")[0]  # of the projection that gives queries
        for one in weights:
            if one.name.rpartition(".")[0] == first:
                weight = subject.model.get_parameter(one.name)
                rows = (one.kind == 0).nonzero().flatten().to(weight.device)
                weight.index_copy_(one.axis, rows, weight.index_select(one.axis, rows) * factor)
