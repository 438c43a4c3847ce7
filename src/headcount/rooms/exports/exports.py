"""Two forms that any program can load: ONNX, and the old size with zeros where heads were."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

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
    draft_of,
    head_weights,
    heads_left,
    map_of,
    put_in_place,
    quiet,
    room_of,
    save_tokenizer,
    sites_of,
    whole_class,
    whole_counts,
)

# --- Write a model as ONNX ----------------------------------------------------------------------
# The one format in which layers with different numbers of heads load everywhere.


def write_onnx(subject: Subject, folder: Path, *, int8: bool = False) -> float:
    """Write the graphs of a model, and say how far from it they are on inputs of another shape.

    With `int8` its matrices are whole numbers of eight bits in the files, as onnxruntime packs
    them; how far they are from the model is then not judged here, see `judged_int8`.
    """
    runtime = imported("ONNX", "onnxruntime", "onnxscript")  # torch.onnx writes with the second
    from headcount.rooms.exports.onnx_files import pack_graph, write_graphs

    apart, files = write_graphs(subject, folder, runtime)
    for file in files if int8 else ():
        pack_graph(file)
    return apart


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


def export_onnx(subject: Subject, place: Path, about: Sequence[str], int8: bool = False) -> Saved:
    """A folder with the model as ONNX, its tokenizer and its map."""
    why = "layers with different numbers of heads load in any runtime"
    why += "; matrices are packed as int8" if int8 else ""
    with draft_of(place) as draft:
        draft.mkdir()
        apart = write_onnx(subject, draft, int8=int8)
        first = min(file.name for file in draft.glob("*.onnx"))
        with quiet():
            if subject.tokenizer is not None:
                save_tokenizer(subject.tokenizer, draft)
            if subject.inner.can_generate():
                subject.inner.generation_config.save_pretrained(draft)
            subject.inner.config.save_pretrained(draft)
        route = Route("onnx", why, subject.inner.config, type(subject.inner).__name__)
        (draft / MAP).write_text(json.dumps(map_of(subject, route), indent=1), encoding="utf8")
        card = card_for(subject, "onnx", why, f"onnxruntime.InferenceSession('{first}')", about)
        (draft / CARD).write_text(card, encoding="utf8")
        put_in_place(draft, place)
    return Saved(place, "onnx", why, f"onnxruntime.InferenceSession('{place / first}')", apart)


export_int8: Callable[..., Saved] = partial(export_onnx, int8=True)
