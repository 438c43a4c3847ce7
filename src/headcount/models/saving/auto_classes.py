"""Which of transformers' auto classes give a model's class, and which its own code offers."""

from __future__ import annotations

from typing import Any

import transformers

__all__ = ["auto_classes", "best_auto_class", "code_classes"]

#: Taken before others, since a class may serve several tasks (BART fills in words, too).
_FIRST = ("AutoModel", "AutoModelForCausalLM", "AutoModelForSeq2SeqLM", "AutoModelForMaskedLM")


def auto_classes(model_type: str, architecture: str) -> list[str]:
    """The auto classes that give this class for a config of this type.

    >>> auto_classes("bert", "BertForMaskedLM")
    ['AutoModelForMaskedLM']
    """
    names = [name for name in sorted(dir(transformers)) if name.startswith("AutoModel")]
    return [name for name in names if architecture in _given(name, model_type)]


def _given(auto: str, model_type: str) -> tuple[str, ...]:
    mapping = getattr(getattr(transformers, auto), "_model_mapping", None)
    given = mapping._model_mapping.get(model_type, ()) if mapping is not None else ()
    return tuple(given) if isinstance(given, tuple | list) else (given,)


def best_auto_class(model_type: str, architecture: str) -> str | None:
    """The auto class that a user would load this class with; none where there is none."""
    found = auto_classes(model_type, architecture)
    whole = [name for name in found if _given(name, model_type)[0] == architecture]
    return next((name for name in (*_FIRST, *whole) if name in whole), None)


def code_classes(model: Any) -> dict[str, str]:
    """Which auto class leads to which class of a model's own code: its class, the bare model's."""
    kind, core = model.config.model_type, type(model.base_model).__name__
    classes = {"AutoModel": core} if core in _given("AutoModel", kind) else {}
    classes |= dict.fromkeys(auto_classes(kind, type(model).__name__), type(model).__name__)
    return {auto: f"Pruned{name}" for auto, name in classes.items()}
