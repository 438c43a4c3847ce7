"""Figures for papers: one function each, from a run, its path, a head table or a frame.

Each returns a matplotlib Figure and, with `path=`, saves it as .svg, .pdf or .png. They need
the extra `plot`: ``pip install 'headcount[plot]'``.
"""

from headcount.plot.disabling import disabling
from headcount.plot.first_row import first_row
from headcount.plot.gated import gated_quality
from headcount.plot.head_grids import head_grids
from headcount.plot.head_map import head_map
from headcount.plot.importance import order_over_training, scores_without_one_head
from headcount.plot.noop import noop_gradients
from headcount.plot.patterns import patterns
from headcount.plot.pruning import pruning_by_stack, pruning_curves
from headcount.plot.relation_bars import coreference, dependencies
from headcount.plot.scatter import two_data_sets, two_scores
from headcount.plot.surface import entropies, positions, to_separators, token_types
from headcount.plot.survivors import functions_left, layers_left, stacks_left
from headcount.plot.task_grids import attention_to, changes, token_to_token
from headcount.plot.token_lines import attention_lines
from headcount.plot.training import pruning_over_training

__all__ = [
    "attention_lines",
    "attention_to",
    "changes",
    "coreference",
    "dependencies",
    "disabling",
    "entropies",
    "first_row",
    "functions_left",
    "gated_quality",
    "head_grids",
    "head_map",
    "layers_left",
    "noop_gradients",
    "order_over_training",
    "patterns",
    "positions",
    "pruning_by_stack",
    "pruning_curves",
    "pruning_over_training",
    "scores_without_one_head",
    "stacks_left",
    "to_separators",
    "token_to_token",
    "token_types",
    "two_data_sets",
    "two_scores",
]
