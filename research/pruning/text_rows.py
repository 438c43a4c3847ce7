"""Running text as rows of one length: what groups are ranked on, healed on, and judged on."""

from __future__ import annotations

import lzma
import random
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

import headcount as hc
from headcount.errors import InputError

from .config import Config

__all__ = ["Rows", "read_rows", "toy_llama"]


class Rows(NamedTuple):
    """Token numbers, `[row, place]`; held-out rows come from other paragraphs than training."""

    train: Tensor
    held: Tensor
    paragraphs: tuple[int, int]


def read_rows(config: Config, subject: hc.Subject, data: Path | None) -> Rows:
    """The first paragraphs for training, the last share of them held out."""
    settings = config.groups
    if config.toy:
        dice = torch.Generator().manual_seed(config.seed)
        ids = torch.randint(3, 60, (config.toy, settings.length), generator=dice)
        cut = round(len(ids) * (1 - settings.held))
        return Rows(ids[:cut], ids[cut:], (cut, len(ids) - cut))
    paragraphs = _paragraphs(settings.text, data)
    cut = round(len(paragraphs) * (1 - settings.held))
    train, held = paragraphs[:cut], paragraphs[cut:]
    random.Random(config.seed).shuffle(train)
    made = [_packed(part, subject, settings.length) for part in (train, held)]
    return Rows(made[0], made[1], (len(train), len(held)))


def _paragraphs(name: str, data: Path | None) -> list[str]:
    if data is None or not (data / name).is_file():
        raise InputError(f"The text {name} is needed: pass --data DIR, or set HEADCOUNT_DATA.")
    with lzma.open(data / name, "rt", encoding="utf8") as file:
        return [line.strip() for line in file if line.strip()]


def _packed(paragraphs: list[str], subject: hc.Subject, length: int) -> Tensor:
    """Paragraphs one after the other with an end token between, cut into rows; no padding."""
    tokenizer: Any = subject.tokenizer
    found = tokenizer(paragraphs, add_special_tokens=False)["input_ids"]
    flat = [number for ids in found for number in (*ids, tokenizer.eos_token_id)]
    return torch.tensor(flat[: len(flat) // length * length]).view(-1, length)


def toy_llama() -> hc.Subject:
    """Two layers of two groups of two heads, drawn from seed 0."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=48,
        max_position_embeddings=64,
    )
    return hc.Subject(LlamaForCausalLM(config), name="toy")
