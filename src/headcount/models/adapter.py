"""LoRA and other peft adapters: a folder that changes another model, loaded on top of it."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headcount.errors import ModelError
from headcount.models.explain import explained, first_line
from headcount.models.find import Found
from headcount.models.weights import check_files
from headcount.subject import Subject

if TYPE_CHECKING:
    from headcount.models.load import Wishes

__all__ = ["downloaded", "open_adapter"]

#: The class of model that each kind of adapter was trained on.
_CLASSES = {
    "CAUSAL_LM": "AutoModelForCausalLM",
    "SEQ_2_SEQ_LM": "AutoModelForSeq2SeqLM",
    "SEQ_CLS": "AutoModelForSequenceClassification",
    "TOKEN_CLS": "AutoModelForTokenClassification",
    "QUESTION_ANS": "AutoModelForQuestionAnswering",
}


def open_adapter(found: Found, wishes: Wishes) -> Subject:
    """The base model that the adapter names, with the adapter on it."""
    peft = _import_peft(found)
    settings = json.loads((found.folder / "adapter_config.json").read_text(encoding="utf8"))
    names = [child.name for child in found.folder.iterdir()]
    check_files(names, found.name, wishes.allow_bin)
    base = _open_base(found, settings, wishes)
    with warnings.catch_warnings(record=True) as heard, explained(found):
        warnings.simplefilter("always")
        model = peft.PeftModel.from_pretrained(
            base.model, found.location, torch_device=str(wishes.device)
        )
    said = [str(warning.message) for warning in heard]
    lost = [first_line(words) for words in said if "missing adapter" in words]
    notes = [f"an adapter on {base.source}", *base.notes, *lost]
    return replace(base, model=model.eval(), name=found.name, source=found.source, notes=notes)


def _import_peft(found: Found) -> Any:
    """The peft package, needed for adapters only."""
    try:
        import peft
    except ImportError:
        raise ModelError(
            f"'{found.name}' is an adapter (adapter_config.json) and the package peft is not "
            "installed; run `pip install peft`."
        ) from None
    return peft


def _open_base(found: Found, settings: dict[str, Any], wishes: Wishes) -> Subject:
    """The model that an adapter was trained on, by name or by a path beside the adapter."""
    from headcount.models.load import load

    base = settings.get("base_model_name_or_path")
    if not base:
        raise ModelError(
            f"The adapter_config.json of '{found.name}' names no base model; "
            "add base_model_name_or_path."
        )
    beside = found.folder / base
    own_words = (found.folder / "tokenizer_config.json").is_file()
    return load(
        beside if not Path(base).exists() and beside.exists() else base,
        device=wishes.device,
        dtype=wishes.dtype,
        trust_remote_code=wishes.trust_remote_code,
        allow_bin=wishes.allow_bin,
        revision=settings.get("revision"),
        auto_class=wishes.auto_class or _CLASSES.get(settings.get("task_type") or ""),
        tokenizer=wishes.tokenizer or (found.location if own_words else None),
    )


def downloaded(found: Found, options: dict[str, Any]) -> Found:
    """An adapter of the hub as a folder on this machine."""
    from huggingface_hub import snapshot_download

    with explained(found):
        folder = snapshot_download(
            found.location,
            revision=options["revision"],
            local_files_only=options["local_files_only"],
            allow_patterns=[
                "adapter_config.json",
                "adapter_model.safetensors",
                "adapter_model.bin",
            ],
        )
    return replace(found, kind="adapter", location=folder)
