"""Point a live model's attention at a registered function, and put it back on any exit.

transformers v5 looks the function up by the name in each config, at every call
(`AttentionInterface`); a model may hold several configs (T5 copies one per stack).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, reduce
from typing import Any

from torch import nn
from transformers import PreTrainedConfig
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, AttentionMaskInterface
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS, AttentionInterface

from headcount.errors import UnsupportedModel
from headcount.models.guards import on_exit

AttentionFunction = Callable[..., tuple[Any, Any]]

Rename = Callable[[str], str]

_NAME = "_attn_implementation_internal"


@dataclass
class _Renamed:
    """A config's own name for its attention, and the renames of the blocks that are open."""

    own: str | None
    blocks: dict[object, Rename] = field(default_factory=dict)

    @property
    def name(self) -> str | None:
        """The name with every rename applied in turn."""
        if not self.blocks:
            return self.own
        return reduce(lambda name, rename: rename(name), self.blocks.values(), self.own or "eager")


#: By the id of the config, as long as a block is open.
_RENAMED: dict[int, _Renamed] = {}


def attention_configs(model: nn.Module) -> list[PreTrainedConfig]:
    """Every config object that some module of the model reads, each once."""
    found: dict[int, PreTrainedConfig] = {}
    for module in model.modules():
        config = getattr(module, "config", None)
        if isinstance(config, PreTrainedConfig):
            found.setdefault(id(config), config)
    return list(found.values())


def register(name: str, function: AttentionFunction, mask_like: str) -> None:
    """Register an attention function together with its mask function.

    Without the second, transformers passes no mask at all and padding leaks into the result.
    """
    if mask_like not in ALL_MASK_ATTENTION_FUNCTIONS:
        raise UnsupportedModel(
            f"The attention implementation '{mask_like}' has no mask function, so what it does "
            "with padding is not known; register one with AttentionMaskInterface.register, or use "
            "model.set_attn_implementation('sdpa')."
        )
    AttentionInterface.register(name, function)
    theirs = ALL_MASK_ATTENTION_FUNCTIONS[mask_like]
    AttentionMaskInterface.register(name, _spared(theirs) if mask_like == "sdpa" else theirs)


#: Whether the batch that runs is known to have no padding.
_FULL: ContextVar[bool] = ContextVar("full_rows", default=False)


@contextmanager
def full_rows(full: bool) -> Iterator[None]:
    """Within the block, sdpa gets no mask that says nothing, where the rows are known to be full.

    transformers finds that out by looking into the padding, which makes a GPU wait, and may not
    look while a forward is recorded: then it makes a mask, and torch attends by a slower kernel.
    """
    before = _FULL.set(full)
    try:
        yield
    finally:
        _FULL.reset(before)


@cache
def _spared(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """A mask function that makes none where full rows need none, as transformers itself would."""

    def made(*places: Any, **how: Any) -> Any:
        queries, keys, window = (how.get(name) for name in ("q_length", "kv_length", "local_size"))
        causal = how.get("allow_is_causal_skip", True) and queries is not None and queries == keys
        needless = causal or how.get("allow_is_bidirectional_skip", False)
        near = window is not None and (keys is None or keys >= window)
        return None if _FULL.get() and needless and not near else theirs(*places, **how)

    return made


def base_function(module: nn.Module, implementation: str) -> AttentionFunction:
    """The attention function a module would use by itself under that implementation.

    `eager` is each family's own function, so that its biases, soft caps and sinks are kept.
    """
    home = sys.modules[type(module).__module__]
    own = getattr(home, "eager_attention_forward", None)
    if implementation == "eager":
        return own if own is not None else _inherited_eager(module)
    local = getattr(home, "ALL_ATTENTION_FUNCTIONS", ALL_ATTENTION_FUNCTIONS)
    return local.get_interface(implementation, own)


def _inherited_eager(module: nn.Module) -> AttentionFunction:
    """The eager function of the nearest parent class that has one (families that subclass)."""
    for parent in type(module).__mro__:
        found = getattr(sys.modules.get(parent.__module__), "eager_attention_forward", None)
        if found is not None:
            return found
    raise LookupError(f"{type(module).__name__} has no eager attention function")


@contextmanager
def switched(model: nn.Module, rename: Rename) -> Iterator[None]:
    """Within the block, every config names `rename(its own implementation)`.

    Blocks may end in any order: the last to end gives the config its own name back.
    """
    configs, block = attention_configs(model), object()

    def restore() -> None:
        for config in configs:
            renamed = _RENAMED.get(id(config))
            if renamed is not None:
                renamed.blocks.pop(block, None)
                setattr(config, _NAME, renamed.name)
                if not renamed.blocks:
                    del _RENAMED[id(config)]

    with on_exit(restore):
        for config in configs:
            own = getattr(config, _NAME, None)
            renamed = _RENAMED.setdefault(id(config), _Renamed(own))
            renamed.blocks[block] = rename
            setattr(config, _NAME, renamed.name)
        yield
