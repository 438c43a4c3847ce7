"""Does the head that follows a relation serve it? A verdict's name, and its cause.

A head named for determiners is one that looks along determiners. Whether the words that its
relation concerns need it is another question: switch the head off, and see whether they lose more
than other words do, and more than by a head of the same layer that costs as much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from headcount import stats
from headcount.errors import HeadcountError, UsageError
from headcount.importance import Intervention, sweep_task
from headcount.models import Subject
from headcount.records import Head, HeadTable, Run, writable_run
from headcount.reports import (
    Source,
    StageMaker,
    StoryContext,
    StoryStage,
    evaluation_step,
    figure,
    printed,
    row_head,
)
from headcount.rooms.lesions.by_word import Place, WordLosses, word_losses
from headcount.rooms.trials import Aligner
from headcount.rooms.words import universal
from headcount.stats import Floats
from headcount.surveys.roles import Verdict, verdicts_of
from headcount.text import Item, Pair, Sentence, Word, read_corpus, split_words

#: Roles whose verdicts concern some words and not others.
ROLES = ("syntactic", "coreference", "alignment")
#: Heads of the same layer are compared where their cost is the same up to this share.
ALIKE = 0.2
#: The fewest words that a verdict must concern.
WORDS = 20
_DRAWS = 2_000
COLUMNS = (
    "stack", "layer", "head", "role", "label", "words", "others", "cost", "cause", "cause_low",
    "cause_high", "matched", "over_matched", "over_low", "over_high", "causal",
)  # fmt: skip


def causes(
    subject: Subject,
    table: HeadTable | Run | str,
    texts: Any,
    *,
    matched: bool = True,
    limit: int | None = None,
    batch_size: int = 16,
    run: Run | str | None = None,
) -> pd.DataFrame:
    """For each verdict on a relation: do the words it concerns lose most without its head?

    `texts` are what the model predicts: for a translator pairs whose sources have trees, for a
    decoder or a masked model sentences with trees (a treebank, or a list of sentences). A relation
    concerns its dependents, or the target words that are linked to them; alignment the linked
    words; coreference the mentions after the first. One row a verdict:

    - `cause`, how much more nats the `words` lose than the `others` without the head, with its 95%
      interval from resampled sentences;
    - `over_matched`, the same less that of the `matched` heads: of the same layer, with a cost
      within 20%;
    - `causal`: "yes" where both lower ends exceed 0, "no" where one does not, "not compared" where
      the verdict concerns fewer than 20 words or no head of the layer costs as much.

    Without `matched` only the heads with verdicts are switched off, and nothing is compared. With a
    `run` the rows become causes.parquet there.
    """
    if not isinstance(table, HeadTable):
        table = (table if isinstance(table, Run) else Run.open(table, create=False)).read_table()
    verdicts = [one for one in verdicts_of(table) if one.role in ROLES]
    if not verdicts:
        return pd.DataFrame(columns=list(COLUMNS))
    items = list(read_corpus(texts, limit=limit))
    named = {one.head for one in verdicts}
    layers = {head[:2] for head in named}
    heads = [head for head in subject.heads if head in named or (matched and head[:2] in layers)]
    found = word_losses(
        subject, items, [Intervention([head]) for head in heads], batch_size=batch_size
    )
    concerned = _Concerned(items, found.words)
    with writable_run(run) as kept:
        rows = [_row(verdict, heads, found, concerned.by(verdict)) for verdict in verdicts]
        frame = pd.DataFrame(rows, columns=list(COLUMNS))
        if kept is not None:
            kept.write_frame("causes", frame)
    return frame


def _row(
    verdict: Verdict, heads: Sequence[Head], found: WordLosses, mask: np.ndarray
) -> dict[str, Any]:
    place = heads.index(verdict.head)
    costs = found.added.mean(axis=1)
    alike = [
        other
        for other, head in enumerate(heads)
        if head[:2] == verdict.head[:2]
        and other != place
        and abs(costs[other] - costs[place]) <= ALIKE * abs(costs[place])
    ]
    own = Effect(math.nan, math.nan, math.nan)
    over = own
    if WORDS <= int(mask.sum()) < len(mask):
        own = effect(found.added[place], mask, found.words)
        if alike:
            other = found.added[alike].mean(axis=0)
            over = effect(found.added[place] - other, mask, found.words)
    known = not (math.isnan(own.low) or math.isnan(over.low))
    causal = "yes" if own.low > 0 and over.low > 0 else "no"
    refuted = own.low <= 0  # one lower end is enough to say no
    figures = (
        *verdict.head, verdict.role, verdict.label, int(mask.sum()), int((~mask).sum()),
        float(costs[place]), *own, len(alike), *over,
        causal if known or refuted else "not compared",
    )  # fmt: skip
    return dict(zip(COLUMNS, figures, strict=True))


class Effect(NamedTuple):
    """How much more some words lose than others, in nats, with its interval."""

    value: float
    low: float
    high: float


def effect(added: Floats, mask: np.ndarray, words: Sequence[Place]) -> Effect:
    """The mean of some words less the mean of the others; sentences are resampled."""
    _, sentence = np.unique([word.item for word in words], return_inverse=True)
    sums = np.zeros((int(sentence.max()) + 1, 4))
    for column, (values, chosen) in enumerate(
        ((added, mask), (np.ones(len(added)), mask), (added, ~mask), (np.ones(len(added)), ~mask))
    ):
        np.add.at(sums[:, column], sentence[chosen], values[chosen])
    interval = stats.bootstrap_interval(sums, _difference, draws=_DRAWS)
    return Effect(*(float(end) for end in interval))


def _difference(sums: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(sums[..., 0] / sums[..., 1] - sums[..., 2] / sums[..., 3])


class _Concerned:
    """Which output words a verdict concerns."""

    def __init__(self, items: Sequence[Item], words: Sequence[Place]) -> None:
        self._words = words
        self._paired = bool(items) and isinstance(items[0], Pair)
        self._sentences = [_source(item) for item in items]
        self._links: list[list[tuple[int, int]]] = []
        if self._paired:
            pairs = [
                (_ids(source.words or ()), _ids(split_words(item.target)))
                for item, source in zip(items, self._sentences, strict=True)
                if isinstance(item, Pair)
            ]
            self._links = Aligner()(pairs)

    def by(self, verdict: Verdict) -> np.ndarray:
        """A mask over the output words."""
        chosen = [self._places(number, verdict) for number in range(len(self._sentences))]
        return np.array([word.word in chosen[word.item] for word in self._words], dtype=bool)

    def _places(self, number: int, verdict: Verdict) -> set[int]:
        links = self._links[number] if self._paired else []
        if verdict.role == "alignment":
            return {target for target, _ in links}
        sentence = self._sentences[number]
        if verdict.role == "coreference":
            own = {
                place
                for cluster in sentence.clusters
                for span in cluster[1:]
                for place in range(span.first, span.last + 1)
            }
        else:
            relation = verdict.label.rpartition(" ")[0]
            own = {
                place
                for place, word in enumerate(sentence.words or ())
                if relation in (word.deprel, universal(word.deprel or ""))
            }
        return {target for target, source in links if source in own} if self._paired else own


def _source(item: Item) -> Sentence:
    """The annotated source of an item."""
    sentence = item if isinstance(item, Sentence) else item.annotated[0]
    if sentence is None or not sentence.words:
        raise UsageError(
            "A cause is asked of words, and a text has none that are known; give a treebank, or "
            "pairs whose sources have trees."
        )
    return sentence


_KNOWN: dict[str, int] = {}


def _ids(words: Sequence[Word]) -> list[int]:
    """A number for each word, by its lower-case form."""
    return [_KNOWN.setdefault(word.form.lower(), len(_KNOWN)) for word in words]


# --- Among the stages of a story, and on the page ------------------------------------------------

#: What a quick story spends: multiplications, sentences, and heads with such verdicts.
_BUDGET, _SENTENCES, _HEADS = 8e11, 300, 8


def causes_stage(context: StoryContext) -> StoryStage:
    """Over the corpus, whether words need the head that is named for them."""
    name, title = "causes", "Whether words need the head named for them"
    if context.task is None:
        return StoryStage(name, title, why_not=context.why_no_task)
    task = context.afforded(sweep_task(context.task), _HEADS, _BUDGET, most=_SENTENCES)

    def work() -> list[str]:
        texts = context.treebank or context.texts
        try:
            causes(
                context.subject,
                context.run,
                texts,
                matched=False,
                limit=len(task),
                batch_size=context.batch_size,
                run=context.run,
            )
        except HeadcountError as error:  # no roles, texts without trees, or a model without words
            return [str(error)]
        return []

    settings = {**context.about_texts, "sentences": len(task)}
    runs = ((evaluation_step(context, task), float(_HEADS * len(task))),)
    return StoryStage(name, title, settings, work, runs=runs)


STAGE = StageMaker(causes_stage, after="knockout")


def cause_part(source: Source) -> list[dict[str, Any]]:
    """For each verdict that could be tried its head, and a sentence for the page."""
    frame = source.frame("causes")
    return [
        {"head": source.places[head], "said": _sentence(row)}
        for row in ([] if frame is None else frame.to_dict("records"))
        if figure(row["cause"]) is not None and (head := row_head(row)) in source.places
    ]


def _sentence(row: dict[Any, Any]) -> str:
    """What a row says, for people.

    >>> _sentence({"role": "syntactic", "label": "det head->dep", "words": 97, "cause": 0.0123,
    ...            "cause_low": -0.07, "cause_high": 0.09})
    'is named for det; without it 97 such words lose no more than others (+0.012 nats [−0.07,
    +0.09]).'
    """
    low, high = (printed(row[f"cause_{end}"], "+.2g") for end in ("low", "high"))
    relation = row["label"].rpartition(" ")[0] if row["role"] == "syntactic" else row["role"]
    more = "more" if row["cause_low"] > 0 else "less" if row["cause_high"] < 0 else "no more"
    return (
        f"is named for {relation}; without it {row['words']:,} such words lose {more} than others "
        f"({printed(row['cause'], '+.2g')} nats [{low}, {high}])."
    )
