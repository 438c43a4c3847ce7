"""What a head moves, rather than where it looks: attention weighted by the norm of what it carries.

Kobayashi et al., EMNLP 2020 (Attention is Not Only a Weight): a head adds the vector
sum_k a_k v_k W_O to a token. A weight a_k on a token whose vector v_k W_O is short moves little, so
the share of what is moved is

    a_k |v_k W_O| / sum_j a_j |v_j W_O|

BERT's heads give separators much weight and little norm. Each column is the share that comes from
one kind of token; its baseline is the attention that the same tokens get. A head named for a place
that keeps its share by norm moves something from there; one that loses it does nothing there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from headcount.errors import ModelError, UnsupportedModel, UsageError
from headcount.models import Site, Subject, eval_mode, output_of
from headcount.records import Column, HeadTable
from headcount.surveys import (
    Finding,
    Findings,
    PassOptions,
    SurveyPlan,
    TrialCounts,
    batches_of,
    sample_for,
)
from headcount.surveys.roles import HEAD_KEY
from headcount.tasks import forward
from headcount.text import Batch, read_corpus
from headcount.wiring import Attended, Turns, attached, of_class

#: The kinds of tokens whose share is asked for.
PLACES = {"first": "the first token", "separator": "separators or the end of the text"}
#: The place that a role names.
NAMED = {"sink": "first", "separator": "separator", "source-end": "separator"}
#: The share from which a head moves something from its place: the line of sinks (Gu et al. 2025).
LINE = 0.3
#: What the attention of some families leaves to nobody: weights of a row sum to less than 1.
LEARNED_SINK = Column(
    "learned_sink",
    title="to the learned sink",
    meaning="Share of attention that goes to the learned sink of the head, which is no token.",
    range=(0, 1),
    more="more goes nowhere",
    group="Where it points",
    format=".3f",
)


def _column(name: str) -> Column:
    return Column(
        f"moved_{name}",
        title=f"moved from {name}",
        meaning=f"Share of what the head moves, by the norm |a v W_O|, that is of {PLACES[name]}.",
        paper="Kobayashi et al. 2020, section 3",
        range=(0, 1),
        more="more of what it moves is from there",
        group="Where it points",
        format=".3f",
    )


def value_norms(value: Tensor, projection: Tensor) -> Tensor:
    """|v_k W_O| of each head and key, `[batch, head, key]`.

    `value` is `[batch, head, key, dim]`; `projection` `[head, dim, out]` is what each head's output
    goes through. The product is never made: |v W|^2 = v (W W') v'.

    >>> value_norms(torch.ones(1, 1, 2, 3), torch.eye(3)[None])
    tensor([[[1.7321, 1.7321]]])
    """
    gram = projection @ projection.transpose(1, 2)
    return ((value @ gram) * value).sum(-1).clamp_min(0).sqrt()


def projections(model: nn.Module, site: Site) -> Tensor:
    """The output projection by head, `[head, dim, out]`, in float32."""
    place = output_of(model, site)
    weight = model.get_parameter(place.name).detach().float()
    weight = weight if place.axis == 0 else weight.t()  # `[in, out]`
    order = place.owner.argsort(stable=True).to(weight.device)
    return weight[order].unflatten(0, (site.heads, -1))


@dataclass
class _Moved:
    """Adds up, for each site, what was moved and from where."""

    subject: Subject
    counts: dict[str, TrialCounts] = field(
        default_factory=lambda: {name: TrialCounts() for name in PLACES}
    )
    nowhere: TrialCounts = field(default_factory=TrialCounts)
    batch: Batch | None = None
    weights: dict[Site, Tensor] = field(default_factory=dict)

    def add(self, site: Site, attended: Attended) -> None:
        """Read one site of the batch that is running."""
        assert self.batch is not None
        if attended.value is None:
            raise ModelError(f"The attention at {site.stack}.{site.layer} gave no values.")
        if site not in self.weights:
            self.weights[site] = projections(self.subject.model, site)
        queries, keys = self.batch.query(site.stack), self.batch.key(site.stack)
        if queries is None or keys is None:
            return
        maps = attended.map_of(site).detach().float()
        value = (
            attended.value.detach().float().repeat_interleave(site.heads // site.kv_heads, dim=1)
        )
        norms = value_norms(value, self.weights[site])
        rows = queries.to(maps.device).real
        cells = rows.sum(-1)
        moved = maps * norms[:, :, None]
        whole = moved.sum(-1)
        side = keys.to(maps.device)
        if has_learned_sink(self.subject, site):
            left = ((1 - maps.sum(-1)).clamp_min(0) * rows[:, None]).sum(-1)
            self.nowhere.add(site, self.batch.index, left, torch.zeros_like(left), cells)
        for name, counts in self.counts.items():
            members = of_class(side, name)[:, None, None, : maps.shape[-1]]
            share = (moved * members).sum(-1) / whole.clamp_min(torch.finfo(whole.dtype).tiny)
            looked = (maps * members).sum(-1)
            there = cells * members.any(-1)[:, 0, 0]
            hits, chance = ((part * rows[:, None]).sum(-1) for part in (share, looked))
            counts.add(site, self.batch.index, hits, chance, there)


@dataclass(frozen=True)
class NormTrial:
    """The share of what each head moves, beside the attention that the same tokens get."""

    texts: Any
    #: The first so many texts: every map is made.
    most: int = 64
    batch_size: int = 8

    name = "norms"
    columns = tuple(_column(name) for name in PLACES)

    def unfit(self, subject: Subject) -> str | None:
        """Why it means nothing for a subject."""
        if any(site.route != "interface" for site in subject.anatomy.sites):
            return "its values cannot be reached"
        try:
            for site in subject.anatomy.sites:
                output_of(subject.model, site)
        except (ModelError, UnsupportedModel) as error:
            return str(error).rstrip(".")
        return None

    def __call__(self, subject: Subject) -> Findings:
        """Run every batch once, with its maps."""
        moved, turns = _Moved(subject), Turns(subject)

        def part(module: nn.Module, attended: Attended) -> Tensor:
            moved.add(turns.next(module), attended)
            return attended.output

        corpus = read_corpus(list(islice(read_corpus(self.texts), self.most)))
        inputs = PassOptions(subject.anatomy.stacks, self.batch_size)
        with (
            torch.no_grad(),
            eval_mode(subject.model),
            attached(subject, part, turns, maps=True),
        ):
            for batch in batches_of(subject, corpus, inputs, maps=True):
                moved.batch = batch.to(subject.device)
                forward(subject, moved.batch)
        counted = moved.counts.items()
        found = [Finding(_column(name), "its attention", one) for name, one in counted]
        if list(moved.nowhere):
            found.append(Finding(LEARNED_SINK, "attention without a sink", moved.nowhere))
        return Findings(found)


def has_learned_sink(subject: Subject, site: Site) -> bool:
    """Whether the heads of a site have a logit of their own that takes attention from all tokens.

    The family gpt-oss has: `sinks`, a number a head, beside the scores of the tokens.
    """
    sinks = getattr(subject.model.get_submodule(site.module), "sinks", None)
    return isinstance(sinks, Tensor) and sinks.numel() == site.heads


def norms(subject: Subject, corpus: Any = None, *, table: HeadTable | None = None) -> HeadTable:
    """The share of what each head moves that is of the first token and of separators.

    `corpus` is what a survey takes; without one the bundled sample is read, as far as `NormTrial`
    goes. `details["trials"]` has the attention that the same tokens get as the baseline. Models
    with a learned sink (gpt-oss) also have `learned_sink`, the attention that no token gets. A
    `table` with verdicts gets these columns, and its heads that are named for a place (sinks,
    separators and no-ops, ends of the source) what they move from there: `moved` with its interval,
    and whether the verdict `survives` the norm, its lower end at 0.3 or more.

    >>> import headcount as hc
    >>> table = norms(hc.load("translator", device="cpu"), [("Rain fell.", "Regen fiel.")])
    >>> bool(table.frame["moved_first"].between(0, 1).all())
    True
    """
    corpus = sample_for(subject, "sample" if corpus is None else corpus, "text")
    trial = NormTrial(corpus)
    if why := trial.unfit(subject):
        raise UsageError(f"Norms cannot be measured on {subject.name}: {why}; give another model.")
    found = SurveyPlan((), (trial,)).run(subject, of=" of norms")
    if table is None:
        return found
    if "roles" not in table.details:
        raise UsageError("No head was judged; survey the model with roles first (roles=True).")
    figures = found.details["trials"]
    figures = figures.assign(place=figures["column"].str.removeprefix("moved_"))
    named = {"value": "moved", "low": "moved_low", "high": "moved_high"}
    figures = figures.rename(columns=named)[[*HEAD_KEY, "place", *named.values()]]
    old = table.details["roles"].drop(columns=[*named.values(), "survives"], errors="ignore")
    roles = old.assign(place=old["role"].map(NAMED)).merge(
        figures, on=[*HEAD_KEY, "place"], how="left"
    )
    roles["survives"] = (roles["moved_low"] >= LINE).where(roles["moved_low"].notna(), None)
    joined = table.join(
        HeadTable(found.frame, found.columns, low=found.low, high=found.high), replace=True
    )
    joined.details = {**table.details, "roles": roles.drop(columns="place")}
    return joined
