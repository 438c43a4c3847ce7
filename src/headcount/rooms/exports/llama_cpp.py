"""GGUF files for llama.cpp: the file that a model came from without some heads, or a new one.

A file that is copied keeps its packing: rows of query, key and value, and whole blocks of the
output's columns, are left out as they are. Weights that came as safetensors, or learned since, are
written anew, as F16 or Q8_0. Layers with different numbers of heads are llama.cpp's kind `deci`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from headcount.errors import HeadcountError, ModelError, UsageError
from headcount.models import (
    CARD,
    GGUF,
    MAP,
    LoadOptions,
    Route,
    Saved,
    Site,
    Subject,
    apart_of,
    card_for,
    draft_of,
    find,
    global_state,
    heads_left,
    map_beside,
    map_of,
    on_exit,
    put_in_place,
    quiet,
    room_of,
    save_tokenizer,
    sites_of,
    whole_counts,
)
from headcount.pruning import prune
from headcount.rooms.exports.exports import imported, layer_key

#: transformers' types of models, and what llama.cpp calls them.
KINDS = {
    "llama": "llama",
    "mistral": "llama",
    "qwen2": "qwen2",
    "qwen3": "qwen3",
    "gemma3_text": "gemma3",
}
#: What stands beside llama.cpp's settings, where transformers alone cannot read the file again.
OWN = "headcount"
_CONVERT = "save it without export and convert that folder with llama.cpp's convert_hf_to_gguf.py"

# --- What a file says beside its weights --------------------------------------------------------


def write_gguf(
    subject: Subject,
    source: Path | None,
    file: Path,
    born: dict[str, list[int]] | None = None,
    packing: str | None = None,
) -> None:
    """Write a file for llama.cpp, where layers have as many heads or it is of Llama's kind.

    llama.cpp's `deci` is Llama with a number of heads for each layer, or none. Of a `source` that
    was a GGUF file all but heads is kept; `born` are the numbers of the heads that it has, where
    some were gone before. With `packing` ("F16", "Q8_0") the model's own weights are written.
    """
    gguf = imported("GGUF", "gguf")
    sites, left = sites_of(subject.inner), heads_left(subject.inner.config)
    queries, keys = _counts(sites, left)
    even = is_even(sites, left)
    with quiet():
        reader = None if source is None else gguf.GGUFReader(str(source))
        if reader is None:
            came = arch_of(subject)
        else:
            came = str(reader.fields["general.architecture"].contents())
        kind = came if even else "deci"
        if kind != came and came != "llama":
            raise UsageError(
                f"The layers of {subject.name} have different numbers of heads, and llama.cpp "
                f"reads such models of Llama's kind only, not of '{came}'; take as many from every "
                "layer (even=True, --ranking even)."
            )
        if not even and not queries[0]:
            # llama.cpp takes the width of heads from the first layer: its dead head, all zeros,
            # is written.
            queries[0] = keys[0] = 1
        writer = gguf.GGUFWriter(str(file), kind)
        width = {
            "attention.key_length": sites[0].head_dim,
            "attention.value_length": sites[0].head_dim,
        }
        counts = {"attention.head_count": queries, "attention.head_count_kv": keys}
        for name, value in width.items():
            writer.add_uint32(f"{kind}.{name}", value)
        for name, numbers in counts.items():
            if even:
                writer.add_uint32(f"{kind}.{name}", numbers[0])
            else:
                writer.add_array(f"{kind}.{name}", numbers)
            if left is not None and kind != "llama":
                config = subject.inner.config
                more = "num_key_value_heads" if name.endswith("kv") else "num_attention_heads"
                was = whole_counts(config).get(more) or getattr(config, more)
                writer.add_uint32(f"{OWN}.{name}", was)
        if left is not None and kind != "llama":
            writer.add_string(f"{OWN}.heads", json.dumps(left))
        if reader is None:
            _add_settings(gguf, writer, subject, came)
        else:
            _copy_settings(writer, reader, came, kind, {*width, *counts, "file_type"})
        if packing is not None:
            writer.add_file_type(getattr(gguf.LlamaFileType, f"MOSTLY_{packing}"))
            tensors = _made_tensors(gguf, subject, reader, came, packing)
        else:
            assert reader is not None
            kept = _places_in(reader, came, left, born)
            dead = {
                layer.removeprefix("dec.") for layer, numbers in (left or {}).items() if not numbers
            }
            tensors = _copied_tensors(gguf, reader, sites[0].head_dim, kept, dead)
        for name, data, stored in tensors:
            layer = re.match(r"blk\.(\d+)\.attn_", name)
            if layer is None or queries[int(layer[1])]:
                # A layer without attention has not even its norm.
                writer.add_tensor(name, data, raw_dtype=stored)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()


def arch_of(subject: Subject) -> str:
    """What llama.cpp calls a model's kind; others, and settings that it has not, are refused."""
    config, what = subject.inner.config, None
    rope = getattr(config, "rope_parameters", None) or {}
    scaled = {one.get("rope_type", "default") for one in (rope, *rope.values()) if _is_map(one)}
    kind = KINDS.get(config.model_type)
    if kind is None:
        what = f"a model of type '{config.model_type}'"
    elif not subject.inner.can_generate():
        what = f"the class {type(subject.inner).__name__}"
    elif scaled - ({"default", "linear", "llama3"} if kind == "llama" else {"default"}):
        what = f"rope_parameters {rope}"
    elif kind == "gemma3" and not _is_gemma(config):
        what = "Gemma 3 with layers or a scale of its own"
    elif kind != "gemma3" and getattr(config, "sliding_window", None):
        what = f"a sliding window of {config.sliding_window}"
    if kind is None or what is not None:
        known = ", ".join(KINDS)
        raise UsageError(
            f"headcount writes no GGUF file of {what} ({subject.name}); it writes causal models of "
            f"{known}. For others, {_CONVERT}."
        )
    return kind


def _is_gemma(config: Any) -> bool:
    """Whether every sixth layer sees all, and scores are scaled by the width of heads."""
    every = ["sliding_attention"] * 5 + ["full_attention"]
    layers = config.layer_types == (every * len(config.layer_types))[: len(config.layer_types)]
    return layers and config.query_pre_attn_scalar == config.head_dim


def _is_map(value: Any) -> bool:
    return isinstance(value, dict)


def _copy_settings(writer: Any, reader: Any, came: str, kind: str, own: set[str]) -> None:
    """Everything that the source says but of its heads."""
    for name, field in reader.fields.items():
        bare = name.removeprefix(f"{came}.").removeprefix("general.")
        if bare not in {*own, "architecture"} and not name.startswith(("GGUF.", f"{OWN}.")):
            inner = field.types[1] if len(field.types) > 1 else None
            named = name.replace(f"{came}.", f"{kind}.", 1) if name.startswith(came) else name
            writer.add_key_value(named, field.contents(), field.types[0], inner)


def _add_settings(gguf: Any, writer: Any, subject: Subject, kind: str) -> None:
    """What the config and the tokenizer say."""
    config = subject.inner.config
    rope = config.rope_parameters
    writer.add_name(subject.name)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    writer.add_rope_dimension_count(sites_of(subject.inner)[0].head_dim)
    writer.add_rope_freq_base(float(rope.get("full_attention", rope)["rope_theta"]))
    if kind == "gemma3":
        writer.add_sliding_window(config.sliding_window)
    if subject.tokenizer is None:
        raise UsageError(
            f"{subject.name} has no tokenizer, and a GGUF file holds it; load the model with one "
            "(--load tokenizer=FOLDER, tokenizer=)."
        )
    with TemporaryDirectory() as place:
        save_tokenizer(subject.tokenizer, Path(place))
        _add_tokenizer(gguf, writer, subject, Path(place))


#: How texts are cut into words before tokens are looked for: what stands in a tokenizer.json, and
#: llama.cpp's name of it. The first that fits is taken.
_CUTS = (
    (r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|", "llama-bpe"),
    (r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|", "qwen2"),
    ("'Digits'", "smollm"),
    ("'use_regex': True", "gpt-2"),
)


def _add_tokenizer(gguf: Any, writer: Any, subject: Subject, folder: Path) -> None:
    """The tokenizer as llama.cpp reads it: pieces, their kinds, merges or scores, special ids."""
    tokenizer: Any = subject.tokenizer
    file = folder / "tokenizer.json"
    told = json.loads(file.read_text(encoding="utf8")) if file.is_file() else {"model": {}}
    model = told["model"]
    by_bytes = bool(model.get("byte_fallback"))  # sentencepiece, as Llama 2 and Gemma have it
    cut = str(told.get("pre_tokenizer")).replace("\\\\", "\\")
    pre = next((name for sign, name in _CUTS if sign in cut), None)
    if model.get("type") != "BPE" or not (by_bytes or pre):
        raise UsageError(
            f"The tokenizer of {subject.name} ({type(tokenizer).__name__}) cuts texts in a way "
            f"that headcount has no name of llama.cpp's for; {_CONVERT}."
        )
    kinds, size = gguf.TokenType, subject.inner.config.vocab_size
    added = {one["id"]: bool(one["special"]) for one in told["added_tokens"]}
    pieces = {number: piece for piece, number in tokenizer.get_vocab().items()}
    tokens = [pieces.get(number, f"[PAD{number}]") for number in range(size)]
    merges = [one if isinstance(one, str) else " ".join(one) for one in model["merges"]]

    def kind_at(number: int) -> int:
        if number not in pieces:
            return int(kinds.UNUSED)
        if number in added:
            return int(kinds.CONTROL if added[number] else kinds.USER_DEFINED)
        is_byte = by_bytes and re.fullmatch(r"<0x[0-9A-F]{2}>", tokens[number])
        return int(kinds.BYTE if is_byte else kinds.NORMAL)

    writer.add_tokenizer_model("llama" if by_bytes else "gpt2")
    if by_bytes:  # the sooner two pieces merge, the higher the score
        ranks = {one.replace(" ", ""): -float(rank) for rank, one in reversed([*enumerate(merges)])}
        writer.add_token_scores([ranks.get(piece, -1e6) for piece in tokens])
        begins = '"Prepend"' in json.dumps(told) or "'prepend_scheme': 'first'" in cut
        writer.add_add_space_prefix(begins or "'prepend_scheme': 'always'" in cut)
    else:
        writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types([kind_at(number) for number in range(size)])
    special = gguf.SpecialVocab(folder, load_merges=not by_bytes, n_vocab=size)
    special.add_to_gguf(writer, quiet=True)
    begin = tokenizer("a")["input_ids"][:1] == [tokenizer.bos_token_id]
    if "bos" not in special.add_special_token:
        writer.add_add_bos_token(begin)


# --- Weights ------------------------------------------------------------------------------------

Tensors = Iterator[tuple[str, Any, Any]]


def _made_tensors(gguf: Any, subject: Subject, reader: Any, kind: str, packing: str) -> Tensors:
    """The model's weights, packed, and what else a source has (`rope_freqs`)."""
    model = subject.inner
    wanted, small = (getattr(gguf.GGMLQuantizationType, name) for name in (packing, "F16"))
    full, written = gguf.GGMLQuantizationType.F32, set()
    for name, weight in _named(gguf, model, kind):
        data = _turned(name, weight.detach().float().cpu().numpy(), model, kind, back=False)
        block = gguf.GGML_QUANT_SIZES[wanted][0]
        stored = full if data.ndim < 2 else small if data.shape[-1] % block else wanted
        written.add(name)
        yield name, gguf.quantize(data, stored), stored
    for tensor in () if reader is None else reader.tensors:
        if tensor.name not in written:
            yield tensor.name, tensor.data, tensor.tensor_type
    rope = model.config.rope_parameters
    if reader is None and rope.get("rope_type", "default") != "default":
        turning = model.model.rotary_emb.inv_freq.float().cpu()
        steps = torch.arange(len(turning)) / len(turning)
        factors = float(rope["rope_theta"]) ** -steps / turning
        yield "rope_freqs.weight", factors.numpy().astype(np.float32), full


def _named(gguf: Any, model: Any, kind: str) -> Iterator[tuple[str, torch.Tensor]]:
    """Every weight with its name in a GGUF file."""
    kinds = {name: number for number, name in gguf.MODEL_ARCH_NAMES.items()}
    names = gguf.get_tensor_name_map(kinds[kind], model.config.num_hidden_layers)
    for name, weight in model.named_parameters():
        path, _, what = name.rpartition(".")
        named = names.get_name(path)
        if named is None:
            raise UsageError(
                f"llama.cpp's kind '{kind}' has no weight for {name}, so no GGUF file was written; "
                f"{_CONVERT}."
            )
        yield f"{named}.{what}", weight


def _turned(name: str, data: Any, model: Any, kind: str, *, back: bool) -> Any:
    """A weight as a file has it, or `back`: Llama rotates neighbours, Gemma adds 1."""
    found = _BLOCK.fullmatch(name)
    if kind == "llama" and found is not None and found[2] in "qk":
        heads = data.shape[0] // sites_of(model)[0].head_dim
        inner = (heads, -1, 2) if back else (heads, 2, data.shape[0] // heads // 2)
        return data.reshape(*inner, *data.shape[1:]).swapaxes(1, 2).reshape(data.shape)
    if kind == "gemma3" and name.endswith("norm.weight"):
        return data - 1 if back else data + 1
    return data


def _copied_tensors(gguf: Any, reader: Any, width: int, places: Any, dead: set[str]) -> Tensors:
    """The source's weights as they are packed, without the heads that went."""
    for tensor in reader.tensors:
        data, stored = tensor.data, tensor.tensor_type
        if places:
            layer = tensor.name.removeprefix("blk.").partition(".")[0]
            data, stored = _without_heads(gguf, tensor, width, places, layer in dead)
        yield tensor.name, data, stored


def _counts(
    sites: Sequence[Site], left: dict[str, list[int]] | None
) -> tuple[list[int], list[int]]:
    """The heads of every layer, and those of its keys and values: none where all went."""
    there = [left is None or bool(left[layer_key(site)]) for site in sites]
    return (
        [site.heads * has for site, has in zip(sites, there, strict=True)],
        [site.kv_heads * has for site, has in zip(sites, there, strict=True)],
    )


def is_even(sites: Sequence[Site], left: dict[str, list[int]] | None) -> bool:
    """Whether every layer has as many heads."""
    return all(len(set(counts)) == 1 for counts in _counts(sites, left))


def read_back(subject: Subject, file: Path, kind: str = "llama") -> Any:
    """A copy of a model with the weights that a GGUF file of it holds."""
    gguf = imported("GGUF", "gguf")
    model = deepcopy(subject.inner)
    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(str(file)).tensors}
    with torch.no_grad():
        for name, weight in _named(gguf, model, kind):
            if (tensor := tensors.get(name)) is not None:  # a layer may have no attention
                data = gguf.dequantize(tensor.data, tensor.tensor_type)
                data = _turned(name, data, model, kind, back=True)
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
        kept = kept or [0]  # the dead head of a layer
        # Heads of keys and values stay while one of their query heads does.
        shared = sorted({place * keys // queries for place in kept})
        places[layer.removeprefix("dec.")] = kept, shared
    return places


def _without_heads(
    gguf: Any,
    tensor: Any,
    width: int,
    places: dict[str, tuple[list[int], list[int]]],
    dead: bool,
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
    data = np.ascontiguousarray(data[..., columns])
    return (np.zeros_like(data) if dead else data), stored


# --- Files are read faster, and as they say ------------------------------------------------------
# transformers parses the header anew for the config, the weights and the tokenizer, and rebuilds
# the table of tensor names for every module; remembering both within one load makes a model of
# 30 layers open three times faster.


@contextmanager
def reading_gguf() -> Iterator[None]:
    """Within the block, GGUF headers are parsed once and no bar is drawn."""
    try:
        import gguf
    except ImportError:
        raise ModelError(
            "A GGUF model needs the package gguf, which is not installed; run `pip install gguf`."
        ) from None
    from transformers import modeling_gguf_pytorch_utils as theirs

    class Reader(gguf.GGUFReader):
        """A reader whose numbers are plain arrays: slices of a memory map cost ten times more."""

        def _get(self, offset: int, dtype: Any, count: int = 1, override_order: Any = None) -> Any:
            kind = np.dtype(dtype).newbyteorder(override_order or self.byte_order)
            end = offset + kind.itemsize * int(count)
            if end > len(self.data):  # else a declared number is gone through one by one
                raise EOFError("the file ends before what its header declares")
            return np.asarray(self.data)[offset:end].view(kind)

    def parsed(value: Any, kinds: Any) -> Any:
        """A value of a header; a vocabulary is a quarter of a million strings."""
        last = kinds[-1] if isinstance(kinds, list) else kinds
        is_text = last == gguf.GGUFValueType.STRING
        return value.tobytes().decode() if is_text else parse(value, kinds)

    with global_state():
        names = ("GGUFReader", "get_tensor_name_map")
        originals = {name: getattr(gguf, name) for name in names}
        bar, parse = theirs.tqdm, theirs._gguf_parse_value

        def restore() -> None:
            vars(gguf).update(originals)
            theirs.tqdm, theirs._gguf_parse_value = bar, parse

        with on_exit(restore):
            names_of = cache(originals["get_tensor_name_map"])
            vars(gguf).update(GGUFReader=cache(Reader), get_tensor_name_map=names_of)
            theirs.tqdm = partial(bar, disable=True)
            theirs._gguf_parse_value = parsed
            yield


def begin_as_file_says(tokenizer: Any, path: Path) -> None:
    """Begin texts with the start token where the GGUF file asks for it: transformers may not."""
    import gguf

    asked = gguf.GGUFReader(path).get_field("tokenizer.ggml.add_bos_token")
    if (
        asked is not None
        and asked.contents()
        and getattr(tokenizer, "add_bos_token", True) is False
    ):
        tokenizer.add_bos_token = True
        tokenizer.update_post_processor()


def open_own(found: Any, wanted: LoadOptions) -> Subject | None:
    """A model that lost heads, of a file that says which are left; None of any other GGUF file.

    transformers reads the header as that of the whole model, which is cut and filled.
    """
    gguf = imported("GGUF", "gguf")
    file = found.folder / str(found.gguf)
    reader = gguf.GGUFReader(str(file))
    kind = str(reader.fields["general.architecture"].contents())
    if (told := reader.get_field(f"{OWN}.heads")) is None:
        if kind != "deci":
            return None
        raise ModelError(
            f"{found.name} is of llama.cpp's kind 'deci' and does not say which heads its layers "
            "have; headcount loads such files that it wrote itself."
        )
    bare = "llama" if kind == "deci" else kind
    with TemporaryDirectory() as place, quiet():
        header = gguf.GGUFWriter(str(Path(place, GGUF)), bare)
        names = ("attention.head_count", "attention.head_count_kv")
        for name in names:
            header.add_uint32(f"{bare}.{name}", int(reader.fields[f"{OWN}.{name}"].contents()))
        _copy_settings(header, reader, kind, bare, {*names})
        header.write_header_to_file()
        header.write_kv_data_to_file()
        header.write_tensors_to_file()
        header.close()
        config = AutoConfig.from_pretrained(place, gguf_file=GGUF)
        says = "tokenizer.ggml.model" in reader.fields
        tokenizer = AutoTokenizer.from_pretrained(place, gguf_file=GGUF) if says else None
    config.tie_word_embeddings = not any(one.name == "output.weight" for one in reader.tensors)
    dtype = torch.float32 if wanted.dtype == "auto" else getattr(torch, wanted.dtype.split(".")[-1])
    left, whole = json.loads(told.contents()), AutoModelForCausalLM.from_config(config).eval()
    subject = Subject(whole, tokenizer, found.name, found.source, None, [], "quantised")
    stays = {f"{layer}.{number}" for layer, numbers in left.items() for number in numbers}
    small = prune(subject, [head for head in subject.heads if str(head) not in stays])
    model = read_back(small, file, bare).to(device=wanted.device, dtype=dtype)
    return replace(small, model=model, name=found.name, source=found.source, notes=[])


# --- As exporters of the registry ---------------------------------------------------------------

#: How far apart a weight and what is written of it may be, of the largest of its tensor.
_ROUNDED = 0.01


def export_gguf(
    subject: Subject, place: Path, about: Sequence[str], packing: str | None = None
) -> Saved:
    """A folder with the model as GGUF.

    The file that it came from, without the heads that went, while its weights are those of the
    file; else a new one, as F16, or packed as Q8_0.
    """
    try:
        found = None if subject.source == "in hand" else find(subject.source)
    except HeadcountError:
        found = None
    source = None if found is None or found.gguf is None else found.folder / found.gguf
    born = None if found is None else (map_beside(found) or {}).get("heads")
    packing = packing or (None if source else "F16")
    with draft_of(place) as draft:
        draft.mkdir()
        file = draft / GGUF
        write_gguf(subject, source, file, born, packing)
        apart = _apart(subject, file, packing)
        if not apart <= room_of(torch.float16) and packing is None:
            packing = "F16"  # its weights learned since
            write_gguf(subject, source, file, born, packing)
            apart = _apart(subject, file, packing)
        even = is_even(sites_of(subject.inner), heads_left(subject.inner.config))
        kind = "it" if even else "it as its kind 'deci', whose layers have numbers of their own"
        how = "weights are packed as they came" if packing is None else f"weights are {packing}"
        how += ", packed" if packing == "Q8_0" else ""
        why = f"llama.cpp and what is built on it read {kind}; {how}"
        card = card_for(subject, "gguf", why, f"llama-cli -m {GGUF}", about)
        (draft / CARD).write_text(card, encoding="utf8")
        route = Route("gguf", why, subject.inner.config, type(subject.inner).__name__)
        (draft / MAP).write_text(json.dumps(map_of(subject, route), indent=1), encoding="utf8")
        put_in_place(draft, place)
    loads = f"llama-cli -m {place / GGUF} and headcount.load('{place / GGUF}')"
    return Saved(place, "gguf", why, loads, apart)


def _apart(subject: Subject, file: Path, packing: str | None) -> float:
    """How far the outputs of what a file holds are from the model's; its weights are compared."""
    gguf = imported("GGUF", "gguf")
    kind = gguf.GGUFReader(str(file)).fields["general.architecture"].contents()
    model = read_back(subject, file, "llama" if kind == "deci" else str(kind))
    both = zip(model.parameters(), subject.inner.parameters(), strict=True)
    gaps = ((one - two).abs().max() / two.abs().max().clamp_min(1e-30) for one, two in both)
    if packing is not None and not (worst := float(max(gaps))) <= _ROUNDED:
        raise ModelError(
            f"A weight of {subject.name} is {worst:.1e} from what the GGUF file holds of it, so it "
            f"was not kept; {_CONVERT}."
        )
    return apart_of(subject, replace(subject, model=model))


export_q8: Callable[..., Saved] = partial(export_gguf, packing="Q8_0")
