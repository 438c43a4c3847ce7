"""Clark et al. 2019, section 3.2: |dL/dα| by kind of token, again, in loops."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
import tiny_subjects
from tiny_tokenizers import ENGLISH

from headcount.models.subject import Subject
from headcount.rooms.resting.noop import (
    NOOP_LAYERS,
    NoOpTrial,
    loss_per_target,
    objective_of,
    weights_gradient,
)

SUBJECTS = {"enc": tiny_subjects.filler(), "dec": tiny_subjects.writer("llama")}


def kind(token: str, place: int, special: bool) -> str:
    if special and place:
        return "separator"
    if place == 0:
        return "first"
    letters = token.strip("Ġ▁#")
    marks = letters and all(unicodedata.category(letter)[0] == "P" for letter in letters)
    return "punctuation" if marks else "other"


def slow(subject: Subject, layer: int, target: str) -> float:
    """One text at a time, one cell at a time, mean over heads, then over texts."""
    objective, values = objective_of(subject, ENGLISH), []
    with weights_gradient(subject) as gradient:
        for batch in objective.batches(subject, 1):
            loss = loss_per_target(objective.loss(subject, batch), batch)[0]
            slope = next(s for s in gradient.of(loss) if s.site.layer == layer)
            side = batch.key(slope.site.stack)
            assert side is not None
            tokens, special = side.tokens[0], side.special[0].tolist()
            cells = [
                abs(float(slope.gradient[0, head, i, j]))
                for head in range(slope.site.heads)
                for i in range(len(tokens))
                for j in range(i + 1 if slope.site.causal else len(tokens))
                if kind(tokens[j], j, special[j]) == target
            ]
            if cells:
                values.append(sum(cells) / len(cells))
    return float(np.mean(values)) if values else float("nan")


@pytest.mark.parametrize("name", SUBJECTS)
@pytest.mark.parametrize("target", ["separator", "first", "punctuation", "other"])
def test_the_layers_are_as_defined(name: str, target: str) -> None:
    subject = SUBJECTS[name]
    layers = NoOpTrial(ENGLISH)(subject).details[NOOP_LAYERS].set_index(["layer", "target"])
    for layer in (0, 1):
        wanted = slow(subject, layer, target)
        if np.isnan(wanted):
            assert (layer, target) not in layers.index
        else:
            assert layers.loc[(layer, target), "gradient"] == pytest.approx(wanted, rel=1e-4)
