"""Language modelling: a decoder predicts the next token."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, get_args

from headcount import plugins
from headcount.errors import ModelError, UsageError
from headcount.models import Subject
from headcount.tasks import task as base
from headcount.tasks.comparison import choose_metric
from headcount.tasks.examples import Column, read_texts
from headcount.tasks.translations import translation
from headcount.text import Batch, Encoded, Long, Pair, read_corpus

# --- Language modelling -------------------------------------------------------------------------

METRICS = {"loss": base.LOSS, "perplexity": base.PERPLEXITY}


@dataclass(frozen=True, repr=False)
class LanguageModelling(base.TokenTask):
    """Plain texts; every token but the first of a row is predicted from those before it.

    A text longer than the model takes becomes several rows (windows) of one example; their
    losses add up in the outcome.
    """

    kind: ClassVar[str] = "lm"
    needs: ClassVar[str] = "lm needs a decoder-only model with a language-modelling head"

    long: Long = "window"
    #: Whether each text is read as a user's turn, in the frame of the tokenizer's chat template.
    chat: bool = False

    def check(self, subject: Subject) -> None:
        """Raise unless the model reads from left to right only."""
        if subject.kind != "dec":
            other = "mlm" if subject.kind == "enc" else "translation"
            raise ModelError(
                f"{self.needs}, and {subject.name} is of the class {type(subject.inner).__name__}, "
                f"with {subject.kind} heads; use the task {other}."
            )

    def encode(self, subject: Subject, batch_size: int) -> Encoded:
        """Texts, longest first."""
        return self.encoded(self.examples, subject, batch_size, long=self.long, chat=self.chat)

    def dress(self, batch: Batch, subject: Subject) -> Batch:
        """The batch with what comes next at each place as its labels, ``[row, token]``."""
        side = batch.sides["target"]
        following = side.ids.masked_fill(~side.real, base.IGNORED).roll(-1, dims=1)
        following[:, -1] = base.IGNORED
        return replace(batch, labels=following.masked_fill(~side.real, base.IGNORED))


def check_long(long: str) -> None:
    """Refuse a word that says nothing of what to do with long texts."""
    if long not in get_args(Long):
        raise UsageError(f"long is '{long}'; choose {', '.join(get_args(Long)[:-1])} or error.")


def lm(
    examples: Any,
    metric: str = "loss",
    *,
    long: Long = "window",
    text: Column = None,
    header: bool = True,
    chat: bool = False,
) -> LanguageModelling:
    """A language-modelling task from texts, a .txt file of one a line, or a column of a file.

    `metric` is "loss", nats a token, or "perplexity". With `chat` each text is a user's turn in the
    tokenizer's chat template: the loss on plain text says little of a model that answers.

    >>> lm(["Rain fell.", "It stopped."])
    LanguageModelling('examples in hand', 2 examples, loss)
    """
    chosen = choose_metric("lm", metric, METRICS)
    check_long(long)
    found = read_texts(examples, kind="lm", text=text, header=header)
    return LanguageModelling(found.examples, chosen, found.name, long, chat)


# --- The task that a plain corpus stands for ----------------------------------------------------


def natural_task(subject: Subject, corpus: Any) -> base.Task:
    """What a model does with texts: translate pairs, continue, fill in, compare two texts.

    >>> from headcount.models.loading import load
    >>> natural_task(load("translator", device="cpu"), [("Rain fell.", "Regen fiel.")])
    Translation('texts in hand', 1 examples, loss)
    """
    if isinstance(corpus, base.Task):
        return corpus
    texts = read_corpus(corpus)
    items, task = list(texts), None
    if subject.inner.get_output_embeddings() is not None:
        make: Any = {"enc-dec": translation, "dec": lm}.get(subject.kind)
        make = make or plugins.get("tasks", "mlm")
        task = make(items, metric="loss")
    elif texts.paired:
        pairs = [item for item in items if isinstance(item, Pair)]
        task = plugins.get("tasks", "similarity")(
            [(pair.source, pair.target, 0.0) for pair in pairs]
        )
    if task is None:
        raise UsageError(
            f"{subject.name} ({type(subject.inner).__name__}) predicts no words, so single texts "
            "leave nothing to explain; give pairs of texts, whose cosine is explained, or a task "
            "such as tasks.classification(...)."
        )
    return replace(task, name=texts.name)
