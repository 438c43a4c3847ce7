"""Which class a checkpoint asks for: its config read with care, its architecture looked up."""

from __future__ import annotations

import difflib
from typing import Any

import transformers
from transformers import CONFIG_MAPPING, AutoConfig, PreTrainedConfig, PreTrainedModel

from headcount.errors import ModelError, UsageError

__all__ = ["choose_class", "read_config"]

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
    return AutoConfig.from_pretrained(location, **options)


def _check_type(raw: dict[str, Any], label: str, trusted: bool) -> None:
    """Raise unless the model type is known, or its code came along and may be run."""
    kind = raw.get("model_type")
    if kind in CONFIG_MAPPING or (trusted and "auto_map" in raw):
        return
    if "auto_map" in raw:
        raise ModelError(
            f"The model '{label}' of type '{kind}' brings its own code, which is not run unasked; "
            "read it, then pass --trust-remote-code (trust_remote_code=True)."
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
    """The class to load with: the one asked for, the checkpoint's, or an Auto class that fits."""
    if auto_class is not None:
        return _auto_class(auto_class)
    own_code = (getattr(config, "auto_map", None) or {}) if trusted else {}
    for name in _OFFERED:
        if name in own_code:
            return getattr(transformers, name)
    return _named_class(config) or _fitting_class(config)


def _auto_class(name: str) -> Any:
    """An Auto class by name."""
    found = getattr(transformers, name, None) if name.startswith("AutoModel") else None
    if found is None:
        allowed = [known for known in dir(transformers) if known.startswith("AutoModel")]
        near = difflib.get_close_matches(name, allowed, n=3, cutoff=0.3) or ["AutoModel"]
        raise UsageError(f"There is no auto class '{name}'; closest: {', '.join(near)}.")
    return found


def _named_class(config: PreTrainedConfig) -> Any:
    """The class in ``config.architectures``, when transformers has it and it takes this config."""
    for name in config.architectures or ():
        found: Any = getattr(transformers, name, None)
        is_model = isinstance(found, type) and issubclass(found, PreTrainedModel)
        takes = getattr(found, "config_class", None) if is_model else None
        if takes is not None and isinstance(config, takes):
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
