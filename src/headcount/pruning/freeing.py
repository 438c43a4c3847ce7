"""What learned gates free and what healing gives back, at a few sizes of a model.

Gates are those of Voita et al. 2019, on weights that stay as they are, so that they only choose;
healing trains what is left with the whole model as the teacher. Both learn from examples that do
not judge. The frames look like a pruning curve, but the heads of one step need not be among those
of the next: `removed` names all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pandas as pd

from headcount.models import Subject
from headcount.pruning.curve import held_out_curves, trained_curve
from headcount.pruning.order import Order
from headcount.pruning.remove import prune
from headcount.records import Head, InnerPath, Journal, parse_heads
from headcount.rooms.gates import TrainingOptions, heal, learn_gates
from headcount.tasks import Custom, Task

#: The shares of all heads that are left, the most first.
SHARES = (0.85, 0.7, 0.5, 0.3)

#: Sets of heads that go, by how many were to stay.
HeadSets = dict[int, tuple[Head, ...]]


def sizes(heads: int) -> list[int]:
    """How many heads are left at each step.

    >>> sizes(144), sizes(2)
    ([122, 101, 72, 43], [1])
    """
    return [n for n in dict.fromkeys(round(heads * share) for share in SHARES) if 0 < n < heads]


@dataclass(frozen=True)
class SizeStudy:
    """A model at a few sizes: examples to learn from, others to judge by, and what is done."""

    subject: Subject
    choose: Task
    #: The same held-out examples by each metric.
    judges: Sequence[Task]
    training: TrainingOptions
    journal: Journal
    #: Where a training that was killed goes on.
    folder: InnerPath

    def gates(self) -> tuple[HeadSets, list[str]]:
        """The heads that frozen-weight gates close, learned anew for each size; what to note."""
        found, notes = HeadSets(), list[str]()
        for keep in sizes(len(self.subject.heads)):
            if (unit := f"gates {keep}") not in self.journal.done:
                how = self._training(keep).options()
                learned = learn_gates(self.subject, self.choose, keep=keep, train="gates", **how)
                self._done(
                    unit, [[str(head) for head in learned.gates.closed(keep)], learned.notes]
                )
            going, said = self.journal.done[unit]
            found[keep] = tuple(parse_heads(going))
            notes += said
        return found, notes

    def judged(
        self, sets: Mapping[int, Sequence[Head]], name: str
    ) -> tuple[pd.DataFrame, list[str]]:
        """What is left without each set, weights as they are, as a curve called `name`."""
        judged = [(judge, _orders(sets, name)) for judge in self.judges]
        how: dict[str, Any] = {"batch_size": self.training.batch_size, "journal": self.journal}
        frames, notes = held_out_curves(self.subject, judged, name, **how)
        steps = [_as_steps(frame, name) for frame in frames]
        return pd.concat(steps, ignore_index=True), notes

    def healed(
        self, sets: Mapping[int, Sequence[Head]], name: str
    ) -> tuple[pd.DataFrame, list[str]]:
        """Each set cut out and the rest trained on for a while, against the whole model."""
        # A task of somebody's own gives a loss and nothing that a teacher could be compared by.
        teacher = None if isinstance(self.choose, Custom) else self.subject
        size = self.training.batch_size
        whole = cache(lambda place: self.judges[place].evaluate(self.subject, batch_size=size))
        rows: list[list[dict[str, object]]] = [[] for _ in self.judges]
        notes: list[str] = []
        for order, keep in zip(_orders(sets, name), sets, strict=True):
            if (unit := f"healed {keep}") not in self.journal.done:
                how = self._training(keep)
                small = prune(self.subject, sets[keep])
                small = heal(small, self.choose, teacher=teacher, **how.options()).subject
                found = [
                    trained_curve(self.subject, small, judge, order, size, how.seed, whole(number))
                    for number, judge in enumerate(self.judges)
                ]
                self._done(unit, [[frame.to_dict("records"), more] for _, frame, more in found])
            for own, (new, more) in zip(rows, self.journal.done[unit], strict=True):
                own += new
                notes += more
        frames = [_as_steps(pd.DataFrame(own), name) for own in rows]
        return pd.concat(frames, ignore_index=True), notes

    def _training(self, keep: int) -> TrainingOptions:
        """One of several trainings."""
        return replace(self.training, checkpoint=self.folder / str(keep))

    def _done(self, unit: str, result: object) -> None:
        self.journal.append(unit, result)
        self.folder.remove_all()


def _orders(sets: Mapping[int, Sequence[Head]], name: str) -> list[Order]:
    """An order of one step for each set: sets need not lie within each other."""
    return [Order(f"{name} {keep}", "all", (tuple(going),)) for keep, going in sets.items()]


def _as_steps(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Curves of one point each as one curve: the whole model, then a step a set."""
    points = frame[frame["step"] > 0].sort_values("heads_left", ascending=False, kind="stable")
    points = points.assign(step=range(1, len(points) + 1))
    return pd.concat([frame.iloc[:1], points], ignore_index=True).assign(order=name)


def sets_of_order(curve: pd.DataFrame, heads: int) -> HeadSets:
    """The steps of a curve's first order that leave about as many heads as `sizes` asks for."""
    rows = curve[(curve["order"] == curve["order"].iloc[0]) & (curve["scope"] == "all")]
    rows = rows[(rows["metric"] == rows["metric"].iloc[0]) & ~rows["healed"].astype(bool)]
    rows = rows.sort_values("step")
    left = rows.loc[rows["step"] > 0, "heads_left"].tolist()
    found = HeadSets()
    for size in sizes(heads):
        nearest = min(left, key=lambda one: abs(one - size))
        gone = rows.loc[rows["heads_left"] >= nearest, "removed"]
        found[int(nearest)] = tuple(parse_heads(",".join(filter(None, gone))))
    return found


def sets_of_frame(frame: pd.DataFrame) -> HeadSets:
    """The sets of heads that a frame of `judged` is about."""
    rows = frame[(frame["metric"] == frame["metric"].iloc[0]) & (frame["step"] > 0)]
    return {
        int(left): tuple(parse_heads(going))
        for left, going in zip(rows["heads_left"], rows["removed"], strict=True)
    }
