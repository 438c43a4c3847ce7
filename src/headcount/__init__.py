"""headcount: know what every attention head of a Transformer does, and how much it matters.

>>> import headcount as hc
>>> str(hc.Head("enc", 5, 3))
'enc.5.3'

Names are loaded when they are first used, so that ``import headcount`` and the command line
start at once.
"""

from typing import TYPE_CHECKING

from headcount.doors import open_door

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
    from headcount.pruning.plan import prune_plan
    from headcount.pruning.remove import prune, prune_heads
    from headcount.pruning.trainer import add_gates
    from headcount.records.columns import Column
    from headcount.records.heads import Head
    from headcount.records.provenance import __version__
    from headcount.records.ray_engine import RayEngine
    from headcount.records.run import Run
    from headcount.records.table import HeadTable
    from headcount.report import plot
    from headcount.report.page import report
    from headcount.report.show import show
    from headcount.report.story import story
    from headcount.rooms.knockout import knockout
    from headcount.survey import roles
    from headcount.survey.families import families
    from headcount.survey.survey import survey
    from headcount.text.sentence import Pair, Sentence
    from headcount.wiring.taps import tap
    from headcount.wiring.valves import head_mask, valve

open_door(__name__)
