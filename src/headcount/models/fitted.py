"""Load a model from which heads were removed: build it whole, cut it to size, fill in weights."""

from __future__ import annotations

from typing import Any

from headcount.models.fit import fit
from headcount.models.head_numbers import KEY

__all__ = ["fitted_class", "is_cut"]


def is_cut(config: Any) -> bool:
    """Whether a config was written for layers that it cannot describe by itself."""
    sizes = getattr(config, KEY, None)
    return isinstance(sizes, dict) and bool(sizes.get("shapes"))


def fitted_class(chosen: Any, config: Any) -> Any:
    """A class that builds the model in the sizes that its config writes down.

    >>> from transformers import AutoModel, BertConfig, BertModel
    >>> fitted_class(AutoModel, BertConfig()).__mro__[1] is BertModel
    True
    """
    mapping = getattr(chosen, "_model_mapping", None)
    whole = chosen if mapping is None else mapping[type(config)]
    whole = whole[0] if isinstance(whole, tuple | list) else whole

    def build(self: Any, config: Any, *args: Any, **kwargs: Any) -> None:
        whole.__init__(self, config, *args, **kwargs)
        fit(self, getattr(config, KEY))

    return type(whole.__name__, (whole,), {"__init__": build, "__module__": whole.__module__})
