"""Restrict heads to the first tokens and a window, without removing them.

StreamingLLM (Xiao et al. 2024) keeps the first tokens, on which attention rests, and the last ones;
DuoAttention (Xiao et al. 2025) does so for some key heads only. Here it is a mask, on any model
that goes through the attention interface.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from headcount.errors import ModelError, UsageError
from headcount.importance import (
    GROUP,
    Arrays,
    BatchWork,
    Measure,
    Score,
    ScoreOptions,
    ScoreWork,
)
from headcount.models import Site, Subject, check_finite, enough_memory, eval_mode, frozen
from headcount.pruning import removable_units
from headcount.records import Column, Head, HeadTable, check_heads, parse_heads
from headcount.stats import Floats
from headcount.tasks import Task, label_counts
from headcount.text import Batch
from headcount.wiring import Turns, attached

# --- The window ---------------------------------------------------------------------------------


class Window(NamedTuple):
    """How many of the first tokens a restricted head sees, and how many of the last.

    >>> Window(16, 240).tokens, str(Window(16, 240))
    (256, '16+240')
    """

    first: int
    last: int

    @property
    def tokens(self) -> int:
        """How many keys are kept."""
        return self.first + self.last

    def __str__(self) -> str:
        return f"{self.first}+{self.last}"


def read_window(given: Any) -> Window:
    """A window as people write it: ``(16, 240)`` or ``16+240``.

    >>> read_window("16+240")
    Window(first=16, last=240)
    >>> read_window("0+256")
    Traceback (most recent call last):
    headcount.errors.UsageError: The window is '0+256', which keeps no first token; attention rests
    on the first tokens, and without them the loss is ruined: keep one or more, e.g. 4+252.
    """
    words = given.split("+") if isinstance(given, str) else given
    try:
        first, last = (int(word) for word in words)
    except (TypeError, ValueError):
        raise UsageError(
            f"The window is {given!r}; write the first tokens and the last ones, e.g. 16+240."
        ) from None
    if first < 1:
        raise UsageError(
            f"The window is '{first}+{last}', which keeps no first token; attention rests on the "
            "first tokens, and without them the loss is ruined: keep one or more, e.g. "
            f"4+{max(last - 4, 1)}."
        )
    if last < 1:
        raise UsageError(f"The window is '{first}+{last}'; keep one or more of the last tokens.")
    return Window(first, last)


def near_keys(
    window: Window, mask: Any, queries: int, keys: int, *, causal: bool, device: Any = None
) -> Tensor:
    """Which keys a restricted head sees: true or false, ``[1 or row, 1 or head, query, key]``.

    Of the keys that it would see the first and the last ones; padding does not count. A head that
    sees both sides keeps the last token too (``[SEP]``), and half of the window on either side.

    >>> near_keys(Window(1, 2), None, 4, 4, causal=True)[0, 0].int().tolist()
    [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 0, 1, 1]]
    """
    at = torch.arange(keys - queries, keys, device=device)[:, None]
    place = torch.arange(keys, device=device)
    if mask is None and causal:
        return ((place <= at) & ((place < window.first) | (at - place < window.last)))[None, None]
    if mask is None:
        seen = torch.ones(1, 1, 1, keys, dtype=torch.bool, device=device)
    else:
        seen = mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2
    number = seen.cumsum(-1, dtype=torch.int32)
    count = number[..., -1:]
    if causal:
        near = number > count - window.last
    else:
        near = ((at - place).abs() <= window.last // 2) | (number == count)
    return seen & ((number <= window.first) | near)


# --- Which heads can be restricted --------------------------------------------------------------


def restrictable(subject: Subject, window: Window | None = None) -> list[tuple[Head, ...]]:
    """The key groups that can be restricted: query heads that share keys, in the model's order.

    Layers that slide already see no more than a window, and are left alone.
    """
    if subject.kind == "enc-dec":
        raise ModelError(
            f"{subject.name} is an encoder-decoder; only decoders and encoders by themselves can "
            "be restricted to a window."
        )
    sites = [site for site in subject.anatomy.sites if site.route == "interface"]
    if not sites:
        raise ModelError(
            f"{subject.name} attends outside the attention interface of transformers, where no "
            "mask reaches its heads; restrict a model of another family."
        )
    there = [site for site in sites if not slides(subject, site)]
    if not there:
        raise ModelError(
            f"Every layer of {subject.name} slides over a window already, so nothing is left to "
            "restrict; choose a model with layers of full attention."
        )
    return removable_units(subject.anatomy, [head for site in there for head in site.names])


def slides(subject: Subject, site: Site) -> bool:
    """Whether a layer attends to a window by itself."""
    module = subject.model.get_submodule(site.module)
    config: Any = getattr(module, "config", None)
    types = getattr(config, "layer_types", None)
    if types is not None and site.layer < len(types):
        return bool(types[site.layer] != "full_attention")
    return bool(getattr(module, "sliding_window", getattr(config, "sliding_window", None)))


def check_length(window: Window, batches: Iterable[Batch], name: str) -> None:
    """Refuse a window that every text fits into: nothing would be measured."""
    longest = max(
        (side.ids.shape[1] for batch in batches for side in batch.sides.values()), default=0
    )
    if longest <= window.tokens:
        raise UsageError(
            f"The window {window} keeps {window.tokens} tokens and the longest text of {name} has "
            f"{longest}, so nothing would change; give longer texts or a smaller window."
        )


# --- A model with restricted heads --------------------------------------------------------------


#: What an attention is given for every head by itself: then heads are not cut apart.
_BY_HEAD = ("position_bias", "s_aux")


class Restriction:
    """Restricted heads at work; `shares` may be replaced between forwards.

    A share is how much of a head's full attention counts: 1 leaves the head, 0 restricts it, and
    in between is a mixture of what both give. ``[head]`` or ``[example, head]``.
    """

    def __init__(self, subject: Subject, window: Window, shares: Tensor) -> None:
        self.window, self.shares = window, shares
        self.spans = subject.anatomy.spans
        self.turns = Turns(subject)
        self._masks: list[tuple[Any, tuple[Any, ...], Tensor]] = []

    def run(
        self, function: Any, module: nn.Module, query: Tensor, key: Tensor, value: Tensor,
        mask: Any, **how: Any,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """The attention of one layer: of full heads as it is, of restricted ones with the mask."""
        site = self.turns.next(module)
        share = self.shares[..., self.spans[site]]
        whole, none = bool((share == 1).all()), bool((share == 0).all())
        if share.requires_grad or not (whole or none):
            return self._mixed(function, site, module, query, key, value, mask, share, how)
        if none:
            mask = self._mask(site, module, query, key, mask)
        attended: tuple[Tensor, Tensor | None] = function(module, query, key, value, mask, **how)
        return attended

    def _mixed(
        self, function: Any, site: Site, module: nn.Module, query: Tensor, key: Tensor,
        value: Tensor, mask: Any, share: Tensor, how: dict[str, Any],
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        near = self._mask(site, module, query, key, mask)
        apart = (
            None
            if any(how.get(name) is not None for name in _BY_HEAD)
            else self._apart(site, share, mask)
        )
        if apart is not None:  # every key group is one or the other: each is attended once
            output = query.new_empty(query.shape[0], query.shape[2], site.heads, value.shape[-1])
            for groups, seen in zip(apart, (mask, near), strict=True):
                heads = (groups[:, None] * site.heads // site.kv_heads) + torch.arange(
                    site.heads // site.kv_heads
                )
                rows = heads.flatten()
                output[:, :, rows] = function(
                    module, query[:, rows], key[:, groups], value[:, groups], seen, **how
                )[0].to(output)
            return output, None
        full, restricted = (
            function(module, query, key, value, seen, **how)[0] for seen in (mask, near)
        )
        share = share.to(full)
        if share.dim() == 2:
            share = share.repeat_interleave(full.shape[0] // len(share), dim=0)[:, None]
        return restricted + share[..., None] * (full - restricted), None

    def _apart(self, site: Site, share: Tensor, mask: Any) -> tuple[Tensor, Tensor] | None:
        """The key groups that stay full and those that are restricted; None where heads differ."""
        if share.requires_grad or share.dim() > 1 or (mask is not None and mask.shape[1] > 1):
            return None
        by_group = share.view(site.kv_heads, -1)
        first = by_group[:, 0]
        if not bool((by_group == first[:, None]).all() and ((first == 0) | (first == 1)).all()):
            return None
        return (first == 1).nonzero().flatten(), (first == 0).nonzero().flatten()

    def _mask(self, site: Site, module: nn.Module, query: Tensor, key: Tensor, mask: Any) -> Tensor:
        """The mask of restricted heads in the form that the implementation takes; made once."""
        kind = (query.shape[2], key.shape[2], site.causal, query.dtype)
        for known, of, made in self._masks:
            if known is mask and of == kind:
                return made
        near = near_keys(self.window, mask, *kind[:2], causal=site.causal, device=query.device)
        config: Any = module.config
        adds = not config._attn_implementation.endswith("sdpa")  # eager adds its mask to scores
        if adds or (mask is not None and mask.dtype != torch.bool):
            there = mask is not None and mask.dtype != torch.bool
            base = mask if there else torch.zeros((), dtype=query.dtype, device=query.device)
            near = torch.where(near, base, torch.finfo(base.dtype).min)
        self._masks = [*self._masks[-1:], (mask, kind, near)]
        return near


@contextmanager
def restriction_of(subject: Subject, window: Window, shares: Tensor) -> Iterator[Restriction]:
    """Within the block heads are restricted by their shares; the model is as before on any exit."""
    made = Restriction(subject, window, shares)
    with attached(subject, turns=made.turns, runner=made.run):
        yield made


@contextmanager
def restricted(
    subject: Subject, heads: str | Sequence[str | Head], window: Any
) -> Iterator[Restriction]:
    """Within the block these heads see the first tokens and a window only.

    >>> from transformers import LlamaConfig, LlamaForCausalLM
    >>> import headcount as hc
    >>> config = LlamaConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=4,
    ...                      intermediate_size=16, vocab_size=32, num_key_value_heads=2)
    >>> subject, ids = hc.Subject(LlamaForCausalLM(config)), torch.arange(12)[None]
    >>> with torch.no_grad(), restricted(subject, "dec.0.0,dec.0.1", "1+4"):
    ...     near = subject.model(ids).logits
    >>> torch.allclose(near, subject.model(ids).logits)
    False
    """
    named = parse_heads(heads)
    check_heads(named, subject.heads)
    restrictable(subject)  # what cannot be is refused
    shares = torch.tensor([float(head not in set(named)) for head in subject.heads])
    with restriction_of(subject, read_window(window), shares) as made:
        yield made


# --- The score: what restricting a head costs -----------------------------------------------------
# Restriction: what a head costs when it sees the first tokens and a window only.
#
# The loss is followed along the path from full to restricted attention, a mixture with the share
# alpha of the full one in every head at once: the integral of the slope in each head's alpha is
# what that head adds (as integrated gradients: Sundararajan et al. 2017), and the heads add up to
# what the whole restriction costs. Simpson's rule with alpha 1, 1/2 and 0: three backward passes a
# text. The alphas are those that DuoAttention (Xiao et al. 2025) trains; nothing is trained here.

#: Alphas at which slopes are taken, and their weights in Simpson's rule.
ALPHAS, SIMPSON = (1.0, 0.5, 0.0), np.array([1.0, 4.0, 1.0]) / 6

RESTRICTION = Column(
    "restriction",
    meaning="Nats a token that restricting the head to the first tokens and a window adds to the "
    "loss, all heads together: a key group's is the sum of its heads'.",
    paper="Xiao et al. 2025 (the alphas); integrated as Sundararajan et al. 2017",
    unit="nats",
    direction="higher",
    more="needs more than a window",
    group=GROUP,
    format="+.2g",
    diverging=True,
)


@contextmanager
def path_slopes(
    subject: Subject, task: Task, window: Window, gone: frozenset[Any] = frozenset()
) -> Iterator[Measure]:
    """Within the block, a function that gives a batch's slopes along the path.

    `slopes` is ``[example, alpha, head]``, the loss's derivative in each head's alpha, times -1:
    what restricting it a little more adds. `losses` is ``[example, alpha]`` and `tokens`
    ``[example, 1]``. Heads that are `gone` are restricted all the way; those that cannot be stay.
    """
    units = {head for unit in restrictable(subject) for head in unit}
    free = torch.tensor([head in units and head not in gone for head in subject.heads])
    fixed = torch.tensor([float(head not in gone) for head in subject.heads])
    with (
        torch.inference_mode(False),
        torch.enable_grad(),
        restriction_of(subject, window, fixed) as made,
        eval_mode(subject.model),
        frozen(subject.model),
    ):

        def measure(batch: Batch) -> Arrays:
            slopes, totals = [], []
            for alpha in ALPHAS:
                shares = torch.where(free, alpha, fixed).repeat(len(batch), 1).requires_grad_()
                made.shares = shares
                losses = task.loss(subject, batch)
                if not losses.requires_grad:
                    raise UsageError(
                        f"The loss of {task.name} does not depend on the heads of {subject.name} "
                        "in a way that can be differentiated; give a task whose loss torch "
                        "computes."
                    )
                (slope,) = torch.autograd.grad(losses.sum(), shares)
                slopes.append(-(slope * free).cpu().double().numpy())
                totals.append(losses.detach().cpu().double().numpy())
            if not np.isfinite(slopes).all():
                check_finite(subject)
                raise ModelError(
                    f"The slope of {task.name} in the heads of {subject.name} is not a number; "
                    "load the model with dtype='float32'."
                )
            assert batch.labels is not None
            tokens = label_counts(batch.labels).cpu().double().numpy()[:, None]
            stacked = {"slopes": np.stack(slopes, 1), "losses": np.stack(totals, 1)}
            return stacked | {"tokens": tokens}

        yield measure


@contextmanager
def _measuring(
    subject: Subject, task: Task, window: Window, gone: frozenset[Any]
) -> Iterator[Measure]:
    with path_slopes(subject, task, window, gone) as measure, enough_memory(subject):
        yield measure


def restriction(
    subject: Subject,
    task: Task,
    restrict: Any,
    *,
    per: str | None = None,
    batch_size: int = 1,
    gone: Sequence[Any] = (),
    journal: Any = None,
    engine: Any = None,
) -> HeadTable:
    """Score every head by what restricting it costs, with an interval over examples.

    `restrict` is the window: (first tokens, last tokens). `per` is "path" (the default), the
    integral from full to restricted attention, whose sum over heads is the cost of restricting
    all; or "slope", the mean absolute slope of an example at full attention, which is never below
    0. Heads that are `gone` are restricted already, and the path goes on from there.

    >>> import headcount as hc
    >>> from transformers import LlamaConfig, LlamaForCausalLM
    >>> config = LlamaConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=4,
    ...                      intermediate_size=16, vocab_size=99, num_key_value_heads=2)
    >>> subject = hc.Subject(LlamaForCausalLM(config))
    >>> ids = torch.arange(12)[None]
    >>> task = hc.tasks.batches([{"input_ids": ids, "labels": ids}])
    >>> restriction(subject, task, (1, 4)).names
    ['restriction']
    """
    window = read_window(restrict)
    if per not in (None, "path", "slope"):
        raise UsageError(f"per is '{per}'; choose path or slope.")
    restrictable(subject)
    task.check(subject)
    batches = list(task.batches(subject, batch_size))
    check_length(window, batches, task.name)
    work = _Work(subject, task, "headcount", window, per or "path", frozenset(gone))
    done = BatchWork(
        "restriction",
        subject,
        partial(_measuring, task=task, window=window, gone=frozenset(gone)),
        len(task),
        {**work.settings, "batch_size": batch_size},
        journal,
        engine,
    )
    return work.run(done, iter(batches))


@dataclass
class _Work(ScoreWork):
    """A score of restriction under way."""

    window: Window
    per: str
    gone: frozenset[Any]

    def __post_init__(self) -> None:
        self.losses: list[Floats] = []

    @property
    def settings(self) -> dict[str, Any]:
        """How it is measured, as provenance and journal keep it."""
        about = {"window": str(self.window), "per": self.per}
        return about | {"gone": ",".join(map(str, sorted(self.gone)))} if self.gone else about

    def add(self, number: int, batch: Batch, found: Arrays) -> None:
        """Take in one batch."""
        self.seen |= set(batch.index)
        slopes = found["slopes"]
        path = np.tensordot(slopes, SIMPSON, axes=(1, 0)) if self.per == "path" else slopes[:, 0]
        self.sums.add(batch.index, path, found["tokens"])
        self.losses.append(np.concatenate([found["losses"], found["tokens"]], axis=1).sum(0))

    def table(self) -> HeadTable:
        """What has been found so far, and what restricting all heads costs, in the remarks."""
        both = self.sums.statistics(absolute=self.per == "slope")
        x, tokens = both[..., 0], both[..., 1].sum(0)
        value = x.sum(0) / tokens
        spread = (x - value * both[..., 1]).std(0, ddof=1) * len(x) ** 0.5 if len(x) > 1 else np.nan
        wide = 1.96 * spread / tokens
        full, _, near, count = np.sum(self.losses, axis=0)
        remark = (
            f"Restricting all of them to {self.window} takes the loss from {full / count:.3f} to "
            f"{near / count:.3f}; the column adds up to {value.sum():+.3f}."
        )
        remarks = [remark] if self.per == "path" else []
        return self.column_table(RESTRICTION, (value, value - wide, value + wide), remarks)


class RestrictionScore(Score):
    """Restriction among the scores of the registry."""

    column, takes, per = RESTRICTION, ("restrict", "per"), ("path", "slope")

    def compute(self, subject: Subject, task: Task, options: ScoreOptions) -> HeadTable:
        """See `restriction`."""
        if not options.own.get("restrict"):
            raise UsageError(
                "The score 'restriction' needs a window: restrict=(16, 240), or on the command "
                "line --scoring restrict=16+240."
            )
        shared = options.shared("batch_size", "journal", "engine")
        return restriction(subject, task, **shared)
