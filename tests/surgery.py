"""Zero a head by hand, in the weights: what a shut valve must equal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from headcount.models.site import Site
from headcount.models.subject import Subject
from headcount.records.heads import Head

#: Where the output projection sits, seen from the attention module (or its parent, with "..").
PROJECTIONS = ("out_proj", "o_proj", "o", "Wo", "out_lin", "c_proj", "dense", "..output.dense")


def projection(subject: Subject, site: Site) -> nn.Module:
    """The module that the heads' outputs go into."""
    for name in PROJECTIONS:
        start, path = site.module, name
        if name.startswith(".."):
            start, path = site.module.rpartition(".")[0], name[2:]
        try:
            return subject.model.get_submodule(f"{start}.{path}")
        except AttributeError:
            continue
    raise LookupError(f"no output projection known for {site.module}")


@contextmanager
def zeroed(subject: Subject, head: Head) -> Iterator[None]:
    """Zero the head's input columns of the output projection, for this block."""
    site = subject.anatomy.site(head.stack, head.layer)
    module = projection(subject, site)
    columns = slice(head.index * site.head_dim, (head.index + 1) * site.head_dim)
    place = (columns, slice(None)) if type(module).__name__ == "Conv1D" else (slice(None), columns)
    with torch.no_grad():
        before = module.weight.detach().clone()
        module.weight[place] = 0
    try:
        yield
    finally:
        with torch.no_grad():
            module.weight.copy_(before)


def answer(output: object) -> torch.Tensor:
    """What a model says: its logits, or its last hidden state."""
    logits = getattr(output, "logits", None)
    return logits if logits is not None else output.last_hidden_state  # type: ignore[attr-defined]
