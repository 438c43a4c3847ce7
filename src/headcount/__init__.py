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
    from headcount.errors import HeadcountError
    from headcount.importance.scoring import score
    from headcount.models.loading import load
    from headcount.models.subject import Subject
    from headcount.pruning.plan import prune_plan
    from headcount.pruning.remove import prune, prune_heads
    from headcount.records.columns import Column
    from headcount.records.heads import Head
    from headcount.records.provenance import __version__
    from headcount.records.run import Run
    from headcount.records.table import HeadTable
    from headcount.reports.page import report
    from headcount.reports.stories import story
    from headcount.rooms import figures as plot
    from headcount.rooms.compare.comparing import compare
    from headcount.rooms.families.grouping import families
    from headcount.rooms.gates.learning import heal, learn_gates
    from headcount.rooms.gates.trainer import add_gates
    from headcount.rooms.knockout.knockout import knockout
    from headcount.rooms.probing.parse import Probe
    from headcount.rooms.probing.probing import probe
    from headcount.rooms.ray.engine import RayEngine
    from headcount.rooms.show.showing import show
    from headcount.surveys import roles
    from headcount.surveys.surveying import survey
    from headcount.text.sentence import Pair, Sentence
    from headcount.wiring.taps import tap
    from headcount.wiring.valves import head_mask, valve

open_door(__name__)
