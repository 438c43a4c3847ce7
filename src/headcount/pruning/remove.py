"""Remove heads for good: a smaller model that computes what the whole one computes without them."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from headcount.errors import UnsupportedModel, UsageError
from headcount.models import (
    Subject,
    core_of,
    eval_mode,
    probe_inputs,
    quiet,
    quiet_arguments,
    switched,
)
from headcount.pruning.cut import cut, keeps
from headcount.records import (
    Head,
    check_head_set,
    check_heads,
    check_once,
    check_stack,
    heads_named,
    parse_heads,
)
from headcount.wiring import valve

# --- The heads that a call means, however it names them -----------------------------------------

#: Names, one head, layers with their heads, or rows of a table.
Heads = str | Head | Iterable[str | Head] | Mapping[Any, Any] | pd.DataFrame | pd.Series


def named_heads(heads: Heads, known: Sequence[Head]) -> list[Head]:
    """Read heads as they are given: they need not exist, and may be named twice.

    >>> known = [Head("enc", layer, index) for layer in (0, 1) for index in (0, 1)]
    >>> [str(head) for head in named_heads({0: [1], 1: [0, 1]}, known)]
    ['enc.0.1', 'enc.1.0', 'enc.1.1']
    >>> named_heads("enc.1", known) == named_heads({"enc": {1: [0, 1]}}, known)
    True
    """
    if isinstance(heads, str):
        return [head for word in check_head_set(heads) for head in heads_named(word, known)]
    if isinstance(heads, Head):
        return [heads]
    if isinstance(heads, Mapping):
        return _of_mapping(heads, known)
    if isinstance(heads, pd.DataFrame | pd.Series):
        return parse_heads(_rows(heads))
    if not isinstance(heads, Iterable):
        raise UsageError(
            f"{heads!r} names no heads; give names (['enc.0.1']), layers with their heads "
            "({0: [1, 2]}), or rows of a table's frame."
        )
    return parse_heads(heads)


def _rows(rows: pd.DataFrame | pd.Series) -> list[Any]:
    """The heads of a frame's rows; of a column of true and false those that are true."""
    if isinstance(rows, pd.DataFrame):
        return list(rows.index)
    if rows.dtype != bool:
        raise UsageError(
            f"The column '{rows.name}' holds {rows.dtype} numbers, and says of no head whether it "
            "goes; compare it with something (column < 0.1), or take the index of some rows."
        )
    return list(rows.index[rows])


def _of_mapping(heads: Mapping[Any, Any], known: Sequence[Head]) -> list[Head]:
    """Layers with their heads, those by stack, or scales by head as a valve takes them."""
    if any("." in str(key) or isinstance(key, tuple) for key in heads):
        return _of_scales(heads)
    stacks = list(dict.fromkeys(head.stack for head in known))
    by_stack = heads
    if all(str(key).isdigit() for key in heads):
        if len(stacks) > 1:
            raise UsageError(
                f"The model has the stacks {', '.join(stacks)}; say which is meant, e.g. "
                f"{{'{stacks[0]}': {{0: [1]}}}}."
            )
        by_stack = {stacks[0]: heads}
    return [head for stack, layers in by_stack.items() for head in _of_layers(stack, layers)]


def _of_layers(stack: str, layers: Any) -> list[Head]:
    check_stack(stack)
    if not isinstance(layers, Mapping) or not all(_is_list(one) for one in layers.values()):
        raise UsageError(f"{layers!r} is no mapping of layers to heads; write it as {{0: [1, 2]}}.")
    named = [f"{stack}.{layer}.{index}" for layer in layers for index in layers[layer]]
    return parse_heads(named)


def _is_list(indices: Any) -> bool:
    return isinstance(indices, Iterable) and not isinstance(indices, str)


def _of_scales(scales: Mapping[Any, Any]) -> list[Head]:
    """Heads with the scale 0: what a valve shuts can be removed; one half open cannot."""
    for name, scale in scales.items():
        if not isinstance(scale, int | float) or scale != 0:
            raise UsageError(
                f"{name} has the scale {scale!r}; a head is removed where its scale is 0, and any "
                "other is for hc.valve."
            )
    return parse_heads(scales)


# --- Removed equals shut ------------------------------------------------------------------------

#: How far apart the two may be, of the largest number that comes out.
ROOM = {torch.float64: 1e-5, torch.float32: 1e-5}
ROOM_OF_HALVES = 2e-2


def check_removed(subject: Subject, small: Subject, going: Sequence[Head]) -> None:
    """Raise unless the cut model gives what the whole one gives with these heads shut."""
    inputs = _inputs(subject)
    ways = [False, True] if subject.anatomy.sites[0].route == "interface" else [False]
    for eager in ways:
        with _way(subject, eager), valve(subject, dict.fromkeys(going, 0.0)):
            shut = _run(subject, inputs)
        with _way(small, eager):
            removed = _tried(small, inputs)
        _compare(subject, shut, removed)


def _inputs(subject: Subject) -> dict[str, Any]:
    """A small input; numbers that are no token ids are drawn, for silence would hide much."""
    core = core_of(subject.model)
    inputs = probe_inputs(core)
    dice = torch.Generator().manual_seed(0)
    for name, value in inputs.items():
        if value.is_floating_point():
            inputs[name] = torch.randn(value.shape, generator=dice).to(value)
    return inputs | quiet_arguments(core)


def _way(subject: Subject, eager: bool) -> AbstractContextManager[None]:
    """As the model attends by itself, or by its plain formula."""
    return switched(core_of(subject.model), lambda _: "eager") if eager else nullcontext()


def _run(subject: Subject, inputs: dict[str, Any]) -> Tensor:
    core = core_of(subject.model)
    with quiet(), eval_mode(core), torch.no_grad():
        output: Tensor = core(**inputs)[0]
    return output.double()


def _tried(small: Subject, inputs: dict[str, Any]) -> Tensor:
    try:
        return _run(small, inputs)
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UnsupportedModel(
            f"{type(small.inner).__name__} (model type '{small.inner.config.model_type}') does not "
            f"run once heads are cut out ({reason}), so none can be removed. Shut them with "
            "hc.valve instead."
        ) from error


def _compare(subject: Subject, shut: Tensor, removed: Tensor) -> None:
    room = ROOM.get(subject.dtype, ROOM_OF_HALVES)
    apart = float((shut - removed).abs().max() / shut.abs().max().clamp_min(1e-30))
    if not apart <= room:
        raise UnsupportedModel(
            f"{subject.name} without the heads is not {subject.name} with the heads shut: their "
            f"outputs are {apart:.1e} apart, where {room:.0e} is allowed. Shut the heads with "
            "hc.valve instead."
        )


# --- Remove heads for good ----------------------------------------------------------------------


def prune(subject: Subject, heads: Heads) -> Subject:
    """A copy of the subject without these heads; the subject itself is left alone.

    `heads` are names (`"enc.0.1,enc.3"`, or a list), layers with their heads (`{0: [1, 2]}`, for
    an encoder-decoder `{"enc": {0: [1]}}`), or rows of a table's frame.
    Rows of the query, key and value projections and columns of the output projection are cut.
    A layer that loses all heads keeps its residual and its bias. The heads that are left keep
    their names. Before it is returned, the copy is run beside the subject with these heads shut.

    >>> from transformers import BertConfig, BertModel
    >>> config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=4,
    ...                     intermediate_size=16, vocab_size=32)
    >>> small = prune(Subject(BertModel(config), name="mine"), "enc.0.1,enc.0.2")
    >>> small, [str(head) for head in small.heads]
    (Subject(mine without 2 heads: BertModel, 1 layers x 2 heads enc, float32 on cpu),
     ['enc.0.0', 'enc.0.3'])
    """
    _check_subject(subject)
    going = read_heads(heads, subject.heads)
    _refuse_adapter(subject)
    _warn_of_older_tool(subject)
    kept = keeps(subject.anatomy, going)
    model = deepcopy(subject.model)
    cut(model, kept, subject.anatomy.sites)
    small = Subject(
        model,
        subject.tokenizer,
        name=f"{subject.name} without {len(going)} head{'' if len(going) == 1 else 's'}",
        source=subject.source,
        revision=subject.revision,
        notes=[*subject.notes, _note(subject, going)],
    )
    check_removed(subject, small, going)
    return small


def read_heads(heads: Heads, known: Sequence[Head]) -> list[Head]:
    """The heads to remove, in the model's order: each exists, each is named once, some stay."""
    named = named_heads(heads, known)
    check_heads(named, known)
    check_once(named)
    if len(named) == len(known):
        raise UsageError(
            f"All {len(known)} heads of the model would go; leave at least one, or measure the "
            "model without attention with hc.valve."
        )
    gone = set(named)
    return [head for head in known if head in gone]


def _check_subject(subject: object) -> None:
    if not isinstance(subject, Subject):
        raise UsageError(
            f"prune takes a Subject, not {type(subject).__name__}; make one with hc.load(name) or "
            "hc.Subject(model, tokenizer), or cut the model itself with hc.prune_heads."
        )


def _refuse_adapter(subject: Subject) -> None:
    if subject.model is not subject.inner:
        raise UsageError(
            f"{subject.name} is wrapped in an adapter ({type(subject.model).__name__}), and heads "
            "are removed from plain layers only; merge first: model = model.merge_and_unload()."
        )


def _warn_of_older_tool(subject: Subject) -> None:
    listed = getattr(subject.inner.config, "pruned_heads", None)
    if listed:
        warnings.warn(
            f"The config of {subject.name} lists pruned_heads {listed}, which transformers 5 "
            "ignores: these heads are there and count as any other.",
            stacklevel=3,
        )


def _note(subject: Subject, going: Sequence[Head]) -> str:
    return f"{len(going)} of {len(subject.heads)} heads of {subject.name} were removed."


# --- `model.prune_heads` of transformers 4, which transformers 5 took away ----------------------

ByLayer = Mapping[int, Iterable[int]]


def prune_heads(model: Any, heads: ByLayer | Mapping[str, ByLayer]) -> Any:
    """Remove heads from a transformers model in place, and give it back.

    `heads` is ``{layer: [heads]}``, for an encoder-decoder ``{"enc": {layer: [heads]}}``. Numbers
    are those that heads were born with, also when some were removed before. `hc.prune` leaves
    the model alone and gives a copy.

    >>> from transformers import BertConfig, BertModel
    >>> config = BertConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
    ...                     intermediate_size=16, vocab_size=32)
    >>> model = prune_heads(BertModel(config), {0: [1, 2], 1: [0]})
    >>> [layer.attention.self.num_attention_heads for layer in model.encoder.layer]
    [2, 3]
    """
    subject = Subject(model)
    if not isinstance(heads, Mapping):
        raise UsageError(
            f"prune_heads takes layers with their heads, {{0: [1, 2]}}, not {heads!r}; hc.prune "
            "takes names."
        )
    going = list(dict.fromkeys(named_heads(heads, subject.heads)))
    prune(subject, going)  # a copy is cut and compared first: the model changes only if that holds
    cut(model, keeps(subject.anatomy, going), subject.anatomy.sites)
    return model


# --- Inputs of a given length and batch for any model -------------------------------------------


def trial_inputs(subject: Subject, tokens: int, batch: int, seed: int = 0) -> dict[str, Any]:
    """Full rows of random tokens, source and target alike; pictures and sound have their own size.

    >>> from headcount.models.load import load
    >>> inputs = trial_inputs(load("translator", device="cpu"), tokens=7, batch=2)
    >>> {name: tuple(value.shape) for name, value in inputs.items() if name.endswith("ids")}
    {'input_ids': (2, 7), 'decoder_input_ids': (2, 7)}
    """
    _check(subject, tokens, batch)
    core, dice = core_of(subject.model), torch.Generator().manual_seed(seed)
    inputs: dict[str, Any] = {}
    for name, value in probe_inputs(core).items():
        wide = value.expand(batch, *value.shape[1:])
        inputs[name] = _drawn(value, tokens, batch, dice) if name.endswith("ids") else wide.clone()
    if "use_cache" in inspect.signature(subject.model.forward).parameters:
        inputs["use_cache"] = False
    return inputs


def _drawn(ids: Tensor, tokens: int, batch: int, dice: torch.Generator) -> Tensor:
    """Ids drawn from those that the probe found to be ordinary."""
    places = torch.randint(ids.shape[1], (batch, tokens), generator=dice)
    return ids[0, places.to(ids.device)]


def _check(subject: Subject, tokens: int, batch: int) -> None:
    if tokens < 1 or batch < 1:
        raise UsageError(f"{batch} rows of {tokens} tokens cannot be run; both are 1 or more.")
    config = core_of(subject.model).config
    for name in ("max_position_embeddings", "n_positions"):
        most = getattr(config, name, None)
        if isinstance(most, int) and tokens > most:
            raise UsageError(
                f"{subject.name} takes {most} tokens at most, and {tokens} were asked for; give "
                "shorter lengths."
            )
