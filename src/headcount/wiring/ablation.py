"""Ablate heads: replace their output.

Zero is Michel et al.'s mask (NeurIPS 2019, section 2.1): the head's share of the output
projection's input is 0, its bias and the residual stay. Other stand-ins are the head's mean over a
corpus, what it gives on another example, and uniform attention (Kovaleva et al. 2019).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from headcount.errors import ModelError, UnsupportedModel, UsageError
from headcount.models import Site, Subject, eval_mode, quiet_arguments
from headcount.records import Head, check_heads, parse_heads
from headcount.text import Batch
from headcount.wiring.seam import Attended, Turns, attached, listening
from headcount.wiring.sighting import unmasked

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
    turns = Turns(subject)
    work = Ablation(chosen_heads(heads, subject.heads), instead, turns.next, subject.anatomy.spans)
    with attached(subject, work, turns):
        yield work


@dataclass(eq=False)
class Ablation:
    """An ablation at work, the part on the seam; `chosen` may be replaced between forwards."""

    chosen: Tensor
    instead: Instead
    #: Tells which site the attention call of a module is.
    site_of: Callable[[nn.Module], Site]
    spans: Mapping[Site, slice]

    def __call__(self, module: nn.Module, attended: Attended) -> Tensor:
        """What the heads give, the chosen ones replaced."""
        site = self.site_of(module)
        chosen = self.chosen[..., self.spans[site]]
        if not chosen.any():
            return attended.output
        return replaced(attended.output, chosen, self.instead(site, attended))


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


# --- Stand-ins from other runs: means over a corpus, or what another example gave ---------------


def means_of(
    subject: Subject, batches: Iterable[Batch], over: Callable[..., Iterable[Any]] = map
) -> Instead:
    """The mean output of every head over all real tokens of all batches.

    Summed in float64, so that batches do not show. Where only the model knows its tokens (images,
    sound) all positions count. `over` calls a function of a batch on all of them, as `map` does.
    """
    sums: dict[Site, Tensor] = {}
    counts: Counter[Site] = Counter()

    def summed(batch: Batch) -> list[tuple[Site, Tensor, int]]:
        given = []

        def add(batch: Batch, site: Site, heads: Tensor) -> None:
            real = heads[_real(batch, site, heads)].double()
            given.append((site, real.sum(dim=0), len(real)))

        _run(subject, [batch], add)
        return given

    for site, total, tokens in chain.from_iterable(over(summed, batches)):
        sums[site] = sums.get(site, 0) + total
        counts[site] += tokens
    means = {site: (total / counts[site]).float() for site, total in sums.items()}
    return lambda site, attended: means[site].to(attended.output)[None, None]


def donors_of(
    subject: Subject, batch: Batch, lent: Iterable[tuple[Batch, Sequence[int]]]
) -> Instead:
    """What the heads gave on other examples (resample ablation), laid out for the rows of a batch.

    `lent` are the donors: batches, and for each of their rows the row of `batch` that it is for;
    rows that the batch does not have are passed over.
    The n-th token of a row gets what the donor's n-th token gave; a donor that is too short
    starts again from its first.
    """
    #: By site and row, what each real token of the donor gave: `[token, head, dim]`.
    given: dict[Site, dict[int, Tensor]] = {site: {} for site in subject.anatomy.sites}
    laid: dict[Site, Tensor] = {}
    for donors, rows in lent:

        def keep(donors: Batch, site: Site, heads: Tensor, rows: Sequence[int] = rows) -> None:
            real = _real(donors, site, heads)
            for place, row in enumerate(rows):
                given[site][row] = heads[place][real[place]]

        _run(subject, [donors], keep)

    def instead(site: Site, attended: Attended) -> Tensor:
        tokens, output = given[site], attended.output
        if site not in laid:
            rows = min(len(tokens), *(len(tensor) for tensor in batch.inputs.values()))
            real = _real(batch, site, output[:rows])
            places = (real.long().cumsum(dim=1) - 1).clamp_min(0)
            each = [tokens[row][places[row] % len(tokens[row])] for row in range(rows)]
            laid[site] = torch.stack(each)
        return laid[site].repeat(output.shape[0] // len(laid[site]), 1, 1, 1)

    return instead


def _run(
    subject: Subject, batches: Iterable[Batch], see: Callable[[Batch, Site, Tensor], None]
) -> None:
    """Run batches and show what the heads of every site give, `[row, query, head, dim]`."""
    quiet = quiet_arguments(subject.model)

    def hear(site: Site, attended: Attended) -> None:
        see(batch, site, attended.output)

    with eval_mode(subject.model), torch.no_grad(), listening(subject, hear):
        for batch in batches:
            subject.model(**batch.to(subject.device).inputs, **quiet)


def _real(batch: Batch, site: Site, heads: Tensor) -> Tensor:
    """True at the real query tokens of a stack; everywhere, where only the model knows them."""
    side = batch.query(site.stack)
    if side is None or side.real.shape != heads.shape[:2]:
        return torch.ones(heads.shape[:2], dtype=torch.bool, device=heads.device)
    return side.real.to(heads.device)


# --- Uniform attention: every query looks at all its keys alike ---------------------------------
# Kovaleva et al. (EMNLP 2019, section 4.5) disable a head by setting its weights to 1/L, L the
# length of the input, before dropout. Values still flow, as their average: this is not zero.


def uniform(site: Site, attended: Attended) -> Tensor:
    """What the heads of a site would give, `[row, query, head, dim]`: the mean of seen values.

    Padded keys get 0, and in a causal stack so do keys to come; heads that share a key head
    share its values.
    """
    assert attended.value is not None  # see check_uniform
    weights = uniform_weights(site, attended.mask, attended.output.shape[1], attended.value)
    weights = dropout(weights, attended.dropout, training=attended.dropout > 0)
    mixed = weights @ attended.value
    return mixed.repeat_interleave(site.heads // mixed.shape[1], dim=1).transpose(1, 2)


def uniform_weights(site: Site, mask: Any, queries: int, value: Tensor) -> Tensor:
    """One over the number of keys that a query sees, 0 elsewhere: `[row or 1, 1, query, key]`.

    >>> site = Site("dec", 0, heads=1, kv_heads=1, head_dim=1, module="", causal=True)
    >>> uniform_weights(site, None, 2, torch.zeros(1, 1, 2, 1))
    tensor([[[[1.0000, 0.0000],
              [0.5000, 0.5000]]]])
    """
    keys = value.shape[-2]
    if mask is not None and not isinstance(mask, Tensor):
        raise ModelError(
            f"The attention mask at {site.stack}.{site.layer} is a {type(mask).__name__}, which "
            "does not say which keys are seen; use model.set_attn_implementation('sdpa')."
        )
    if mask is not None and mask.dim() == 4:
        seen = unmasked(mask)[..., :keys]
    else:
        seen = torch.ones(1, 1, queries, keys, dtype=torch.bool, device=value.device)
        if site.causal and queries > 1:
            seen = seen.tril(diagonal=keys - queries)
        if mask is not None:
            seen = seen & (mask > 0)[:, None, None, :keys]
    weights = seen.to(value.dtype).expand(-1, -1, queries, -1)
    return weights / weights.sum(dim=-1, keepdim=True).clamp_min(1)


def check_uniform(subject: Subject) -> None:
    """Refuse a family whose maps cannot be replaced, since its values are out of reach."""
    if any(site.route == "projection" for site in subject.anatomy.sites):
        kind = subject.inner.config.model_type
        raise UnsupportedModel(
            f"{subject.name} (model type '{kind}') does not speak transformers' attention "
            "interface, so its maps cannot be made uniform; use the mode zero, mean or resample."
        )
