"""Translations by batched beam search, the same in any batch."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor
from transformers import LogitsProcessor, LogitsProcessorList, StoppingCriteria

from headcount.errors import ModelError
from headcount.models.finite import check_finite
from headcount.models.quiet import quiet
from headcount.subject import Subject
from headcount.text.batch import Batch
from headcount.text.intake import intake_of

__all__ = ["longest_output", "translate"]


def translate(
    subject: Subject,
    batch: Batch,
    *,
    beams: int,
    max_new_tokens: int | None = None,
    length_penalty: float | None = None,
) -> list[str]:
    """The best translation of each source of a batch, as text without special tokens.

    The decoder starts exactly as the reference does: start token, language code and all. Every
    source has its own longest output, so that a translation never depends on its neighbours.
    """
    batch = batch.to(subject.device)
    start = _start(batch)
    limit = intake_of(subject.model, subject.tokenizer).target_limit
    longest = longest_output(batch.sides["source"].real.sum(dim=1), max_new_tokens)
    if limit is not None:
        longest = longest.clamp(max=limit - start.shape[1])
    settings = _settings(subject, start, beams, int(longest.max()), length_penalty)
    watch = _Watch()
    with quiet():
        ids = subject.model.generate(
            input_ids=batch.inputs["input_ids"],
            attention_mask=batch.inputs["attention_mask"],
            decoder_input_ids=start,
            generation_config=settings,
            stopping_criteria=[_OwnLength(longest, start.shape[1])],
            logits_processor=LogitsProcessorList([watch]),
        )
    watch.check(subject)
    return _texts(subject, ids)


def longest_output(source_tokens: Tensor, asked: int | None) -> Tensor:
    """How many tokens each translation may have: as asked, or twice its source and 16.

    >>> longest_output(torch.tensor([3, 20]), None).tolist()
    [22, 56]
    """
    if asked is not None:
        return torch.full_like(source_tokens, asked)
    return 2 * source_tokens + 16


def _start(batch: Batch) -> Tensor:
    """What every decoder input of a batch begins with: its leading special tokens."""
    target = batch.sides["target"]
    shared = (target.ids == target.ids[:1]) & target.special
    return target.ids[:, : int(shared.all(dim=0).long().cumprod(dim=0).sum())]


def _settings(
    subject: Subject, start: Tensor, beams: int, longest: int, length_penalty: float | None
) -> Any:
    """The model's own generation settings, made deterministic."""
    settings = copy.deepcopy(subject.inner.generation_config)
    settings.update(
        num_beams=beams,
        do_sample=False,
        num_return_sequences=1,
        # One more than any may have: some models force an end at the last place, which would cut
        # the longest translation of a batch short and no other.
        max_new_tokens=longest + 1,
        decoder_start_token_id=int(start[0, 0]),
        return_dict_in_generate=False,
        output_scores=False,
        output_attentions=False,
        output_hidden_states=False,
        use_cache=True,
    )
    if length_penalty is not None:
        settings.length_penalty = length_penalty
    return settings


class _OwnLength(StoppingCriteria):
    """Ends each sentence at its own longest length, whatever the batch is."""

    def __init__(self, longest: Tensor, start: int) -> None:
        self._longest = longest
        self._start = start

    def __call__(self, input_ids: Tensor, scores: Any, **kwargs: Any) -> Tensor:
        """Which rows (beams of one sentence lie side by side) are long enough."""
        per_sentence = input_ids.shape[0] // len(self._longest)
        longest = self._longest.repeat_interleave(per_sentence)
        return longest <= input_ids.shape[1] - self._start


class _Watch(LogitsProcessor):
    """Remembers whether any score was not a number, without stopping for it."""

    def __init__(self) -> None:
        self._broken: Tensor | None = None

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Look, and change nothing."""
        found = scores.isnan().any()
        self._broken = found if self._broken is None else self._broken | found
        return scores

    def check(self, subject: Subject) -> None:
        """Raise if there was one, naming the weights to blame where there are any."""
        if self._broken is None or not self._broken:
            return
        check_finite(subject)
        raise ModelError(
            f"{subject.name} scores next words with NaN, although all its weights are numbers; "
            f"{subject.dtype} may be too small: load it with dtype='float32'."
        )


def _texts(subject: Subject, ids: Tensor) -> list[str]:
    """Ids as the target side's tokenizer writes them."""
    assert subject.tokenizer is not None  # or the sources could not have been encoded
    told: list[str] = subject.tokenizer.batch_decode(
        ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
    )
    return [text.strip() for text in told]
