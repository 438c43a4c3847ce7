"""Means over a corpus, what heads gave on another example, and uniform attention, in heads' place.

Kovaleva et al. (EMNLP 2019, section 4.5) disable a head by setting its weights to 1/L, L the length
of the input, before dropout. Values still flow, as their average: this is not zero.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import chain
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import dropout

from headcount.errors import ModelError, UnsupportedModel, UsageError
from headcount.importance import ExampleRows, Mode, StandIn, picked, rows_an_example
from headcount.models import Site, Subject, eval_mode, quiet_arguments
from headcount.records import LocalEngine, Piece
from headcount.tasks import Custom, Task
from headcount.text import Batch
from headcount.wiring import Attended, Instead, listening, unmasked


def prepared(
    mode: Mode,
    subject: Subject,
    task: Task,
    batches: Sequence[Batch],
    reference: Task | None,
    seed: int,
    notes: list[str],
) -> StandIn:
    """What stands in the place of heads, by the batch that is run.

    Means are taken over the reference, or over the batches; donors come from the batches. What
    a reader should know goes to the notes.
    """
    if mode == "uniform":
        check_uniform(subject)
        return lambda *_: uniform
    if mode == "mean":
        if isinstance(reference or task, Custom):
            raise UsageError(
                "The mode mean takes means over texts, and a custom task has none that headcount "
                "can encode; give reference=, another task with texts."
            )
        texts = batches if reference is None else reference.batches(subject)
        lost: dict[int, str] = {}
        means = means_of(subject, texts, partial(_of_those_that_run, lost))
        if reference is not None:  # the task's own are named where the sweep sets them aside
            name = reference.name
            notes += [f"Example {at + 1} of {name} is in no mean: {lost[at]}" for at in lost]
        return lambda *_: means
    if isinstance(task, Custom) or task.generates:  # donors lend position by position
        raise UsageError(
            "The mode resample needs runs whose positions are known: take metric='loss' of a task "
            f"with texts, not the {task.metric.name} of {task.name}."
        )
    exchange = Exchange(batches, seed)
    return lambda number, rows, batch: donors_of(subject, batch, exchange.lent(number, rows))


def _of_those_that_run(
    lost: dict[int, str], see: Callable[[Batch], Any], batches: Iterable[Batch]
) -> Iterator[Any]:
    """What is seen of all examples but those that the model breaks on, which are named."""
    given: dict[int, Batch] = {}

    def pieces() -> Iterator[Piece]:
        for number, batch in enumerate(batches):
            given[number] = batch
            yield Piece(number, ExampleRows(batch, range(len(batch))))

    def work(some: Any) -> Any:
        return see(picked(some.of, some.rows))

    for answer in LocalEngine().run(lambda: nullcontext(work), pieces()):
        batch = given.pop(answer.number)
        lost.update((batch.index[one.place], one.why) for one in answer.lost)
        yield from (result for _, _, result in answer.results)


class Exchange:
    """A seeded ring of examples, each lending to the next; windows of long texts go in turn."""

    def __init__(self, batches: Sequence[Batch], seed: int) -> None:
        self._batches = batches
        #: Where each example lies: its batch and its place there, once for every window.
        self._places: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for number, batch in enumerate(batches):
            for place, example in enumerate(batch.index):
                self._places[example].append((number, place))
        for places in self._places.values():
            places.sort(key=self._window)
        self._donor = ring(sorted(self._places), seed)

    def lent(self, number: int, rows: Sequence[int]) -> list[tuple[Batch, list[int]]]:
        """The donors of some rows of a batch, and for each of their rows the row it is for."""
        chosen: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for place, row in enumerate(rows):
            example = self._batches[number].index[row]
            window = self._places[example].index((number, row))
            places = self._places[self._donor[example]]
            lender, at = places[window % len(places)]
            chosen[lender].append((at, place))
        return [self._batch(lender, pairs) for lender, pairs in chosen.items()]

    def _batch(self, lender: int, pairs: list[tuple[int, int]]) -> tuple[Batch, list[int]]:
        batch = self._batches[lender]
        each = rows_an_example(batch)
        rows = [place * each + part for _, place in pairs for part in range(each)]
        return picked(batch, [at for at, _ in pairs]), rows

    def _window(self, where: tuple[int, int]) -> int:
        batch, place = self._batches[where[0]], where[1]
        windows = batch.window[:: rows_an_example(batch)]
        return windows[place] if windows else 0


def ring(examples: Sequence[int], seed: int) -> dict[int, int]:
    """Each example's donor: the next in a random circle, so never the example itself.

    >>> ring([0, 1, 2], seed=0)
    {1: 2, 2: 0, 0: 1}
    """
    if len(examples) < 2:
        raise UsageError(
            "Resampling takes what a head gives on another example, and there is only one; give "
            "two examples or more, or use the mode zero or mean."
        )
    circle = random.Random(seed).sample(list(examples), len(examples))
    return dict(zip(circle, [*circle[1:], circle[0]], strict=True))


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
