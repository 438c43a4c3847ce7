"""How heads grow: importance and prunability of every snapshot of a training run.

Michel et al. 2019, section 6: the same pruning curve again at points along training.
"""

from __future__ import annotations

import json
import math
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor
from torch.nn import functional
from transformers import MarianMTModel, MarianTokenizer

from headcount.models.subject import Subject
from headcount.records.files import write_bytes
from headcount.records.heads import Head
from headcount.wiring import valve

from .config import Config
from .evaluate import bleu, translate
from .model import build_model, trained_parameters
from .pairs import Pair, read_splits
from .weights import spread

__all__ = ["gradient_importance", "pruning_curve", "pruning_order", "score_snapshots"]

_BATCH = 250
_EXAMPLES = 500  # dev pairs
_TENTHS = range(10)


def score_snapshots(
    config: Config, data: Path | None, out: Path, device: str, workers: int = 1
) -> dict[str, Any]:
    """Score every snapshot on the first dev pairs and write `dynamics.json`.

    Greedy search waits for the host, so several workers share one GPU well.
    """
    paths = sorted((out / "snapshots").glob("step-*.safetensors"))
    job = partial(_score_snapshot, config, data, out, device)
    if workers == 1:
        entries = [job(path) for path in paths]
    else:
        with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
            entries = list(pool.map(job, paths))
    found = {"run": config.name, "snapshots": entries}
    write_bytes(out / "dynamics.json", json.dumps(found, indent=1).encode())
    return found


def _score_snapshot(
    config: Config, data: Path | None, out: Path, device: str, path: Path
) -> dict[str, Any]:
    tokenizer = MarianTokenizer.from_pretrained(out / "tokenizer")
    pairs = read_splits(replace(config.data, train=config.data.dev), data).dev[:_EXAMPLES]
    model = build_model(config.model, len(tokenizer), config.train.seed).eval().to(device)
    average = safetensors.torch.load(path.read_bytes())["average"].to(device)
    spread(average, trained_parameters(model))
    step = int(path.stem.removeprefix("step-"))
    entry = {
        "step": step,
        "dev_pairs": len(pairs),
        **_score(Subject(model, tokenizer, name=config.name), pairs),
    }
    print(f"step {step}: BLEU {[point['bleu'] for point in entry['curve']]}", flush=True)
    return entry


def _score(subject: Subject, pairs: list[Pair]) -> dict[str, Any]:
    importance = gradient_importance(subject, pairs)
    order = pruning_order(importance, subject.heads)
    return {
        "gradient": {str(h): v for h, v in zip(subject.heads, importance.tolist(), strict=True)},
        "order": [str(head) for head in order],
        "curve": pruning_curve(subject, pairs, order),
    }


def gradient_importance(subject: Subject, pairs: list[Pair]) -> Tensor:
    """Mean over pairs of |dL/dxi| for every head, L the summed loss of a pair's target. `[head]`

    Michel et al. 2019, section 4.1.
    """
    total = torch.zeros(len(subject.heads), dtype=torch.float64)
    for start in range(0, len(pairs), _BATCH):
        inputs = _inputs(subject, pairs[start : start + _BATCH])
        shape = (len(inputs["labels"]), len(subject.heads))
        scales = torch.ones(shape, device=inputs["labels"].device, requires_grad=True)
        with valve(subject, scales):
            loss = _losses(subject.model, inputs).sum()
        (slope,) = torch.autograd.grad(loss, scales)
        total += slope.abs().sum(0).double().cpu()
    return total / len(pairs)


def pruning_order(importance: Tensor, heads: list[Head]) -> list[Head]:
    """Heads from least to most important, after dividing each layer by its l2 norm.

    Michel et al. 2019, section 4.1, after Molchanov et al. 2017.
    """
    ranked: dict[Head, float] = {}
    numbered = zip(heads, importance.tolist(), strict=True)
    for _, layer in groupby(numbered, key=lambda item: (item[0].stack, item[0].layer)):
        members = list(layer)
        norm = math.hypot(*(value for _, value in members)) or 1.0
        ranked |= {head: value / norm for head, value in members}
    return sorted(heads, key=ranked.__getitem__)


def pruning_curve(subject: Subject, pairs: list[Pair], order: list[Head]) -> list[dict[str, Any]]:
    """Loss and greedy BLEU with none to nine tenths of the heads shut, least important first."""
    curve = []
    for tenth in _TENTHS:
        shut = order[: math.ceil(len(order) * tenth / 10)]
        with valve(subject, {str(head): 0.0 for head in shut}):
            loss = _mean_loss(subject, pairs)
            sources = [pair.source for pair in pairs]
            told = translate(
                subject.model, subject.tokenizer, sources, beams=1, batch=_EXAMPLES, longest=48
            )
        score = bleu(told, [pair.target for pair in pairs])["bleu"]
        curve.append({"shut": len(shut), "loss": loss, "bleu": score})
    return curve


@torch.no_grad()
def _mean_loss(subject: Subject, pairs: list[Pair]) -> float:
    """Nats a target token."""
    total = tokens = 0.0
    for start in range(0, len(pairs), _BATCH):
        inputs = _inputs(subject, pairs[start : start + _BATCH])
        total += _losses(subject.model, inputs).sum().item()
        tokens += (inputs["labels"] >= 0).sum().item()
    return total / tokens


def _inputs(subject: Subject, pairs: list[Pair]) -> dict[str, Tensor]:
    tokenizer: Any = subject.tokenizer
    texts, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    encoded = tokenizer(texts, text_target=targets, padding=True, return_tensors="pt")
    labels = encoded["labels"].masked_fill(encoded["labels"] == tokenizer.pad_token_id, -100)
    inputs = {key: encoded[key] for key in ("input_ids", "attention_mask")} | {"labels": labels}
    return {key: value.to(subject.model.device) for key, value in inputs.items()}


def _losses(model: MarianMTModel, inputs: dict[str, Tensor]) -> Tensor:
    """The summed negative log-likelihood of every pair. `[pair]`"""
    logits = model(**inputs, use_cache=False).logits
    each = functional.cross_entropy(
        logits.float().transpose(1, 2), inputs["labels"], ignore_index=-100, reduction="none"
    )
    return each.sum(1)
