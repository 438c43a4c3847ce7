"""Tasks: what 'good' means for a model, always with a score and statistics for every example.

>>> from headcount import tasks
>>> task = tasks.translation([("Rain fell.", "Regen fiel.")], metric="bleu")
>>> task.metric.columns[:2]
('length', 'reference length')
"""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.tasks.classifications import classification
    from headcount.tasks.comparison import Comparison, Metric, compare_outcomes
    from headcount.tasks.comparison import compare_outcomes as compare
    from headcount.tasks.custom_tasks import Batches, Custom, batches, custom
    from headcount.tasks.examples import Labelled
    from headcount.tasks.glue_tasks import glue, natural_task
    from headcount.tasks.language import (
        LanguageModelling,
        MaskedLanguageModelling,
        continued,
        lm,
        mlm,
    )
    from headcount.tasks.regressions import Regression, Similarity, embed, regression, similarity
    from headcount.tasks.task import (
        IGNORED,
        LOSS,
        MEAN_LOSS,
        HeadTask,
        Marks,
        Outcome,
        Sheet,
        Task,
        forward,
        label_counts,
        labels_of,
        logits_of,
    )
    from headcount.tasks.translations import Translation, own_output, translation

#: What users see; the other names are for headcount's own packages.
__all__ = [
    "Comparison",
    "Labelled",
    "Marks",
    "Metric",
    "Outcome",
    "Sheet",
    "Task",
    "batches",
    "classification",
    "compare",
    "custom",
    "glue",
    "lm",
    "mlm",
    "regression",
    "similarity",
    "translation",
]

open_door(__name__)
