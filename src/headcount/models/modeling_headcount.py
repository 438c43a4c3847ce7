"""Models without some of their heads: any class of transformers, in the sizes that are left.

This file needs torch and transformers only, and nothing of headcount: a saved model carries a
copy of it, so that other programs can load that model, put a new head on it, train and save it.
"""

from __future__ import annotations

import inspect
import shutil
import sys
from functools import cache
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn

#: A tensor in the weights of a model that brings code. Whoever loads it without that code reads its
#: name in the report of transformers, next to the sizes that do not fit.
HINT = "PRUNED_MODEL_load_it_with_trust_remote_code_True"

# --- Classes of transformers without some heads -------------------------------------------------


def whole_class(model: Any) -> Any:
    """The class of transformers that a model is of, or is a pruned one of.

    >>> config = transformers.BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=4)
    >>> whole_class(transformers.BertModel(config))
    <class 'transformers.models.bert.modeling_bert.BertModel'>
    """
    own = type(model)
    return next((one for one in own.__mro__ if one.__module__.startswith("transformers.")), own)


def take_along(model: Any) -> None:
    """Let a model, and the bare one in it, be saved with this file from now on."""
    for one in (model, bare(model)):
        whole, own = whole_class(one), type(one)
        known = own is whole or own.__module__.endswith(Path(__file__).stem)
        if known and getattr(transformers, whole.__name__, None) is whole:
            one.__class__ = pruned_class(whole)
            # transformers notes by class, as a model is built, which outputs it can record.
            recording: Any = sys.modules.get("transformers.utils.output_capturing")
            recorded = getattr(recording, "_CAN_RECORD_REGISTRY", {})
            recorded[str(type(one))] = recorded.get(str(own))


@cache
def pruned_class(whole: Any) -> Any:
    """A class that is built in the sizes that `config.headcount` says, and saved with its code."""

    def build(self: Any, config: Any, *args: Any, **kwargs: Any) -> None:
        whole.__init__(self, config, *args, **kwargs)
        fit(self, config.headcount)
        known = self._keys_to_ignore_on_load_unexpected or ()
        self._keys_to_ignore_on_load_unexpected = {*known, HINT}

    def initialize(self: Any) -> None:
        # Of code of one's own, transformers makes no buffers that no file keeps (Falcon-H1).
        own, self.__class__ = type(self), whole
        try:
            self.initialize_weights()
        finally:
            self.__class__ = own

    inside = {
        "__init__": build,
        "__module__": __name__,
        "__doc__": f"{whole.__name__} without some of its heads; config.headcount says which.",
        "save_pretrained": save_with_code,
        "initialize_weights": initialize,
        # transformers reads these off the text of the file that a class is in.
        "_can_set_attn_implementation": whole._can_set_attn_implementation,
        "_can_set_experts_implementation": whole._can_set_experts_implementation,
    }
    return type(whole.__name__, (whole,), inside)


def __getattr__(name: str) -> Any:
    """`BertModel` and any other model of transformers, pruned."""
    whole = None if name.startswith("_") else getattr(transformers, name, None)
    if not (isinstance(whole, type) and issubclass(whole, transformers.PreTrainedModel)):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return pruned_class(whole)


def auto_map(model: Any) -> dict[str, str]:
    """Which class every auto class of a model's family leads to, in a copy of this file."""
    found = {}
    for auto in (name for name in dir(transformers) if name.startswith("AutoModel")):
        classes = auto_targets(auto, model.config.model_type)
        if classes:
            own = type(model).__name__
            found[auto] = f"{Path(__file__).stem}.{own if own in classes else classes[0]}"
    return found


def auto_targets(auto: str, model_type: str) -> tuple[str, ...]:
    """The names of the classes that an auto class of transformers has for a type of model."""
    mapping = getattr(getattr(transformers, auto), "_model_mapping", None)
    given = mapping._model_mapping.get(model_type, ()) if mapping is not None else ()
    return tuple(given) if isinstance(given, (tuple, list)) else (given,)


def save_with_code(
    self: Any,
    save_directory: Any,
    is_main_process: bool = True,
    state_dict: Any = None,
    *args: Any,
    **how: Any,
) -> None:
    """`save_pretrained`; this file, and the map of auto classes to what is in it, come along."""
    adapter = getattr(self, "_hf_peft_config_loaded", False)  # then only the adapter is saved
    if not adapter:
        weights = self.state_dict() if state_dict is None else state_dict
        kinds = (one.dtype for one in weights.values() if one.is_floating_point())
        state_dict = {**weights, HINT: torch.zeros(1, dtype=next(kinds))}
        # Code of one's own is left out of transformers' renaming of weights (ViT, GPT-NeoX).
        how["save_original_format"] = False
        if is_main_process:
            Path(save_directory).mkdir(parents=True, exist_ok=True)
            shutil.copyfile(__file__, Path(save_directory, Path(__file__).name))
    before = getattr(self.config, "auto_map", None)
    self.config.auto_map = auto_map(self)
    try:
        whole_class(self).save_pretrained(
            self, save_directory, is_main_process, state_dict, *args, **how
        )
    finally:
        self.config.auto_map = before
        if before is None:
            del self.config.auto_map


# --- The sizes of what is left ------------------------------------------------------------------


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


class Part:
    """After a norm over all heads together: the entries of those that are left (OLMo 2)."""

    def __init__(self, kept: list[int]) -> None:
        self.kept = kept

    def __call__(self, module: Any, args: tuple[Any, ...], output: Tensor) -> Tensor:
        """The output, with some of its last axis."""
        return output.index_select(-1, torch.tensor(self.kept, device=output.device))


def bare(model: Any) -> Any:
    """The model without task heads; itself where what it calls so takes no input (DINOv3)."""
    core, main = model.base_model, getattr(model, "main_input_name", "")
    taken = [_takes(main, one.forward) for one in (core, model)]
    return model if taken == [False, True] else core


def _takes(name: str, forward: Any) -> bool:
    """Whether a forward has an argument, or hands on all that it is given (BART's decoder)."""
    known = inspect.signature(forward).parameters
    return name in known or any(one.kind is one.VAR_POSITIONAL for one in known.values())


def fit(model: Any, sizes: dict[str, Any]) -> None:
    """Change a whole model's layers to the sizes that are written down.

    `sizes` is `config.headcount`: shapes of weights, attributes and settings of modules, modules
    that compute a position bias of their own, those that take a part of one that they are
    given, and norms of which only a part goes on. Weights are left for a checkpoint to fill.
    """
    core = bare(model)
    # A head may be put on one half of a model, such as T5's encoder.
    there = {name for name, _ in core.named_children()}

    def named(what: str) -> dict[str, Any]:
        given = sizes.get(what, {})
        given = given if isinstance(given, dict) else dict.fromkeys(given)
        return {name: one for name, one in given.items() if name.partition(".")[0] in there}

    for name, shape in named("shapes").items():
        _resize(core, name, shape)
    for path, values in named("attributes").items():
        for name, value in values.items():
            setattr(core.get_submodule(path), name, value)
    for path, values in named("settings").items():
        module = core.get_submodule(path)
        module.config = OwnConfig(getattr(module.config, "_base", module.config), values)
    for path in named("own_bias"):
        core.get_submodule(path).register_forward_pre_hook(forget_bias, with_kwargs=True)
    for path, (name, kept, total) in named("picks").items():
        pick = Pick(name, kept, total)
        core.get_submodule(path).register_forward_pre_hook(pick, with_kwargs=True)
    for path, entries in named("parts").items():
        core.get_submodule(path).register_forward_hook(Part(entries))


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
