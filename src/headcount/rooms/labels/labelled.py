"""Labelled texts: examples with a class or a number, tasks of a head on top, and GLUE's sets."""

from __future__ import annotations

import difflib
import math
import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, cross_entropy

from headcount import tasks
from headcount.errors import InputError, ModelError, UsageError
from headcount.models import Subject, capture_hooks_off
from headcount.rooms.agreement import Kind, correlate_weighted
from headcount.stats import Floats
from headcount.tasks import (
    Column,
    FoundExamples,
    Label,
    Labelled,
    Marks,
    Metric,
    Task,
    called,
    choose_metric,
    function_name,
    more_is_better,
)
from headcount.text import Batch, Encoded, Item, Sentence

# --- One example --------------------------------------------------------------------------------


def labelled(item: Any, where: str) -> Labelled:
    """A labelled example from a (text, label) or (text, text2, label), or a mapping.

    >>> labelled(("A fine film.", 1), "Example 1")
    Labelled(text='A fine film.', label=1, second=None, line=None)
    """
    text: Any
    second: Any
    label: Any
    line = item.line if isinstance(item, Labelled) else None
    if isinstance(item, Labelled):
        text, second, label = item.text, item.second, item.label
    elif isinstance(item, Mapping):
        text, second, label = item.get("text"), item.get("text2"), item.get("label")
        line = item.get("line")
    else:
        parts = tasks.parts_of(item, where, (2, 3), "(text, label) or (text, text2, label)")
        text, second, label = parts[0], parts[1] if len(parts) == 3 else None, parts[-1]
    tasks.must_be_text(text, where, "text")
    if second is not None:
        tasks.must_be_text(second, where, "second text")
    if label is None or not str(label).strip():
        raise InputError(f"{where} has no label; fill it in or drop the example.")
    kind = type(label).__name__
    if isinstance(label, bool):
        label = int(label)
    elif not isinstance(label, str | int | float) and hasattr(label, "item"):
        label = label.item()  # a number of NumPy's
    if not isinstance(label, str | int | float):
        raise InputError(f"{where} has a label of the type {kind}; give a name or a number.")
    return Labelled(text, label, second, line)


def scored(item: Any, where: str) -> Labelled:
    """The same with a finite number as its label.

    >>> scored(("A dog.", "A hound.", "4.5"), "Example 1").label
    4.5
    """
    example = labelled(item, where)
    number = _number(example.label)
    if not math.isfinite(number):
        raise InputError(f"{where} has the score '{example.label}'; a score is a finite number.")
    return replace(example, label=number)


def _number(label: Label) -> float:
    """A label as a number; NaN where it is none."""
    try:
        return float(label)
    except (ValueError, OverflowError):
        return math.nan


# --- The examples of a file, or in hand ---------------------------------------------------------

#: Names that columns usually have.
SECOND = ("text2", "sentence2")
LABEL = ("label", "score")


@dataclass(frozen=True)
class Columns:
    """Which columns of a file to read: names, numbers from 0, or None for the usual names."""

    text: Column = None
    text2: Column = None
    label: Column = None
    header: bool = True


#: How each kind of labelled examples is read, and what one looks like.
_LABELLED = {
    "classification": (labelled, "(text, label) or (text, text2, label)"),
    "regression": (scored, "(text, number) or (text, text2, number)"),
    "similarity": (scored, "(text, text2, score)"),
}


def read_labelled(
    source: Any, kind: str, columns: Columns, *, ragged: bool = False
) -> FoundExamples:
    """The labelled examples of a kind of task; all with a second text, or none.

    Second texts are in the column named for them, or in a usual one where no column was named.
    """
    read, shape = _LABELLED[kind]
    parts = {
        "text": tasks.PartOf(columns.text, tasks.TEXT),
        "text2": tasks.PartOf(columns.text2, () if columns.text is not None else SECOND, True),
        "label": tasks.PartOf(columns.label, LABEL),
    }
    found = tasks.read_examples(
        source, read, parts, kind, shape, header=columns.header, ragged=ragged
    )
    paired = [example.second is not None for example in found.examples]
    if len(set(paired)) > 1:
        odd = paired.index(not paired[0])
        raise InputError(
            f"Example 1 of {found.name} has {'two texts' if paired[0] else 'one text'} and example "
            f"{odd + 1} has {'one' if paired[0] else 'two'}; give all of them the same."
        )
    return found


# --- What tasks with a head on top share --------------------------------------------------------


@dataclass(frozen=True, repr=False)
class HeadTask(Task):
    """Labelled texts for a model that gives one row of logits a text."""

    #: What a model must have, in words.
    needs: ClassVar[str]

    @abstractmethod
    def gold(self, batch: Batch, subject: Subject) -> Tensor:
        """What is right for each example of a batch, ``[example]``."""

    def check(self, subject: Subject) -> None:
        """Raise unless the model gives one row of logits a text, and several in a batch."""
        config = subject.inner.config
        bare = subject.inner.base_model is subject.inner
        if bare or subject.inner.get_output_embeddings() is not None:  # no head, or one for words
            raise tasks.refuse(subject, self.needs)
        if subject.kind == "dec" and config.pad_token_id is None:
            raise ModelError(
                f"{subject.name} has no padding token, so its head cannot find the last word of a "
                "text; set model.config.pad_token_id, e.g. to the id of the end token."
            )
        if subject.kind == "enc-dec" and self.examples[0].second is not None:
            raise UsageError(
                f"A {self.kind} task on {subject.name}, an encoder-decoder, takes single texts, "
                f"and {self.name} has pairs; join each pair into one text."
            )

    def encode(self, subject: Subject, batch_size: int) -> Encoded:
        """Texts, or pairs of texts, longest first."""
        stacks = ("enc",) if subject.kind == "enc-dec" else None
        return self.encoded(self.texts(), subject, batch_size, stacks=stacks)

    def dress(self, batch: Batch, subject: Subject) -> Batch:
        """The batch with what is right as its labels, ``[example]``."""
        # The head of an encoder-decoder starts the decoder with the whole text by itself.
        inputs = {
            name: tensor for name, tensor in batch.inputs.items() if not name.startswith("decoder_")
        }
        return replace(batch, inputs=inputs, labels=self.gold(batch, subject))

    def logits(self, subject: Subject, batch: Batch) -> Tensor:
        """Logits, ``[example, class]``, in float32."""
        return tasks.logits_of(subject, batch, axes=2, needs=self.needs).float()


# --- GLUE's tasks from their files as published -------------------------------------------------
# Wang et al. 2019. Quotes in these files are ordinary characters; some begin with a byte-order
# mark, CoLA has no header, and most test labels were never published.

_ENTAILMENT = ("entailment", "not_entailment")
_PACKED = ("", ".xz", ".gz", ".bz2")


@dataclass(frozen=True)
class GlueSet:
    """One set of GLUE: its folder, its columns, and what it is judged by."""

    folder: str
    columns: Columns
    kind: str = "classification"
    metric: str = "accuracy"
    labels: tuple[str, ...] = ()
    #: The file that has the labels of the test part, with its columns, where there is one.
    test: tuple[str, Columns] | None = None


SETS = {
    "cola": GlueSet("CoLA", Columns("3", None, "1", header=False), metric="matthews"),
    "mrpc": GlueSet(
        "MRPC",
        Columns("#1 String", "#2 String", "Quality"),
        test=("msr_paraphrase_test.txt", Columns("#1 String", "#2 String", "Quality")),
    ),
    "qnli": GlueSet("QNLI", Columns("question", "sentence", "label"), labels=_ENTAILMENT),
    "rte": GlueSet("RTE", Columns("sentence1", "sentence2", "label"), labels=_ENTAILMENT),
    "sst2": GlueSet("SST-2", Columns("sentence", None, "label")),
    "stsb": GlueSet(
        "STS-B",
        Columns("sentence1", "sentence2", "score"),
        kind="regression",
        metric="spearman",
        test=("original-sts-test.tsv", Columns("5", "6", "4", header=False)),
    ),
}


def glue(
    name: str,
    folder: str | Path,
    *,
    split: str = "dev",
    metric: str | None = None,
    similarity: bool = False,
) -> Task:
    """A task of GLUE: cola, mrpc, qnli, rte, sst2 or stsb, from its published files.

    `folder` holds the set's files, or the folders of all sets; `split` is train, dev or test.
    STS-B asks a model with a regression head, or with `similarity` an embedding model.
    """
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    if plain not in SETS:
        near = difflib.get_close_matches(plain, SETS, n=1)
        hint = f" (closest: {near[0]})" if near else ""
        raise UsageError(f"There is no GLUE set '{name}'{hint}; known are {', '.join(SETS)}.")
    chosen = SETS[plain]
    if similarity and chosen.kind != "regression":
        raise UsageError(f"{chosen.folder} has classes and no scores of similarity; STS-B has.")
    path, columns = _file(chosen, Path(folder), split)
    # Some rows of STS-B end in columns of their own: where the texts came from.
    found = read_labelled(path, "classification", columns, ragged=True)
    extra = {"labels": chosen.labels} if chosen.labels else {}
    make = getattr(tasks, "similarity" if similarity else chosen.kind)
    return replace(make(found.examples, metric or chosen.metric, **extra), name=found.name)


def _file(chosen: GlueSet, folder: Path, split: str) -> tuple[Path, Columns]:
    """The file of one part of a set, and its columns."""
    stem, columns = f"{split}.tsv", chosen.columns
    if split == "test":
        if chosen.test is None:
            raise InputError(
                f"The labels of {chosen.folder}'s test part were never published; use split=dev."
            )
        stem, columns = chosen.test
    inside = folder / chosen.folder
    home = inside if inside.is_dir() else folder
    for packed in _PACKED:
        if (path := home / f"{stem}{packed}").is_file():
            return path, columns
    there = "there is no such folder"
    if home.is_dir():
        names = sorted(path.name for path in home.iterdir() if path.is_file())
        there = f"it has {', '.join(names) or 'no files'}"
    raise InputError(f"There is no {stem} of {chosen.folder} in {home}, plain or packed; {there}.")


# --- Metrics of a classifier --------------------------------------------------------------------


def class_counts(
    predicted: npt.NDArray[np.int_], gold: npt.NDArray[np.int_], classes: int
) -> Floats:
    """Hits, predictions and gold labels by class, one row an example: ``[example, 3 * class]``.

    >>> class_counts(np.array([1, 0]), np.array([1, 1]), 2)
    array([[0., 1., 0., 1., 0., 1.],
           [0., 0., 1., 0., 0., 1.]])
    """
    predictions, labels = np.eye(classes)[predicted], np.eye(classes)[gold]
    return np.concatenate([predictions * labels, predictions, labels], axis=1)


def f1(sums: Floats) -> Floats:
    """F1 of the second of two classes, or the mean F1 of three or more that occur.

    >>> f1(np.array([0.0, 1, 1, 1, 0, 2])).round(3)
    np.float64(0.667)
    """
    hits, predicted, gold = np.split(sums, 3, axis=-1)
    with np.errstate(invalid="ignore"):
        each = 2 * hits / (predicted + gold)
    if hits.shape[-1] == 2:
        return each[..., 1][()]
    there = predicted + gold > 0
    with np.errstate(invalid="ignore"):
        return (np.where(there, each, 0.0).sum(axis=-1) / there.sum(axis=-1))[()]


def matthews(sums: Floats) -> Floats:
    """Matthews' correlation for any number of classes; 0 where one side has only one.

    Matthews 1975; Gorodkin 2004, equation 8, for more than two classes.

    >>> matthews(class_counts(np.array([0, 1, 1, 0]), np.array([0, 1, 1, 1]), 2).sum(0)).round(3)
    np.float64(0.577)
    """
    hits, predicted, gold = np.split(sums, 3, axis=-1)
    total = gold.sum(axis=-1)
    together = total * hits.sum(axis=-1) - (predicted * gold).sum(axis=-1)
    apart = (total**2 - (predicted**2).sum(axis=-1)) * (total**2 - (gold**2).sum(axis=-1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(apart > 0, together / np.sqrt(apart), np.where(total > 0, 0.0, np.nan))[()]


def _right(statistics: Floats) -> Floats:
    """Whether each example is right: 1 or 0."""
    return np.split(statistics, 3, axis=-1)[0].sum(axis=-1)


_COLUMNS = ("hits by class", "predictions by class", "gold labels by class")
F1 = Metric(
    "f1",
    _COLUMNS,
    f1,
    each=_right,
    reason=lambda statistics: "the positive class is neither a label nor predicted",
)
MATTHEWS = Metric("matthews", _COLUMNS, matthews, each=_right)


# --- Labels of a data set as classes of a model -------------------------------------------------


@dataclass(frozen=True)
class Classes:
    """The classes of a model, and the names a task has for them.

    >>> classes = Classes("mine", ("LABEL_0", "LABEL_1"), ("bad", "good"))
    >>> classes.number("good", "Example 1"), classes.number("0", "Example 2")
    (1, 0)
    """

    model: str
    #: The model's own names, by id.
    names: tuple[str, ...]
    #: The task's names, in the order of the ids it takes them for.
    told: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    def number(self, label: Label, where: str) -> int:
        """The class that a label means; the model's own names come first, then ids."""
        name = str(label).strip()
        for known in (self.names, tuple(map(str.lower, self.names))):
            if name in known or name.lower() in known:
                return known.index(name if name in known else name.lower())
        number = _number(label)  # however it is written
        told = self.told.index(name) if name in self.told else -1
        for found in (int(number) if number.is_integer() else -1, told):
            if 0 <= found < len(self.names):
                return found
        shown = [f"{name} ({number})" for number, name in enumerate(self.names)]
        listed = ", ".join(shown if len(shown) <= 12 else [*shown[:12], "..."])
        raise InputError(
            f"{where} has the label '{label}', which is not a class of {self.model}: its classes "
            f"are {listed}; use these names or ids, or say labels= in the order of the ids."
        )


def classes_of(subject: Subject, told: Sequence[str]) -> Classes:
    """The classes of a model with a classifier head."""
    config = subject.inner.config
    names = tuple(str(config.id2label.get(n, f"LABEL_{n}")) for n in range(config.num_labels))
    return Classes(subject.name, names, tuple(told))


# --- Classification -----------------------------------------------------------------------------

METRICS = {"accuracy": tasks.ACCURACY, "f1": F1, "matthews": MATTHEWS, "loss": tasks.MEAN_LOSS}


@dataclass(frozen=True, repr=False)
class Classification(HeadTask):
    """Texts, or pairs of texts, with a class each."""

    kind: ClassVar[str] = "classification"
    needs: ClassVar[str] = (
        "classification needs a model with a classifier head (load it with "
        "auto_class='AutoModelForSequenceClassification')"
    )

    #: Names of the classes in the order of their ids, where the model has other names.
    labels: tuple[str, ...] = ()
    #: The class that F1 is about, where there are two.
    positive: int = 1

    def check(self, subject: Subject) -> None:
        """Raise unless the model has classes, and every label is one of them."""
        super().check(subject)
        config = subject.inner.config
        if config.num_labels == 1:
            raise ModelError(
                f"{subject.name} gives one number and no classes; use a regression task."
            )
        if config.problem_type == "multi_label_classification":
            raise ModelError(
                f"{subject.name} gives several labels at once, and a classification task has one "
                "an example; score it with a custom task."
            )
        self._numbers(range(len(self)), subject)

    def gold(self, batch: Batch, subject: Subject) -> Tensor:
        """The id of each example's class."""
        return torch.tensor(self._numbers(batch.index, subject))

    def answer(self, subject: Subject, batch: Batch) -> Tensor:
        """Logits, ``[example, class]``."""
        return self.logits(subject, batch)

    def loss(self, subject: Subject, batch: Batch) -> Tensor:
        """Cross-entropy of each example, in nats: ``[example]``."""
        return _losses(self.logits(subject, batch), batch)

    def mark(self, answer: Tensor, batch: Batch) -> Marks:
        """Losses, hits, or counts by class; the outputs are ids of classes."""
        predicted = answer.argmax(dim=1).cpu().numpy()
        gold, one = tasks.labels_of(batch, answer).cpu().numpy(), np.ones(len(predicted))
        if self.metric.statistic is None:  # the caller's own, whatever it is called
            rows = np.stack([predicted, gold], axis=1).astype(np.float64)
        elif self.metric.name == "loss":
            rows = np.stack([_losses(answer, batch).cpu().double().numpy(), one], axis=1)
        elif self.metric.name == "accuracy":
            rows = np.stack([(predicted == gold).astype(np.float64), one], axis=1)
        elif answer.shape[1] == 2 and self.positive == 0:
            rows = class_counts(1 - predicted, 1 - gold, 2)
        else:
            rows = class_counts(predicted, gold, answer.shape[1])
        rows[answer.isnan().any(dim=1).cpu().numpy()] = np.nan
        return Marks(rows, predicted.tolist())

    def chance(self, subject: Subject) -> float | None:
        """What one class for all examples reaches; for the loss, how often each occurs."""
        if self.metric is not F1:
            return super().chance(subject)
        shares = np.bincount(self._numbers(range(len(self)), subject), minlength=2) / len(self)
        two = subject.inner.config.num_labels == 2
        most = shares[self.positive] if two else shares.max()
        return float(2 * most / (1 + most) / (1 if two else np.count_nonzero(shares)))

    def _numbers(self, examples: Sequence[int], subject: Subject) -> list[int]:
        classes = classes_of(subject, self.labels)
        return [classes.number(self.examples[n].label, self._place(n)) for n in examples]


def _losses(logits: Tensor, batch: Batch) -> Tensor:
    return cross_entropy(logits, tasks.labels_of(batch, logits), reduction="none")


def classification(
    examples: Any,
    metric: Any = "accuracy",
    *,
    text: Column = None,
    text2: Column = None,
    label: Column = None,
    header: bool = True,
    labels: Sequence[str] = (),
    positive: int = 1,
) -> Classification:
    """A classification task from (text, label) or (text, text2, label), or a file with columns.

    `metric` is "accuracy", "f1" (of the class `positive` where there are two, else the mean over
    classes), "matthews" or "loss"; or a function of predicted and true ids, or a metric of Hugging
    Face's evaluate. A label is one of the model's own names, or an id; `labels`
    gives names for the ids where the model has none.

    >>> classification([("A fine film.", 1), ("A dull film.", 0)])
    Classification('examples in hand', 2 examples, accuracy)
    """
    chosen = read_metric("classification", metric, METRICS)
    if positive not in (0, 1):
        raise UsageError(f"The positive class is {positive!r}; F1 of two classes is about 0 or 1.")
    found = read_labelled(examples, "classification", Columns(text, text2, label, header))
    return Classification(found.examples, chosen, found.name, tuple(labels), positive)


# --- Metrics of predicted numbers ---------------------------------------------------------------


def _correlated(kind: Kind, rows: Floats, weights: Floats) -> Floats:
    """The correlation of predictions and gold scores, drawn so many times each."""
    x, y = rows.T
    if _is_constant(x) or _is_constant(y):
        return np.full(len(weights), np.nan)
    return correlate_weighted(x, y, weights, kind)


def _shares(kind: Kind, rows: Floats) -> Floats:
    """What each pair adds to the correlation: products of standard scores, whose mean is r."""
    if kind == "spearman":
        from scipy.stats import rankdata  # a second to import, for this alone

        rows = np.asarray(rankdata(rows, axis=0), dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((rows - rows.mean(axis=0)).prod(axis=1) / rows.std(axis=0).prod())


def _is_constant(values: Floats) -> bool:
    """Whether values differ by rounding alone, which has an order but no meaning."""
    return bool(np.ptp(values) <= 1e-6 * np.abs(values).max())


def _why(rows: Floats) -> str:
    x, y = rows.T
    if len(x) < 2:
        return "a correlation needs two examples or more"
    name, values = ("predictions", x) if _is_constant(x) else ("gold scores", y)
    return f"all {len(values)} {name} are {values[0]:.6g}, and a constant has no order"


_KINDS: tuple[Kind, Kind] = ("pearson", "spearman")
PEARSON, SPEARMAN = (
    Metric(
        kind,
        ("prediction", "gold"),
        None,
        each=partial(_shares, kind),
        drawn=partial(_correlated, kind),
        reason=_why,
    )
    for kind in _KINDS
)


# --- Regression ---------------------------------------------------------------------------------

NUMBER_METRICS = {"spearman": SPEARMAN, "pearson": PEARSON, "loss": tasks.MEAN_LOSS}


@dataclass(frozen=True, repr=False)
class NumberTask(Task):
    """Examples with a number each."""

    def losses(self, said: Tensor, batch: Batch) -> Tensor:
        """The squared error of each example."""
        return (said - tasks.labels_of(batch, said)) ** 2

    def loss(self, subject: Subject, batch: Batch) -> Tensor:
        """The loss of each example: ``[example]``."""
        return self.losses(self.answer(subject, batch), batch)

    def mark(self, answer: Tensor, batch: Batch) -> Marks:
        """Losses, or predictions beside the gold ones."""
        said, gold = (
            part.cpu().double().numpy() for part in (answer, tasks.labels_of(batch, answer))
        )
        rows = np.stack([said, gold], axis=1)
        if self.metric.statistic is not None:  # a loss; correlations are of no sums
            losses = self.losses(answer, batch).cpu().double().numpy()
            rows = np.stack([losses, np.ones(len(said))], axis=1)
        return Marks(rows, said.tolist())


@dataclass(frozen=True, repr=False)
class Regression(NumberTask, HeadTask):
    """Texts, or pairs of texts, with a number each."""

    kind: ClassVar[str] = "regression"
    needs: ClassVar[str] = "regression needs a model with a head of one output (num_labels=1)"

    def check(self, subject: Subject) -> None:
        """Raise unless the model gives one number a text."""
        super().check(subject)
        if subject.inner.config.num_labels != 1:
            raise tasks.refuse(subject, self.needs)

    def gold(self, batch: Batch, subject: Subject) -> Tensor:
        """The number that is right for each example."""
        return torch.tensor([self.examples[number].label for number in batch.index])

    def answer(self, subject: Subject, batch: Batch) -> Tensor:
        """The number that the model gives each example."""
        return self.logits(subject, batch)[:, 0]


def regression(
    examples: Any,
    metric: Any = "spearman",
    *,
    text: Column = None,
    text2: Column = None,
    label: Column = None,
    header: bool = True,
) -> Regression:
    """A regression task from (text, number) or (text, text2, number), or a file with columns.

    `metric` is "spearman", "pearson" or "loss", the mean squared error; or a function of predicted
    and true numbers, or a metric of Hugging Face's evaluate.

    >>> regression([("A dog.", "A hound.", 4.5), ("A dog.", "A tax.", 0.5)])
    Regression('examples in hand', 2 examples, spearman)
    """
    chosen = read_metric("regression", metric, NUMBER_METRICS)
    found = read_labelled(examples, "regression", Columns(text, text2, label, header))
    return Regression(found.examples, chosen, found.name)


# --- Similarity ---------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Similarity(NumberTask):
    """Pairs of texts with a score each; any model that reads text can be asked.

    In a batch the two texts of an example stand one below the other, so that scales of an
    example, ``[batch, head]``, reach both.
    """

    kind: ClassVar[str] = "similarity"

    #: The scores that mean nothing alike and all alike, for the loss.
    span: tuple[float, float] = (0.0, 1.0)
    #: Written before every text, such as e5's "query: ".
    prefix: str = ""

    def encode(self, subject: Subject, batch_size: int) -> Encoded:
        """Both texts of each example, one below the other, longest examples first."""
        texts = self.texts(self._order())
        stacks = ("enc",) if subject.kind == "enc-dec" else None
        return self.encoded(texts, subject, 2 * batch_size, stacks=stacks, sort=False)

    def texts(self, order: Sequence[int] | None = None) -> list[Item]:
        """Both texts of each example, one below the other."""
        return [
            Sentence(self.prefix + text, line=self.examples[number].line)
            for number in (range(len(self)) if order is None else order)
            for text in (self.examples[number].text, self.examples[number].second)
        ]

    def dress(self, batch: Batch, subject: Subject) -> Batch:
        """The batch with one number an example instead of two rows, and gold scores as labels."""
        order, rows = self._order(), batch.index
        # A text without any token is left out, and everything behind it would be shifted.
        start = rows[0] - rows[0] % 2
        missing = {*range(start, start + len(rows) + len(rows) % 2)} - {*rows}
        if missing:
            raise self.no_token(order[min(missing) // 2], subject)
        index = [order[row // 2] for row in rows[::2]]
        gold = torch.tensor([self.examples[number].label for number in index])
        return replace(batch, index=index, labels=gold)

    def answer(self, subject: Subject, batch: Batch) -> Tensor:
        """The cosine of the two embeddings of each example, ``[example]``."""
        first, second = embed(subject, batch).unflatten(0, (-1, 2)).unbind(dim=1)
        return cosine_similarity(first, second)

    def losses(self, said: Tensor, batch: Batch) -> Tensor:
        """The squared distance of each cosine from its score, which `span` brings to 0 to 1."""
        low, high = self.span
        return (said - (tasks.labels_of(batch, said) - low) / (high - low)) ** 2

    def _order(self) -> list[int]:
        """Examples by the length of their longer text, longest first."""
        lengths = [-max(len(one.text), len(one.second or "")) for one in self.examples]
        return sorted(range(len(self)), key=lengths.__getitem__)


def embed(subject: Subject, batch: Batch) -> Tensor:
    """The mean of the last hidden state over real tokens, ``[row, hidden]``, in float32."""
    batch = batch.to(subject.device)
    side = batch.sides["source" if "source" in batch.sides else "target"]
    real = side.real[:, :, None].float()
    hidden: Tensor
    if subject.kind == "enc-dec":
        hidden = tasks.forward(subject, batch).encoder_last_hidden_state
    elif subject.inner.base_model is subject.inner:
        hidden = tasks.forward(subject, batch).last_hidden_state
    else:
        with capture_hooks_off(subject.model):
            hidden = tasks.forward(subject, batch, output_hidden_states=True).hidden_states[-1]
    return (hidden.float() * real).sum(dim=1) / real.sum(dim=1)


def similarity(
    examples: Any,
    metric: Any = "spearman",
    *,
    text: Column = None,
    text2: Column = None,
    label: Column = None,
    header: bool = True,
    span: tuple[float, float] | None = None,
    prefix: str = "",
) -> Similarity:
    """A similarity task from (text, text2, score), or a file with columns.

    Texts are embedded by the mean of the last hidden state, pairs compared by cosine. `metric` is
    "spearman", "pearson" or "loss", the mean squared distance from the score brought to 0 to 1:
    `span` says which scores those are, by default the lowest and the highest there is.

    >>> similarity([("A dog.", "A hound.", 4.5), ("A dog.", "A tax.", 0.5)]).span
    (0.5, 4.5)
    """
    chosen = read_metric("similarity", metric, NUMBER_METRICS)
    found = read_labelled(examples, "similarity", Columns(text, text2, label, header))
    if found.examples[0].second is None:
        raise InputError(
            f"{found.name} has one text an example; similarity takes (text, text2, score), in a "
            "file the columns text, text2 and label."
        )
    scores = [float(example.label) for example in found.examples]
    low, high = (min(scores), max(scores)) if span is None else span
    if span is not None and not low < high:
        raise UsageError(f"The span is {low:g} to {high:g}; give the lower score first.")
    # A single score has no span of its own: it is taken as nothing alike.
    span = (low, high) if low < high else (low, low + 1.0)
    return Similarity(found.examples, chosen, found.name, span, prefix)


#: Draws of a bootstrap of a metric of the caller's own.
_OWN_DRAWS = 1000


def own_metric_of(metric: Any) -> Metric:
    """A function of predictions and references, `[example]` each, as a metric."""

    def drawn(statistics: Floats, weights: Floats) -> Floats:
        rows = np.arange(len(statistics))
        found = []
        for counts in weights:
            some = statistics[np.repeat(rows, counts.astype(int))]
            found.append(called(metric, some[:, 0], some[:, 1]))
        return np.array(found)

    return Metric(
        function_name(metric),
        ("prediction", "reference"),
        None,
        higher_is_better=more_is_better(metric),
        each=lambda rows: (rows[:, 0] == rows[:, 1]).astype(np.float64),
        drawn=drawn,
        most_draws=_OWN_DRAWS,
    )


def read_metric(kind: str, metric: Any, known: Mapping[str, Metric]) -> Metric:
    """A kind's metric by name, or one of the caller's own."""
    if isinstance(metric, str):
        return choose_metric(kind, metric, known)
    return own_metric_of(metric)
