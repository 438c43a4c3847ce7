"""Tasks: what 'good' means for a model, always with a score and statistics for every example.

>>> from headcount import tasks
>>> task = tasks.translation([("Rain fell.", "Regen fiel.")], metric="bleu")
>>> task.metric.columns[:2]
('length', 'reference length')
"""

from headcount.tasks.classification import classification
from headcount.tasks.comparison import Comparison, Metric, compare
from headcount.tasks.custom import custom
from headcount.tasks.examples import Labelled
from headcount.tasks.glue import glue
from headcount.tasks.language import lm, mlm
from headcount.tasks.regression import regression, similarity
from headcount.tasks.task import Marks, Outcome, Sheet, Task
from headcount.tasks.translation import translation

__all__ = [
    "Comparison",
    "Labelled",
    "Marks",
    "Metric",
    "Outcome",
    "Sheet",
    "Task",
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
