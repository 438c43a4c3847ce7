"""LoRA and other peft adapters: a small folder that names the model it was trained on."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

from headcount.errors import ModelError
from headcount.models import (
    FoundModel,
    LoadOptions,
    Subject,
    as_model_error,
    check_files,
    first_line,
    load,
)

#: The class of model that each kind of adapter was trained on.
_CLASSES = {
    "CAUSAL_LM": "AutoModelForCausalLM",
    "SEQ_2_SEQ_LM": "AutoModelForSeq2SeqLM",
    "SEQ_CLS": "AutoModelForSequenceClassification",
    "TOKEN_CLS": "AutoModelForTokenClassification",
    "QUESTION_ANS": "AutoModelForQuestionAnswering",
}


def open_adapter(found: FoundModel, wanted: LoadOptions) -> Subject:
    """The base model that the adapter names, with the adapter on it."""
    try:
        import peft
    except ImportError:
        raise ModelError(
            f"'{found.name}' is an adapter (adapter_config.json) and the package peft is not "
            "installed; run `pip install peft`."
        ) from None
    settings = _adapter_settings(found)
    # The files that peft reads; any other .safetensors says nothing of them.
    names = [child.name for child in found.folder.glob("adapter_model.*")]
    check_files(names, found.name, wanted.allow_bin)
    base = _open_base(found, settings, wanted)
    with warnings.catch_warnings(record=True) as heard, as_model_error(found):
        warnings.simplefilter("always")
        model = peft.PeftModel.from_pretrained(
            base.model, found.location, torch_device=wanted.device
        )
    messages = [str(warning.message) for warning in heard]
    lost = [first_line(message) for message in messages if "missing adapter" in message]
    notes = [f"an adapter on {base.source}", *base.notes, *lost]
    return replace(base, model=model.eval(), name=found.name, source=found.source, notes=notes)


def _adapter_settings(found: FoundModel) -> dict[str, Any]:
    """The adapter_config.json, with the keys that are used here checked."""
    where = f"The adapter_config.json of '{found.name}'"
    try:
        settings = json.loads((found.folder / "adapter_config.json").read_text(encoding="utf8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{where} cannot be read as JSON: {first_line(error)}") from None
    if not isinstance(settings, dict):
        raise ModelError(f"{where} holds no settings; it must be a JSON object.")
    for key in ("base_model_name_or_path", "revision", "task_type"):
        if not isinstance(settings.get(key), str | None):
            raise ModelError(f"{where} has a {key} that is no text: {settings[key]!r}.")
    return settings


def _open_base(found: FoundModel, settings: dict[str, Any], wanted: LoadOptions) -> Subject:
    """The model that an adapter was trained on, by name or by a path in its folder."""
    base = settings.get("base_model_name_or_path")
    if not base:
        raise ModelError(
            f"The adapter_config.json of '{found.name}' names no base model; "
            "add base_model_name_or_path."
        )
    inside = found.folder / base
    place = inside if inside.exists() else Path(base)
    if (place / "adapter_config.json").is_file() and not (place / "config.json").is_file():
        itself = "itself" if place.resolve() == found.folder.resolve() else "another adapter"
        raise ModelError(
            f"The adapter_config.json of '{found.name}' names {itself} as its base model; name the "
            "model that it was trained on."
        )
    own_tokenizer = (found.folder / "tokenizer_config.json").is_file()
    return load(
        place if place == inside else base,
        device=wanted.device,
        dtype=wanted.dtype,
        trust_remote_code=wanted.trust_remote_code,
        allow_bin=wanted.allow_bin,
        revision=settings.get("revision"),
        auto_class=wanted.auto_class or _CLASSES.get(settings.get("task_type") or ""),
        offline=wanted.offline,
        tokenizer=wanted.tokenizer or (found.location if own_tokenizer else None),
    )


def downloaded(found: FoundModel, options: dict[str, Any]) -> FoundModel:
    """An adapter of the hub as a folder on this machine."""
    from huggingface_hub import snapshot_download

    with as_model_error(found):
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
