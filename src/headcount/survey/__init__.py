"""Survey: what every head looks at, measured over a corpus and read as roles."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.survey.families import (
        draw_nearest,
        families,
        families_of_tally,
        family_sentences,
    )
    from headcount.survey.passes import PassOptions, StageProgress, run_pass
    from headcount.survey.pattern_network import PATTERN, PATTERN_COLUMNS
    from headcount.survey.patterns import layer_shares
    from headcount.survey.shards import ShardWork, run_shards
    from headcount.survey.similarity import Families
    from headcount.survey.survey import COLUMNS, chosen_tallies, read_corpora, survey
    from headcount.survey.tallies.coreference import coreferent
    from headcount.survey.tallies.divergence import SMOOTHING, Divergence
    from headcount.survey.tallies.features import FeatureTally
    from headcount.survey.tallies.links import Links
    from headcount.survey.tallies.rarity import Frequencies, frequencies_of
    from headcount.survey.tally import Tally, tabulate
    from headcount.survey.trials.alignment import Aligner, linked

open_door(__name__)
