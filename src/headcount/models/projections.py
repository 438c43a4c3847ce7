"""Where an attention module keeps its queries, keys, values and output: one row a way of writing.

Rows are tried in order, by the names of the modules; what a row promises is checked against the
sizes, and every removal against a valve at 0, so that a row may serve many families.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from headcount.errors import ModelError, UnsupportedModel
from headcount.models.dummy_forward import core_of
from headcount.models.modeling_headcount import Part
from headcount.models.site import Site

# --- Where an attention module keeps its queries, keys, values and output -----------------------


@dataclass(frozen=True)
class AttentionLayout:
    """One way of writing an attention.

    `parts` are projections by path and what they give: `q`, `k` and `v` one after the other;
    with `by_group` those of the query heads that share keys stand together, then these keys, then
    these values. `output` is the path of the output projection, `also` more projections that
    there may be. A path that begins with `..` starts at the parent of the attention module. With
    `asks_config` the forward reads head counts from the module's config.
    """

    parts: tuple[tuple[str, str], ...]
    output: str
    by_group: bool = False
    asks_config: bool = False
    also: tuple[tuple[str, str], ...] = ()


def _apart(query: str, key: str, value: str, output: str) -> AttentionLayout:
    return AttentionLayout(((query, "q"), (key, "k"), (value, "v")), output)


ROWS: tuple[AttentionLayout, ...] = (
    _apart("query", "key", "value", "..output.dense"),  # BERT, RoBERTa, Electra
    _apart("self.query", "self.key", "self.value", "output.dense"),  # RoFormer, Luke, RemBERT
    _apart("query", "key", "value", "dense"),  # ALBERT
    _apart("q_proj", "k_proj", "v_proj", "o_proj"),  # Llama and its relatives, ViT
    _apart("q_proj", "k_proj", "v_proj", "dense"),  # Phi
    _apart("q_proj", "k_proj", "v_proj", "out_proj"),  # BART, Marian, M2M100, OPT, Whisper, GPT-J
    _apart("q", "k", "v", "o"),  # T5, MPNet
    _apart("q_lin", "k_lin", "v_lin", "out_lin"),  # DistilBERT, XLM
    _apart("Wq", "Wk", "Wv", "dense"),  # CTRL
    AttentionLayout(
        (("q_attn", "q"), ("c_attn", "kv")), "c_proj"
    ),  # GPT-2 where it looks at an encoder
    AttentionLayout((("c_attn", "qkv"),), "c_proj"),  # GPT-2
    AttentionLayout(
        (("query_key_value", "qkv"),), "dense", by_group=True
    ),  # GPT-NeoX, BLOOM, Falcon
    AttentionLayout((("qkv_proj", "qkv"),), "o_proj", asks_config=True),  # Phi-3
    # DeepSeek 2 and 3, Kimi: keys and values of a head from one latent for all.
    AttentionLayout((("q_b_proj", "q"), ("kv_b_proj", "v")), "o_proj"),
    AttentionLayout((("q_proj", "q"), ("kv_b_proj", "v")), "o_proj"),  # without one for queries
    AttentionLayout((("Wqkv", "qkv"),), "Wo"),  # ModernBERT
    AttentionLayout((("Wqkv", "qkv"),), "out_proj"),  # MPT
    AttentionLayout(  # DeBERTa
        (("self.in_proj", "qkv"),),
        "output.dense",
        by_group=True,
        also=(("self.pos_proj", "k"), ("self.pos_q_proj", "q")),
    ),
    AttentionLayout(  # DeBERTa 2 and 3
        (("self.query_proj", "q"), ("self.key_proj", "k"), ("self.value_proj", "v")),
        "output.dense",
        also=(("self.pos_key_proj", "k"), ("self.pos_query_proj", "q")),
    ),
)


@dataclass(frozen=True)
class Trait:
    """Something that an attention keeps for each head: its path, the axis of heads, whose heads."""

    path: str
    axis: int
    of: str = "q"


#: Weights besides the projections that have entries for each head, as many for one as for another.
#: Norms over one head's dimensions, which all heads share, have none and stay as they are.
PER_HEAD: tuple[Trait, ...] = (
    Trait("sinks", 0),  # gpt-oss
    Trait("relative_attention_bias.weight", 1),  # T5
    Trait("q_norm.weight", 0, "q"),  # Cohere, where it is [head, dim]
    Trait("k_norm.weight", 0, "k"),
    Trait("self.q_bias", 0),  # DeBERTa
    Trait("self.v_bias", 0),
    Trait("relative_position_bias_table", 1),  # Swin
)

#: A bias with an entry a head that is computed outside of the layers and handed to each of them:
#: the name that the attention's forward has for it.
GIVEN: dict[str, str] = {"bloom": "alibi", "mpnet": "position_bias", "mpt": "position_bias"}

#: Classes of projections that are plain matrices under another name.
PLAIN = ("FalconLinear",)

#: Numbers that attention modules keep of their heads, and what each counts.
COUNTS: dict[str, str] = {
    "num_attention_heads": "q",
    "num_heads": "q",
    "n_heads": "q",
    "n_head": "q",
    "num_key_value_heads": "k",
    "num_kv_heads": "k",
    "num_key_value_groups": "group",
    "all_head_size": "width",
    "embed_dim": "width",  # MVP, XGLM; where it means the model's width, nothing reads it again
    "inner_dim": "width",
    "split_size": "width",
}

#: Families whose modules bear known names and mean something else by them.
FOREIGN: dict[str, str] = {
    "codegen": "keeps its projections in blocks made for four devices",
    "xlnet": "keeps its heads in tensors of their own order, with biases for each",
    "fsmt": "folds all heads into the width of the model at every call",
    "ibert": "quantises its projections with ranges kept for all heads at once",
}


# --- The projections of one attention -----------------------------------------------------------


@dataclass(frozen=True)
class HeadWeight:
    """One weight with entries a head: its name, the axis, and whose entries stand at each index.

    `owner` is `[entry]`: the number of the head, counted within its kind. `kind` is `[entry]` too:
    0 for query heads, 1 for the heads of keys and values.
    """

    name: str
    axis: int
    owner: Tensor
    kind: Tensor

    def kept(self, queries: Tensor, keys: Tensor) -> Tensor:
        """The entries that stay, given which query heads and which key heads do (true/false)."""
        whose_query = queries[self.owner.clamp(max=len(queries) - 1)]
        whose_key = keys[self.owner.clamp(max=len(keys) - 1)]
        return torch.where(self.kind == 0, whose_query, whose_key).nonzero().flatten()


def layout_of(model: nn.Module, site: Site) -> AttentionLayout:
    """How the attention at a site is written; raises for one that is not known."""
    core = core_of(model)
    kind = str(core.config.model_type)
    if kind in FOREIGN:
        raise UnsupportedModel(
            f"No head can be removed from {type(core).__name__}: a '{kind}' model {FOREIGN[kind]}. "
            "Switch the heads off with hc.valve instead."
        )
    for row in ROWS:
        paths = [path for path, _ in row.parts] + [row.output]
        if all(_module(model, site, path) is not None for path in paths):
            return row
    raise UnsupportedModel(
        f"No head can be removed from {type(core).__name__} (model type '{kind}'): the projections "
        f"of {site.module} bear no known names, such as q_proj, k_proj, v_proj and o_proj. "
        "Switch the heads off with hc.valve instead."
    )


def head_weights(model: nn.Module, site: Site) -> list[HeadWeight]:
    """Every weight of a site that has entries a head.

    >>> from transformers import BertConfig, BertModel
    >>> from headcount.models.anatomy import anatomy_of
    >>> model = BertModel(BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=4,
    ...                              intermediate_size=16, vocab_size=32))
    >>> places = head_weights(model, anatomy_of(model).sites[0])
    >>> [place.name for place in places][-2:], places[0].owner[:6].tolist()
    (['encoder.layer.0.attention.self.value.bias', 'encoder.layer.0.attention.output.dense.weight'],
     [0, 0, 0, 0, 1, 1])
    """
    row, joint = layout_of(model, site), joint_norms(model, site)
    places = []
    there = [part for part in row.also if _module(model, site, part[0]) is not None]
    for path, letters in (*row.parts, *there):
        if letters in joint:
            continue  # all of it is read by the norm
        places += _rows(model, site, path, letters, row.by_group and len(letters) > 1)
    places.append(_columns(model, site, row.output))
    return places + _per_head(model, site)


def joint_norms(model: nn.Module, site: Site) -> dict[str, str]:
    """Norms over all heads of a layer together (OLMo 2): their paths, by `q` or `k`.

    Without a head's part of the projection the others would change, so the projection and the norm
    stay whole, and what comes out is cut.
    """
    found = {}
    for letter, path, count in (("q", "q_norm", site.heads), ("k", "k_norm", site.kv_heads)):
        norm = _module(model, site, path)
        weight = getattr(norm, "weight", None)
        if weight is None or weight.dim() != 1:
            continue
        is_cut = any(isinstance(hook, Part) for hook in norm._forward_hooks.values())
        if is_cut or (count > 1 and len(weight) == count * site.head_dim):
            found[letter] = path
    return found


def output_of(model: nn.Module, site: Site) -> HeadWeight:
    """The weight of a site's output projection, whose inputs are the heads side by side."""
    return _columns(model, site, layout_of(model, site).output)


def _name(site: Site, path: str) -> str:
    """The full name of a path seen from the site's module."""
    if path.startswith(".."):
        return f"{site.module.rpartition('.')[0]}.{path[2:]}"
    return f"{site.module}.{path}"


def _module(model: nn.Module, site: Site, path: str) -> Any:
    try:
        return model.get_submodule(_name(site, path))
    except AttributeError:
        return None


def _checked(model: nn.Module, site: Site, path: str) -> nn.Linear | Conv1D:
    """A projection that is a plain matrix; raises for a wrapped or quantised one."""
    module, name = _module(model, site, path), _name(site, path)
    if hasattr(module, "base_layer") or hasattr(module, "lora_A"):
        raise ModelError(
            f"{name} is wrapped in an adapter ({type(module).__name__}), and heads are removed "
            "from plain layers only; merge first: model = model.merge_and_unload()."
        )
    plain = type(module) in (nn.Linear, Conv1D) or type(module).__name__ in PLAIN
    if not plain or not module.weight.is_floating_point():
        raise ModelError(
            f"{name} is a {type(module).__name__}, perhaps quantised, and heads are removed from "
            "plain layers only; load the model in a floating dtype, remove heads, then quantise."
        )
    return module


def _rows(
    model: nn.Module, site: Site, path: str, letters: str, by_group: bool
) -> list[HeadWeight]:
    """Weight and bias of a projection that gives queries, keys or values."""
    module, name = _checked(model, site, path), _name(site, path)
    turned = isinstance(module, Conv1D)  # its weight is [in, out]
    width = module.weight.shape[1 if turned else 0]
    owner, kind = _owners(site, letters, by_group, width, name)
    places = [HeadWeight(f"{name}.weight", 1 if turned else 0, owner, kind)]
    if module.bias is not None:
        places.append(HeadWeight(f"{name}.bias", 0, owner, kind))
    return places


def _owners(
    site: Site, letters: str, by_group: bool, width: int, name: str
) -> tuple[Tensor, Tensor]:
    """Whose each row of a projection is, and of which kind."""
    counts = [site.heads if letter == "q" else site.kv_heads for letter in letters]
    if width % sum(counts):
        raise UnsupportedModel(
            f"{name} gives {width} numbers, which cannot be shared out among "
            f"{' + '.join(map(str, counts))} heads, so no head can be removed there."
        )
    unit = width // sum(counts)
    owners = [torch.arange(count) for count in counts]
    kinds = [torch.full((n,), int(c != "q")) for n, c in zip(counts, letters, strict=True)]
    owner, kind = (_joined(one, site.kv_heads if by_group else 1) for one in (owners, kinds))
    return owner.repeat_interleave(unit), kind.repeat_interleave(unit)


def _joined(blocks: list[Tensor], groups: int) -> Tensor:
    """Blocks one after the other, or a share of each for every group."""
    return torch.cat([block.view(groups, -1) for block in blocks], 1).flatten()


def _columns(model: nn.Module, site: Site, path: str) -> HeadWeight:
    """The weight of the output projection, whose inputs are the heads side by side."""
    module, name = _checked(model, site, path), _name(site, path)
    turned = isinstance(module, Conv1D)
    width = module.weight.shape[0 if turned else 1]
    if width != site.heads * site.head_dim:
        raise UnsupportedModel(
            f"{name} takes {width} numbers where {site.heads} heads of {site.head_dim} come in, "
            "so no head can be removed there."
        )
    owner = torch.arange(site.heads).repeat_interleave(site.head_dim)
    return HeadWeight(f"{name}.weight", 0 if turned else 1, owner, torch.zeros_like(owner))


def _per_head(model: nn.Module, site: Site) -> list[HeadWeight]:
    """What else a site keeps for each head."""
    found = []
    weights = dict(model.get_submodule(site.module).named_parameters())
    for trait in PER_HEAD:
        weight = weights.get(trait.path)
        count = site.heads if trait.of == "q" else site.kv_heads
        if weight is None:
            continue
        if trait.path.endswith("norm.weight") and weight.dim() == 1:
            continue  # over one head's dimensions, or over all heads: `joint_norms`
        owner = torch.arange(count).repeat_interleave(weight.shape[trait.axis] // count)
        kind = torch.full_like(owner, 0 if trait.of == "q" else 1)
        found.append(HeadWeight(_name(site, trait.path), trait.axis, owner, kind))
    return found


# --- Which modules of a family are norms or activations that are written out in Python ----------
# PyTorch's own layers are known by the functions they call. These are not: their forward is a
# handful of multiplications, so they are known by class.

#: LlamaRMSNorm, Qwen3RMSNorm, Gemma3RMSNorm ...; T5 calls its own a layer norm.
_RMS_NORM = re.compile(r".*RMSNorm|(T5|MT5|UMT5|LongT5|SwitchTransformers|Pop2Piano|Udop)LayerNorm")

#: Where transformers keeps NewGELUActivation, QuickGELUActivation and the rest.
_ACTIVATIONS = "transformers.activations"


def is_rms_norm(module: nn.Module) -> bool:
    """Whether a module divides by a root mean square and multiplies by a gain, and no more.

    >>> is_rms_norm(nn.LayerNorm(4))
    False
    """
    own = not isinstance(module, nn.RMSNorm)
    return own and _RMS_NORM.fullmatch(type(module).__name__) is not None


def is_activation(module: nn.Module) -> bool:
    """Whether a module is an activation of transformers' own.

    >>> from transformers.activations import ACT2FN
    >>> is_activation(ACT2FN["gelu_new"]), is_activation(nn.Linear(1, 1))
    (True, False)
    """
    return type(module).__module__ == _ACTIVATIONS
