"""From one output of a model back to its heads: a forward that remembers, a backward by a rule."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from headcount import models
from headcount.errors import UnsupportedModel
from headcount.rooms.relevance.rule import Attending, Cut, Dense, RelevanceCounter, Rule, step
from headcount.rooms.relevance.trace import Tracer, carries, met
from headcount.wiring import Attended, Turns, hooked, shown

# --- Attention under a rule ---------------------------------------------------------------------

_NAME = "headcount-relevance"

#: The open blocks, by the id of each attention module.
_OPEN: dict[int, tuple[Tracing, Turns, Callable[[], bool]]] = {}


@contextmanager
def attended_by(subject: models.Subject, tracing: Tracing) -> Iterator[None]:
    """Within the block every attention of the model is a step of the tracing."""
    turns = Turns(subject)
    modules = [subject.model.get_submodule(site.module) for site in subject.anatomy.sites]
    models.register(_NAME, traced_attention, mask_like="eager")

    def close() -> None:
        for module in modules:
            _OPEN.pop(id(module), None)

    with (
        turns.counted(subject.model),
        models.switched(subject.model, lambda _: _NAME),
        models.on_exit(close),
    ):
        ours = models.own_thread()
        _OPEN.update({id(module): (tracing, turns, ours) for module in modules})
        yield


def traced_attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Any, **kwargs: Any
) -> tuple[Tensor, Tensor]:
    """Attention as the family's eager function has it; a step where a forward is traced."""
    function, (tracing, turns, ours) = models.base_function(module, "eager"), _OPEN[id(module)]
    if not ours():
        return function(module, query, key, value, attention_mask, **kwargs)
    bare = [tensor.detach() for tensor in (query, key, value)]
    output, weights = function(module, *bare, attention_mask, **kwargs)
    site, tracer = turns.next(module), tracing.tracer
    if tracer is None or not carries([query, key, value]):
        return output, weights
    _check(module, kwargs, tracing)
    scale = kwargs.get("scaling")
    scale = query.shape[-1] ** -0.5 if scale is None else float(scale)
    call = Attending(bare[0], bare[1], bare[2], weights, output.transpose(1, 2), scale)
    tracer.close_fans()
    counter = tracer.ledger.heads[site] = tracer.ledger.counter(output, site.heads)
    carried = [t for t in (query, key, value) if carries(t)]
    heads = step(output, [*carried, counter], _share(tracer, call, (query, key, value)))
    return shown(module, Attended(heads, weights, attention_mask, value)), weights


def _share(tracer: Tracer, call: Attending, inputs: Sequence[Tensor]) -> Any:
    wanted = [carries(tensor) for tensor in inputs]

    def share(told: Tensor) -> Sequence[Tensor | None]:
        parts = tracer.rule.attention(call, told.transpose(1, 2))
        found = [part for part, carried in zip(parts, wanted, strict=True) if carried]
        return *found, told.sum(dim=(1, 3), dtype=torch.promote_types(told.dtype, torch.float32))

    return share


def _check(module: nn.Module, kwargs: dict[str, Any], tracing: Tracing) -> None:
    """A softcap bends the scores, and no rule says how."""
    if kwargs.get("softcap") is not None:
        raise UnsupportedModel(
            f"{type(module).__name__} caps its attention scores, which the relevance rule "
            f"'{tracing.rule.name}' does not cover; use the score contribution."
        )


# --- The layers of a model as cuts --------------------------------------------------------------
# A layer is the first numbered module on the path to its attention: `encoder.layer.3`,
# `decoder.block.0`, `transformer.h.11`.

_LAYER = re.compile(r"(.*?\.\d+|\d+)(\.|$)")


def layer_of(module: str) -> str:
    """The path of the layer around an attention module.

    >>> layer_of("encoder.block.0.layer.1.EncDecAttention")
    'encoder.block.0'
    """
    found = _LAYER.match(module)
    return found[1] if found is not None else module


class Entrances:
    """Stands at every layer's entrance during forwards, with the ledger of the present one."""

    def __init__(self, model: nn.Module, anatomy: models.Anatomy) -> None:
        self._sites: dict[nn.Module, list[models.Site]] = {}
        for site in sorted(anatomy.sites, key=lambda site: (site.call, site.layer)):
            if site.stack != "cross":
                layer = model.get_submodule(layer_of(site.module))
                self._sites.setdefault(layer, []).append(site)
        self._calls: Counter[nn.Module] = Counter()
        self.ledger: RelevanceCounter | None = None

    def begin(self, ledger: RelevanceCounter | None) -> None:
        """Start a forward with its ledger, or end one."""
        self.ledger = ledger
        self._calls.clear()

    def watched(self) -> AbstractContextManager[None]:
        """Hang a hook before every layer, for a block."""
        return hooked(self._sites, self._enter, with_kwargs=True)

    def _enter(self, layer: nn.Module, args: Any, kwargs: Any) -> Any:
        if self.ledger is None:
            return None
        sites = self._sites[layer]
        site = sites[self._calls[layer] % len(sites)]
        self._calls[layer] += 1
        # The layer's arguments, with a counter on each that carries relevance.
        hidden = args[0] if args else kwargs.get("hidden_states")
        if not isinstance(hidden, Tensor) or not hidden.is_floating_point():
            raise UnsupportedModel(
                f"{type(layer).__name__} does not take its hidden state first, so relevance has no "
                "place to end; use the score gradient."
            )
        if not hidden.requires_grad:  # the first layer of its stack
            hidden = hidden.detach().requires_grad_()
        hidden, through = self.ledger.metered(hidden)
        cut = Cut(site.stack, site.layer, through, [])
        rest = [_beside(cut, self.ledger, value) for value in args[1:]]
        named = {
            name: _beside(cut, self.ledger, value)
            for name, value in kwargs.items()
            if args or name != "hidden_states"
        }
        self.ledger.enter(cut, hidden)
        return ((hidden, *rest), named) if args else ((), {"hidden_states": hidden, **named})


def _beside(cut: Cut, ledger: RelevanceCounter, value: Any) -> Any:
    if not isinstance(value, Tensor) or not carries(value):
        return value
    metered, counter = ledger.metered(value)
    cut.beside.append(counter)
    return metered


# --- The layer that scores words, read at single places -----------------------------------------
# Relevance starts at one logit of a place. To send it back through that logit alone costs one row
# of
# the weights instead of all of them, for any number of starts.


class LogitInputs:
    """What entered the layer that scores words, in the last forward."""

    def __init__(self, subject: models.Subject) -> None:
        layer = subject.inner.get_output_embeddings()
        if not isinstance(layer, nn.Linear):
            raise UnsupportedModel(
                f"{subject.name} ({type(subject.inner).__name__}) has no linear layer that scores "
                "words, so there is no top-1 logit to explain; give a task that it has a head for."
            )
        self.layer: nn.Module = layer
        self._shift: Tensor | None = getattr(subject.inner, "final_logits_bias", None)
        self._name = subject.name
        self._hidden: Tensor | None = None

    def catch(self, _: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Keep what enters, and let the layer run on a copy that carries nothing."""
        if carries(args[0]):
            self._hidden = args[0]
        return (args[0].detach(), *args[1:])

    def logits_at(
        self, places: Tensor, words: Tensor, rule: Rule | None, ledger: RelevanceCounter | None
    ) -> Tensor:
        """The logits of given words at given places, `[row, place]` each, as a step of a rule."""
        if self._hidden is None:
            raise UnsupportedModel(
                f"The words of {self._name} are not scored by its output embeddings, so relevance "
                "has no place to start; use another score, e.g. gradient."
            )
        rows = torch.arange(len(places), device=places.device)[:, None]
        x, row, bias = self._hidden[rows, places], self._weights(words), self._bias(words)
        self._hidden = None
        if rule is None or ledger is None:
            plain = (x * row).sum(dim=-1)
            return plain if bias is None else plain + bias
        inputs = x.detach()
        value = (inputs * row).sum(dim=-1)
        value = value if bias is None else value + bias
        layer = Dense(inputs, row, bias, value)

        return step(value, [x], lambda told: (rule.pick(layer, told),))

    def _weights(self, words: Tensor) -> Tensor:
        weight: Any = self.layer.weight
        return weight.detach()[words]

    def _bias(self, words: Tensor) -> Tensor | None:
        own: Any = getattr(self.layer, "bias", None)
        parts = [part.detach().flatten()[words] for part in (own, self._shift) if part is not None]
        return sum(parts[1:], parts[0]) if parts else None


@contextmanager
def words_read(subject: models.Subject) -> Iterator[LogitInputs]:
    """Within the block, forwards leave what entered the layer that scores words."""
    words = LogitInputs(subject)
    with hooked([words.layer], words.catch):
        yield words


# --- How much relevance was kept ----------------------------------------------------------------
# At the entrance of a layer the network is cut in two. Everything that was sent must have come
# through the cut. For an encoder's layer the cut also runs
# through the decoder's first entrance; for a decoder's layer, through the encoder's output where
# this and later layers read it.


@dataclass(frozen=True)
class Flow:
    """Relevance at every cut, in the order of the forward.

    `sent` is `[start, row]`, the total of the start; `through` is `[start, row, cut]`: what came
    through the cut.
    """

    places: list[tuple[str, int]]
    sent: Tensor
    through: Tensor


def flow_of(ledger: RelevanceCounter, found: list[Tensor], sent: Tensor) -> Flow:
    """Read the counters of cuts, in the order in which the ledger has them."""
    counts = iter(found)
    through, beside = [], []
    for cut in ledger.cuts:
        through.append(next(counts))
        beside.append(sum((next(counts) for _ in cut.beside), torch.zeros_like(through[-1])))
    places = [(cut.stack, cut.layer) for cut in ledger.cuts]
    return Flow(places, sent, torch.stack(_crossing(ledger, through, beside), dim=-1))


def _crossing(
    ledger: RelevanceCounter, through: list[Tensor], beside: list[Tensor]
) -> list[Tensor]:
    """All relevance through each cut."""
    decoders = [place for place, cut in enumerate(ledger.cuts) if cut.stack == "dec"]
    both = decoders and len(decoders) < len(ledger.cuts)
    rest = through[decoders[0]] if both else torch.zeros_like(through[0])
    later = _later(beside)
    return [
        through[place] + (later[place] if cut.stack == "dec" else rest)
        for place, cut in enumerate(ledger.cuts)
    ]


def _later(counts: list[Tensor]) -> list[Tensor]:
    """Sums of each entry and all that follow it."""
    sums = [torch.zeros_like(counts[0])]
    for count in reversed(counts):
        sums.append(sums[-1] + count)
    return sums[:0:-1]


# --- From one output of a model back to its heads -----------------------------------------------

T = TypeVar("T")

# So many numbers of a hidden state, over all starts of one backward; layers inside are wider.
_ROOM = 1 << 22


def _room(device: torch.device) -> int:
    """More on a GPU, where few starts leave it idle: of what is free, a 32nd each four bytes."""
    free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else 0
    return max(_ROOM, min(1 << 26, free // 128))


@dataclass(frozen=True)
class Relevance:
    """What came back from one or more starts; rows are those of the forward.

    `heads` is `[start, row, head]`, in the order of the subject's heads; `flow` says what
    reached each layer's entrance, where a rule counts it.
    """

    heads: Tensor
    flow: Flow | None


@contextmanager
def traced(subject: models.Subject, rule: Rule) -> Iterator[Tracing]:
    """Within the block forwards can be traced; the model is exactly as before on any exit."""
    if any(site.route != "interface" for site in subject.anatomy.sites):
        raise UnsupportedModel(
            f"{subject.name} ({type(subject.inner).__name__}) does not speak transformers' "
            "attention interface, and relevance needs it; use the score contribution."
        )
    tracing = Tracing(subject, rule)
    with (
        models.locked(subject.model),
        models.eval_mode(subject.model),
        models.frozen(subject.model),  # whatever requires a gradient carries relevance
        met(subject.model, rule),
        tracing.entrances.watched(),
        attended_by(subject, tracing),
    ):
        yield tracing


class Tracing:
    """An open block of `traced`."""

    def __init__(self, subject: models.Subject, rule: Rule) -> None:
        self.subject = subject
        self.rule = rule
        self.entrances = Entrances(subject.model, subject.anatomy)
        self.tracer: Tracer | None = None

    def forward(self, run: Callable[[], T], rows: int) -> tuple[T, RelevanceCounter]:
        """Run something that calls the model once on N rows, and remember how."""
        ledger = RelevanceCounter(rows)
        self.entrances.begin(ledger)
        self.tracer = Tracer(self.rule, ledger, self.subject.name)
        try:
            with torch.inference_mode(False), torch.enable_grad(), self.tracer:
                return run(), ledger
        finally:
            self.tracer = None
            self.entrances.begin(None)

    @property
    def ledger(self) -> RelevanceCounter:
        """The counters of the forward under way."""
        assert self.tracer is not None  # asked for within `forward` only
        return self.tracer.ledger

    def back(self, output: Tensor, starts: Tensor, ledger: RelevanceCounter) -> Relevance:
        """Send each of the starts `[start, *output]` back to the heads.

        What counts of a start is its absolute value: rules settle totals.
        """
        starts = starts.abs()
        cuts = [counter for cut in ledger.cuts for counter in (cut.through, *cut.beside)]
        counters = [*ledger.heads.values(), *cuts]
        # What arrives at each input from each start, `[start, *input]`.
        at_once = _room(output.device) // max(1, ledger.size) or 1
        parts: list[list[Tensor]] = []
        for first in range(0, len(starts), at_once):
            some = starts[first : first + at_once]
            last = first + at_once >= len(starts)
            parts.append(_batched(output, counters, some, keep=not last))
        found = [torch.cat(each) for each in zip(*parts, strict=True)]
        heads = dict(zip(ledger.heads, found, strict=False))
        by_site = [heads[site] for site in self.subject.anatomy.sites]
        flow = flow_of(ledger, found[len(heads) :], starts.flatten(2).sum(dim=2))
        return Relevance(torch.cat(by_site, dim=-1), flow)


def _batched(output: Tensor, inputs: list[Tensor], starts: Tensor, keep: bool) -> list[Tensor]:
    def back(start: Tensor) -> tuple[Tensor, ...]:
        return torch.autograd.grad(
            output, inputs, start, retain_graph=keep, allow_unused=True, materialize_grads=True
        )

    if len(starts) == 1:  # spares the vectorised backward, whose bookkeeping costs
        return [gradient[None] for gradient in back(starts[0])]
    return list(torch.func.vmap(back)(starts))
