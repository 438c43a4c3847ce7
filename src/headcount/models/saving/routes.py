"""The ways in which a model can be saved so that others load it, from plainest to oddest.

A way is not looked up by family but tried: a config that says all sizes must build, on no memory
at all, a model whose weights have the same names and shapes.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
import transformers

from headcount.errors import UsageError
from headcount.models.anatomy import KEY, Site, heads_left, sites_of, whole_counts
from headcount.models.guards import quiet
from headcount.models.modeling_headcount import auto_map, auto_targets, whole_class

# --- Which of transformers' auto classes give a model's class -----------------------------------

#: Taken before others, since a class may serve several tasks (BART fills in words, too).
_FIRST = ("AutoModel", "AutoModelForCausalLM", "AutoModelForSeq2SeqLM", "AutoModelForMaskedLM")


def auto_classes(model_type: str, architecture: str) -> list[str]:
    """The auto classes that give this class for a config of this type.

    >>> auto_classes("bert", "BertForMaskedLM")
    ['AutoModelForMaskedLM']
    """
    names = [name for name in sorted(dir(transformers)) if name.startswith("AutoModel")]
    return [name for name in names if architecture in auto_targets(name, model_type)]


def best_auto_class(model_type: str, architecture: str) -> str | None:
    """The auto class that a user would load this class with; none where there is none."""
    found = auto_classes(model_type, architecture)
    whole = [name for name in found if auto_targets(name, model_type)[0] == architecture]
    return next((name for name in (*_FIRST, *whole) if name in whole), None)


# --- The ways in which a model can be saved so that others load it ------------------------------


@dataclass(frozen=True)
class Route:
    """One way of saving: its name, why it is taken, and the config and class that go with it."""

    name: str
    why: str
    config: Any
    #: The class that the checkpoint names.
    architecture: str
    #: Whether the folder brings code of its own.
    code: bool = False


def routes_for(model: Any) -> Iterator[Route]:
    """Every way that can work, the best first; the last one always does.

    >>> from transformers import BertConfig, BertModel
    >>> config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=4,
    ...                     intermediate_size=16, vocab_size=32)
    >>> [route.name for route in routes_for(BertModel(config))]
    ['plain']
    """
    own = type(model).__name__
    if heads_left(model.config) is None:
        yield Route("plain", "no head was removed", model.config, own)
        return
    for name, why, make in _NATIVE:
        made = _tried(model, make)
        if made is not None:
            yield Route(name, why, made[0], made[1])
    if getattr(transformers, own, None) is not whole_class(model):
        raise UsageError(
            f"{own} is no class of transformers, so the code that a pruned model brings cannot "
            "build it; save it with export='zeros' (--export zeros)."
        )
    yield Route(
        "code",
        f"no config of '{model.config.model_type}' says how many heads each layer has",
        _with_code(model),
        own,
        code=True,
    )


def _tried(model: Any, make: Any) -> tuple[Any, str] | None:
    """A config and class that build the same shapes, or nothing."""
    try:
        with quiet():
            config, architecture = make(model)
            rebuilt = type(config).from_dict(config.to_dict())
        with quiet(), torch.device("meta"):
            other = getattr(transformers, architecture)(rebuilt)
    except Exception:  # a config that does not take these values says so in many ways
        return None
    return (config, architecture) if _shapes(other) == _shapes(model) else None


def _shapes(model: Any) -> dict[str, tuple[int, ...]]:
    return {name: tuple(value.shape) for name, value in model.state_dict().items()}


def _bare(model: Any, *counts: str) -> Any:
    """The config with the numbers of the heads, but no sizes of single layers.

    The `counts` are about to be those of the heads that are left: what they were is kept.
    """
    config = deepcopy(model.config)
    vars(config).pop("auto_map", None)
    whole = {name: getattr(config, name, None) for name in counts} | whole_counts(config)
    setattr(config, KEY, {"heads": getattr(config, KEY)["heads"], "whole": whole})
    return config


def _counts(site: Site) -> dict[str, int]:
    return {"num_attention_heads": site.heads, "num_key_value_heads": site.kv_heads}


def per_layer_counts(model: Any) -> dict[str, dict[str, int]] | None:
    """The heads of each layer as `per_layer_config` writes them; none with several stacks."""
    sites = sites_of(model)
    if len({site.stack for site in sites}) > 1:
        return None
    return {str(site.layer): _counts(site) for site in sites}


def _uniform(model: Any) -> tuple[Any, str]:
    """One number of heads for all layers, and their size."""
    sites = sites_of(model)
    (counts,) = {(site.heads, site.kv_heads, site.head_dim) for site in sites}
    wanted = _counts(sites[0]) | {"head_dim": counts[2]}
    if not hasattr(model.config, "num_key_value_heads"):
        del wanted["num_key_value_heads"]
    config = _bare(model, *wanted)
    for name, value in wanted.items():
        setattr(config, name, value)
    return config, type(model).__name__


def _mistral(model: Any) -> tuple[Any, str]:
    """Llama's weights under the name of Mistral, which asks for no even division."""
    if model.config.model_type != "llama":
        raise ValueError("no Llama")
    values = _uniform(model)[0].to_dict()
    for name in ("model_type", "architectures", "auto_map", "transformers_version"):
        values.pop(name, None)
    config = transformers.MistralConfig.from_dict(values | {"sliding_window": None})
    return config, type(model).__name__.replace("Llama", "Mistral")


def _per_layer(model: Any) -> tuple[Any, str]:
    """A number of heads for each layer, where transformers' modelling code reads it."""
    values = _bare(model, "per_layer_config").to_dict()
    values |= {"per_layer_config": per_layer_counts(model)}
    return type(model.config).from_dict(values), type(model).__name__


_NATIVE = (
    ("native", "every layer has as many heads, and the config says their number", _uniform),
    (
        "mistral",
        "every layer has as many heads, but a Llama config wants their number to divide the "
        "width; Mistral's is the same model without that rule",
        _mistral,
    ),
    ("per-layer", "the config takes a number of heads for each layer", _per_layer),
)


def _with_code(model: Any) -> Any:
    config = deepcopy(model.config)
    config.auto_map = auto_map(model)
    return config
