"""Survey: what every head looks at, measured over a corpus and read as roles."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.surveys.options import SAMPLE, ReadingOptions, RoleOptions
    from headcount.surveys.passes import Pass, PassOptions, SurveyPlan, run_pass
    from headcount.surveys.shards import ShardWork, run_shards
    from headcount.surveys.surveying import (
        COLUMNS,
        Corpora,
        chosen_tallies,
        read_corpora,
        sample_for,
        stacks_of,
        survey,
    )
    from headcount.surveys.tallies.counts import (
        ALL,
        BatchCells,
        ChoiceTest,
        HitsTally,
        SiteHits,
        Unit,
        choice_frame,
        counts_of,
        hits_by_cell,
        in_selection,
        number_cells,
        resample_units,
        universal,
    )
    from headcount.surveys.tallies.links import Links
    from headcount.surveys.tallies.pairs import Compared, LayerSums, MeansTally, chosen_texts
    from headcount.surveys.tallies.rarity import Frequencies, frequencies_of
    from headcount.surveys.tallies.relations import (
        OFFSETS,
        ROOT,
        Arcs,
        BatchArcs,
        Relations,
        arcs_of,
    )
    from headcount.surveys.tallies.surface import Confidence
    from headcount.surveys.tally import (
        FEATURES,
        BatchCache,
        Feature,
        Reading,
        SumsTally,
        Tally,
        compact_words,
        readings_of,
        tabulate,
    )
    from headcount.surveys.trials.alignment import Aligner, linked

open_door(__name__)
