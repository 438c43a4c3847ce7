"""Is looking at the separator a way of doing nothing? The loss says whether it notices.

Clark et al., BlackBoxNLP 2019, section 3.2 and figure 3: |dL/dα|, the change of the loss with an
attention weight, averaged by the kind of token looked at and by layer. If heads rest on
separators for want of anything to do, a weight there may change and the loss stays. The paper
gives neither code nor details; here the absolute value comes before any mean, every row counts
(special tokens ask too), keys that a query may not see do not, and texts weigh alike.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity

from headcount import stats
from headcount.errors import ModelError, StatsError, UnsupportedModel, UsageError, check_convention
from headcount.models import Site, Subject, eval_mode, on_exit, refuse_nan
from headcount.records import STACKS, Column
from headcount.rooms.labels import MaskedLanguageModelling, embed, mlm
from headcount.stats import Floats
from headcount.surveys import Finding, Findings, TrialCounts, TrialPlan, TrialTexts
from headcount.tasks import Task, label_counts, lm, translation
from headcount.text import Batch, Side, read_corpus, texts_of
from headcount.wiring import Attended, Turns, attached, of_class

# --- Sizes of gradients by kind of token --------------------------------------------------------

#: Every real token is of one of these kinds.
CLASSES = ("separator", "first", "punctuation", "other")


class Slopes:
    """|dL/dα| and mass by kind of token looked at, kept for each text, whatever the batches."""

    def __init__(self, convention: str = "headcount") -> None:
        self.convention = convention
        #: By site and (text, window): gradients and masses, ``[2, head, kind]``.
        self._found: dict[Site, dict[tuple[int, int], Floats]] = defaultdict(dict)

    def __iter__(self) -> Iterator[Site]:
        return iter(self._found)

    def add(self, slope: Slope, batch: Batch) -> None:
        """Take in one site of one batch."""
        queries, keys = batch.query(slope.site.stack), batch.key(slope.site.stack)
        if queries is None or keys is None:
            return
        kinds = kinds_of_keys(keys.to(slope.weights.device), self.convention)
        cells = visible_cells(slope, queries.real, keys.real)
        sizes = _means(slope.gradient, cells, kinds)
        # Mean mass of a row on each kind, ``[batch, head, kind]``.
        rows = queries.real.to(slope.weights.device)[:, None, :, None]
        received = (slope.weights.float() * rows).sum(dim=2, dtype=torch.float64)
        count = rows.sum(dim=2).double()
        mass = received @ kinds.double().transpose(1, 2) / count.clamp_min(1)
        both = torch.stack([sizes, mass], dim=1).double().cpu().numpy()
        windows = batch.window or [0] * len(batch)
        for own, values in zip(zip(batch.index, windows, strict=True), both, strict=True):
            self._found[slope.site][own] = values

    def gradients(self, site: Site) -> Floats:
        """``[text, head, kind]``; NaN where a text has no token of the kind."""
        return self._texts(site)[:, 0]

    def masses(self, site: Site) -> Floats:
        """The mean mass on each kind, ``[text, head, kind]``."""
        return self._texts(site)[:, 1]

    def _texts(self, site: Site) -> Floats:
        found = self._found[site]
        return np.stack([found[own] for own in sorted(found)])


def kinds_of_keys(keys: Side, convention: str) -> Tensor:
    """Which kind each key is of, bool ``[batch, kind, key]``; padding is of none."""
    own = "punctuation" if convention == "headcount" else "stops"
    separator = of_class(keys, "separator")
    first = of_class(keys, "first") & ~separator
    if convention == "paper":  # the text tells separators, stops and other tokens apart
        first = torch.zeros_like(first)
    marks = of_class(keys, own) & ~first & ~separator
    other = keys.real & ~(separator | first | marks)
    return torch.stack([separator, first, marks, other], dim=1)


def visible_cells(slope: Slope, queries: Tensor, keys: Tensor) -> Tensor:
    """Cells of real tokens that the query may see, bool ``[batch, query, key]``.

    A weight that the attention mask holds at 0 has a gradient too, but nothing can change it.
    """
    device = slope.weights.device
    cells = queries.to(device)[:, :, None] & keys.to(device)[:, None, :]
    mask = slope.mask
    if mask is not None and mask.dim() == 4:
        allowed = mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2
        return cells & allowed[:, 0, :, : cells.shape[-1]]
    return cells.tril() if slope.site.causal else cells


def _means(gradient: Tensor, cells: Tensor, kinds: Tensor) -> Tensor:
    """Mean size over the cells of each kind, ``[batch, head, kind]``; NaN where there is none."""
    sizes = (gradient.abs().float() * cells[:, None]).sum(dim=2, dtype=torch.float64)
    members = kinds.double().transpose(1, 2)
    count = cells.sum(dim=1).double()[:, None] @ members
    return torch.where(count > 0, sizes @ members / count.clamp_min(1), torch.nan)


# --- Gradients by layer and kind of token, with intervals, shares and tests ---------------------


def layer_frame(slopes: Slopes) -> pd.DataFrame:
    """A row for each layer and kind of token that occurs."""
    sites = sorted(slopes, key=lambda site: (STACKS.index(site.stack), site.layer))
    p = {name: _p_values(slopes, sites, name) for name in CLASSES if name != "other"}
    rows = [
        _row(slopes, site, name, *(found[number] for found in p.get(name) or _untested(sites)))
        for number, site in enumerate(sites)
        for name in CLASSES
    ]
    return pd.DataFrame([row for row in rows if row["texts"]])


def _untested(sites: Sequence[Site]) -> tuple[Floats, Floats]:
    nothing = np.full(len(sites), np.nan)
    return nothing, nothing


def _row(slopes: Slopes, site: Site, name: str, p: float, p_adjusted: float) -> dict[str, Any]:
    own, other = _layer(slopes, site, name), _layer(slopes, site, "other")
    seen = own[~np.isnan(own)]
    value, low, high = stats.mean_interval(seen.sum(), (seen**2).sum(), len(seen))
    both = ~np.isnan(own) & ~np.isnan(other)
    x, n = own[both], other[both]
    share = stats.ratio_interval(x.sum(), n.sum(), x @ x, x @ n, n @ n, len(x), bounds=(0, np.inf))
    mass = slopes.masses(site)[..., CLASSES.index(name)].mean(axis=1)
    return {
        "stack": site.stack, "layer": site.layer, "target": name, "texts": len(seen),
        "gradient": float(value), "low": float(low), "high": float(high),
        "share": float(share.value), "share_low": float(share.low),
        "share_high": float(share.high), "mass": float(np.nanmean(mass)) if len(seen) else np.nan,
        "p": float(p), "p_adjusted": float(p_adjusted),
    }  # fmt: skip


def _layer(slopes: Slopes, site: Site, name: str) -> Floats:
    """The mean over a layer's heads, ``[text]``."""
    return np.asarray(slopes.gradients(site)[..., CLASSES.index(name)].mean(axis=1))


def _p_values(slopes: Slopes, sites: Sequence[Site], name: str) -> tuple[Floats, Floats]:
    """p of "no smaller than on other tokens" for each layer, and with Holm's correction."""
    p = np.full(len(sites), np.nan)
    for number, site in enumerate(sites):
        away = _layer(slopes, site, name) - _layer(slopes, site, "other")
        away = away[~np.isnan(away)]
        try:
            p[number] = stats.sign_flip(away, alternative="less").p
        except StatsError:  # too few texts for an answer
            continue
    return p, stats.holm(p)


# --- The loss whose gradient is asked for -------------------------------------------------------
# Clark et al., BlackBoxNLP 2019, section 3.2 use BERT's masked-language-modelling loss. A bare
# encoder has no such head left. What such models give is one vector a text, so the substitute
# hides tokens in the same way and asks how far the vector moves from that of the whole text.


@dataclass(frozen=True)
class MaskedEmbedding:
    """One minus the cosine of two mean-pooled vectors: of a text with some tokens hidden, and
    of the whole text, which is held fixed. Nothing hidden would give a gradient of 0.
    """

    hidden: MaskedLanguageModelling
    kind: str = "masked embedding"

    def __len__(self) -> int:
        return len(self.hidden)

    def batches(self, subject: Subject, batch_size: int = 16) -> Iterator[Batch]:
        """The batches of the masked-language-modelling task: the same tokens are hidden."""
        for batch in self.hidden.batches(subject, batch_size):
            yield replace(batch, labels=None)  # a row is one prediction: its vector

    def loss(self, subject: Subject, batch: Batch) -> Tensor:
        """How far the vector of each row has moved, ``[row]``."""
        whole = replace(batch, inputs=batch.inputs | {"input_ids": batch.sides["source"].ids})
        with torch.no_grad():  # first, so that the graph's weights are those of the second forward
            wanted = embed(subject, whole)
        return 1 - cosine_similarity(embed(subject, batch), wanted)


def objective_of(subject: Subject, texts: Any) -> Task | MaskedEmbedding:
    """A model's own loss on plain texts, or on pairs for an encoder-decoder.

    Masked-language modelling for an encoder with such a head, else `MaskedEmbedding`; the next
    token for a decoder; the reference translation for an encoder-decoder.
    """
    speaks = subject.inner.get_output_embeddings() is not None
    if subject.kind == "enc":
        hidden = mlm(texts)
        return hidden if speaks else MaskedEmbedding(hidden)
    if not speaks:
        raise UsageError(
            f"{subject.name} is of the class {type(subject.inner).__name__}, which predicts no "
            "tokens, so plain texts give no loss whose gradient could be asked for; leave it out."
        )
    return lm(texts) if subject.kind == "dec" else translation(texts, metric="loss")


def loss_per_target(losses: Tensor, batch: Batch) -> Tensor:
    """Losses divided by the number of tokens that each row predicts, ``[row]``.

    So that a long text does not weigh more; where a row is one prediction nothing changes.
    """
    labels = batch.labels
    if labels is None or labels.dim() != 2 or labels.is_floating_point():
        return losses
    return losses / label_counts(labels).clamp_min(1).to(losses.device)


# --- Is looking at the separator a way of doing nothing? The loss says whether it notices -------

#: The finer table: a row for each layer and kind of token.
NOOP_LAYERS = "noop_layers"

_WORDS = {
    "separator": "separators or the end of the text",
    "first": "the first token",
    "punctuation": "punctuation",
    "other": "all other tokens",
}


def _column(name: str) -> Column:
    return Column(
        f"noop_gradient_{name}",
        title=f"|dL/dα| {name}",
        meaning=f"Mean size of the loss's gradient with respect to a weight on {_WORDS[name]}.",
        paper="Clark et al. 2019, section 3.2",
        unit="loss per unit of attention",
        range=(0, None),
        more="the loss notices more",
        group="What it does",
        format=".2e",
    )


@dataclass(frozen=True)
class NoOpTrial:
    """The gradient test, on texts (pairs for an encoder-decoder).

    Under `convention="paper"` punctuation is "." and "," alone and the first token is one of the
    others; there is no author code. `details["noop_layers"]` has, for each layer and kind of token,
    the gradient, the mass, the gradient as a share of that of other tokens, and the p value of
    "not smaller than on other tokens", by signs flipped text by text, Holm over all layers.
    """

    texts: Any
    #: The first so many of the texts, and of their words: a backward holds every map at once.
    most: int | None = 64
    words: int | None = 128
    batch_size: int = 8
    convention: str = "headcount"

    name = "noop"
    columns = tuple(_column(name) for name in CLASSES)

    def __post_init__(self) -> None:
        """Refuse a convention that nobody defined."""
        check_convention(self.convention, "The gradient test does")

    def unfit(self, subject: Subject) -> str | None:
        """Why it means nothing for a subject."""
        if any(site.route != "interface" for site in subject.anatomy.sites):
            return "its attention weights cannot be reached while they are part of the graph"
        if getattr(subject.tokenizer, "mask_token_id", None) is None and subject.kind == "enc":
            return "its tokenizer has no mask token, so nothing can be hidden"
        if subject.kind != "enc" and subject.inner.get_output_embeddings() is None:
            return "it predicts no tokens, so plain texts give no loss"
        return None

    def __call__(self, subject: Subject) -> Findings:
        """Run every batch forward and back, and average by kind of token."""
        objective = objective_of(subject, self._beginnings())
        slopes = Slopes(self.convention)
        with weights_gradient(subject) as gradient:
            for batch in objective.batches(subject, self.batch_size):
                batch = batch.to(subject.device)
                losses = loss_per_target(objective.loss(subject, batch), batch)
                for slope in gradient.of(losses.sum()):
                    if bool(slope.gradient.isnan().any()):
                        refuse_nan(subject, f"{slope.site.stack}.{slope.site.layer}")
                    slopes.add(slope, batch)
        details = {NOOP_LAYERS: layer_frame(slopes).assign(objective=objective.kind)}
        return Findings([_finding(name, slopes, subject) for name in CLASSES], details=details)

    def _beginnings(self) -> list[Any]:
        """The texts, or pairs of texts, no more and no longer than wanted."""
        parts = [
            tuple(_cut(text, self.words) for text in texts_of(item))
            for item in islice(read_corpus(self.texts), self.most)
        ]
        return [part if len(part) > 1 else part[0] for part in parts]


def _cut(text: str, words: int | None) -> str:
    """The first so many words; where nothing parts them, eight characters count as one."""
    return text if words is None else " ".join(text.split()[:words])[: 8 * words]


def _finding(name: str, slopes: Slopes, subject: Subject) -> Finding:
    """One column: the gradient on a kind of token, beside that on other tokens."""
    counts = TrialCounts()
    for site in slopes:
        parts = _beside(slopes, site, name)
        if parts[-1].any():
            counts.add(site, range(len(parts[0])), *(torch.from_numpy(part) for part in parts))
    there = {site.stack for site in counts}
    why = f"no token of the keys is among {_WORDS[name]}, or the loss does not depend on it"
    silent = {stack: why for stack in subject.anatomy.stacks if stack not in there}
    return Finding(_column(name), f"|dL/dα| on {_WORDS['other']}", counts, silent)


def _beside(slopes: Slopes, site: Site, name: str) -> tuple[Floats, Floats, Floats]:
    """Gradients on a kind of token, on others, and whether a text has the kind."""
    found = slopes.gradients(site)
    own, other = found[..., CLASSES.index(name)], found[..., CLASSES.index("other")]
    there = ~np.isnan(own)
    return np.where(there, own, 0), np.nan_to_num(np.where(there, other, 0)), there.astype(float)


def _planned(given: TrialTexts) -> NoOpTrial | None:
    """On a few texts: it runs backwards."""
    if given.convention == "code" or not given.fit:
        return None
    texts: Any = given.pairs or given.texts
    return NoOpTrial(texts[:_GRADIENTS], convention=given.convention)


#: As many texts are enough for gradients.
_GRADIENTS = 64

#: It among the trials of the registry.
PLAN = TrialPlan(_planned, read_by="separator")


# --- Gradients at every attention weight --------------------------------------------------------


@dataclass(frozen=True)
class Slope:
    """One site's weights and the loss's gradient there, both ``[batch, head, query, key]``."""

    site: Site
    weights: Tensor
    gradient: Tensor
    #: The attention mask of the call, where there was one.
    mask: Tensor | None


@contextmanager
def weights_gradient(subject: Subject) -> Iterator[WeightsGradient]:
    """Keep the attention weights of each forward within the block, to ask for their gradients.

    The model runs in evaluation mode and is exactly as before on any exit; no weight of it
    gets a `grad`.
    """
    outside = [site for site in subject.anatomy.sites if site.route != "interface"]
    if outside:
        raise UnsupportedModel(
            f"{subject.name} does not speak transformers' attention interface, so its attention "
            "weights cannot be reached while they are part of the graph; gradients of weights are "
            "for models that do."
        )
    kept = WeightsGradient(subject)
    still: list[Tensor] = []

    def restore() -> None:
        for weight in still:
            weight.requires_grad_(False)

    with (
        attached(subject, kept.keep, kept.turns, maps=True),
        eval_mode(subject.model),
        on_exit(restore),
        torch.enable_grad(),
    ):
        # Every weight takes part in the graph, also of a model that was frozen.
        floating = [weight for weight in subject.model.parameters() if weight.is_floating_point()]
        still += [weight for weight in floating if not weight.requires_grad]
        for weight in still:
            weight.requires_grad_(True)
        yield kept


class WeightsGradient:
    """The weights of the last forward, site by site, as the graph knows them."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.turns = Turns(subject)
        self._weights: dict[Site, tuple[Tensor, Tensor | None]] = {}

    def keep(self, module: nn.Module, attended: Attended) -> Tensor:
        """The part on the seam: keep the weights, and leave the output as it is."""
        site = self.turns.next(module)
        self._weights[site] = attended.map_of(site), attended.mask
        return attended.output

    def of(self, loss: Tensor) -> list[Slope]:
        """The gradient of one number at every site; the forward's weights are freed.

        A site that the loss does not depend on, such as a decoder's behind an encoder's loss,
        is left out.
        """
        kept = {site: one for site, one in self._weights.items() if one[0].requires_grad}
        self._weights = {}
        if not kept:
            raise ModelError(
                f"No attention weight of {self.subject.name} lies in the graph of the loss; its "
                "eager attention detaches them."
            )
        found = torch.autograd.grad(loss, [one[0] for one in kept.values()], allow_unused=True)
        return [
            Slope(site, weights.detach(), gradient, mask)
            for (site, (weights, mask)), gradient in zip(kept.items(), found, strict=True)
            if gradient is not None
        ]
