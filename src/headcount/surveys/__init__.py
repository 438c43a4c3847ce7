"""Survey: what every head looks at, measured over a corpus and read as roles."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.surveys.offsets import REACH
    from headcount.surveys.options import SAMPLE, ReadingOptions, RoleOptions
    from headcount.surveys.passes import (
        Pass,
        PassOptions,
        SurveyPlan,
        batches_of,
        run_part,
        run_pass,
    )
    from headcount.surveys.shards import ShardWork, run_shards
    from headcount.surveys.surface import ENTROPY, Confidence
    from headcount.surveys.surveying import (
        COLUMNS,
        Corpora,
        chosen_tallies,
        read_corpora,
        sample_for,
        stacks_of,
        survey,
        tally_columns,
        translated,
    )
    from headcount.surveys.tally import (
        BatchCache,
        Reading,
        Sums,
        SumsTally,
        Tally,
        TallyPlan,
        add_macro,
        add_micro,
        micro_sums,
        over_rows,
        read_columns,
        read_micro,
        readings_of,
        tabulate,
    )
    from headcount.surveys.trial import (
        Counted,
        Finding,
        Findings,
        Measure,
        TrialCounts,
        TrialPlan,
        TrialTexts,
        interval_of,
    )

#: What it adds; see `headcount.plugins`.
ADDS = {"roles": {"positional": "roles.positional:Positional"}}

open_door(__name__)
