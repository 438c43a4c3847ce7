"""A ladder of nulls: is a head beyond what its sentence, or a random model as sharp, gives away?"""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.nulls.climb import Twins, add_rungs
    from headcount.rooms.nulls.ladder import Ladder
    from headcount.rooms.nulls.pointing import Pointing, PointingRelations
    from headcount.rooms.nulls.prevalence import prevalence_frame, prevalence_of
    from headcount.rooms.nulls.repeats import jaccard_by_role, survey_each
    from headcount.rooms.nulls.sharp import layer_confidence, sharp_twin

#: What it adds; see `headcount.plugins`.
ADDS = {"parts": {"nulls": "."}, "names": {"repeats": "repeats:repeats"}}

open_door(__name__)
