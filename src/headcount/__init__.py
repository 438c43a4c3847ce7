"""headcount: know what every attention head of a Transformer does, and how much it matters.

>>> import headcount as hc
>>> str(hc.Head("enc", 5, 3))
'enc.5.3'

Names are loaded when they are first used, so that ``import headcount`` and the command line
start at once.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headcount import tasks
    from headcount.compare.compare import compare
    from headcount.errors import HeadcountError
    from headcount.importance.score import score
    from headcount.models.load import load
    from headcount.models.subject import Subject
    from headcount.probing.parse import Probe
    from headcount.probing.probe import probe
    from headcount.pruning.learn import heal, learn_gates
    from headcount.pruning.remove import prune, prune_heads
    from headcount.pruning.trainer import add_gates
    from headcount.records.columns import Column
    from headcount.records.heads import Head
    from headcount.records.run import Run
    from headcount.records.table import HeadTable
    from headcount.report import plot
    from headcount.report.page import report
    from headcount.report.show import show
    from headcount.survey import roles
    from headcount.survey.families import families
    from headcount.survey.survey import survey
    from headcount.text.sentence import Pair, Sentence
    from headcount.wiring.taps import tap
    from headcount.wiring.valves import head_mask, valve

__all__ = [
    "Column",
    "Head",
    "HeadTable",
    "HeadcountError",
    "Pair",
    "Probe",
    "Run",
    "Sentence",
    "Subject",
    "add_gates",
    "compare",
    "families",
    "head_mask",
    "heal",
    "learn_gates",
    "load",
    "plot",
    "probe",
    "prune",
    "prune_heads",
    "report",
    "roles",
    "score",
    "show",
    "survey",
    "tap",
    "tasks",
    "valve",
]

#: Where each public name lives.
_HOMES = {
    "Column": "headcount.records.columns",
    "Head": "headcount.records.heads",
    "HeadTable": "headcount.records.table",
    "HeadcountError": "headcount.errors",
    "Pair": "headcount.text.sentence",
    "Probe": "headcount.probing.parse",
    "Run": "headcount.records.run",
    "Sentence": "headcount.text.sentence",
    "Subject": "headcount.models.subject",
    "add_gates": "headcount.pruning.trainer",
    "compare": "headcount.compare.compare",
    "families": "headcount.survey.families",
    "head_mask": "headcount.wiring.valves",
    "heal": "headcount.pruning.learn",
    "learn_gates": "headcount.pruning.learn",
    "load": "headcount.models.load",
    "plot": "headcount.report.plot",
    "probe": "headcount.probing.probe",
    "prune": "headcount.pruning.remove",
    "prune_heads": "headcount.pruning.remove",
    "report": "headcount.report.page",
    "roles": "headcount.survey.roles",
    "score": "headcount.importance.score",
    "show": "headcount.report.show",
    "survey": "headcount.survey.survey",
    "tap": "headcount.wiring.taps",
    "tasks": "headcount.tasks",
    "valve": "headcount.wiring.valves",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from headcount.records.provenance import version

        return version()
    if name not in _HOMES:
        raise AttributeError(f"headcount has no '{name}'; it has {', '.join(__all__)}")
    home = importlib.import_module(_HOMES[name])
    found = getattr(home, name, home)  # a room, such as tasks, is its own home
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)


class _Facade(ModuleType):
    """This package: a module of the same name must not hide a verb, e.g. hc.survey."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Facade
