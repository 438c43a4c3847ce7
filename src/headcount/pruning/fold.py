"""Gates that ended between 0 and 1, multiplied into the weights: a plain model says the same.

Voita et al. 2019: in the paper a gate is 0 or 1 at test time; in the authors' program it may lie
between, and the model that is left still has it.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import torch

from headcount.errors import UsageError
from headcount.heads import Head
from headcount.models.projections import output_of
from headcount.pruning.gates import Gates
from headcount.pruning.remove import prune
from headcount.subject import Subject

__all__ = ["pruned_by"]


def pruned_by(subject: Subject, gates: Gates, keep: int | None = None) -> Subject:
    """The model without the closed heads, or with the `keep` most open gated ones.

    The heads that stay give as much as their gates let through at test time.
    """
    gone = gates.closed(keep)
    if len(gone) == len(subject.heads):
        raise UsageError(
            f"All {len(gone)} gates are closed, so that no head would be left; lower the price of "
            "open gates (--lambda, penalty), or say how many heads to keep."
        )
    left = _between(gates, gone)
    whole = _scaled(subject, left) if left else subject
    return prune(whole, gone) if gone else whole


def _between(gates: Gates, gone: list[Head]) -> dict[Head, float]:
    """The gates of heads that stay and are not wholly open; none but in the convention "code"."""
    if gates.convention != "code":
        return {}
    values = dict(zip(gates.heads, gates.tested().tolist(), strict=True))
    away = set(gone)
    return {head: value for head, value in values.items() if head not in away and value != 1}


def _scaled(subject: Subject, scales: dict[Head, float]) -> Subject:
    """A copy whose output projections hold the scales of the heads before them."""
    model = deepcopy(subject.model)
    done = set()
    with torch.no_grad():
        for site in subject.anatomy.sites:
            place = output_of(model, site)
            if place.name in done:
                continue  # one module that serves several layers
            done.add(place.name)
            each = torch.tensor([scales.get(head, 1.0) for head in site.names])[place.owner]
            weight = model.get_parameter(place.name)
            weight.mul_((each if place.axis else each[:, None]).to(weight))
    return replace(subject, model=model, notes=list(subject.notes))
