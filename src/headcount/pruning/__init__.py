"""Removing heads: learned gates, ranked orders, surgery, and folders that load again."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.pruning.curve import (
        Order,
        check_stacks,
        curve_frame,
        held_out_curves,
        loss_bounds,
        point_name,
        removable_units,
        removal_table,
    )
    from headcount.pruning.cut import cut_heads, keeps
    from headcount.pruning.goal import (
        GATE_STEPS,
        HEAL_STEPS,
        Goal,
        OutputFolder,
        RankingOptions,
        ResultOptions,
        TrainingOptions,
        output_folder,
        read_goal,
        removed_counts,
    )
    from headcount.pruning.plan import Orders, Plan, prune_plan
    from headcount.pruning.pruned import Pruned, prune_run
    from headcount.pruning.remove import named_heads, prune, read_heads
    from headcount.pruning.tolerance import (
        at_chance,
        can_go,
        freed,
        in_points,
        lost_at,
        point_of,
        read_tolerance,
        unit_of,
    )

open_door(__name__)
