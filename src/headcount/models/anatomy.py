"""Where a model's attention heads are: every site with its stack, layer and shape.

A site is one call of one attention module in one forward: ALBERT calls a single module for
all its layers. Sites are found by listening to one tiny forward, not by reading names, so
that any family that speaks the attention interface is known at once.
"""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from headcount import plugins
from headcount.errors import ModelError, UnsupportedModel
from headcount.models.dummy_forward import (
    core_of,
    finding_heads,
    locked,
    own_thread,
    probe_inputs,
    quiet_arguments,
)
from headcount.models.finding import FoundModel
from headcount.models.guards import eval_mode, quiet
from headcount.models.site import Site, is_causal, layer_numbers
from headcount.models.switch import base_function, register, switched
from headcount.records import STACKS, Head

# --- Heads keep their numbers for life ----------------------------------------------------------
# The numbers stand in `config.headcount`, so that they go wherever the config goes: a copy, a
# folder that `save_pretrained` wrote, a checkpoint in the middle of training.

#: The attribute of the config.
KEY = "headcount"

#: The file in a saved folder that names its heads and says how it was saved.
MAP = "headcount.json"

#: The file in a folder that was saved for llama.cpp.
GGUF = "model.gguf"


def heads_left(config: Any) -> dict[str, list[int]] | None:
    """The numbers of the heads of each layer, ``{"enc.0": [0, 3]}``; none for a whole model."""
    kept = getattr(config, KEY, None)
    heads = kept.get("heads") if isinstance(kept, dict) else None
    return None if heads is None else _checked_numbers(heads, "The config of the model")


def _checked_numbers(heads: Any, who: str) -> dict[str, list[int]]:
    """The numbers of heads by layer, if they are that."""
    if isinstance(heads, dict) and all(
        re.fullmatch(r"(enc|dec|cross)\.\d{1,6}", str(layer))
        and isinstance(numbers, list)
        and all(type(one) is int and 0 <= one < 2**31 for one in numbers)
        and len({*numbers}) == len(numbers)
        for layer, numbers in heads.items()
    ):
        return heads
    raise ModelError(
        f"{who} names its heads as {str(heads)[:60]!r}, and needs the numbers of each layer, such "
        'as {"enc.0": [0, 3]}; restore it, or save the model again.'
    )


def whole_counts(config: Any) -> dict[str, Any]:
    """What a config said of heads before it was given the counts of those that are left."""
    kept = getattr(config, KEY, None)
    whole = kept.get("whole") if isinstance(kept, dict) else None
    return whole if isinstance(whole, dict) else {}


def restore_numbers(found: FoundModel, config: Any) -> None:
    """Take the numbers from the map in a folder whose config has lost them, or cannot have them."""
    if heads_left(config) is None and (kept := map_beside(found)) is not None:
        setattr(config, KEY, kept)


def map_beside(found: FoundModel) -> dict[str, Any] | None:
    """What the map in a model's folder says of its heads; none of a model that is whole."""
    file = found.folder / MAP
    if found.kind == "hub" or not file.is_file():
        return None
    try:
        kept = json.loads(file.read_text(encoding="utf8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{file} cannot be read as JSON; restore or delete it.") from error
    if not isinstance(kept, dict) or "heads" not in kept:
        raise ModelError(f"{file} names no heads, which headcount always writes; restore it.")
    if kept["heads"] is None or (kept.get("route") == "gguf") != (found.gguf == GGUF):
        return None  # of a whole model, or of another file that lies there
    heads = _checked_numbers(kept["heads"], str(file))
    return {"heads": heads} | ({"whole": kept["whole"]} if "whole" in kept else {})


def numbered(core: Any, sites: Sequence[Site]) -> list[Site]:
    """Sites whose heads bear the numbers they were born with; layers without heads are left out.

    Such a layer still runs one dead head, which gives nothing and has no name.
    """
    left = heads_left(core.config)
    if left is None:
        return list(sites)
    if any(site.heads != max(1, len(left.get(_key(site), ()))) for site in sites):
        warnings.warn(
            f"The config of this {type(core).__name__} names the heads that were left by an "
            "earlier removal, but they are not those of the model; heads are numbered afresh.",
            stacklevel=2,
        )
        return list(sites)
    named = [replace(site, numbers=tuple(left.get(_key(site), ()))) for site in sites]
    return [site for site in named if site.numbers]


def _key(site: Site) -> str:
    return f"{site.stack}.{site.layer}"


# --- Where a model's attention heads are --------------------------------------------------------

_PROBE = "headcount-probe"


@dataclass(frozen=True)
class Anatomy:
    """All attention sites of a model, in the order enc, dec, cross, and by layer within each."""

    sites: tuple[Site, ...]

    @cached_property
    def heads(self) -> list[Head]:
        """Every head, in the order of the sites."""
        return [head for site in self.sites for head in site.names]

    @cached_property
    def stacks(self) -> tuple[str, ...]:
        """The stacks this model has."""
        present = {site.stack for site in self.sites}
        return tuple(stack for stack in STACKS if stack in present)

    @cached_property
    def spans(self) -> dict[Site, slice]:
        """The places of each site's heads in `heads`."""
        spans, start = {}, 0
        for site in self.sites:
            spans[site] = slice(start, start + site.heads)
            start += site.heads
        return spans

    def site(self, stack: str, layer: int) -> Site:
        """The site of one layer of one stack."""
        for site in self.sites:
            if (site.stack, site.layer) == (stack, layer):
                return site
        raise UnsupportedModel(f"There is no attention at {stack}.{layer} in this model.")


def anatomy_of(model: nn.Module) -> Anatomy:
    """List the attention sites of a model, or say by name why its heads cannot be reached.

    >>> from transformers import BertConfig, BertModel
    >>> config = BertConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
    ...                     intermediate_size=16, vocab_size=32)
    >>> [str(head) for head in anatomy_of(BertModel(config)).heads[:5]]
    ['enc.0.0', 'enc.0.1', 'enc.0.2', 'enc.0.3', 'enc.1.0']
    """
    return Anatomy(tuple(numbered(core_of(model), sites_of(model))))


def sites_of(model: nn.Module) -> list[Site]:
    """The attention sites as they lie in the model: heads counted, whatever their names."""
    refuse_two_towers(model)
    with locked(model), quiet():  # what transformers has to say of a small trial run helps nobody
        outside = plugins.part("outside")
        sites = (outside and outside.outside_sites(model)) or _heard_sites(model)
    if not sites:
        raise UnsupportedModel(_no_attention(model))
    return sorted(sites, key=lambda site: (STACKS.index(site.stack), site.layer))


def _heard_sites(model: nn.Module) -> list[Site]:
    """Run the model once on a few tokens and note every attention call."""
    core = core_of(model)
    calls: list[tuple[nn.Module, Site]] = []
    with _listening(core, calls), eval_mode(core), torch.no_grad(), finding_heads(core):
        inputs = probe_inputs(core)
        core(**inputs, **quiet_arguments(core))
    names = {id(module): name for name, module in model.named_modules()}
    sites = _number(calls, names)
    heard = {site.stack for site in sites}
    missing = [stack for stack in STACKS if stack not in heard]
    if sites and "decoder_input_ids" in inputs and missing:  # LongT5, BigBird-Pegasus
        raise UnsupportedModel(
            f"The {' and '.join(missing)} attention of {type(core).__name__} (model type "
            f"'{core.config.model_type}') does not speak transformers' attention interface, so "
            "half of its heads would be missing; use an encoder-decoder that speaks it throughout."
        )
    if "decoder_input_ids" not in inputs and "cross" in heard:
        raise UnsupportedModel(
            f"{type(core).__name__} (model type '{core.config.model_type}') attends to keys that "
            "are not its tokens, such as a summary of them; headcount works on attention with one "
            "map [query, key] over tokens."
        )
    return sites


@contextmanager
def _listening(core: nn.Module, calls: list[tuple[nn.Module, Site]]) -> Iterator[None]:
    ours = own_thread()

    def listen(
        module: nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Any,
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor]:
        function = base_function(module, "eager")
        output, weights = function(module, query, key, value, attention_mask, **kwargs)
        if not ours():
            return output, weights
        # The site as far as one call shows it; its name and its layer are for `_number` to give.
        if bool(weights.isnan().any()):  # NaN counts as true: a decoder would pass for an encoder
            raise UnsupportedModel(
                f"The attention of {type(module).__name__} is not a number on a small input; "
                f"{str(weights.dtype).removeprefix('torch.')} may be too narrow: use --load dtype="
                "float32 (dtype='float32')."
            )
        crosses = query.shape[2] != key.shape[2]
        causal = not crosses and is_causal(weights)
        calls.append(
            (
                module,
                Site(
                    stack="cross" if crosses else "dec" if causal else "enc",
                    layer=0,
                    heads=query.shape[1],
                    kv_heads=key.shape[1],
                    head_dim=value.shape[-1],
                    module="",
                    causal=causal,
                ),
            )
        )
        return output, weights

    register(_PROBE, listen, mask_like="eager")
    with switched(core, lambda _: _PROBE):
        yield


def _number(calls: list[tuple[nn.Module, Site]], names: dict[int, str]) -> list[Site]:
    """Give each call the name of its module and its layer within its stack."""
    turns: Counter[int] = Counter()
    stacks: dict[str, list[Site]] = {}
    for module, heard in calls:
        site = replace(heard, module=names[id(module)], call=turns[id(module)])
        stacks.setdefault(site.stack, []).append(site)
        turns[id(module)] += 1
    return [
        replace(site, layer=layer)
        for sites in stacks.values()
        for site, layer in zip(sites, layer_numbers([one.module for one in sites]), strict=True)
    ]


def _no_attention(model: nn.Module) -> str:
    core = core_of(model)
    who = f"{type(core).__name__} (model type '{core.config.model_type}')"
    if any("attention" in type(module).__name__.lower() for module in core.modules()):
        outside = plugins.part("outside")
        known = ", ".join(sorted(outside.OUTSIDE)) if outside else "of no room here"
        return (
            f"{who} does not speak transformers' attention interface. Outside it headcount knows "
            f"the families {known}; docs/how-to/add-a-family.md says how to add one."
        )
    return f"{who} has no attention heads; headcount works on Transformers with softmax attention."


#: Attribute names of the two towers, as CLIP and similar models write them.
TOWERS = (
    ("text_model", "vision_model"),
    ("text_model", "audio_model"),
    ("text_encoder", "vision_encoder"),
)


def refuse_two_towers(model: nn.Module) -> None:
    """Raise if the model holds two encoders side by side (CLIP, SigLIP, CLAP ...)."""
    for first, second in TOWERS:
        towers = [getattr(model, name, None) for name in (first, second)]
        if all(isinstance(tower, nn.Module) for tower in towers):
            raise UnsupportedModel(
                f"{type(model).__name__} has two towers whose heads would share their names; "
                f"pass one of them: Subject(model.{first}, tokenizer) or Subject(model.{second})."
            )
