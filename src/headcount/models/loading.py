"""Load a model by name: a folder, a GGUF file, a model of ours, a package, an adapter, a hub id.

Safe by default: safetensors or GGUF only, no code from the checkpoint, no weight left at random
without a word.
"""

from __future__ import annotations

import difflib
import os
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch
import transformers
from transformers import (
    CONFIG_MAPPING,
    AutoConfig,
    AutoTokenizer,
    GenerationConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from headcount import plugins
from headcount.bundle import is_packed, read_packed
from headcount.errors import ModelError, UsageError
from headcount.models.anatomy import KEY, restore_numbers
from headcount.models.explain import (
    as_model_error,
    check_files,
    check_weight_names,
    check_weight_numbers,
    first_line,
)
from headcount.models.finding import FoundModel, Listing, files_of, find, options_for
from headcount.models.guards import quiet
from headcount.models.modeling_headcount import pruned_class, take_along
from headcount.models.options import LoadOptions
from headcount.models.subject import Subject

# --- Which class a checkpoint names -------------------------------------------------------------

#: The order in which classes that a checkpoint's own code offers are taken.
_OFFERED = (
    "AutoModelForSeq2SeqLM",
    "AutoModelForCausalLM",
    "AutoModelForMaskedLM",
    "AutoModelForSequenceClassification",
    "AutoModel",
)


def read_config(location: str, label: str, options: dict[str, Any]) -> PreTrainedConfig:
    """A checkpoint's config; raises for a type that transformers does not know."""
    if options.get("gguf_file") is None:
        plain = {key: value for key, value in options.items() if key != "trust_remote_code"}
        raw, _ = PreTrainedConfig.get_config_dict(location, **plain)
        _check_type(raw, label, options["trust_remote_code"])
        _check_counts(raw, label)
    config = AutoConfig.from_pretrained(location, **options)
    _check_counts(config.to_dict(), label)
    return config


#: Attention that transformers computes by itself; any other name may fetch a kernel and run it.
_BUILT_IN = (None, "eager", "sdpa", "flex_attention")


def drop_kernels(config: PreTrainedConfig, label: str) -> list[str]:
    """Take the names of attention kernels out of a config, nested ones too; a note on each."""
    parts = [
        config,
        *(part for part in vars(config).values() if isinstance(part, PreTrainedConfig)),
    ]
    named = [part._attn_implementation for part in parts]
    others = [name for name in dict.fromkeys(map(str, named)) if name not in map(str, _BUILT_IN)]
    for part, name in zip(parts, named, strict=True):
        if name not in _BUILT_IN:
            part._attn_implementation = None
    return [
        f"the config of {label} asks for the attention kernel '{name}', which is code from "
        "elsewhere and was not loaded: attention is computed by transformers itself."
        for name in others
    ]


#: The most that a config may ask for: every layer, label and expert is built before weights are
#: compared, so a wrong number would take the memory before it is found out.
_MOST = {"layer": 4_096, "layers": 4_096, "experts": 65_536, "labels": 1_000_000}


def _check_counts(settings: dict[str, Any], label: str) -> None:
    """Refuse a number of layers, labels or experts that no model has, in nested configs, too."""
    for key, value in settings.items():
        most = _MOST.get(str(key).rpartition("_")[2])
        if most is not None and isinstance(value, int) and value > most:
            raise ModelError(
                f"The config of '{label}' has {key} = {value:,}; headcount takes at most {most:,}, "
                "so the file is damaged, or not a model's."
            )
        if isinstance(value, dict):
            _check_counts(value, label)


def _check_type(raw: dict[str, Any], label: str, trusted: bool) -> None:
    """Raise unless the model type is known, or its code came along and may be run."""
    kind = raw.get("model_type")
    if kind in CONFIG_MAPPING or (trusted and "auto_map" in raw):
        return
    if "auto_map" in raw:
        raise ModelError(
            f"The model '{label}' of type '{kind}' brings its own code, which is not run unasked; "
            "read it, then pass --load trust-remote-code (trust_remote_code=True)."
        )
    if kind is None:
        raise ModelError(
            f"The config.json of '{label}' names no model_type, so its architecture is unknown; "
            'add it, e.g. "model_type": "bert".'
        )
    near = difflib.get_close_matches(str(kind), list(CONFIG_MAPPING), n=3)
    hint = f"closest: {', '.join(near)}" if near else "a newer transformers may"
    raise ModelError(
        f"transformers {transformers.__version__} knows no model_type '{kind}', which the "
        f"config.json of '{label}' names; {hint}."
    )


def choose_class(config: PreTrainedConfig, auto_class: str | None, trusted: bool) -> Any:
    """The class to load with: the user's, the checkpoint's, or an Auto class that fits."""
    if auto_class is not None:
        # An Auto class by name.
        found = (
            getattr(transformers, auto_class, None) if auto_class.startswith("AutoModel") else None
        )
        if found is None:
            allowed = [known for known in dir(transformers) if known.startswith("AutoModel")]
            near = difflib.get_close_matches(auto_class, allowed, n=3, cutoff=0.3) or ["AutoModel"]
            raise UsageError(f"There is no auto class '{auto_class}'; closest: {', '.join(near)}.")
        return found
    own_code = (getattr(config, "auto_map", None) or {}) if trusted else {}
    for name in _OFFERED:
        if name in own_code:
            return getattr(transformers, name)
    return _named_class(config) or _fitting_class(config)


def _named_class(config: PreTrainedConfig) -> Any:
    """The class in ``config.architectures``, when transformers has it and it takes this config."""
    for name in config.architectures or ():
        found: Any = getattr(transformers, name, None) if isinstance(name, str) else None
        is_model = isinstance(found, type) and issubclass(found, PreTrainedModel)
        if is_model and isinstance(config, found.config_class or ()):
            return found
    return None


def _fitting_class(config: PreTrainedConfig) -> Any:
    """The Auto class of an encoder-decoder, of a causal model, or the bare model."""
    kind = type(config)
    if config.is_encoder_decoder and kind in transformers.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING:
        return transformers.AutoModelForSeq2SeqLM
    causal = kind in transformers.MODEL_FOR_CAUSAL_LM_MAPPING
    reads_both_ways = kind in transformers.MODEL_FOR_MASKED_LM_MAPPING
    if causal and (getattr(config, "is_decoder", False) or not reads_both_ways):
        return transformers.AutoModelForCausalLM
    return transformers.AutoModel


# --- Where a model is put and in which numbers --------------------------------------------------

DTYPES = ("auto", "float32", "bfloat16", "float16", "float64")


def pick_device(wanted: str | torch.device) -> torch.device:
    """The device for a word: ``auto`` takes a CUDA device, else Apple's, else the CPU.

    >>> pick_device("cpu")
    device(type='cpu')
    """
    there = {"mps": torch.backends.mps.is_available(), "cuda": torch.cuda.is_available()}
    kinds = ["cpu", *(kind for kind, present in there.items() if present)]  # the best one last
    if str(wanted) == "auto":
        return torch.device(kinds[-1])
    allowed = ", ".join(["auto", *kinds])
    try:
        device = torch.device(wanted)
    except RuntimeError:
        raise UsageError(f"There is no device '{wanted}'; allowed: {allowed}.") from None
    counted = device.type != "cuda" or (device.index or 0) < torch.cuda.device_count()
    if device.type not in kinds or not counted:
        raise UsageError(f"This machine has no device '{device}'; allowed: {allowed}.")
    return device


def pick_dtype(wanted: str | torch.dtype, device: torch.device) -> torch.dtype | str:
    """The type for a word: ``auto`` is float32 on the CPU, the checkpoint's own elsewhere.

    >>> pick_dtype("auto", torch.device("cpu"))
    torch.float32
    """
    word = str(wanted).removeprefix("torch.")
    if word not in DTYPES:
        raise UsageError(f"There is no dtype '{wanted}'; allowed: {', '.join(DTYPES)}.")
    if word == "auto":
        return torch.float32 if device.type == "cpu" else "auto"
    chosen: torch.dtype = getattr(torch, word)
    return chosen


# --- The tokenizer of a model -------------------------------------------------------------------

_STARTS = ("tokenizer", "vocab", "merges", "sentencepiece")
_ENDS = (".model", ".spm", ".tiktoken", ".gguf")
_NO_FILES = "no tokenizer: there are no tokenizer files beside the model."


def open_tokenizer(
    found: FoundModel, options: dict[str, Any], listing: Listing, wanted: LoadOptions
) -> tuple[PreTrainedTokenizerBase | None, list[str]]:
    """The tokenizer beside a model, or that of another folder; or none and a note that says why."""
    if wanted.tokenizer is not None:
        return _tokenizer_at(wanted.tokenizer, wanted), []
    try:
        tokenizer = AutoTokenizer.from_pretrained(found.location, **options)
    except Exception as error:
        if any(name.startswith(_STARTS) or name.endswith(_ENDS) for name in listing.files):
            return None, [f"no tokenizer: {first_line(error)}"]
        return None, [_NO_FILES]
    if not isinstance(most := tokenizer.model_max_length, int | float):
        return None, [f"no tokenizer: its model_max_length is {most!r}, which is no number."]
    if found.gguf:
        plugins.get("parts", "gguf").begin_as_file_says(tokenizer, found.folder / found.gguf)
    # transformers makes up one that knows no words where there are no files
    is_empty = len(tokenizer) <= len(tokenizer.all_special_ids) + 2
    return (None, [_NO_FILES]) if is_empty else (tokenizer, [])


def _tokenizer_at(path: str, wanted: LoadOptions) -> PreTrainedTokenizerBase:
    """The tokenizer of another folder, GGUF file, model of ours or hub id."""
    folder = Path(path).expanduser()
    plain = folder.is_dir() and not any(folder.glob("*.gguf"))
    where = FoundModel("folder", str(folder), path, path) if plain else find(path)
    options, listing = options_for(where, wanted.trust_remote_code, offline=wanted.offline)
    tokenizer, notes = open_tokenizer(where, options, listing, replace(wanted, tokenizer=None))
    if tokenizer is None:
        raise ModelError(f"'{path}' gives no tokenizer: {notes[0].removeprefix('no tokenizer: ')}")
    return tokenizer


# --- A folder whose weights are packed in int8, as the bundled translator's are -----------------


def open_packed(
    folder: Path, model_class: Any, config: Any, how: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """The model with its weights unpacked, and what transformers says of their names."""
    if not issubclass(model_class, PreTrainedModel):  # an Auto class takes no weights from memory
        model_class = type(model_class.from_config(config))
    weights = read_packed(folder)
    model, info = model_class.from_pretrained(None, config=config, state_dict=weights, **how)
    if (folder / "generation_config.json").is_file():
        model.generation_config = GenerationConfig.from_pretrained(folder)
    return model, info


# --- Load a model from which heads were removed -------------------------------------------------


def is_cut(config: Any) -> bool:
    """Whether a config was written for layers that it cannot describe by itself."""
    sizes = getattr(config, KEY, None)
    return isinstance(sizes, dict) and bool(sizes.get("shapes"))


def fitted_class(chosen: Any, config: Any) -> Any:
    """A class that builds the model in the sizes that its config writes down.

    >>> from transformers import AutoModel, BertConfig, BertModel
    >>> fitted_class(AutoModel, BertConfig()).__mro__[2] is BertModel
    True
    """
    mapping = getattr(chosen, "_model_mapping", None)
    whole = chosen if mapping is None else mapping[type(config)]
    whole = whole[0] if isinstance(whole, tuple | list) else whole

    # Of a class in a module of its own transformers reads no weights under older names.
    return type(whole.__name__, (pruned_class(whole),), {"__module__": whole.__module__})


# --- Load a model by name -----------------------------------------------------------------------


def load(
    name: str | os.PathLike[str],
    *,
    device: str | torch.device = "auto",
    dtype: str | torch.dtype = "auto",
    trust_remote_code: bool = False,
    allow_bin: bool = False,
    revision: str | None = None,
    auto_class: str | None = None,
    tokenizer: str | os.PathLike[str] | None = None,
    offline: bool = False,
) -> Subject:
    """A model and its tokenizer, ready to be measured, in eval mode.

    `name` is a folder with config.json and safetensors, a ``.gguf`` file, a folder of a LoRA
    adapter, an installed model package, ``minilm``, ``smollm2``, ``e5-small``, ``translator``
    or a hub id. `auto_class` (e.g. ``AutoModelForMaskedLM``) goes over the checkpoint's own
    class; `tokenizer` names another folder for the tokenizer. With `offline` the hub is not asked:
    only what lies on this machine is read.

    >>> load("no/such/folder")
    Traceback (most recent call last):
    headcount.errors.ModelError: There is no folder or file 'no/such/folder'. ...
    """
    place = pick_device(device)
    wanted = LoadOptions(
        str(place),
        str(pick_dtype(dtype, place)),
        revision,
        allow_bin,
        trust_remote_code,
        None if tokenizer is None else _spelled(tokenizer),
        auto_class,
        offline,
    )
    found = find(_spelled(name))
    with quiet():
        subject = _open(found, wanted)
    for doubt in _doubts(subject):
        subject.notes.append(doubt)
        warnings.warn(doubt, stacklevel=2)
    return subject


def _spelled(name: object) -> str:
    """A name or path as a string."""
    if not isinstance(name, str | os.PathLike) or not str(name).strip():
        raise UsageError(
            f"load takes a name or a path, not {name!r}; wrap a model with hc.Subject."
        )
    return str(name)


def _open(found: FoundModel, wanted: LoadOptions) -> Subject:
    """Open whatever was found."""
    if found.kind == "adapter":
        return cast(Subject, plugins.get("parts", "adapters").open_adapter(found, wanted))
    options, listing = options_for(
        found, wanted.trust_remote_code, wanted.revision, offline=wanted.offline
    )
    if found.kind == "hub" and listing.is_adapter:
        adapters = plugins.get("parts", "adapters")
        subject = adapters.open_adapter(adapters.downloaded(found, options), wanted)
        return cast(Subject, replace(subject, revision=listing.revision))
    files = plugins.get("parts", "gguf") if found.gguf else None
    reading: AbstractContextManager[None] = files.reading_gguf() if files else nullcontext()
    with reading:
        with as_model_error(found):
            made = files.open_own(found, wanted) if files else None
        if made is not None:
            return cast(Subject, made)
        model, notes, stored = _open_model(found, wanted, options, listing)
        tokenizer, more = open_tokenizer(found, options, listing, wanted)
    return Subject(
        model, tokenizer, found.name, found.source, listing.revision, notes + more, stored
    )


def _open_model(
    found: FoundModel, wanted: LoadOptions, options: dict[str, Any], listing: Listing
) -> tuple[Any, list[str], str | None]:
    """The model, what to note about its weights, and the dtype in which they came."""
    with as_model_error(found):
        config = read_config(found.location, found.name, options)
    without = drop_kernels(config, found.name)
    own = getattr(config, "dtype", None)
    stored = None if own is None else str(own).removeprefix("torch.")
    restore_numbers(found, config)
    if not found.gguf:
        check_files(listing.files, found.name, wanted.allow_bin)
    cut = is_cut(config)  # headcount's own way to read it needs no code from the folder
    chosen = choose_class(config, wanted.auto_class, wanted.trust_remote_code and not cut)
    if cut:
        chosen = fitted_class(chosen, config)
    device = torch.device(wanted.device)
    how = options | {"dtype": pick_dtype(wanted.dtype, device), "output_loading_info": True}
    if device.type != "cpu":
        how["device_map"] = {"": device}
    with as_model_error(found, chosen, config):
        if found.kind == "folder" and is_packed(found.folder):
            model, info = open_packed(found.folder, chosen, config, how)
        else:
            reading = _reading(found, wanted, config, listing.offline)
            model, info = chosen.from_pretrained(found.location, **how, **reading)
    if cut:
        model.__class__ = chosen.__mro__[1]
        take_along(model)
    restore_numbers(found, model.config)  # that of a GGUF file is made anew
    notes = check_weight_names(model, info, found.name)
    folder = files_of(found, listing)
    if getattr(config, "quantization_config", None) is None and not is_packed(folder):
        check_weight_numbers(model, folder, found.name)
    return model, without + notes, "quantised" if found.gguf else stored


def _reading(found: FoundModel, wanted: LoadOptions, config: Any, offline: bool) -> dict[str, Any]:
    """How the files of weights are read."""
    how: dict[str, Any] = {"weights_only": True}
    if not wanted.allow_bin:
        how["use_safetensors"] = True
    if offline:  # else an Auto class asks the hub for an adapter, again and again
        how["adapter_kwargs"] = {"local_files_only": True}
    if not found.gguf:
        return how | {"config": config}
    # Plain weights: packed ones have no rows to look at or cut. Older releases always unpack.
    packing = getattr(transformers, "GgufConfig", None)
    return how | ({"quantization_config": packing(dequantize=True)} if packing else {})


def _doubts(subject: Subject) -> Iterator[str]:
    """What a user should be warned of: ids that cannot be embedded, heads that look removed."""
    config, tokens = subject.inner.config, len(subject.tokenizer or ())
    table = subject.inner.get_input_embeddings() if subject.tokenizer is not None else None
    rows = getattr(table, "num_embeddings", None)
    if rows is not None and tokens > rows:
        yield (
            f"the tokenizer of {subject.name} has {tokens} tokens and the "
            f"model embeds {rows}: pass the tokenizer that the model was trained with."
        )
    if pruned := getattr(config, "pruned_heads", None):
        yield (
            f"the config of {subject.name} lists pruned_heads {pruned}, which transformers 5 "
            "ignores: these heads are there and count as any other."
        )
