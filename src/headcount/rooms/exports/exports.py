"""Two forms that any program can load: ONNX, and the old size with zeros where heads were."""

from __future__ import annotations

import importlib
import inspect
import json
import re
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from headcount.errors import HeadcountError, ModelError, UsageError, install_hint
from headcount.models import (
    CARD,
    GGUF,
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
    find,
    head_weights,
    heads_left,
    load,
    map_beside,
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
    runtime = _imported("ONNX", "onnxruntime", "onnxscript")  # torch.onnx writes with the second
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


def _imported(what: str, *packages: str) -> Any:
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


# --- Write a model that came as GGUF back as GGUF -----------------------------------------------
# The file it came from is copied without the heads that went: packed weights stay packed, for rows
# of query, key and value, and whole blocks of the output's columns, can be left out as they are.


def write_gguf(
    subject: Subject, source: Path, file: Path, born: dict[str, list[int]] | None = None
) -> None:
    """Write a file for llama.cpp, where layers have as many heads or it is of Llama's kind.

    llama.cpp's `deci` is Llama with a number of heads for each layer, or none. `born` are the
    numbers of the heads that the source has, where some were gone before.
    """
    gguf = _imported("GGUF", "gguf")
    sites, left = sites_of(subject.inner), heads_left(subject.inner.config)
    queries, keys = _counts(sites, left)
    with quiet():
        reader = gguf.GGUFReader(str(source))
        came = str(reader.fields["general.architecture"].contents())
        kind = came if is_even(sites, left) else "deci"
        if kind != came and came != "llama":
            raise UsageError(
                f"The layers of {subject.name} have different numbers of heads, and llama.cpp "
                f"reads such models of Llama's kind only, not of '{came}'; take as many from every "
                "layer (even=True, --even)."
            )
        writer = gguf.GGUFWriter(str(file), kind)
        kept = _places_in(reader, came, left, born)
        width = {
            "attention.key_length": sites[0].head_dim,
            "attention.value_length": sites[0].head_dim,
        }
        counts = {"attention.head_count": queries, "attention.head_count_kv": keys}
        for name, value in width.items():
            writer.add_uint32(f"{kind}.{name}", value)
        for name, numbers in counts.items():
            if kind == came:
                writer.add_uint32(f"{kind}.{name}", numbers[0])
            else:
                writer.add_array(f"{kind}.{name}", numbers)
        for name, field in reader.fields.items():
            bare = name.removeprefix(f"{came}.")
            own = bare in width | counts or name == "general.architecture"
            if not own and not name.startswith("GGUF."):
                inner = field.types[1] if len(field.types) > 1 else None
                named = name if bare == name else f"{kind}.{bare}"
                writer.add_key_value(named, field.contents(), field.types[0], inner)
        for tensor in reader.tensors:
            data, stored = tensor.data, tensor.tensor_type
            layer = re.match(r"blk\.(\d+)\.attn_", tensor.name)
            if layer is not None and not queries[int(layer[1])]:
                continue  # a layer without attention has not even its norm
            if kept:
                data, stored = _without_heads(gguf, tensor, sites[0].head_dim, kept)
            writer.add_tensor(tensor.name, data, raw_dtype=stored)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()


def _counts(
    sites: Sequence[Site], left: dict[str, list[int]] | None
) -> tuple[list[int], list[int]]:
    """The heads of every layer, and those of its keys and values: none where all went."""
    there = [left is None or bool(left[_key(site)]) for site in sites]
    return (
        [site.heads * has for site, has in zip(sites, there, strict=True)],
        [site.kv_heads * has for site, has in zip(sites, there, strict=True)],
    )


def is_even(sites: Sequence[Site], left: dict[str, list[int]] | None) -> bool:
    """Whether every layer has as many heads."""
    return all(len(set(counts)) == 1 for counts in _counts(sites, left))


def read_back(subject: Subject, file: Path) -> Any:
    """A copy of a model of Llama's kind with the weights that a GGUF file of it holds."""
    gguf = _imported("GGUF", "gguf")
    model = deepcopy(subject.inner)
    sites = {str(site.layer): site for site in sites_of(model)}
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, len(sites))
    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(str(file)).tensors}
    with torch.no_grad():
        for name, weight in model.named_parameters():
            path, _, what = name.rpartition(".")
            tensor = tensors.get(f"{names.get_name(path)}.{what}")
            if tensor is None:
                continue  # of a layer without attention
            data = gguf.dequantize(tensor.data, tensor.tensor_type)
            found = _BLOCK.fullmatch(tensor.name)
            if found is not None and found[2] in "qk":  # pairs of a rotation stand side by side
                site = sites[found[1]]
                heads = site.heads if found[2] == "q" else site.kv_heads
                data = data.reshape(heads, -1, 2, *data.shape[1:]).swapaxes(1, 2)
            weight.copy_(torch.tensor(data).reshape(weight.shape))
    return model


_BLOCK = re.compile(r"blk\.(\d+)\.attn_(q|k|v|output)\.(weight|bias)")


def _places_in(
    reader: Any, kind: str, left: dict[str, list[int]] | None, born: dict[str, list[int]] | None
) -> dict[str, tuple[list[int], list[int]]]:
    """By layer, where a file has the query heads that are left, and those of keys and values."""
    queries, keys = (
        int(reader.fields[f"{kind}.attention.head_count{more}"].contents()) for more in ("", "_kv")
    )
    places = {}
    for layer, numbers in (left or {}).items():
        there = born[layer] if born else list(range(queries))
        kept = [there.index(number) for number in numbers]
        # Heads of keys and values stay while one of their query heads does.
        shared = sorted({place * keys // queries for place in kept})
        places[layer.removeprefix("dec.")] = kept, shared
    return places


def _without_heads(
    gguf: Any, tensor: Any, width: int, places: dict[str, tuple[list[int], list[int]]]
) -> Any:
    """A tensor's data without the heads that went, and how it is packed."""
    found = _BLOCK.fullmatch(tensor.name)
    if found is None:
        return tensor.data, tensor.tensor_type
    layer, part, what = found.groups()
    kept = places[layer][part in "kv"]
    if part != "output":
        rows = np.concatenate([np.arange(head * width, (head + 1) * width) for head in kept])
        return np.ascontiguousarray(tensor.data[rows]), tensor.tensor_type
    if what == "bias":
        return tensor.data, tensor.tensor_type
    block, packed = gguf.GGML_QUANT_SIZES[tensor.tensor_type]
    data, stored = tensor.data, tensor.tensor_type
    if width % block:  # a block would be torn: these few weights are unpacked
        data = gguf.dequantize(data, stored).astype(np.float16)
        stored, block, packed = gguf.GGMLQuantizationType.F16, 1, 1
    elif data.dtype != np.uint8:
        packed = block = 1
    step = width // block * packed
    columns = np.concatenate([np.arange(head * step, (head + 1) * step) for head in kept])
    return np.ascontiguousarray(data[..., columns]), stored


# --- Save a cut model at its old size, with zeros where heads were ------------------------------

_TABLE = "relative_attention_bias.weight"


def filled_with_zeros(model: Any) -> Any:
    """The whole model that gives what the cut one gives: removed heads are there, and give 0."""
    left = heads_left(model.config)
    if left is None:
        raise UsageError("No head was removed from this model, so there is nothing to fill.")
    whole = _built_whole(model)
    sites = sites_of(whole)
    if any(max(left[_key(site)], default=0) >= site.heads for site in sites):
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


def _key(site: Site) -> str:
    return f"{site.stack}.{site.layer}"


def _kept(site: Site, place: HeadWeight, left: dict[str, list[int]]) -> Tensor:
    """Which entries of a whole weight the cut one still has."""
    numbers = left[_key(site)]
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
        numbers = left[_key(site)]
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
        route = Route("onnx", why, subject.inner.config, type(subject.inner).__name__)
        (draft / MAP).write_text(json.dumps(map_of(subject, route), indent=1), encoding="utf8")
        card = card_for(subject, "onnx", why, f"onnxruntime.InferenceSession('{ONNX}')", about)
        (draft / CARD).write_text(card, encoding="utf8")
        put_in_place(draft, place)
    return Saved(place, "onnx", why, f"onnxruntime.InferenceSession('{place / ONNX}')", apart)


def export_gguf(subject: Subject, place: Path, about: Sequence[str]) -> Saved:
    """A folder with the model as GGUF: the file that it came from, without the heads that went."""
    try:
        found = None if subject.source == "in hand" else find(subject.source)
    except HeadcountError:
        found = None
    if found is None or found.gguf is None:
        raise UsageError(
            f"{subject.name} did not come from a GGUF file, so there is none to write back; save "
            "it without export and convert that folder with llama.cpp's convert_hf_to_gguf.py."
        )
    why = "llama.cpp and what is built on it read it"
    with draft_of(place) as draft:
        draft.mkdir()
        born = (map_beside(found) or {}).get("heads")
        write_gguf(subject, found.folder / found.gguf, draft / GGUF, born)
        even = is_even(sites_of(subject.inner), heads_left(subject.inner.config))
        if even:
            again = load(draft / GGUF, device=str(subject.device), dtype=str(subject.dtype)[6:])
        else:  # transformers reads no file whose layers differ
            why = "llama.cpp reads it, as its kind 'deci', whose layers have numbers of their own"
            again = replace(subject, model=read_back(subject, draft / GGUF))
        apart = apart_of(subject, again)
        if not apart <= room_of(torch.float16):
            raise ModelError(
                f"The GGUF file gives other outputs than {subject.name} ({apart:.1e} apart), so it "
                "was not kept; weights that learned since it was loaded cannot be written back: "
                "save it without export and convert that folder with llama.cpp."
            )
        card = card_for(subject, "gguf", why, f"llama-cli -m {GGUF}", about)
        (draft / CARD).write_text(card, encoding="utf8")
        route = Route("gguf", why, subject.inner.config, type(subject.inner).__name__)
        (draft / MAP).write_text(json.dumps(map_of(subject, route), indent=1), encoding="utf8")
        put_in_place(draft, place)
    loads = f"llama-cli -m {place / GGUF}"
    loads += f" and headcount.load('{place / GGUF}')" if even else ""
    return Saved(place, "gguf", why, loads, apart)
