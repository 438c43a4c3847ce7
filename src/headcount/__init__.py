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
    from headcount import plot, roles, tasks
    from headcount.columns import Column
    from headcount.compare_models import compare
    from headcount.errors import HeadcountError
    from headcount.families import families
    from headcount.heads import Head
    from headcount.models.load import load
    from headcount.probe import probe
    from headcount.probes.trained import Probe
    from headcount.pruning.heal import heal
    from headcount.pruning.learn import learn_gates
    from headcount.pruning.prune_heads import prune_heads
    from headcount.pruning.remove import prune
    from headcount.pruning.trainer import add_gates
    from headcount.report.report import report
    from headcount.run import Run
    from headcount.score import score
    from headcount.show import show
    from headcount.subject import Subject
    from headcount.survey import survey
    from headcount.table import HeadTable
    from headcount.text.sentence import Pair, Sentence
    from headcount.wiring.head_mask import head_mask
    from headcount.wiring.taps import tap
    from headcount.wiring.valves import valve

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
    "Column": "headcount.columns",
    "Head": "headcount.heads",
    "HeadTable": "headcount.table",
    "HeadcountError": "headcount.errors",
    "Pair": "headcount.text.sentence",
    "Probe": "headcount.probes.trained",
    "Run": "headcount.run",
    "Sentence": "headcount.text.sentence",
    "Subject": "headcount.subject",
    "add_gates": "headcount.pruning.trainer",
    "compare": "headcount.compare_models",
    "families": "headcount.families",
    "head_mask": "headcount.wiring.head_mask",
    "heal": "headcount.pruning.heal",
    "learn_gates": "headcount.pruning.learn",
    "load": "headcount.models.load",
    "plot": "headcount.plot",
    "probe": "headcount.probe",
    "prune": "headcount.pruning.remove",
    "prune_heads": "headcount.pruning.prune_heads",
    "report": "headcount.report.report",
    "roles": "headcount.roles",
    "score": "headcount.score",
    "show": "headcount.show",
    "survey": "headcount.survey",
    "tap": "headcount.wiring.taps",
    "tasks": "headcount.tasks",
    "valve": "headcount.wiring.valves",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from headcount.provenance import version

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
    """This package: importing headcount.survey, the module, must not hide hc.survey, its verb."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Facade
