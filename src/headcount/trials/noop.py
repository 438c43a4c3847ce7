"""Is looking at the separator a way of doing nothing? The loss says whether it notices.

Clark et al., BlackBoxNLP 2019, section 3.2 and figure 3: |dL/dα|, the change of the loss with an
attention weight, averaged by the kind of token looked at and by layer. If heads rest on
separators for want of anything to do, a weight there may change and the loss stays. The paper
gives neither code nor details; here the absolute value comes before any mean, every row counts
(special tokens ask too), keys that a query may not see do not, and texts weigh alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from headcount import stats
from headcount.columns import Column
from headcount.errors import StatsError, UsageError
from headcount.heads import STACKS
from headcount.models.finite import refuse_nan
from headcount.models.site import Site
from headcount.stats.results import Floats
from headcount.subject import Subject
from headcount.trials.marks import Marks
from headcount.trials.objective import Objective, loss_per_target, objective_of
from headcount.trials.question import Finding, Findings
from headcount.trials.slopes import CLASSES, Slopes
from headcount.wiring.weights_gradient import weights_gradient

__all__ = ["NOOP_LAYERS", "NoOp"]

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
class NoOp:
    """The gradient test, on texts (pairs for an encoder-decoder) or on a task of your own.

    Under `convention="paper"` punctuation is "." and "," alone and the first token is one of the
    others; there is no author code. `details["noop_layers"]` has, for each layer and kind of token,
    the gradient, the mass, the gradient as a share of that of other tokens, and the p value of
    "not smaller than on other tokens", by signs flipped text by text, Holm over all layers.
    """

    texts: Any = None
    objective: Objective | None = None
    #: The first so many of the texts are read: a backward costs more than a look.
    most: int | None = 64
    batch_size: int = 8
    convention: str = "headcount"

    name = "noop"
    columns = tuple(_column(name) for name in CLASSES)

    def __post_init__(self) -> None:
        """Refuse a convention that nobody defined, and a trial of nothing."""
        if self.convention not in ("headcount", "paper"):
            raise UsageError(
                f"The gradient test has no convention '{self.convention}': the authors published "
                "no code for it; use headcount or paper."
            )
        if self.texts is None and self.objective is None:
            raise UsageError("The gradient test needs texts, or a task as its objective.")

    def unfit(self, subject: Subject) -> str | None:
        """Why it means nothing for a subject."""
        if any(site.route != "interface" for site in subject.anatomy.sites):
            return "its attention weights cannot be reached while they are part of the graph"
        if self.objective is None and subject.kind != "enc" and not _speaks(subject):
            return "it predicts no tokens, so plain texts give no loss"
        return None

    def _read(self) -> Any:
        """The texts, no more than wanted; a file is read by the task itself."""
        if self.most is None or isinstance(self.texts, str | Path):
            return self.texts
        return list(islice(self.texts, self.most))

    def __call__(self, subject: Subject) -> Findings:
        """Run every batch forward and back, and average by kind of token."""
        objective = self.objective or objective_of(subject, self._read())
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


def _speaks(subject: Subject) -> bool:
    return subject.inner.get_output_embeddings() is not None


def _finding(name: str, slopes: Slopes, subject: Subject) -> Finding:
    """One column: the gradient on a kind of token, beside that on other tokens."""
    marks = Marks()
    for site in slopes:
        parts = _beside(slopes, site, name)
        if parts[-1].any():
            marks.add(site, range(len(parts[0])), *(torch.from_numpy(part) for part in parts))
    there = {site.stack for site in marks}
    why = f"no token of the keys is among {_WORDS[name]}, or the loss does not depend on it"
    silent = {stack: why for stack in subject.anatomy.stacks if stack not in there}
    return Finding(_column(name), f"|dL/dα| on {_WORDS['other']}", marks, silent)


def _beside(slopes: Slopes, site: Site, name: str) -> tuple[Floats, Floats, Floats]:
    """Gradients on a kind of token, on others, and whether a text has the kind."""
    found = slopes.gradients(site)
    own, other = found[..., CLASSES.index(name)], found[..., CLASSES.index("other")]
    there = ~np.isnan(own)
    return np.where(there, own, 0), np.nan_to_num(np.where(there, other, 0)), there.astype(float)


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
