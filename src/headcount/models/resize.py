"""Give a model that was built whole the sizes that it has after heads were removed.

This file needs torch only, and nothing of headcount: a saved model carries a copy of it, so
that other programs can load that model.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor, nn


class OwnConfig:
    """A config of one layer: some values of its own, all others the model's."""

    def __init__(self, base: Any, own: dict[str, Any]) -> None:
        self.__dict__.update(own, _base=base)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_base":
            raise AttributeError(name)
        return getattr(self._base, name)


def forget_bias(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Before an attention runs: drop the position bias of another layer's heads (T5)."""
    return args, {**kwargs, "position_bias": None}


class Pick:
    """Before an attention runs: of a bias for all heads take that of the heads it has (BLOOM)."""

    def __init__(self, name: str, kept: list[int], total: int) -> None:
        self.name, self.kept, self.total = name, kept, total

    def __call__(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The arguments, with a part of the bias in its place."""
        given = inspect.signature(module.forward).bind(*args, **kwargs)
        bias = given.arguments.get(self.name)
        if bias is not None:
            axis = 1 if bias.dim() == 4 else 0  # [batch, head, ...], or [batch * head, ...]
            apart = bias.unflatten(axis, (-1, self.total))
            kept = torch.tensor(self.kept, device=bias.device)
            given.arguments[self.name] = apart.index_select(axis + 1, kept).flatten(axis, axis + 1)
        return given.args, given.kwargs


def bare(model: Any) -> Any:
    """The model without task heads; itself where what it calls so takes no input (DINOv3)."""
    core, main = model.base_model, getattr(model, "main_input_name", "")
    taken = [main in inspect.signature(one.forward).parameters for one in (core, model)]
    return model if taken == [False, True] else core


def fit(model: Any, sizes: dict[str, Any]) -> None:
    """Change a whole model's layers to the sizes that are written down.

    `sizes` is `config.headcount`: shapes of weights, attributes and settings of modules, modules
    that compute a position bias of their own, and those that take a part of one that they are
    given. Weights are left for a checkpoint to fill.
    """
    core = bare(model)
    for name, shape in sizes["shapes"].items():
        _resize(core, name, shape)
    for path, values in sizes["attributes"].items():
        for name, value in values.items():
            setattr(core.get_submodule(path), name, value)
    for path, values in sizes["settings"].items():
        module = core.get_submodule(path)
        module.config = OwnConfig(getattr(module.config, "_base", module.config), values)
    for path in sizes["own_bias"]:
        core.get_submodule(path).register_forward_pre_hook(forget_bias, with_kwargs=True)
    for path, (name, kept, total) in sizes.get("picks", {}).items():
        pick = Pick(name, kept, total)
        core.get_submodule(path).register_forward_pre_hook(pick, with_kwargs=True)


def _resize(core: nn.Module, name: str, shape: list[int]) -> None:
    path, _, leaf = name.rpartition(".")
    outer, _, own = path.rpartition(".")
    if not hasattr(core.get_submodule(outer), own):  # a later layer of T5 has no bias yet
        setattr(core.get_submodule(outer), own, nn.Embedding(shape[0], shape[1]))
    module = core.get_submodule(path)
    old = getattr(module, leaf)
    put(module, leaf, torch.empty(shape, dtype=old.dtype, device=old.device))


def put(module: nn.Module, leaf: str, value: Tensor) -> None:
    """Make a tensor a module's weight, and note its new sizes in the module."""
    old = getattr(module, leaf)
    setattr(module, leaf, nn.Parameter(value, requires_grad=old.requires_grad))
    names: tuple[str, str] | None = None
    if isinstance(module, nn.Linear):
        names = ("out_features", "in_features")
    elif isinstance(module, nn.Embedding):
        names = ("num_embeddings", "embedding_dim")
    elif hasattr(module, "nf"):  # GPT-2's Conv1D
        names = ("nx", "nf")
    if names is not None and leaf == "weight":
        for name, size in zip(names, value.shape, strict=True):
            setattr(module, name, size)
