"""GLUE's tasks from their files as published: which columns, which labels, which metric.

Wang et al. 2019. Quotes in these files are ordinary characters; some begin with a byte-order mark,
CoLA has no header, and most test labels were never published.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headcount import tasks
from headcount.errors import InputError, UsageError
from headcount.models import Subject
from headcount.tasks.examples import Columns, labelled, labelled_rows
from headcount.tasks.task import Task
from headcount.text import Pair, read_corpus, read_rows

# --- GLUE's tasks from their files as published -------------------------------------------------

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
    table = read_rows(path, header=columns.header, ragged=True)
    examples = labelled_rows(table, columns, labelled)
    extra = {"labels": chosen.labels} if chosen.labels else {}
    make = getattr(tasks, "similarity" if similarity else chosen.kind)
    return replace(make(examples, metric or chosen.metric, **extra), name=table.name)


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


# --- The task that a plain corpus stands for ----------------------------------------------------


def natural_task(subject: Subject, corpus: Any) -> Task:
    """What a model does with texts by itself: translate pairs, go on, fill in, compare two texts.

    >>> from headcount.models.loading import load
    >>> natural_task(load("translator", device="cpu"), [("Rain fell.", "Regen fiel.")])
    Translation('texts in hand', 1 examples, loss)
    """
    if isinstance(corpus, Task):
        return corpus
    texts = read_corpus(corpus)
    items, task = list(texts), None
    if subject.inner.get_output_embeddings() is not None:
        make: Any = {"enc-dec": tasks.translation, "dec": tasks.lm, "enc": tasks.mlm}[subject.kind]
        task = make(items, metric="loss")
    elif texts.paired:
        pairs = [item for item in items if isinstance(item, Pair)]
        task = tasks.similarity([(pair.source, pair.target, 0.0) for pair in pairs])
    if task is None:
        raise UsageError(
            f"{subject.name} ({type(subject.inner).__name__}) predicts no words, so single texts "
            "leave nothing to explain; give pairs of texts, whose cosine is explained, or a task "
            "such as tasks.classification(...)."
        )
    return replace(task, name=texts.name)
