"""Families that do not speak the attention interface: where their heads lie, one row each.

A row names two things: the class of the module around one attention, and the path inside it
of the output projection, whose input holds the heads side by side. All else (heads, head
size, stack, causality) is learnt by running the model once on a few tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from headcount.errors import UnsupportedModel
from headcount.models import (
    Site,
    Subject,
    capture_hooks_off,
    core_of,
    eval_mode,
    finding_heads,
    is_causal,
    on_exit,
    own_thread,
    probe_inputs,
    quiet_arguments,
    switched,
)

# --- Families that do not speak the attention interface -----------------------------------------


@dataclass(frozen=True)
class Family:
    """Where one family keeps its heads.

    `attention` is the class of the attention module, `projection` the path inside it of the
    output projection (or the name of the method that does the projection, with `method`).
    `kv_heads` names the attribute of the attention that counts key heads, where these are
    fewer, and `window` its buffer `[1, 1, query, key]` of the keys that a query may see, where
    that differs by layer. With `time_first` the input of the projection is
    `[query, batch, width]`. `needs` is a setting and the value it must have for the heads to
    be reached soundly.
    """

    attention: str
    projection: str
    kv_heads: str = ""
    window: str = ""
    time_first: bool = False
    method: bool = False
    needs: tuple[str, Any] | None = None


#: By `config.model_type`.
OUTSIDE: dict[str, Family] = {
    "big_bird": Family(
        "BigBirdAttention", "output.dense", needs=("attention_type", "original_full")
    ),
    # With slow_but_exact the projection's weight is applied in slices, past the module.
    "bloom": Family("BloomAttention", "dense", needs=("slow_but_exact", False)),
    "codegen": Family("CodeGenAttention", "out_proj"),
    # A talking head's map is a mixture of all heads' maps, and its rows do not sum to 1.
    "deberta": Family("DebertaAttention", "output.dense", needs=("talking_head", False)),
    "deberta-v2": Family("DebertaV2Attention", "output.dense"),
    # With alibi the eager path, the only one that gives maps, adds the bias twice.
    "falcon": Family("FalconAttention", "dense", kv_heads="num_kv_heads", needs=("alibi", False)),
    "flaubert": Family("MultiHeadAttention", "out_lin"),
    "fsmt": Family("Attention", "out_proj", time_first=True),
    "gpt_neo": Family("GPTNeoSelfAttention", "out_proj", window="bias"),
    "gpt_neox_japanese": Family("GPTNeoXJapaneseAttention", "dense"),
    "gptj": Family("GPTJAttention", "out_proj"),
    # Quantised activations travel with a scaling factor that a valve cannot change.
    "ibert": Family("IBertAttention", "output.dense", needs=("quant_mode", False)),
    "luke": Family("LukeAttention", "output.dense"),
    "megatron-bert": Family("MegatronBertAttention", "output.dense"),
    "mpnet": Family("MPNetSelfAttention", "o"),
    "mpt": Family("MptAttention", "out_proj"),
    "mvp": Family("MvpAttention", "out_proj", needs=("use_prompt", False)),
    "openai-gpt": Family("Attention", "c_proj"),
    "rembert": Family("RemBertAttention", "output.dense"),
    "roformer": Family("RoFormerAttention", "output.dense"),
    "xglm": Family("XGLMAttention", "out_proj"),
    "xlm": Family("MultiHeadAttention", "out_lin"),
    "xlnet": Family("XLNetRelativeAttention", "post_attention", time_first=True, method=True),
}

# They ask for "eager" or "sdpa" by name before they mask the keys that they did not choose: under
# any other name, such as a tap's, all keys would be attended to, without a word.
_CHOOSES_KEYS = "chooses some keys for each query by a rule that no tap can keep"

#: Families whose attention is not one map `[query, key]` a head, and what it is instead.
REFUSED: dict[str, str] = {
    **dict.fromkeys(("axk2", "deepseek_v32", "glm_moe_dsa", "hy_v4"), _CHOOSES_KEYS),
    **dict.fromkeys(("minimax_m3_vl", "minimax_m3_vl_text"), _CHOOSES_KEYS),
    **dict.fromkeys(("mistral_large4", "mistral_large4_text"), _CHOOSES_KEYS),
    "canine": "attends within blocks of characters, then over a shortened sequence",
    "convbert": "puts convolutions beside its heads, in the same input of the output projection",
    "deepseek_v4": "attends to summaries of many tokens beside the tokens themselves",
    "diffllama": "attends twice in each layer and takes the difference of pairs of heads",
    "funnel": "shortens the sequence between its blocks, so that its maps do not show tokens",
    "led": "attends within a band and to global tokens, and stores its maps by diagonals",
    "lilt": "has a text half and a layout half of each head, and shows the map of one of them",
    "longformer": "attends within a band and to global tokens, and stores its maps by diagonals",
    "mra": "approximates attention at several resolutions and has no maps",
    "nystromformer": "approximates attention through landmarks and has no maps of tokens",
    "perceiver": "attends from latents, which are not tokens",
    "prophetnet": "runs several streams of n-gram attention through each decoder head",
    "reformer": "attends within chunks and buckets of hashes, and has no maps of all tokens",
    "rwkv": "is a recurrence without attention maps",
    "squeezebert": "shows the scores before the softmax in place of its maps",
    "wavlm": "applies the weight of its output projection past the module, out of a valve's reach",
    "yoso": "samples its attention by hashing and has no maps",
}


# --- Where heads enter the output projection ----------------------------------------------------
# There they lie side by side, `[batch, query, head * dim]`, as they do at the seam of the
# families inside. A few families turn the axes, and XLNet projects in a method instead of a
# module; whoever looks from here sees none of that.

#: Sees the attention module and what its heads gave, `[batch, query, head * dim]`; returns
#: what the projection is to take in.
Show = Callable[[nn.Module, Tensor], Tensor]


@contextmanager
def entering(attentions: Iterable[nn.Module], family: Family, show: Show) -> Iterator[None]:
    """Within the block, `show` sees and replaces what enters each output projection.

    >>> layer = nn.ModuleDict({"out": nn.Linear(2, 1, bias=False)})
    >>> heads = __import__("torch").ones(1, 1, 2)
    >>> with entering([layer], Family("ModuleDict", "out"), lambda module, heads: heads * 0):
    ...     layer["out"](heads).item()
    0.0
    """
    ours = own_thread()

    def own(module: nn.Module, heads: Tensor) -> Tensor:
        return show(module, heads) if ours() else heads

    attach = _shadowed if family.method else _hooked
    with ExitStack() as stack:
        for attention in attentions:
            stack.enter_context(attach(attention, family, own))
        yield


@contextmanager
def _hooked(attention: nn.Module, family: Family, show: Show) -> Iterator[None]:
    """Look at the input of the module that projects."""

    def before(_: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        return (_shown(attention, args[0], family, show), *args[1:])

    projection, stack = attention.get_submodule(family.projection), ExitStack()
    with on_exit(stack.close):
        stack.callback(projection.register_forward_pre_hook(before).remove)
        yield


@contextmanager
def _shadowed(attention: nn.Module, family: Family, show: Show) -> Iterator[None]:
    """Look at the second argument `[query, batch, head, dim]` of the method that projects."""
    name = family.projection
    own = getattr(attention, name)
    outer = vars(attention).get(name)

    def shadow(residual: Tensor, heads: Tensor, *args: Any, **kwargs: Any) -> Any:
        seen = _shown(attention, heads.flatten(2), family, show)
        return own(residual, seen.view_as(heads), *args, **kwargs)

    def restore() -> None:
        vars(attention).pop(name, None)
        if outer is not None:
            setattr(attention, name, outer)

    with on_exit(restore):
        setattr(attention, name, shadow)
        yield


def _shown(attention: nn.Module, heads: Tensor, family: Family, show: Show) -> Tensor:
    if not family.time_first:
        return show(attention, heads)
    return show(attention, heads.transpose(0, 1)).transpose(0, 1)


# --- Attention sites of families outside the interface ------------------------------------------


def outside_sites(model: nn.Module) -> list[Site]:
    """The sites of a family outside the interface; none for a family inside it.

    >>> from transformers import GPTJConfig, GPTJModel
    >>> config = GPTJConfig(n_embd=16, n_layer=1, n_head=4, rotary_dim=4, vocab_size=32)
    >>> [(site.stack, site.heads, site.module) for site in outside_sites(GPTJModel(config))]
    [('dec', 4, 'h.0.attn')]
    """
    core = core_of(model)
    family = family_of(core)
    if family is None:
        # Raise for a model inside the interface that holds a part outside: half would be missed.
        for part in core.modules():
            kind = _kind(part)
            if (
                part is not core
                and isinstance(part, PreTrainedModel)
                and kind in (OUTSIDE | REFUSED)
            ):
                raise UnsupportedModel(
                    f"{type(core).__name__} holds a {type(part).__name__} (model type '{kind}'), "
                    "which does not speak transformers' attention interface, next to parts that "
                    "may; pass one of the two parts."
                )
        return []
    with eval_mode(core), torch.no_grad(), finding_heads(core):
        calls, recorded = _listen(core, family)
    names = {id(module): name for name, module in model.named_modules()}
    return _number(core, family, calls, recorded, names)


def family_of(model: nn.Module) -> Family | None:
    """The row of the model's family; none inside the interface; an error if it is refused."""
    core = core_of(model)
    kind = _kind(core)
    if kind in REFUSED:
        raise UnsupportedModel(
            f"{type(core).__name__} (model type '{kind}') {REFUSED[kind]}; headcount works on "
            "softmax attention with one map [query, key] a head."
        )
    family = OUTSIDE.get(kind)
    if family is not None and family.needs is not None:
        name, needed = family.needs
        value = getattr(core, name, getattr(core.config, name, needed))
        if value != needed:
            raise UnsupportedModel(
                f"{type(core).__name__} has {name}={value!r}, and the heads of '{kind}' models "
                f"are reached soundly only with {name}={needed!r}."
            )
    return family


def window_of(model: nn.Module, site: Site, maps: Tensor) -> Tensor | None:
    """The keys that each query of a site may see, true or false, where layers differ in it."""
    family = family_of(model)
    if family is None or not family.window:
        return None
    buffer: Tensor = getattr(model.get_submodule(site.module), family.window)
    return buffer[:, :, : maps.shape[-2], : maps.shape[-1]]


def _kind(module: nn.Module) -> str:
    return str(getattr(getattr(module, "config", None), "model_type", ""))


#: An attention module, and what entered its output projection.
_Call = tuple[nn.Module, Tensor]


def _listen(core: PreTrainedModel, family: Family) -> tuple[list[_Call], OwnMaps]:
    """Run a few tokens twice, plainly and for the maps; both must give the same."""
    calls: list[_Call] = []

    def note(attention: nn.Module, heads: Tensor) -> Tensor:
        calls.append((attention, heads))
        return heads

    inputs = probe_inputs(core) | quiet_arguments(core)
    plain = core(**inputs)[0]
    attentions = [  # a flash variant subclasses the class that the row names
        module
        for module in core.modules()
        if family.attention in {each.__name__ for each in type(module).__mro__}
    ]
    with entering(attentions, family, note):
        recorded = own_maps(core, inputs)
    tolerance = 1e-3 if plain.dtype in (torch.float32, torch.float64) else 5e-2
    gap = (plain - recorded.first).abs().max() / plain.abs().max().clamp_min(1e-6)
    if not gap <= tolerance:
        raise UnsupportedModel(
            f"{type(core).__name__} gives other outputs when it is asked for its attention maps "
            f"(apart by {float(gap):.1%}), so the maps are not those of the model as it runs."
        )
    return calls, recorded


def _number(
    core: nn.Module, family: Family, calls: list[_Call], recorded: OwnMaps, names: dict[int, str]
) -> list[Site]:
    """Pair each call with its map, and give it its stack and its layer."""
    if not calls:
        raise UnsupportedModel(
            f"{type(core).__name__} ran without once calling the {family.projection} of a "
            f"{family.attention}, where the heads of '{_kind(core)}' models are looked for."
        )
    sides = [_side(core, names[id(attention)]) for attention, _ in calls]
    maps = {
        side: iter(recorded.of(side or "enc", layers)) for side, layers in Counter(sides).items()
    }
    layers: Counter[str | None] = Counter()
    turns: Counter[int] = Counter()
    sites = []
    for (attention, entered), side in zip(calls, sides, strict=True):
        own, key = next(maps[side]), id(attention)
        rows, queries, width = entered.shape
        sums = own.sum(-1, dtype=torch.float32)
        fits = (own.shape[0], own.shape[2], width % own.shape[1]) == (rows, queries, 0)
        if not fits or not torch.allclose(sums, torch.ones_like(sums), atol=1e-2):
            raise UnsupportedModel(
                f"{type(core).__name__} gave attention maps of shape {list(own.shape)} whose rows "
                f"sum to {float(sums.min()):.2f}-{float(sums.max()):.2f}, where heads of shape "
                f"{list(entered.shape)} came out; maps are [batch, head, query, key] and rows sum "
                "to 1. Try attn_implementation='eager'."
            )
        causal, heads = side != "cross" and is_causal(own), own.shape[1]
        sites.append(
            Site(
                stack=side or ("dec" if causal else "enc"),
                layer=layers[side],
                heads=heads,
                kv_heads=int(getattr(attention, family.kv_heads, heads)),
                head_dim=entered.shape[-1] // heads,
                module=names[key],
                call=turns[key],
                causal=causal,
                route="projection",
            )
        )
        layers[side] += 1
        turns[key] += 1
    return sites


def _side(core: nn.Module, name: str) -> str | None:
    """The stack of an encoder-decoder's attention, by its name; none where there is one stack."""
    if not core.config.is_encoder_decoder:  # type: ignore[union-attr]
        return None
    parts = name.split(".")
    if parts[-1] == "encoder_attn":
        return "cross"
    return "enc" if "encoder" in parts else "dec"


#: The output field of each stack of an encoder-decoder; other models have `attentions`.
FIELDS = {"enc": "encoder_attentions", "dec": "decoder_attentions", "cross": "cross_attentions"}


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

    Falcon, asked for its maps under `sdpa`, adds a true/false mask to its scores without
    an error: so every config says `eager` for the call.
    """
    with switched(model, lambda _: "eager"), capture_hooks_off(model):
        return OwnMaps(model, model(**inputs, output_attentions=True, return_dict=True))


def maps_of(
    subject: Subject, sites: Sequence[Site], inputs: Mapping[str, Any]
) -> Iterator[tuple[Site, Tensor, Tensor | None]]:
    """Run a batch; the map of each of these sites, freed when it was seen, and its window."""
    found = own_maps(subject.model, inputs)
    counts = Counter(site.stack for site in sites)
    waiting = {stack: found.of(stack, count) for stack, count in counts.items()}
    del found
    for site in sites:
        maps = waiting[site.stack].pop(0)
        yield site, maps, window_of(subject.model, site, maps)
