"""Load a model by name: a folder, a GGUF file, a model of ours, a package, an adapter, a hub id.

Safe by default: safetensors or GGUF only, no code from the checkpoint, no weight left at random
without a word.
"""

from __future__ import annotations

import os
import warnings
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch

from headcount.bundle.packed import is_packed
from headcount.errors import UsageError
from headcount.models.adapter import downloaded, open_adapter
from headcount.models.architecture import choose_class, read_config
from headcount.models.explain import explained
from headcount.models.find import Found, find
from headcount.models.fitted import fitted_class, is_cut
from headcount.models.gguf_file import gguf_options, reading_gguf
from headcount.models.head_numbers import restore_numbers
from headcount.models.hub import Listing, options_for
from headcount.models.packed import open_packed
from headcount.models.placement import pick_device, pick_dtype
from headcount.models.quiet import quiet
from headcount.models.tokenizer import open_tokenizer
from headcount.models.weights import check_files, check_names
from headcount.subject import Subject

__all__ = ["load"]


@dataclass(frozen=True)
class Wishes:
    """What the caller of `load` asked for, checked."""

    device: torch.device
    dtype: torch.dtype | str
    trust_remote_code: bool
    allow_bin: bool
    revision: str | None
    auto_class: str | None
    tokenizer: str | None


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
) -> Subject:
    """A model and its tokenizer, ready to be measured, in eval mode.

    `name` is a folder with config.json and safetensors, a ``.gguf`` file, a folder of a LoRA
    adapter, an installed model package, ``minilm``, ``smollm2``, ``e5-small``, ``translator``
    or a hub id. `auto_class` (e.g. ``AutoModelForMaskedLM``) goes over the checkpoint's own
    class; `tokenizer` names another folder for the tokenizer.

    >>> load("no/such/folder")
    Traceback (most recent call last):
    headcount.errors.ModelError: There is no folder or file 'no/such/folder'. ...
    """
    place = pick_device(device)
    number = pick_dtype(dtype, place)
    words = None if tokenizer is None else _spelled(tokenizer)
    wishes = Wishes(place, number, trust_remote_code, allow_bin, revision, auto_class, words)
    found = find(_spelled(name))
    with quiet():
        subject = _open(found, wishes)
    _check_vocabulary(subject)
    _warn_of_pruned_heads(subject)
    return subject


def _spelled(name: object) -> str:
    """A name or path as a string."""
    if not isinstance(name, str | os.PathLike) or not str(name).strip():
        raise UsageError(
            f"load takes a name or a path, not {name!r}; wrap a model with hc.Subject."
        )
    return str(name)


def _open(found: Found, wishes: Wishes) -> Subject:
    """Open whatever was found."""
    if found.kind == "adapter":
        return open_adapter(found, wishes)
    options, listing = options_for(found, wishes.trust_remote_code, wishes.revision)
    if found.kind == "hub" and listing.is_adapter:
        subject = open_adapter(downloaded(found, options), wishes)
        return replace(subject, revision=listing.revision)
    reading: AbstractContextManager[None] = reading_gguf() if found.gguf else nullcontext()
    with reading:
        model, notes = _open_model(found, wishes, options, listing)
        tokenizer, more = open_tokenizer(found, options, listing, wishes.tokenizer)
    return Subject(model, tokenizer, found.name, found.source, listing.revision, notes + more)


def _open_model(
    found: Found, wishes: Wishes, options: dict[str, Any], listing: Listing
) -> tuple[Any, list[str]]:
    """The model and what to note about its weights."""
    with explained(found):
        config = read_config(found.location, found.name, options)
    restore_numbers(found, config)
    if not found.gguf:
        check_files(listing.files, found.name, wishes.allow_bin)
    cut = is_cut(config)  # headcount's own way to read it needs no code from the folder
    chosen = choose_class(config, wishes.auto_class, wishes.trust_remote_code and not cut)
    if cut:
        chosen = fitted_class(chosen, config)
    how = options | _placing(wishes) | {"output_loading_info": True}
    with explained(found, chosen, config):
        if found.kind == "folder" and is_packed(found.folder):
            model, info = open_packed(found.folder, chosen, config, how)
        else:
            reading = _reading(found, wishes, config, listing.offline)
            model, info = chosen.from_pretrained(found.location, **how, **reading)
    if cut:
        model.__class__ = chosen.__mro__[1]  # a model of its family, like any other
    return model, check_names(model, info, found.name)


def _placing(wishes: Wishes) -> dict[str, Any]:
    """In which numbers the weights are kept, and where."""
    on_cpu = wishes.device.type == "cpu"
    return {"dtype": wishes.dtype} | ({} if on_cpu else {"device_map": {"": wishes.device}})


def _reading(found: Found, wishes: Wishes, config: Any, offline: bool) -> dict[str, Any]:
    """How the files of weights are read."""
    how: dict[str, Any] = {"weights_only": True}
    if not wishes.allow_bin:
        how["use_safetensors"] = True
    if offline:  # else an Auto class asks the hub for an adapter, again and again
        how["adapter_kwargs"] = {"local_files_only": True}
    return how | (gguf_options() if found.gguf else {"config": config})


def _check_vocabulary(subject: Subject) -> None:
    """Note and warn when the tokenizer makes ids that the model cannot embed."""
    table = subject.inner.get_input_embeddings() if subject.tokenizer is not None else None
    rows = getattr(table, "num_embeddings", None)
    if rows is not None and len(subject.tokenizer or ()) > rows:
        _tell(
            subject,
            f"the tokenizer of {subject.name} has {len(subject.tokenizer or ())} tokens and the "
            f"model embeds {rows}: pass the tokenizer that the model was trained with.",
        )


def _warn_of_pruned_heads(subject: Subject) -> None:
    """Note and warn when a config lists heads that transformers 4 would have removed."""
    pruned = getattr(subject.inner.config, "pruned_heads", None)
    if pruned:
        _tell(
            subject,
            f"the config of {subject.name} lists pruned_heads {pruned}, which transformers 5 "
            "ignores: these heads are there and count as any other.",
        )


def _tell(subject: Subject, note: str) -> None:
    """Keep a note and say it now."""
    subject.notes.append(note)
    warnings.warn(note, stacklevel=4)
