"""Language modelling: a decoder predicts the next token, or an encoder tokens that were hidden.

Hiding as BERT was trained is Devlin et al. 2019, section 3.1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from headcount import plugins
from headcount.errors import ModelError, UsageError
from headcount.models import Subject, eval_mode
from headcount.stats import ratio
from headcount.tasks import task as base
from headcount.tasks.comparison import Metric, choose_metric
from headcount.tasks.examples import Column, read_texts
from headcount.tasks.translations import translation
from headcount.text import Batch, Encoded, Long, Pair, chat_turns, read_corpus

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


def continued(subject: Subject, prompt: str, *, tokens: int = 24, chat: bool = False) -> str:
    """What a model says after a prompt, greedily; in chat, its answer to it."""
    tokenizer: Any = subject.tokenizer
    if chat:
        turns = chat_turns(tokenizer, [prompt], add_generation_prompt=True)
        given = tokenizer(turns, add_special_tokens=False, return_tensors="pt")
    else:
        given = tokenizer(prompt, return_tensors="pt")
    inputs = {name: given[name].to(subject.device) for name in ("input_ids", "attention_mask")}
    with eval_mode(subject.model), torch.no_grad():
        said = subject.model.generate(
            **inputs, max_new_tokens=tokens, do_sample=False, pad_token_id=tokenizer.eos_token_id
        )
    return str(tokenizer.decode(said[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True))


# --- Masked language modelling ------------------------------------------------------------------

#: How a token is hidden: always by the mask token, or as BERT was trained.
Hiding = Literal["mask", "bert"]

MLM_METRICS = {
    "loss": base.LOSS,
    "accuracy": Metric("accuracy", ("hits", "tokens"), ratio, test="sign-flip"),
}


@dataclass(frozen=True, repr=False)
class MaskedLanguageModelling(base.TokenTask):
    """Plain texts of which some tokens are hidden, always the same ones for the same seed."""

    kind: ClassVar[str] = "mlm"
    needs: ClassVar[str] = (
        "mlm needs an encoder with a masked-language-modelling head (load it with "
        "auto_class='AutoModelForMaskedLM')"
    )

    share: float = 0.15
    hiding: Hiding = "mask"
    seed: int = 0
    long: Long = "window"

    def check(self, subject: Subject) -> None:
        """Raise unless the model reads both ways and its tokenizer can hide a token."""
        if subject.kind != "enc":
            raise base.refuse(subject, self.needs)
        if subject.tokenizer is not None and subject.tokenizer.mask_token_id is None:
            raise ModelError(
                f"The tokenizer of {subject.name} has no mask token, so nothing can be hidden; an "
                "mlm task needs one."
            )

    def encode(self, subject: Subject, batch_size: int) -> Encoded:
        """Texts, longest first, nothing hidden yet."""
        return self.encoded(self.examples, subject, batch_size, long=self.long)

    def dress(self, batch: Batch, subject: Subject) -> Batch:
        """The batch with tokens hidden, and the hidden tokens as labels, ``[row, token]``."""
        side = batch.sides["source"]
        ids, labels = side.ids.clone(), torch.full_like(side.ids, base.IGNORED)
        for row, own in enumerate(zip(batch.index, batch.window, strict=True)):
            noise = np.random.default_rng([self.seed, *own])
            places = np.flatnonzero((side.real & ~side.special)[row].numpy())
            hidden = torch.from_numpy(hide(places, self.share, noise))
            labels[row, hidden] = ids[row, hidden]
            ids[row, hidden] = self._instead(ids[row, hidden], subject, noise)
        return replace(batch, inputs=batch.inputs | {"input_ids": ids}, labels=labels)

    def mark(self, answer: Any, batch: Batch) -> base.Marks:
        """Loss or hits, and the hidden tokens, of each row."""
        if self.metric.name == "loss":
            return super().mark(answer, batch)
        labels = base.labels_of(batch, answer)
        right = (answer.argmax(dim=-1) == labels).sum(dim=1).float()
        right = right.masked_fill(answer.isnan().flatten(1).any(dim=1), torch.nan)
        return base.row_marks(right, labels)

    def _instead(self, ids: Tensor, subject: Subject, noise: np.random.Generator) -> Tensor:
        """What stands in the place of hidden tokens."""
        tokenizer: Any = subject.tokenizer
        masked = torch.full_like(ids, tokenizer.mask_token_id)
        if self.hiding == "mask":
            return masked
        drawn = torch.from_numpy(noise.random(len(ids)))
        others = torch.from_numpy(noise.integers(0, tokenizer.vocab_size, len(ids)))
        # Devlin et al. 2019, section 3.1: 80% the mask token, 10% any token, 10% as it was.
        return torch.where(drawn < 0.8, masked, torch.where(drawn < 0.9, others, ids))


def hide(
    places: npt.NDArray[np.intp], share: float, noise: np.random.Generator
) -> npt.NDArray[np.intp]:
    """A share of the places, one or more, drawn at random.

    >>> len(hide(np.arange(20), 0.15, np.random.default_rng(0)))
    3
    """
    count = max(1, round(share * len(places)))
    return np.sort(noise.choice(places, count, replace=False))


def mlm(
    examples: Any,
    metric: str = "loss",
    *,
    share: float = 0.15,
    hiding: Hiding = "mask",
    seed: int = 0,
    long: Long = "window",
    text: Column = None,
    header: bool = True,
) -> MaskedLanguageModelling:
    """A masked-language-modelling task from texts, a .txt file, or a column of a file.

    `metric` is "loss", nats a hidden token, or "accuracy". A `share` of the tokens of each text
    is hidden, the same in every run with the same `seed`: behind the mask token, or with
    `hiding="bert"` as BERT was trained (80% mask, 10% another token, 10% left as it was).

    >>> mlm(["Rain fell.", "It stopped."], metric="accuracy")
    MaskedLanguageModelling('examples in hand', 2 examples, accuracy)
    """
    chosen = choose_metric("mlm", metric, MLM_METRICS)
    check_long(long)
    if not 0 < share < 1:
        raise UsageError(f"The share of hidden tokens is {share:g}; it lies between 0 and 1.")
    if hiding not in get_args(Hiding):
        raise UsageError(f"hiding is '{hiding}'; choose mask or bert.")
    found = read_texts(examples, kind="mlm", text=text, header=header)
    return MaskedLanguageModelling(found.examples, chosen, found.name, share, hiding, seed, long)


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
        make: Any = {"enc-dec": translation, "dec": lm, "enc": mlm}[subject.kind]
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
