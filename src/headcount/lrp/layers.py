"""The layers of a model as cuts: relevance is counted at each, and ends at the first.

A layer is the first numbered module on the path to its attention: `encoder.layer.3`,
`decoder.block.0`, `transformer.h.11`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn

from headcount.errors import UnsupportedModel
from headcount.lrp.ledger import Cut, Ledger
from headcount.lrp.operations import carries
from headcount.models.anatomy import Anatomy
from headcount.models.site import Site

__all__ = ["Entrances", "layer_of"]

_LAYER = re.compile(r"(.*?\.\d+|\d+)(\.|$)")


def layer_of(module: str) -> str:
    """The path of the layer around an attention module.

    >>> layer_of("encoder.block.0.layer.1.EncDecAttention")
    'encoder.block.0'
    """
    found = _LAYER.match(module)
    return found[1] if found is not None else module


class Entrances:
    """Stands at every layer's entrance during forwards, with the ledger of the present one."""

    def __init__(self, model: nn.Module, anatomy: Anatomy) -> None:
        self._sites: dict[str, list[Site]] = {}
        for site in sorted(anatomy.sites, key=lambda site: (site.call, site.layer)):
            if site.stack != "cross":
                self._sites.setdefault(layer_of(site.module), []).append(site)
        self._modules = {path: model.get_submodule(path) for path in self._sites}
        self._calls: Counter[str] = Counter()
        self.ledger: Ledger | None = None

    def begin(self, ledger: Ledger | None) -> None:
        """Start a forward with its ledger, or end one."""
        self.ledger = ledger
        self._calls.clear()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Hang a hook before every layer, for this block."""
        with ExitStack() as stack:
            for path, module in self._modules.items():
                handle = module.register_forward_pre_hook(self._hook(path), with_kwargs=True)
                stack.callback(handle.remove)
            yield

    def _hook(self, path: str) -> Any:
        def enter(module: nn.Module, args: Any, kwargs: Any) -> Any:
            if self.ledger is None:
                return None
            site = self._sites[path][self._calls[path] % len(self._sites[path])]
            self._calls[path] += 1
            return _entered(self.ledger, site, module, args, kwargs)

        return enter


def _entered(
    ledger: Ledger, site: Site, module: nn.Module, args: Any, kwargs: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """The layer's arguments, with a counter on each that carries relevance."""
    hidden = args[0] if args else kwargs.get("hidden_states")
    if not isinstance(hidden, Tensor) or not hidden.is_floating_point():
        raise UnsupportedModel(
            f"{type(module).__name__} does not take its hidden state first, so relevance has no "
            "place to end; use another score, e.g. gradient."
        )
    if not hidden.requires_grad:  # the first layer of its stack
        hidden = hidden.detach().requires_grad_()
    hidden, through = ledger.metered(hidden)
    cut = Cut(site.stack, site.layer, through, [])
    rest = [_beside(cut, ledger, value) for value in args[1:]]
    named = {
        name: _beside(cut, ledger, value)
        for name, value in kwargs.items()
        if args or name != "hidden_states"
    }
    ledger.enter(cut, hidden)
    return ((hidden, *rest), named) if args else ((), {"hidden_states": hidden, **named})


def _beside(cut: Cut, ledger: Ledger, value: Any) -> Any:
    if not isinstance(value, Tensor) or not carries(value):
        return value
    metered, counter = ledger.metered(value)
    cut.beside.append(counter)
    return metered
