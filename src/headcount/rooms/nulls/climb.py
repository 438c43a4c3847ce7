"""Every verdict of a survey gets its rung: what it is beyond, and what it is not beyond."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd

from headcount.models import Subject
from headcount.records import Head, HeadTable
from headcount.rooms.nulls.ladder import SUPPORT, WITHOUT, Ladder, details_of, with_rungs
from headcount.rooms.nulls.pointing import Pointing, PointingRelations
from headcount.rooms.nulls.prevalence import prevalence_frame
from headcount.rooms.nulls.sharp import layer_confidence, sharp_twin
from headcount.surveys import Pass, ShardWork, SurveyPlan
from headcount.surveys.roles import Role, Verdict, unread, verdicts_of

#: What a verdict on a relation is beyond, by rung.
RELATION = {
    1: "the offset",
    2: "part of speech",
    3: "part of speech, distance and word together",
    4: "a random model as sharp",
}
#: The same where no rule reads words: roles of places and of tokens said again.
PLACE = {1: "chance", 4: "a random model as sharp"}
#: Directions in the order of the frame.
_WAYS = ("dep->head", "head->dep", "head<-dep")
#: Sharp twins, which cost a survey each.
SEEDS = (0,)


@dataclass
class Twins:
    """The programme of a survey on sharp random twins; each is made at first use."""

    subject: Subject
    plan: SurveyPlan
    work: ShardWork
    #: The tables of the twins, once they were run.
    tables: list[HeadTable] = field(default_factory=list)

    def programme(self, every: bool) -> tuple[SurveyPlan, ...]:
        """The programme that each twin ran: all of it, or relations alone."""
        return self._all if every else self._relations

    @cached_property
    def _all(self) -> tuple[SurveyPlan, ...]:
        return self._run(self.plan)

    @cached_property
    def _relations(self) -> tuple[SurveyPlan, ...]:
        alone = [
            replace(one, tallies=kept, columns=())
            for one in self.plan.passes
            if (kept := tuple(t for t in one.tallies if isinstance(t, PointingRelations)))
        ]
        return self._run(SurveyPlan(tuple(alone)))

    def _run(self, plan: SurveyPlan) -> tuple[SurveyPlan, ...]:
        done = []
        self.tables.clear()
        goals = layer_confidence(self.subject, _like(self.plan))
        for seed in SEEDS:
            twin = sharp_twin(self.subject, _like(self.plan), seed=seed, goal=goals)
            own = plan.again()
            self.tables.append(own.run(twin, " a sharp random twin", self.work))
            done.append(own)
        return tuple(done)


def _like(plan: SurveyPlan) -> Pass:
    return plan.passes[0]


def pointings_of(plan: SurveyPlan) -> dict[str, Pointing]:
    """What a programme that was run kept of relations, by stack."""
    return {
        pointing.stack: pointing
        for one in plan.passes
        for tally in one.tallies
        if isinstance(tally, PointingRelations)
        for pointing in tally.pointings()
    }


def add_rungs(
    table: HeadTable,
    plan: SurveyPlan,
    twins: Twins,
    roles: Sequence[Role],
    *,
    margin: float = 0.0,
    every: bool = False,
) -> None:
    """Give the verdicts of a table their rungs, in its details `roles`, `relations` and `ladder`.

    A ladder is climbed as far as a verdict goes; with `every` all rungs of all relations are
    measured, and roles without labels are held against the sharp twin too.
    """
    ladders = {
        stack: Ladder(pointing, partial(_of_stack, twins, stack, every), margin)
        for stack, pointing in pointings_of(plan).items()
    }
    verdicts, rungs = verdicts_of(table), dict[tuple[Head, str], int]()
    for verdict in verdicts:
        if verdict.role == "syntactic" and verdict.head.stack in ladders:
            relation, _, way = verdict.label.rpartition(" ")
            ladder = ladders[verdict.head.stack]
            rungs[verdict.head, verdict.label] = ladder.height(verdict.head, relation, way)
    if every:
        for ladder in ladders.values():
            _climb_all(ladder)
    frames = [ladder.frame() for ladder in ladders.values()]
    climbed = pd.concat([one for one in frames if len(one)] or frames[:1] or [pd.DataFrame()])
    if len(climbed):
        table.details["ladder"] = climbed.reset_index(drop=True)
        table.details["relations"] = with_rungs(table.details["relations"], climbed, rungs)
    if ladders:
        table.details["prevalence"] = prevalence_frame(table)
    rows = [_told(verdict, rungs, climbed) for verdict in verdicts]
    if every:
        twins.programme(True)
        judges = {role.name: role for role in roles}
        for verdict, row in zip(verdicts, rows, strict=True):
            if "rung" not in row and verdict.role in judges:
                row.update(_against(twins.tables, judges[verdict.role], verdict))
    frame = table.details["roles"]
    added = pd.DataFrame(rows, index=frame.index)
    for name in ("rung", "beyond"):
        if name in added:
            frame = frame.assign(**{name: added.pop(name).fillna(frame[name])})
    table.details["roles"] = frame.astype({"rung": "int64"}).join(added)


def _of_stack(twins: Twins, stack: str, every: bool) -> list[Pointing]:
    found = [pointings_of(plan).get(stack) for plan in twins.programme(every)]
    return [one for one in found if one is not None]


def _climb_all(ladder: Ladder) -> None:
    for relation in ladder.pointing.relations(SUPPORT, WITHOUT):
        for way in _WAYS:
            for number in (2, 3, 4):
                ladder.rung(relation, way, number)


def _told(
    verdict: Verdict, rungs: Mapping[tuple[Head, str], int], climbed: pd.DataFrame
) -> dict[str, Any]:
    """The rung of a verdict on a relation, in words, and what each null gets."""
    if (verdict.head, verdict.label) not in rungs:
        return {}
    height = rungs[verdict.head, verdict.label]
    relation, _, way = verdict.label.rpartition(" ")
    nulls = details_of(climbed, verdict.head, relation, way)
    return {"rung": height, "beyond": beyond(height, nulls), **nulls}


def beyond(height: int, nulls: Mapping[str, float]) -> str:
    """The rung of a verdict on a relation in words.

    >>> beyond(1, {"null_2": 0.931})
    'beyond the offset, not beyond part of speech (0.93)'
    >>> beyond(4, {"null_2": 0.5, "null_3": 0.6, "null_4": 0.1})
    'beyond a random model as sharp, the last of four nulls'
    """
    if height == max(RELATION):
        return f"beyond {RELATION[height]}, the last of four nulls"
    against = nulls.get(f"null_{height + 1}")
    figure = "" if against is None else f" ({against:.2f})"
    return f"beyond {RELATION[height]}, not beyond {RELATION[height + 1]}{figure}"


def _against(tables: Sequence[HeadTable], role: Role, verdict: Verdict) -> dict[str, Any]:
    """Whether a verdict without labels lies above the best head of every sharp twin."""
    chances = [role.chance(one, verdict) for one in tables if not unread(role, one)]
    chances = [one for one in chances if not np.isnan(one)]
    if not chances:
        return {}
    surely = verdict.value if np.isnan(verdict.low) else verdict.low
    worst = max(chances)
    first = f"beyond {PLACE[1]}, not beyond {PLACE[4]} ({worst:.2f})"
    clear = surely > worst
    words = f"beyond {PLACE[4]} ({worst:.2f})" if clear else first
    return {"rung": 4 if clear else 1, "beyond": words, "null_4": worst}
