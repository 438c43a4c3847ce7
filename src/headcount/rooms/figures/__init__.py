"""Figures for papers: one function each, from a run, its path, a head table or a frame.

Each returns a matplotlib Figure and, with `path=`, saves it as .svg, .pdf or .png. They need
the extra `plot`: ``pip install 'headcount[plot]'``.
"""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.figures.gallery import (
        attention_lines,
        attention_to,
        changes,
        coreference,
        dependencies,
        disabling,
        entropies,
        first_row,
        functions_left,
        gated_quality,
        head_grids,
        head_map,
        layers_left,
        noop_gradients,
        order_over_training,
        patterns,
        positions,
        pruning_by_stack,
        pruning_curves,
        pruning_over_training,
        scores_without_one_head,
        stacks_left,
        to_separators,
        token_to_token,
        token_types,
        two_data_sets,
        two_scores,
    )

#: What it adds; see `headcount.plugins`.
ADDS = {"names": {"plot": "."}, "parts": {"plan figure": "gallery:draw_plan"}}

open_door(__name__)
