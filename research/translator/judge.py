"""The last word on a trained model: beam-search BLEU on dev and test, before and after int8."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from transformers import MarianMTModel, MarianTokenizer

from headcount.bundle.packed import unpack_weights
from headcount.records.files import write_bytes
from research.packing import pack_weights

from .config import Config
from .evaluate import bleu, dev_loss, translate
from .pairs import Pair, read_splits
from .prepare import pair_corpus

__all__ = ["judge", "learned"]

_BATCH = 640


def judge(config: Config, data: Path | None, out: Path, device: str) -> dict[str, Any]:
    """Score `final/`, pack it, score what the pack expands to, and write `result.json`."""
    torch.set_float32_matmul_precision("highest")
    model = MarianMTModel.from_pretrained(out / "final").eval().to(device)
    tokenizer = MarianTokenizer.from_pretrained(out / "final")
    splits = read_splits(config.data, data)
    parts = {"dev": splits.dev, "test": splits.test}
    result: dict[str, Any] = {"parameters": sum(t.numel() for t in learned(model).values())}
    result["float32"] = _score(model, tokenizer, parts, out, "float32")
    packed = pack_weights(learned(model))
    data_ = safetensors.torch.save(packed)
    write_bytes(out / "packed.safetensors", data_)
    result["packed_bytes"] = len(data_)
    model.load_state_dict(unpack_weights(packed), strict=False)
    model.tie_weights()
    result["int8"] = _score(model, tokenizer, parts, out, "int8")
    write_bytes(out / "result.json", json.dumps(result, indent=1, ensure_ascii=False).encode())
    print(json.dumps(result, indent=1, ensure_ascii=False), flush=True)
    return result


def learned(model: MarianMTModel) -> dict[str, torch.Tensor]:
    """The weights that training set, tied ones once; the sinusoids are made anew at load."""
    named = model.named_parameters()
    return {name: p.detach().cpu() for name, p in named if "embed_positions" not in name}


def _score(
    model: MarianMTModel,
    tokenizer: MarianTokenizer,
    parts: dict[str, list[Pair]],
    out: Path,
    label: str,
) -> dict[str, Any]:
    """BLEU with beam 4 and loss of every part; the translations are kept beside the result."""
    scores: dict[str, Any] = {}
    for name, pairs in parts.items():
        began = time.monotonic()
        told = translate(model, tokenizer, [pair.source for pair in pairs], batch=_BATCH)
        scores[name] = bleu(told, [pair.target for pair in pairs])
        scores[name]["seconds"] = round(time.monotonic() - began, 1)
        corpus = pair_corpus(pairs, out / "tokenizer")
        scores[name]["loss"] = dev_loss(model, corpus, int(corpus.widths.max()))
        write_bytes(out / f"{label}.{name}.txt", ("\n".join(told) + "\n").encode())
    return scores
