"""The layer that scores words, read at single places: one logit each, not a whole vocabulary.

Relevance starts at one logit of a place. To send it back through that logit alone costs one row of
the weights instead of all of them, for any number of starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from headcount.errors import UnsupportedModel
from headcount.lrp.ledger import Ledger
from headcount.lrp.operations import carries
from headcount.lrp.rule import Rule
from headcount.lrp.step import step
from headcount.subject import Subject

__all__ = ["Words", "words_read"]


class Words:
    """What entered the layer that scores words, in the last forward."""

    def __init__(self, subject: Subject) -> None:
        self.layer: nn.Module = _output_layer(subject)
        self._shift: Tensor | None = getattr(subject.inner, "final_logits_bias", None)
        self._name = subject.name
        self._hidden: Tensor | None = None

    def catch(self, _: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Keep what enters, and let the layer run on a copy that carries nothing."""
        if carries(args[0]):
            self._hidden = args[0]
        return (args[0].detach(), *args[1:])

    def logits_at(self, places: Tensor, words: Tensor, rule: Rule, ledger: Ledger) -> Tensor:
        """The logits of given words at given places, `[row, place]` each, as a step."""
        if self._hidden is None:
            raise UnsupportedModel(
                f"The words of {self._name} are not scored by its output embeddings, so relevance "
                "has no place to start; use another score, e.g. gradient."
            )
        rows = torch.arange(len(places), device=places.device)[:, None]
        x, row, bias = self._hidden[rows, places], self._weights(words), self._bias(words)
        self._hidden = None
        inputs = x.detach()
        value = (inputs * row).sum(dim=-1)
        value = value if bias is None else value + bias

        def share(told: Tensor) -> Sequence[Tensor | None]:
            found, kept = rule.pick(inputs, row, bias, value, told)
            return found, None if kept is None else ledger.by_row(kept)

        return step(value, [x, ledger.biases[-1]], share)

    def _weights(self, words: Tensor) -> Tensor:
        weight: Any = self.layer.weight
        return weight.detach()[words]

    def _bias(self, words: Tensor) -> Tensor | None:
        own: Any = getattr(self.layer, "bias", None)
        parts = [part.detach().flatten()[words] for part in (own, self._shift) if part is not None]
        return sum(parts[1:], parts[0]) if parts else None


@contextmanager
def words_read(subject: Subject) -> Iterator[Words]:
    """Within the block, forwards leave what entered the layer that scores words."""
    words = Words(subject)
    handle = words.layer.register_forward_pre_hook(words.catch)
    try:
        yield words
    finally:
        handle.remove()


def _output_layer(subject: Subject) -> nn.Module:
    layer = subject.inner.get_output_embeddings()
    if not isinstance(layer, nn.Linear):
        raise UnsupportedModel(
            f"{subject.name} ({type(subject.inner).__name__}) has no linear layer that scores "
            "words, so there is no top-1 logit to explain; give a task that it has a head for."
        )
    return layer
