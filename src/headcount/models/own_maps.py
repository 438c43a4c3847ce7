"""A model's own attention maps, from the older `output_attentions` path.

Only for families outside the attention interface. The maps of all layers live until the end
of the forward: these families gather them in one tuple, and give no way to take them earlier.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from headcount.errors import UnsupportedModel
from headcount.models.probe import core_of
from headcount.models.switch import switched

__all__ = ["OwnMaps", "own_maps"]

#: The output field of each stack of an encoder-decoder; other models have `attentions` alone.
FIELDS = {"enc": "encoder_attentions", "dec": "decoder_attentions", "cross": "cross_attentions"}

_INSTALLED = "_output_capturing_hooks_installed"


class OwnMaps:
    """What a forward gave: its first output, and the maps of each stack, layer by layer."""

    def __init__(self, model: nn.Module, outputs: Any) -> None:
        self.first: Tensor = outputs[0]
        self._core = core_of(model)
        self._outputs = outputs

    def of(self, stack: str, layers: int) -> list[Tensor]:
        """The maps of a stack, `[batch, head, query, key]` each; all of them, or an error."""
        field = FIELDS[stack] if self._core.config.is_encoder_decoder else "attentions"
        found = getattr(self._outputs, field, None) or ()
        maps = [each for each in found if isinstance(each, Tensor) and each.dim() == 4]
        if len(maps) != layers or len(found) != layers:
            raise UnsupportedModel(
                f"{type(self._core).__name__} gave {len(maps)} attention maps in `{field}` where "
                f"{layers} attention layers ran; load it with attn_implementation='eager'."
            )
        return maps


def own_maps(model: nn.Module, inputs: Mapping[str, Any]) -> OwnMaps:
    """Run the model on its eager path and keep its maps; the model is as before afterwards.

    Falcon, asked for its maps under `sdpa`, adds a true/false mask to its scores and answers
    without a word: so every config says `eager` for the call.
    """
    with switched(model, lambda _: "eager"), _hooks_as_before(model):
        return OwnMaps(model, model(**inputs, output_attentions=True, return_dict=True))


@contextmanager
def _hooks_as_before(model: nn.Module) -> Iterator[None]:
    """Take off the hooks that transformers hangs on some families when maps are asked for."""
    before = {module: set(module._forward_hooks) for module in model.modules()}
    marked = {module for module in before if _INSTALLED in vars(module)}
    try:
        yield
    finally:
        for module, kept in before.items():
            for hook in set(module._forward_hooks) - kept:
                del module._forward_hooks[hook]
            if module not in marked and _INSTALLED in vars(module):
                delattr(module, _INSTALLED)
