"""Made-up rows and a tiny random BERT, so that the recipe can be tried without data."""

from __future__ import annotations

import random

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from headcount.models.subject import Subject
from headcount.rooms.labels.labelled import SETS
from headcount.tasks import Labelled

from .rows import LABELS, Rows

__all__ = ["toy_rows", "toy_subject"]

_SPECIAL = ("[PAD]", "[CLS]", "[SEP]", "[UNK]")
_PLAIN = tuple(f"{start}{end}" for start in "bdfgk" for end in ("a", "ane", "ibo", "ust"))
_GOOD = ("merry", "bright", "kind")


def toy_rows(task: str, count: int) -> Rows:
    """Rows of made-up words; the label is how many of the good words the last text holds."""
    dice = random.Random(f"{task} {count}")
    rows = tuple(_row(task, dice) for _ in range(count))
    return Rows(rows[count // 4 :], rows[: count // 4], "made up")


def _row(task: str, dice: random.Random) -> Labelled:
    labels, good = LABELS[task], dice.choice((0, 0, 1, 2))
    words = dice.choices(_PLAIN, k=dice.randint(2, 8)) + dice.choices(_GOOD, k=good)
    dice.shuffle(words)
    label = labels[min(good, 1)] if labels else float(good)
    if SETS[task].columns.text2 is None:
        return Labelled(" ".join(words), label)
    return Labelled(" ".join(dice.choices(_PLAIN, k=4)), label, " ".join(words))


def toy_subject() -> Subject:
    """Two layers of four heads, drawn from seed 0."""
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(_SPECIAL + _PLAIN + _GOOD),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=32,
    )
    return Subject(BertModel(config), _tokenizer(), name="toy")


def _tokenizer() -> PreTrainedTokenizerFast:
    vocabulary = {word: number for number, word in enumerate(_SPECIAL + _PLAIN + _GOOD)}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    core.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        unk_token="[UNK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )
