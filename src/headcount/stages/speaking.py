"""What a model says to a text: a translation, what follows, a hidden word, a class, a cosine."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from headcount.models.rest import at_rest
from headcount.subject import Subject
from headcount.tasks.forward import forward
from headcount.tasks.own_output import own_output
from headcount.text import Batch, encode, intake_of

__all__ = ["said_by"]

#: So many guesses are told.
_TOP = 5
#: So many tokens a decoder goes on.
_ON = 16


def said_by(subject: Subject, text: str, second: str = "") -> list[dict[str, Any]]:
    """Answers, each with a `title` and a `text`, or with `guesses` (token and probability)."""
    with at_rest(subject.model), torch.no_grad():
        speaks = subject.inner.get_output_embeddings() is not None
        if "cross" in subject.anatomy.stacks and speaks:
            return [_translation(subject, text)]
        if subject.kind == "dec" and speaks:
            return [_continued(subject, text), _next(subject, text)]
        if subject.kind == "enc" and speaks:
            return [_hidden(subject, text)]
        return [_judged(subject, text, second)]


def _translation(subject: Subject, text: str) -> dict[str, Any]:
    told = own_output(subject, [text])
    return {"title": "Translation", "text": told[0].target if told else ""}


def _continued(subject: Subject, text: str) -> dict[str, Any]:
    """The likeliest tokens that follow, one after another."""
    tokenizer: Any = subject.tokenizer
    ids = _batch(subject, text).inputs["input_ids"].to(subject.device)
    begun = ids.shape[1]
    for _ in range(_ON):
        logits = subject.model(input_ids=ids, use_cache=False).logits
        ids = torch.cat([ids, logits[:, -1:].argmax(-1)], dim=1)
    return {"title": "Goes on", "text": tokenizer.decode(ids[0, begun:], skip_special_tokens=True)}


def _next(subject: Subject, text: str) -> dict[str, Any]:
    logits = forward(subject, _batch(subject, text)).logits
    return {"title": "Next token", "guesses": _guesses(subject, logits[0, -1])}


def _hidden(subject: Subject, text: str) -> dict[str, Any]:
    """Guesses for the first hidden word; a text without one is shown how to hide one."""
    tokenizer: Any = subject.tokenizer
    hidden = tokenizer.mask_token
    if hidden is None or hidden not in text:
        return {"title": "Hidden word", "text": f"Write {hidden} in place of a word."}
    batch = _batch(subject, text, markup=True)
    logits = forward(subject, batch).logits
    place = (batch.inputs["input_ids"][0] == tokenizer.mask_token_id).nonzero()[0, 0]
    return {"title": "Hidden word", "guesses": _guesses(subject, logits[0, place])}


def _judged(subject: Subject, text: str, second: str) -> dict[str, Any]:
    """The classes of a classifier, else how near two texts are."""
    item: Any = (text, second) if second else text
    found = forward(subject, _batch(subject, item))
    logits = getattr(found, "logits", None)
    if isinstance(logits, Tensor) and logits.dim() == 2:
        return {"title": "Class", "guesses": _classes(subject, logits[0])}
    if not second:
        return {"title": "Cosine", "text": "Give a second text to see how near the two are."}
    one, other = _embedded(subject, text), _embedded(subject, second)
    return {"title": "Cosine", "text": f"{torch.cosine_similarity(one, other, dim=0).item():.3f}"}


def _embedded(subject: Subject, text: str) -> Tensor:
    """The mean of the last layer's vectors."""
    hidden: Tensor = forward(subject, _batch(subject, text)).last_hidden_state
    return hidden[0].float().mean(0)


def _classes(subject: Subject, logits: Tensor) -> list[list[Any]]:
    names = subject.inner.config.id2label
    shares = logits.float().softmax(-1) if len(logits) > 1 else logits.float()
    order = shares.argsort(descending=True)[:_TOP].tolist()
    return [[str(names.get(place, place)), round(float(shares[place]), 4)] for place in order]


def _guesses(subject: Subject, logits: Tensor) -> list[list[Any]]:
    tokenizer: Any = subject.tokenizer
    best = logits.float().softmax(-1).topk(_TOP)
    words = [tokenizer.decode([number]) for number in best.indices.tolist()]
    return [[word, round(p, 4)] for word, p in zip(words, best.values.tolist(), strict=True)]


def _batch(subject: Subject, item: Any, markup: bool = False) -> Batch:
    return next(
        iter(
            encode(
                [item],
                subject.tokenizer,
                stacks=subject.anatomy.stacks,
                intake=intake_of(subject.model, subject.tokenizer),
                long="truncate",
                markup=markup,
            )
        )
    )
