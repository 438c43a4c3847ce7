"""Figures for papers: one function each, from a run, its path, a head table or a frame.

Each returns a matplotlib Figure and, with `path=`, saves it as .svg, .pdf or .png. They need
the extra `plot`: ``pip install 'headcount[plot]'``.
"""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.figures.grids import (
        attention_to,
        changes,
        head_grids,
        head_map,
        token_to_token,
    )
    from headcount.rooms.figures.pruning_figures import draw_plan as _draw_plan
    from headcount.rooms.figures.pruning_figures import (
        functions_left,
        gated_quality,
        layers_left,
        pruning_by_stack,
        pruning_curves,
        stacks_left,
    )
    from headcount.rooms.figures.relation_figures import coreference, dependencies, noop_gradients
    from headcount.rooms.figures.score_figures import (
        disabling,
        order_over_training,
        pruning_over_training,
        scores_without_one_head,
        two_data_sets,
        two_scores,
    )
    from headcount.rooms.figures.token_figures import (
        attention_lines,
        entropies,
        first_row,
        patterns,
        positions,
        to_separators,
        token_types,
    )

#: What it adds; see `headcount.plugins`.
ADDS = {
    "names": {"plot": "."},
}

open_door(__name__)
