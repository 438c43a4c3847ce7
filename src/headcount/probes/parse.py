"""A sentence parsed by a probe: its words' heads, and which attention heads decided."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from headcount.errors import UsageError
from headcount.heads import Head
from headcount.probes.batch import batch_of
from headcount.probes.example import Example
from headcount.probes.scorer import Scorer
from headcount.probes.tree import best_tree

__all__ = ["Parse", "explained", "parsed"]

ROOT = "ROOT"


@dataclass(frozen=True)
class Parse:
    """Words and their heads; 0 is ROOT, words count from 1."""

    forms: tuple[str, ...]
    heads: list[int]
    #: ``[word, candidate]``: what the probe gives each candidate, summing to 1 for a word.
    chances: NDArray[np.float64]

    @property
    def frame(self) -> pd.DataFrame:
        """A row a word: form, head, the head's form, and how likely the probe finds it."""
        names = (ROOT, *self.forms)
        return pd.DataFrame(
            {
                "word": range(1, len(self.forms) + 1),
                "form": self.forms,
                "head": self.heads,
                "head_form": [names[head] for head in self.heads],
                "chance": [row[head] for row, head in zip(self.chances, self.heads, strict=True)],
            }
        )


@torch.no_grad()
def parsed(scorer: Scorer, example: Example, tree: bool = True) -> Parse:
    """The best tree, or with ``tree=False`` each word's best candidate by itself."""
    batch = batch_of([example], next(scorer.parameters()).device)
    scores = scorer(batch)[0].double().cpu()
    chances = scores.softmax(-1).numpy()
    heads = best_tree(np.log(chances + 1e-300)) if tree else chances.argmax(1).tolist()
    return Parse(example.forms, heads, chances)


@torch.no_grad()
def explained(
    scorer: Scorer, heads: list[Head], example: Example, dependent: str, head: str
) -> pd.DataFrame:
    """Each attention head's say in one arc, the weightiest first.

    `part` is what it adds to the arc's score; `margin` that part less its mean over all
    candidates of the dependent: what all candidates get alike decides nothing.
    """
    word, candidate = _place(dependent, example.forms) - 1, _place(head, example.forms, root=True)
    if word < 0:
        raise UsageError("ROOT has no head; name a word, e.g. --explain the cat.")
    batch = batch_of([example], next(scorer.parameters()).device)
    parts = scorer.contributions(batch)[0, :, word].double().cpu().numpy()
    frame = pd.DataFrame(
        {
            "head": [str(one) for one in heads],
            "part": parts[:, candidate],
            "margin": parts[:, candidate] - parts.mean(1),
        }
    )
    order = frame["margin"].abs().sort_values(ascending=False, kind="stable").index
    return frame.loc[order].reset_index(drop=True)


def _place(name: str, forms: tuple[str, ...], root: bool = False) -> int:
    """A word by its number from 1, or by its form; the first where several are alike."""
    if root and name in (ROOT, "0"):
        return 0
    if name.isdigit() and 1 <= int(name) <= len(forms) and name not in forms:
        return int(name)
    lowered = [form.lower() for form in forms]
    if name.lower() not in lowered:
        also = f" or {ROOT}" if root else ""
        raise UsageError(
            f"'{name}' is not a word of this sentence; choose among {', '.join(forms)}{also}, or a "
            f"number from 1 to {len(forms)}."
        )
    return lowered.index(name.lower()) + 1
