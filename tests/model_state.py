"""All that could be left changed on a model, taken down before and compared after."""

from __future__ import annotations

from typing import Any

import torch

from headcount.models.subject import Subject
from headcount.models.switch import attention_configs

HOOKS = [name for name in vars(torch.nn.Module()) if name.endswith("_hooks")]


def state_of(subject: Subject) -> dict[str, Any]:
    """Everything that wiring could change."""
    model = subject.model
    return {
        "weights": {n: w.detach().clone() for n, w in model.state_dict().items()},
        "hooks": [[dict(getattr(m, name)) for name in HOOKS] for m in model.modules()],
        "attributes": [sorted(vars(m)) for m in model.modules()],
        "functions": [vars(m).get("_gradient_checkpointing_func") for m in model.modules()],
        "training": [m.training for m in model.modules()],
        "gradients": [w.requires_grad for w in model.parameters()],
        "attention": [c._attn_implementation for c in attention_configs(model)],
        "configs": [c.to_json_string() for c in attention_configs(model)],
    }


def assert_same(before: dict[str, Any], after: dict[str, Any]) -> None:
    for name, weight in before.pop("weights").items():
        assert torch.equal(weight, after["weights"][name]), name
    for what, value in before.items():
        assert after[what] == value, what
