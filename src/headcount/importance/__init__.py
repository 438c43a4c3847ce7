"""Importance: how much each head matters to a task, one file a score; higher is more important."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.importance.ablation import ablation_costs
    from headcount.importance.examples import (
        GROUP,
        Arrays,
        BatchWork,
        Measure,
        Score,
        ScoreOptions,
        ScoreWork,
        origin,
        tokens_by_head,
    )
    from headcount.importance.scoring import (
        check_score_names,
        check_task,
        column_of,
        importance_columns,
        options_by_score,
        read_names,
        score,
        stacks_read,
    )
    from headcount.importance.sweeps.interventions import (
        ExampleRows,
        Group,
        Intervention,
        LongWay,
        Mode,
        StandIn,
        Trial,
        check_mode,
        chosen_by,
        marked,
        picked,
        repeat_batch,
        rows_an_example,
        sets,
    )
    from headcount.importance.sweeps.sweeping import Sweep, in_words, sweep, sweep_task

#: What it adds; see `headcount.plugins`.
ADDS = {
    "scores": {"gradient": "gradient:GradientScore", "ablation": "ablation:AblationScore"},
}

open_door(__name__)
