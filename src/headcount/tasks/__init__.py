"""Tasks: what 'good' means for a model, always with a score and statistics for every example.

>>> from headcount import tasks
>>> task = tasks.translation([("Rain fell.", "Regen fiel.")], metric="bleu")
>>> task.metric.columns[:2]
('length', 'reference length')
"""

from typing import TYPE_CHECKING, Any

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.tasks.comparison import (
        Comparison,
        Metric,
        called,
        choose_metric,
        compare_outcomes,
        function_name,
        more_is_better,
    )
    from headcount.tasks.comparison import compare_outcomes as compare
    from headcount.tasks.examples import (
        TEXT,
        Column,
        FoundExamples,
        Label,
        Labelled,
        PartOf,
        must_be_text,
        parts_of,
        read_examples,
        read_texts,
    )
    from headcount.tasks.language import (
        LanguageModelling,
        check_long,
        lm,
        natural_task,
    )
    from headcount.tasks.task import (
        ACCURACY,
        IGNORED,
        LOSS,
        MEAN_LOSS,
        Custom,
        Marks,
        Outcome,
        Sheet,
        Task,
        TokenTask,
        custom,
        forward,
        label_counts,
        labels_of,
        logits_of,
        refuse,
        row_marks,
    )
    from headcount.tasks.translations import Translation, own_output, translation

    def __getattr__(name: str) -> Any:
        """The function of a task that a room adds."""


#: What users see; the other names are for headcount's own packages.
__all__ = [
    "Comparison",
    "Labelled",
    "Marks",
    "Metric",
    "Outcome",
    "Sheet",
    "Task",
    "compare",
    "custom",
    "lm",
    "translation",
]

open_door(__name__, "tasks")
