"""Two forms that any program can load: ONNX, and the old size with zeros where heads were."""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from headcount.errors import ModelError, UsageError, install_hint
from headcount.models import (
    CARD,
    KEY,
    MAP,
    HeadWeight,
    Route,
    Saved,
    Site,
    Subject,
    apart_of,
    card_for,
    core_of,
    draft_of,
    eval_mode,
    head_weights,
    heads_left,
    map_of,
    no_logs,
    probe_inputs,
    put_in_place,
    quiet,
    room_of,
    save_tokenizer,
    sites_of,
    switched,
    whole_class,
    whole_counts,
)

# --- Write a model as ONNX ----------------------------------------------------------------------
# The one format in which layers with different numbers of heads load everywhere.

ONNX = "model.onnx"

#: How far apart the file and the model may be, of the largest number that comes out.
ROOM = 1e-4


class _First(nn.Module):
    """A model that gives its first output only, and keeps no cache."""

    def __init__(self, model: Any, names: list[str]) -> None:
        super().__init__()
        self.model, self.names = model, names
        has_cache = "use_cache" in inspect.signature(model.forward).parameters
        self.more = {"use_cache": False} if has_cache else {}

    def forward(self, *inputs: Tensor) -> Tensor:
        """The first output."""
        named = dict(zip(self.names, inputs, strict=True))
        output: Tensor = self.model(**named, **self.more)[0]
        return output


def write_onnx(subject: Subject, folder: Path) -> float:
    """Write `model.onnx`, and say how far from the model it is on an input of another shape.

    Inputs are those that the tokenizer gives, outputs and free axes are called as transformers and
    optimum call them. Attention is written as plain products: of the ways that torch can write it
    (eager, scaled_dot_product_attention, the operator Attention of opset 23) onnxruntime's CPU
    kernels run this one fastest.
    """
    runtime = imported("ONNX", "onnxruntime", "onnxscript")  # torch.onnx writes with the second
    inputs = _inputs(subject, batch=2, longer=0)
    wrapped = _First(subject.inner, list(inputs)).eval()
    file = folder / ONNX
    with quiet(), eval_mode(subject.model), torch.no_grad():
        output = subject.inner(**inputs, **wrapped.more)
    silent = no_logs("torch.onnx")  # it logs about packages that are not needed
    with quiet(), silent, eval_mode(subject.model), switched(subject.model, lambda _: "eager"):
        torch.onnx.export(
            wrapped,
            tuple(inputs.values()),
            file,
            input_names=list(inputs),
            output_names=[next(iter(output.keys()), "output")],
            dynamic_shapes=(tuple(_open_axes(value) for value in inputs.values()),),
            dynamo=True,
            verbose=False,
        )
    _name_axes(file)
    return _compared(runtime, subject, wrapped, file)


def imported(what: str, *packages: str) -> Any:
    """The first of some packages, all of which must be there."""
    try:
        first, *_ = (importlib.import_module(name) for name in packages)
        return first
    except ImportError as error:
        raise ModelError(
            f"Writing {what} needs the package {error.name}, which is not installed; "
            f"run {install_hint(what.lower())}."
        ) from None


def _inputs(subject: Subject, batch: int, longer: int) -> dict[str, Tensor]:
    """Small inputs of a batch; texts may be longer than the smallest, with one row padded."""
    found: dict[str, Tensor] = {}
    for name, value in probe_inputs(core_of(subject.model)).items():
        if value.is_floating_point():
            dice = torch.Generator().manual_seed(batch)
            found[name] = torch.randn(batch, *value.shape[1:], generator=dice).to(value)
        else:
            found[name] = torch.cat([value, value[:, :1].repeat(1, longer)], 1).repeat(batch, 1)
    if "input_ids" in found:
        mask = torch.ones_like(found["input_ids"])
        mask[-1, -1] = 0
        ids = found.pop("input_ids")
        kinds = {"token_type_ids": _pair_of(ids)} if _takes_pairs(subject) else {}
        found = {"input_ids": ids, "attention_mask": mask, **kinds, **found}
    return found


def _takes_pairs(subject: Subject) -> bool:
    """Whether the model tells a first text from a second, and its tokenizer, if any, says which."""
    name = "token_type_ids"
    if name not in inspect.signature(subject.inner.forward).parameters:
        return False
    if subject.tokenizer is not None:
        return name in subject.tokenizer.model_input_names
    return getattr(subject.inner.config, "type_vocab_size", 0) > 1


def _pair_of(ids: Tensor) -> Tensor:
    """Types of tokens, the second half of them of a second text."""
    kinds = torch.zeros_like(ids)
    kinds[:, ids.shape[1] // 2 :] = 1
    return kinds


def _open_axes(value: Tensor) -> dict[int, Any]:
    """The axes whose size is not fixed: the batch, and the length of a text."""
    free = {0: torch.export.Dim.DYNAMIC}
    return free if value.is_floating_point() else free | {1: torch.export.Dim.DYNAMIC}


def _name_axes(file: Path) -> None:
    """Call the free axes of a file what optimum calls them, in all of its graph."""
    import onnx

    made = onnx.load(str(file), load_external_data=False)
    names: dict[str, str] = {}
    for one in made.graph.input:
        length = "decoder_sequence_length" if "decoder" in one.name else "sequence_length"
        for name, axis in zip(("batch_size", length), one.type.tensor_type.shape.dim, strict=False):
            if axis.dim_param:
                names[axis.dim_param] = name
    for one in (*made.graph.input, *made.graph.output, *made.graph.value_info):
        for axis in one.type.tensor_type.shape.dim:
            if axis.dim_param in names:
                axis.dim_param = names[axis.dim_param]
    onnx.save(made, str(file))


def _compared(runtime: Any, subject: Subject, wrapped: _First, file: Path) -> float:
    inputs = _inputs(subject, batch=3, longer=4)
    session = runtime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    given = {name: value.cpu().numpy() for name, value in inputs.items()}
    got = torch.from_numpy(session.run(None, given)[0]).double()
    with quiet(), eval_mode(subject.model), torch.no_grad():
        wanted = wrapped(*inputs.values()).cpu().double()
    apart = float((got - wanted).abs().max() / wanted.abs().max().clamp_min(1e-30))
    if not apart <= ROOM:
        raise ModelError(
            f"onnxruntime gives other outputs than {subject.name} ({apart:.1e} apart, where "
            f"{ROOM:.0e} is allowed), so no ONNX file was written."
        )
    return apart


# --- Save a cut model at its old size, with zeros where heads were ------------------------------

_TABLE = "relative_attention_bias.weight"


def filled_with_zeros(model: Any) -> Any:
    """The whole model that gives what the cut one gives: removed heads are there, and give 0."""
    left = heads_left(model.config)
    if left is None:
        raise UsageError("No head was removed from this model, so there is nothing to fill.")
    whole = _built_whole(model)
    sites = sites_of(whole)
    if any(max(left[layer_key(site)], default=0) >= site.heads for site in sites):
        raise UsageError(
            "This model was saved by an older headcount, which did not write down how many heads "
            "it once had; remove the heads from the whole model again, and export that."
        )
    cut, full = dict(model.named_parameters()), dict(whole.named_parameters())
    with torch.no_grad():
        for name, value in full.items():
            if name in cut and cut[name].shape == value.shape:
                value.copy_(cut[name])
        for name, buffer in whole.named_buffers():
            buffer.copy_(model.get_buffer(name))
        for site in sites:
            for place in head_weights(whole, site):
                if place.name != f"{site.module}.{_TABLE}" or not _lends(full, site, sites):
                    _fill(cut, full, place, _kept(site, place, left))
        for site in sites:
            if _lends(full, site, sites):
                _fill_table(cut, full, site, sites, left)
    return whole.eval()


def _built_whole(model: Any) -> Any:
    """A model of the size that it had, with weights at random."""
    config = deepcopy(model.config)
    for name, value in whole_counts(config).items():
        if value is None:  # it was not said, and a default holds
            vars(config).pop(config.attribute_map.get(name, name), None)
        else:
            setattr(config, name, value)
    delattr(config, KEY)
    with torch.random.fork_rng(devices=[]):
        return whole_class(model)(config).to(device=model.device, dtype=model.dtype)


def layer_key(site: Site) -> str:
    """What a map of heads calls a layer."""
    return f"{site.stack}.{site.layer}"


def _kept(site: Site, place: HeadWeight, left: dict[str, list[int]]) -> Tensor:
    """Which entries of a whole weight the cut one still has."""
    numbers = left[layer_key(site)]
    queries = torch.zeros(site.heads, dtype=torch.bool)
    queries[numbers] = True
    return place.kept(queries, queries.view(site.kv_heads, -1).any(1))


def _fill(cut: dict[str, Tensor], full: dict[str, Tensor], place: HeadWeight, kept: Tensor) -> None:
    """Zeros, and what was kept in its old place; a dead head has nothing to give."""
    value = full[place.name].zero_()
    if len(kept):
        value.index_copy_(place.axis, kept.to(value.device), cut[place.name])


def _lends(full: dict[str, Tensor], site: Site, sites: list[Site]) -> bool:
    """Whether a layer has a table of positions that other layers of its stack use (T5)."""
    tables = [f"{one.module}.{_TABLE}" in full for one in sites if one.stack == site.stack]
    return f"{site.module}.{_TABLE}" in full and not all(tables)


def _fill_table(
    cut: dict[str, Tensor],
    full: dict[str, Tensor],
    lender: Site,
    sites: list[Site],
    left: dict[str, list[int]],
) -> None:
    """The one table of a stack gets each head's column from a layer that still has it."""
    whole = full[f"{lender.module}.{_TABLE}"].zero_()
    seen: dict[int, Tensor] = {}
    for site in (site for site in sites if site.stack == lender.stack):
        table = cut.get(f"{site.module}.{_TABLE}")
        numbers = left[layer_key(site)]
        for place, number in enumerate(numbers if table is not None else ()):
            column = table[:, place]  # type: ignore[index]
            if number in seen and not torch.equal(seen[number], column):
                raise UsageError(
                    f"The layers of '{site.stack}' were trained apart since heads were removed, "
                    "and a whole model has one position bias for all; save it without export."
                )
            seen[number] = column
            whole[:, number] = column


# --- As exporters of the registry --------------------------------------------------------------

_ZEROS = "it has its old size, with zeros in the place of removed heads"


def export_zeros(subject: Subject, place: Path, about: Sequence[str]) -> Subject:
    """The subject at its old size; its heads are numbered as they were born."""
    whole = filled_with_zeros(subject.inner)
    filled = replace(subject, model=whole, notes=[*subject.notes, _ZEROS])
    apart = apart_of(subject, filled)
    if not apart <= room_of(subject.dtype):
        raise ModelError(
            f"{subject.name} with zeros in the place of removed heads gives other outputs "
            f"({apart:.1e} apart), so it was not saved; save it without export."
        )
    return filled


def export_onnx(subject: Subject, place: Path, about: Sequence[str]) -> Saved:
    """A folder with the model as ONNX, its tokenizer and its map."""
    why = "layers with different numbers of heads load in any runtime"
    with draft_of(place) as draft:
        draft.mkdir()
        apart = write_onnx(subject, draft)
        with quiet():
            if subject.tokenizer is not None:
                save_tokenizer(subject.tokenizer, draft)
            if subject.inner.can_generate():
                subject.inner.generation_config.save_pretrained(draft)
        route = Route("onnx", why, subject.inner.config, type(subject.inner).__name__)
        (draft / MAP).write_text(json.dumps(map_of(subject, route), indent=1), encoding="utf8")
        card = card_for(subject, "onnx", why, f"onnxruntime.InferenceSession('{ONNX}')", about)
        (draft / CARD).write_text(card, encoding="utf8")
        put_in_place(draft, place)
    return Saved(place, "onnx", why, f"onnxruntime.InferenceSession('{place / ONNX}')", apart)
