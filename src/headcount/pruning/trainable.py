"""Which weights learn: all, those of one stack, those of some names, or none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any

from torch import nn

from headcount.errors import UsageError
from headcount.models.probe import core_of
from headcount.subject import Subject

__all__ = ["Chosen", "borrowed", "describe_chosen", "trainable"]

#: "all", "gates" (no weight), "enc", "dec", names with * or a function of a name.
Chosen = str | Sequence[str] | Callable[[str], bool]


def trainable(subject: Subject, chosen: Chosen) -> list[str]:
    """The names of the weights that learn.

    "enc" and "dec" are what belongs to that stack alone: embeddings that both stacks use stay
    frozen, so that functions cannot move to the other stack (Voita et al. 2019, section 6.2).

    >>> from transformers import BertConfig, BertModel
    >>> config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=4,
    ...                     intermediate_size=16, vocab_size=32)
    >>> trainable(Subject(BertModel(config)), ["*query*"])
    ['encoder.layer.0.attention.self.query.weight', 'encoder.layer.0.attention.self.query.bias']
    """
    fixed = _sinusoids(subject.model)
    names = [n for n, w in subject.model.named_parameters() if _can_learn(w, fixed)]
    if chosen == "all":
        return names
    if chosen == "gates":
        return []
    if chosen in ("enc", "dec"):
        own = _of_stack(subject, str(chosen))
        return [name for name in names if name in own]
    return _picked(subject, names, chosen)


def describe_chosen(chosen: Chosen) -> Any:
    """The choice as a record keeps it."""
    if callable(chosen):
        return getattr(chosen, "__name__", "a function")
    return chosen if isinstance(chosen, str) else list(chosen)


@contextmanager
def borrowed(model: nn.Module, names: Sequence[str]) -> Iterator[dict[str, nn.Parameter]]:
    """Within the block only these weights ask for a gradient; flags and modes come back."""
    weights = dict(model.named_parameters())
    asked = {name: weight.requires_grad for name, weight in weights.items()}
    modes = [(module, module.training) for module in model.modules()]
    learning = set(names)
    try:
        for name, weight in weights.items():
            weight.requires_grad_(name in learning)
        yield {name: weights[name] for name in names}
    finally:
        for name, weight in weights.items():
            weight.grad = None
            weight.requires_grad_(asked[name])
        for module, mode in modes:
            module.training = mode


def _can_learn(weight: nn.Parameter, fixed: set[int]) -> bool:
    """What was frozen by its owner stays so."""
    return weight.is_floating_point() and weight.requires_grad and id(weight) not in fixed


def _sinusoids(model: nn.Module) -> set[int]:
    """Positions that are a formula, although they look like weights."""
    tables = [module for module in model.modules() if "Sinusoidal" in type(module).__name__]
    return {id(weight) for table in tables for weight in table.parameters()}


def _of_stack(subject: Subject, stack: str) -> set[str]:
    """Names of weights that stand in one stack and nowhere else."""
    prefix = _path(subject.model, _stack(subject, stack))
    places: dict[int, list[str]] = {}
    for name, weight in subject.model.named_parameters(remove_duplicate=False):
        places.setdefault(id(weight), []).append(name)
    return {
        name
        for names in places.values()
        if all(name.startswith(prefix) for name in names)
        for name in names
    }


def _stack(subject: Subject, stack: str) -> nn.Module:
    inner = subject.inner
    if subject.kind == "enc-dec":
        found: nn.Module = inner.get_encoder() if stack == "enc" else inner.get_decoder()
        return found
    if stack != subject.kind:
        raise UsageError(f"{subject.name} has no stack '{stack}'; it has {subject.kind}.")
    return core_of(subject.model)


def _path(model: nn.Module, part: nn.Module) -> str:
    """Where a part's weights begin in names."""
    path = next(path for path, module in model.named_modules() if module is part)
    return f"{path}." if path else ""


def _picked(subject: Subject, names: Sequence[str], chosen: Any) -> list[str]:
    if callable(chosen):
        found = [name for name in names if chosen(name)]
    else:
        patterns = [chosen] if isinstance(chosen, str) else list(chosen)
        found = [n for n in names if any(fnmatchcase(n, pattern) for pattern in patterns)]
    if not found:
        raise UsageError(
            f"No weight of {subject.name} is meant by {describe_chosen(chosen)!r}; give 'all', "
            f"'gates', 'enc', 'dec' or names such as '{names[0] if names else '*'}', with * for "
            "any part."
        )
    return found
