"""Uniform attention: every query looks at all its keys alike.

Kovaleva et al. (EMNLP 2019, section 4.5) disable a head by setting its weights to 1/L, L the
length of the input, before dropout. Values still flow, as their average: this is not zero.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from headcount.errors import ModelError, UnsupportedModel, UsageError
from headcount.models import Site, Subject, eval_mode, locked, quiet_arguments
from headcount.records import Head, check_heads, parse_heads
from headcount.text import Batch
from headcount.wiring.seam import Attended, Turns, attached, listening, scaled_projections

# --- Ablate heads: something else stands in the place of what they give -------------------------
# Zero is Michel et al.'s mask (NeurIPS 2019, section 2.1): the head's share of the output
# projection's input is 0, its bias and the residual stay.

#: What stands in the place of a site's heads, to be broadcast to `[row, query, head, dim]`.
Instead = Callable[[Site, Attended], Tensor]


def zero(site: Site, attended: Attended) -> Tensor:
    """Nothing."""
    return attended.output.new_zeros(())


@contextmanager
def ablated(
    subject: Subject, heads: str | Iterable[str | Head] | Tensor, instead: Instead = zero
) -> Iterator[Ablation]:
    """Ablate heads within the block; the model is exactly as before on any exit.

    `heads` are names (`"enc.0.3,enc.1.2"` or a list), or true and false for each head,
    `[head]` or `[row, head]` in the order of `subject.heads`. `instead` is `zero`, `uniform`, or
    what `means_of` and `donors_of` make.

    >>> from transformers import BertConfig, BertModel
    >>> config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=4,
    ...                     intermediate_size=16, vocab_size=32)
    >>> subject = Subject(BertModel(config).eval())
    >>> ids = torch.tensor([[1, 2, 3]])
    >>> whole = subject.model(ids).last_hidden_state
    >>> with ablated(subject, "enc.0.1,enc.0.2"):
    ...     torch.equal(subject.model(ids).last_hidden_state, whole)
    False
    """
    turns = Turns(subject.model, subject.anatomy)
    work = Ablation(subject, heads, instead, turns)
    with turns.counted(subject.model), hung(subject, work):
        yield work


@contextmanager
def hung(subject: Subject, work: Ablation) -> Iterator[None]:
    """Hang an ablation on the seam and on the projections of families outside it."""
    with ExitStack() as stack:
        stack.enter_context(locked(subject.model))
        stack.enter_context(attached(subject.model, subject.anatomy, work))
        stack.enter_context(scaled_projections(subject.model, subject.anatomy, work.entering))
        yield


class Sites(Protocol):
    """Knows which site an attention call is."""

    def next(self, module: nn.Module) -> Site:
        """The site of this call."""


class Ablation:
    """An ablation at work; `chosen` may be replaced between forwards."""

    def __init__(
        self,
        subject: Subject,
        heads: str | Iterable[str | Head] | Tensor,
        instead: Instead,
        turns: Sites,
    ) -> None:
        self.chosen = chosen_heads(heads, subject.heads)
        self.instead = instead
        self.turns = turns
        self._spans = subject.anatomy.spans

    def __call__(self, module: nn.Module, attended: Attended) -> Tensor:
        """The part on the seam."""
        site = self.turns.next(module)
        chosen = self.chosen[..., self._spans[site]]
        if not chosen.any():
            return attended.output
        return replaced(attended.output, chosen, self.instead(site, attended))

    def entering(self, module: nn.Module, heads: Tensor) -> Tensor:
        """The same before an output projection, for families outside the interface."""
        return self(module, Attended(heads, None, None))


def replaced(output: Tensor, chosen: Tensor, instead: Tensor) -> Tensor:
    """Head outputs `[row, query, head, dim]` with the chosen ones exchanged.

    `chosen` is `[head]`, or `[row, head]`; beams of one row share its choice.
    """
    chosen = chosen.to(output.device)
    if chosen.dim() == 2:
        rows, examples = output.shape[0], chosen.shape[0]
        if rows % examples:
            raise UsageError(
                f"Heads were chosen for {examples} rows, but the model was called on {rows}; "
                "choose for as many as the batch has, or once for all."
            )
        chosen = chosen.repeat_interleave(rows // examples, dim=0)[:, None, :, None]
    else:
        chosen = chosen[None, None, :, None]
    return torch.where(chosen, instead, output)


def chosen_heads(heads: str | Iterable[str | Head] | Tensor, known: list[Head]) -> Tensor:
    """True for every head that was chosen, `[head]` or `[row, head]`.

    >>> chosen_heads("enc.0.1", [Head("enc", 0, 0), Head("enc", 0, 1)])
    tensor([False,  True])
    """
    if isinstance(heads, Tensor):
        if heads.dtype != torch.bool or heads.dim() not in (1, 2) or heads.shape[-1] != len(known):
            raise UsageError(
                f"A tensor of heads is true or false for each of the {len(known)}, [head] or "
                f"[row, head]; this one is {heads.dtype} of shape {tuple(heads.shape)}."
            )
        return heads
    wanted = set(parse_heads(heads))
    check_heads(sorted(wanted), known)
    return torch.tensor([head in wanted for head in known])


# --- Mean ablation ------------------------------------------------------------------------------


class Means:
    """The mean output of every head, `[head, dim]` by site."""

    def __init__(self, by_site: dict[Site, Tensor]) -> None:
        self.by_site = by_site

    def __call__(self, site: Site, attended: Attended) -> Tensor:
        """What the heads of a site give instead, `[1, 1, head, dim]`."""
        return self.by_site[site].to(attended.output)[None, None]


def means_of(subject: Subject, batches: Iterable[Batch]) -> Means:
    """Means over all real tokens of all batches, in float64, so that batches do not show.

    Where only the model knows its tokens (images, sound) all positions count.
    """
    sums: dict[Site, Tensor] = {}
    counts: dict[Site, int] = defaultdict(int)
    real: dict[str, Tensor | None] = {}

    def hear(site: Site, attended: Attended) -> None:
        heads = attended.output
        there = real[site.stack]
        if there is None or there.shape != heads.shape[:2]:
            there = torch.ones(heads.shape[:2], dtype=torch.bool)
        given = heads[there.to(heads.device)].double()
        sums[site] = sums.get(site, 0) + given.sum(dim=0)
        counts[site] += len(given)

    quiet = quiet_arguments(subject.model)
    with eval_mode(subject.model), torch.no_grad(), listening(subject, hear):
        for batch in batches:
            sides = {stack: batch.query(stack) for stack in subject.anatomy.stacks}
            real = {stack: None if side is None else side.real for stack, side in sides.items()}
            subject.model(**batch.to(subject.device).inputs, **quiet)
    return Means({site: (total / counts[site]).float() for site, total in sums.items()})


# --- Resample ablation --------------------------------------------------------------------------


class Donors:
    """What the heads gave on other examples, laid out for the rows of one batch.

    The n-th token of a row gets what the donor's n-th token gave; a donor that is too short
    starts again from its first.
    """

    def __init__(self, batch: Batch, given: dict[Site, dict[int, Tensor]]) -> None:
        self._batch = batch
        #: By site and row, what each real token of the donor gave: `[token, head, dim]`.
        self._given = given
        self._laid: dict[Site, Tensor] = {}

    def __call__(self, site: Site, attended: Attended) -> Tensor:
        """What the heads of a site give instead, `[row, query, head, dim]`."""
        if site not in self._laid:
            self._laid[site] = self._lay(site, attended.output)
        laid = self._laid[site]
        return laid.repeat(attended.output.shape[0] // len(laid), 1, 1, 1)

    def _lay(self, site: Site, output: Tensor) -> Tensor:
        given = self._given[site]
        real = _real(self._batch, site, len(given), output.shape[1]).to(output.device)
        places = (real.long().cumsum(dim=1) - 1).clamp_min(0)
        return torch.stack([given[row][places[row] % len(given[row])] for row in range(len(given))])


def donors_of(
    subject: Subject, batch: Batch, lent: Iterable[tuple[Batch, Sequence[int]]]
) -> Donors:
    """Run donors and keep what their heads give.

    `lent` are the donors: batches, and for each of their rows the row of `batch` that it is for.
    """
    given: dict[Site, dict[int, Tensor]] = {site: {} for site in subject.anatomy.sites}
    quiet = quiet_arguments(subject.model)
    for donors, rows in lent:

        def hear(
            site: Site, attended: Attended, donors: Batch = donors, rows: Sequence[int] = rows
        ) -> None:
            heads = attended.output
            real = _real(donors, site, *heads.shape[:2]).to(heads.device)
            for place, row in enumerate(rows):
                given[site][row] = heads[place][real[place]]

        with eval_mode(subject.model), torch.no_grad(), listening(subject, hear):
            subject.model(**donors.to(subject.device).inputs, **quiet)
    return Donors(batch, given)


def _real(batch: Batch, site: Site, rows: int, queries: int) -> Tensor:
    """True at the real tokens that ask in a stack; everywhere, where only the model knows them."""
    side = batch.query(site.stack)
    if side is None or side.real.shape != (rows, queries):
        return torch.ones(rows, queries, dtype=torch.bool)
    return side.real


# --- Uniform attention: every query looks at all its keys alike ---------------------------------


def uniform(site: Site, attended: Attended) -> Tensor:
    """What the heads of a site would give, `[row, query, head, dim]`: the mean of seen values.

    Padded keys get 0, and in a causal stack so do keys to come; heads that share a key head
    share its values.
    """
    assert attended.value is not None  # see check_uniform
    rows, queries = attended.output.shape[:2]
    weights = uniform_weights(site, attended.mask, rows, queries, attended.value)
    weights = dropout(weights, attended.dropout, training=attended.dropout > 0)
    mixed = weights @ attended.value
    return mixed.repeat_interleave(site.heads // mixed.shape[1], dim=1).transpose(1, 2)


def uniform_weights(
    site: Site, mask: Tensor | None, rows: int, queries: int, value: Tensor
) -> Tensor:
    """One over the number of keys that a query sees, 0 elsewhere: `[row or 1, 1, query, key]`.

    >>> site = Site("dec", 0, heads=1, kv_heads=1, head_dim=1, module="", causal=True)
    >>> uniform_weights(site, None, 1, 2, torch.zeros(1, 1, 2, 1))
    tensor([[[[1.0000, 0.0000],
              [0.5000, 0.5000]]]])
    """
    seen = _seen(site, mask, queries, value.shape[-2], value.device)
    seen = seen.to(value.dtype).expand(-1, -1, queries, -1)
    return seen / seen.sum(dim=-1, keepdim=True).clamp_min(1)


def check_uniform(subject: Subject) -> None:
    """Refuse a family whose maps cannot be replaced, since its values are out of reach."""
    if any(site.route == "projection" for site in subject.anatomy.sites):
        kind = subject.inner.config.model_type
        raise UnsupportedModel(
            f"{subject.name} (model type '{kind}') does not speak transformers' attention "
            "interface, so its maps cannot be made uniform; use the mode zero, mean or resample."
        )


def _seen(site: Site, mask: Tensor | None, queries: int, keys: int, device: torch.device) -> Tensor:
    """Which keys a query may see, true or false, `[row or 1, 1, query or 1, key]`."""
    if mask is not None and not isinstance(mask, Tensor):
        raise ModelError(
            f"The attention mask at {site.stack}.{site.layer} is a {type(mask).__name__}, which "
            "does not say which keys are seen; use model.set_attn_implementation('sdpa')."
        )
    if mask is not None and mask.dim() == 4:
        allowed = mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2
        return allowed[..., :keys]
    looking_back = torch.ones(queries, keys, dtype=torch.bool, device=device)
    if site.causal and queries > 1:
        looking_back = looking_back.tril(diagonal=keys - queries)
    if mask is None:
        return looking_back[None, None]
    return looking_back[None, None] & (mask > 0)[:, None, None, :keys]
