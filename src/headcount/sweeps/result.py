"""What a sweep found: the model as it is, and under each intervention, example by example."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from headcount.sweeps.intervention import Intervention
from headcount.tasks.comparison import Comparison, compare
from headcount.tasks.outcome import Outcome
from headcount.tasks.task import Task

__all__ = ["Sweep"]


@dataclass(frozen=True, eq=False, repr=False)
class Sweep:
    """The outcomes of a sweep, all on the same examples."""

    #: What was measured, on the examples that were done.
    task: Task
    interventions: tuple[Intervention, ...]
    baseline: Outcome
    #: One for each intervention, in their order.
    outcomes: tuple[Outcome, ...]
    #: How many examples the task has; more than were done where the sweep was broken off.
    examples: int
    #: Whether only what changes was run again, or everything.
    fast: bool
    #: What a reader should know, e.g. why the long way was taken.
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.outcomes)

    def __repr__(self) -> str:
        return (
            f"Sweep({len(self)} interventions, {self.baseline.name} over {len(self.baseline):,} "
            f"of {self.examples:,} examples)"
        )

    @property
    def complete(self) -> bool:
        """Whether all examples were done."""
        return len(self.baseline) == self.examples

    def outcome(self, name: str) -> Outcome:
        """The outcome of an intervention by its name."""
        names = [one.name for one in self.interventions]
        return self.outcomes[names.index(name)]

    def losses(self, **options: Any) -> Comparison:
        """What each intervention costs, tested against the model as it is and corrected together.

        Higher is worse whatever the metric is: more loss, less accuracy. See `tasks.compare`.
        """
        found = compare(self.outcomes, self.baseline, **options)
        if not self.baseline.higher_is_better:
            return found
        return found._replace(value=-found.value, low=-found.high, high=-found.low)

    def costs(self) -> list[float]:
        """The same differences without any test."""
        sign = -1 if self.baseline.higher_is_better else 1
        return [sign * (one.value - self.baseline.value) for one in self.outcomes]

    def some(self, places: Sequence[int]) -> Sweep:
        """Some of the interventions, by their places."""
        return replace(
            self,
            interventions=tuple(self.interventions[place] for place in places),
            outcomes=tuple(self.outcomes[place] for place in places),
        )

    def part(self, numbers: Sequence[int]) -> Sweep:
        """The same on some of its examples: choose by one half, judge by the other."""
        task = self.task.part(numbers)

        def cut(outcome: Outcome) -> Outcome:
            about = {**outcome.provenance, "task": task.describe()}
            return replace(outcome, statistics=outcome.statistics[list(numbers)], provenance=about)

        return replace(
            self,
            task=task,
            baseline=cut(self.baseline),
            outcomes=tuple(map(cut, self.outcomes)),
            examples=len(numbers),
        )
