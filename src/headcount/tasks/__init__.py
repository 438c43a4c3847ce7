"""Tasks: what 'good' means for a model, always with a score and statistics for every example.

>>> from headcount import tasks
>>> task = tasks.translation([("Rain fell.", "Regen fiel.")], metric="bleu")
>>> task.metric.columns[:2]
('length', 'reference length')
"""

from headcount.tasks.classification import classification
from headcount.tasks.comparison import Comparison, compare
from headcount.tasks.custom import custom
from headcount.tasks.example import Labelled
from headcount.tasks.glue import glue
from headcount.tasks.lm import lm
from headcount.tasks.metric import Metric
from headcount.tasks.mlm import mlm
from headcount.tasks.outcome import Outcome
from headcount.tasks.regression import regression
from headcount.tasks.sheet import Marks, Sheet
from headcount.tasks.similarity import similarity
from headcount.tasks.task import Task
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
