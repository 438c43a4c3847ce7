"""headcount: know what every attention head of a Transformer does, and how much it matters.

>>> import headcount as hc
>>> str(hc.Head("enc", 5, 3))
'enc.5.3'

Names are loaded when they are first used, so that ``import headcount`` and the command line
start at once. Those of rooms (``hc.probe``, ``hc.compare``) come through `headcount.plugins`.
"""

from typing import TYPE_CHECKING, Any

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount import plugins, tasks
    from headcount.errors import HeadcountError
    from headcount.importance.scoring import score
    from headcount.models.loading import load
    from headcount.models.subject import Subject
    from headcount.pruning.goal import RankingOptions, ResultOptions
    from headcount.pruning.plan import prune_plan
    from headcount.pruning.remove import prune
    from headcount.records.columns import Column
    from headcount.records.heads import Head
    from headcount.records.provenance import __version__
    from headcount.records.run import Run
    from headcount.records.table import HeadTable
    from headcount.records.watching import progress
    from headcount.reports.options import PageOptions, StoryOptions
    from headcount.reports.page import report
    from headcount.reports.stories import story
    from headcount.surveys import roles
    from headcount.surveys.options import ReadingOptions, RoleOptions
    from headcount.surveys.surveying import survey
    from headcount.text.sentence import Pair, Sentence
    from headcount.wiring.taps import tap
    from headcount.wiring.valves import valve

    def __getattr__(name: str) -> Any:
        """What rooms add, as `headcount.plugins` finds it."""


open_door(__name__, "names")
