"""Is looking at the separator a way of doing nothing? The loss says whether it notices.

Clark et al., BlackBoxNLP 2019, section 3.2 and figure 3: |dL/dα|, the change of the loss with an
attention weight, averaged by the kind of token looked at and by layer. If heads rest on
separators for want of anything to do, a weight there may change and the loss stays. The paper
gives neither code nor details; here the absolute value comes before any mean, every row counts
(special tokens ask too), keys that a query may not see do not, and texts weigh alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch

from headcount.columns import Column
from headcount.errors import UsageError
from headcount.models.finite import refuse_nan
from headcount.models.site import Site
from headcount.stats.results import Floats
from headcount.subject import Subject
from headcount.text.corpus import read_corpus
from headcount.text.sentence import texts_of
from headcount.trials.marks import Marks
from headcount.trials.noop_layers import layer_frame
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
    #: The first so many of the texts, and of their words: a backward holds every map at once.
    most: int | None = 64
    words: int | None = 128
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
        if self.objective is not None:
            return None
        if getattr(subject.tokenizer, "mask_token_id", None) is None and subject.kind == "enc":
            return "its tokenizer has no mask token, so nothing can be hidden"
        if subject.kind != "enc" and subject.inner.get_output_embeddings() is None:
            return "it predicts no tokens, so plain texts give no loss"
        return None

    def __call__(self, subject: Subject) -> Findings:
        """Run every batch forward and back, and average by kind of token."""
        objective = self.objective or objective_of(subject, self._beginnings())
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
