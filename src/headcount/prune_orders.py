"""Orders of heads from scores: measured once, or again before every step, and kept in a journal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from headcount.errors import UsageError
from headcount.heads import Head
from headcount.journal import Journal
from headcount.pruning.candidates import Unit, candidates, check_stacks, spared
from headcount.pruning.counts import removed_counts
from headcount.pruning.goal import Goal, check_reached
from headcount.pruning.order import Order, Rank, ordered, random_scores
from headcount.pruning.remove import prune
from headcount.run import Run
from headcount.score import Progress, score
from headcount.subject import Subject
from headcount.table import HeadTable
from headcount.tasks.task import Task

__all__ = ["RANDOM", "How", "Orders"]

RANDOM = "random"


@dataclass(frozen=True)
class How:
    """How heads are ordered; `prune_plan` says what each means."""

    step: float = 10.0
    exact: bool = False
    at_least: int = 0
    stacks: tuple[str, ...] | None = None
    by_stack: bool = False
    randoms: int = 3
    convention: str = "headcount"
    batch_size: int = 16
    seed: int = 0
    normalize: str | None = None


@dataclass
class Orders:
    """Where orders come from: a model, a task to score its heads on, and what is known already."""

    subject: Subject
    task: Task
    how: How
    table: HeadTable | None = None
    run: Run | None = None
    journal: Journal | None = None
    progress: Progress | None = None
    announce: Callable[[str], None] | None = None

    def of(self, names: Sequence[str], goal: Goal) -> list[Order]:
        """An order for every score, and by stack for the first where that was asked."""
        anatomy = self.subject.anatomy
        units = candidates(anatomy, self.how.stacks)
        self._check_steps(units, goal)
        made = [order for name in names for order in self._of(name, units, goal, "all")]
        there = check_stacks(self.how.stacks, anatomy.stacks)
        if self.how.by_stack and len(there) > 1:
            for stack in there:
                made += self._of(names[0], candidates(anatomy, [stack]), Goal(), stack)[:1]
        return made

    def _of(self, name: str, units: list[Unit], goal: Goal, scope: str) -> list[Order]:
        counts = self._counts(units, goal)
        make = partial(ordered, units, counts=counts, at_least=self.how.at_least, scope=scope)
        if name == RANDOM:
            seeds = range(self.how.seed, self.how.seed + max(1, self.how.randoms))
            drawn = {seed: random_scores(self.subject.heads, seed) for seed in seeds}
            made = [make(scores, name=f"{name} {seed}") for seed, scores in drawn.items()]
        elif self.how.exact:
            made = [make(self._again(name, scope), name=f"{name} exact")]
        else:
            made = [make(self._scores(name), name=name)]
        check_reached(goal, units, made[0], self.how.at_least)
        return made

    def _check_steps(self, units: list[Unit], goal: Goal) -> None:
        """Refuse steps of which not even the first can be taken, before heads are scored."""
        if not self._counts(units, goal):
            total = sum(map(len, units))
            raise UsageError(
                f"A step of {self.how.step:g}% of {total} heads is more than may go; take smaller "
                "steps (--step)."
            )

    def _counts(self, units: list[Unit], goal: Goal) -> list[int]:
        total, how = sum(map(len, units)), self.how
        return removed_counts(
            total,
            how.step,
            convention=how.convention,
            encoder_decoder=self.subject.kind == "enc-dec",
            spared=spared(units, how.at_least, convention=how.convention),
            also=goal.removed(total),
        )

    def _again(self, name: str, scope: str) -> Rank:
        """A score that is estimated anew on the model without the heads that are gone."""

        def rank(gone: tuple[Head, ...]) -> Mapping[Head, float]:
            if not gone:
                return self._scores(name)
            unit = f"scores {name} {scope} {len(gone)}"
            return self._kept(unit, lambda: self._measured(prune(self.subject, gone), name))

        return rank

    def _scores(self, name: str) -> dict[Head, float]:
        """A score of the whole model, in the run's table where there is one."""
        return self._kept(f"scores {name}", lambda: self._measured(self.subject, name, self.run))

    def _kept(self, unit: str, measure: Callable[[], dict[Head, float]]) -> dict[Head, float]:
        """Scores from the journal, or measured and written there."""
        if self.journal is None:
            return measure()
        if unit not in self.journal.done:
            self.journal.append(unit, [[*head, worth] for head, worth in measure().items()])
        return {Head(*row[:3]): row[3] for row in self.journal.done[unit]}

    def _measured(self, subject: Subject, name: str, run: Run | None = None) -> dict[Head, float]:
        """A score by name; turned round where lower is more important."""
        table = score(
            subject,
            self.task,
            by=name,
            table=self.table if subject is self.subject else None,
            run=run,
            normalize=self.how.normalize if name == "gradient" else None,
            convention=self.how.convention,
            batch_size=self.how.batch_size,
            seed=self.how.seed,
            progress=self.progress,
            announce=self.announce,
        )
        sign = -1.0 if table.column(name).direction == "lower" else 1.0
        return dict(zip(table.heads, (sign * table.numbers(name)).tolist(), strict=True))
