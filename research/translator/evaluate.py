"""How good a translator is: loss on reference translations, BLEU of its own."""

from __future__ import annotations

from typing import Any

import sacrebleu
import torch
from torch import Tensor
from transformers import MarianMTModel, MarianTokenizer

from .corpus import Corpus, lay_rows
from .loss import cross_entropy
from .model import logits_of

__all__ = ["bleu", "dev_loss", "translate"]


@torch.no_grad()
def translate(
    model: MarianMTModel,
    tokenizer: MarianTokenizer,
    sources: list[str],
    beams: int = 4,
    batch: int = 256,
    longest: int = 128,
    **options: Any,
) -> list[str]:
    """Translations by beam search, in batches of like length, in the order of the sources."""
    model.eval()
    order = sorted(range(len(sources)), key=lambda i: len(sources[i]), reverse=True)
    told: dict[int, str] = {}
    for start in range(0, len(order), batch):
        picked = order[start : start + batch]
        inputs = tokenizer([sources[i] for i in picked], return_tensors="pt", padding=True)
        ids = _generate(model, inputs.to(model.device), beams, longest, options)
        told.update(zip(picked, tokenizer.batch_decode(ids, skip_special_tokens=True), strict=True))
    return [told[i] for i in range(len(sources))]


def _generate(
    model: MarianMTModel, inputs: Any, beams: int, longest: int, options: dict[str, Any]
) -> Tensor:
    longest = min(longest, model.config.max_position_embeddings)
    return model.generate(
        input_ids=inputs.input_ids,
        attention_mask=inputs.attention_mask,
        num_beams=beams,
        do_sample=False,
        max_length=longest,
        **options,
    )


def bleu(hypotheses: list[str], references: list[str]) -> dict[str, Any]:
    """Corpus BLEU and chrF with sacreBLEU's signatures.

    >>> bleu(["Das ist ein kleiner Test."], ["Das ist ein kleiner Test."])["bleu"]
    100.0
    """
    result: dict[str, Any] = {}
    for name, metric in (("bleu", sacrebleu.BLEU()), ("chrf", sacrebleu.CHRF())):
        result[name] = round(metric.corpus_score(hypotheses, [references]).score, 3)
        result[f"{name}_signature"] = str(metric.get_signature())
    return result


@torch.no_grad()
def dev_loss(model: MarianMTModel, corpus: Corpus, length: int, rows: int = 128) -> float:
    """Mean negative log-likelihood of a target token, in nats, references given."""
    model.eval()
    order = torch.Generator().manual_seed(0)
    layout = lay_rows(corpus, torch.arange(len(corpus)), length, rows, order).to(model.device)
    placed = corpus.to(model.device)
    start, pad = model.config.decoder_start_token_id, model.config.pad_token_id
    total = torch.zeros((), device=model.device)
    count = torch.zeros((), device=model.device)
    for first in range(0, len(layout.rows), rows):
        part = slice(first, first + rows)
        batch = placed.batch(layout.rows[part], layout.widths[part], length, start, pad)
        total += cross_entropy(logits_of(model, batch), batch.labels)
        count += (batch.labels >= 0).sum()
    return (total / count).item()
