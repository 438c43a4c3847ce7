"""A translator's own translations in place of the references."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from headcount.errors import UsageError
from headcount.subject import Subject
from headcount.tasks.beam import translate
from headcount.text import Pair, encode, intake_of, read_corpus, sentences_of, texts_of

__all__ = ["own_output"]


def own_output(
    subject: Subject,
    corpus: Any,
    *,
    beams: int = 4,
    batch_size: int = 16,
    progress: Callable[[int, int], None] | None = None,
) -> list[Pair]:
    """Each source with what the model makes of it, in the corpus' order.

    Sources of which nothing came, or that have no token, are left out: compare the lengths.

    Targets that the corpus has are not looked at; words of the sources are kept. A survey of these
    pairs shows the decoder's and the cross heads as they are at work, not on somebody else's words.
    """
    if "cross" not in subject.anatomy.stacks or not subject.inner.can_generate():
        raise UsageError(
            f"{subject.name} is a {type(subject.inner).__name__}, which translates nothing; "
            "its own output can be had of encoder-decoders with a language-modelling head."
        )
    items = list(read_corpus(corpus))
    sources = [texts_of(item)[0] for item in items]
    # Targets only say how the decoder starts, so the sources themselves will do.
    batches = encode(
        [Pair(source, source) for source in sources],
        subject.tokenizer,
        stacks=subject.anatomy.stacks,
        intake=intake_of(subject.model, subject.tokenizer),
        batch_size=batch_size,
    )
    told: dict[int, str] = {}
    for batch in batches:
        with torch.no_grad():
            told.update(zip(batch.index, translate(subject, batch, beams=beams), strict=True))
        if progress is not None:
            progress(len(told), len(sources))
    return [
        Pair(source, told[place], annotated=(sentences_of(items[place])[0], None))
        for place, source in enumerate(sources)
        if told.get(place)
    ]
