"""Subword pieces: one SentencePiece model for both languages, in a MarianTokenizer's folder."""

from __future__ import annotations

import io
import json
import multiprocessing
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import sentencepiece as spm

from .config import Pieces
from .merges import Cutter

__all__ = ["EOS", "UNK", "Flat", "encode", "train_pieces"]

EOS, UNK = 0, 1  # as in the opus-mt models; <pad> comes last
_SPECIAL = 2  # </s> and <pad>: SentencePiece itself knows only <unk>
_CHUNK = 20_000  # texts; fixed, so that the sampling does not depend on the number of cores

Flat = tuple[np.ndarray, np.ndarray]
"""Token ids of many texts end to end (int16), and how many each text has (int32)."""


def train_pieces(
    texts: Iterable[str], settings: Pieces, folder: Path, languages: tuple[str, str]
) -> None:
    """Train the shared vocabulary and write the files that MarianTokenizer loads."""
    model = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=model,
        model_type="bpe",
        vocab_size=settings.vocabulary - _SPECIAL,
        character_coverage=0.9999,
        normalization_rule_name="identity",  # the references keep their characters, so do we
        hard_vocab_limit=True,
        unk_id=0,
        bos_id=-1,
        eos_id=-1,
        pad_id=-1,
        minloglevel=2,
    )
    _write_folder(model.getvalue(), folder, languages)


def _write_folder(model: bytes, folder: Path, languages: tuple[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pieces = spm.SentencePieceProcessor(model_proto=model)
    names = ["</s>", *(pieces.id_to_piece(i) for i in range(pieces.vocab_size())), "<pad>"]
    vocabulary = {name: index for index, name in enumerate(names)}
    settings = {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": languages[0],
        "target_lang": languages[1],
        "separate_vocabs": False,
        "model_max_length": 256,
        "clean_up_tokenization_spaces": False,
    }
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(model)
    text = json.dumps(vocabulary, ensure_ascii=False, indent=0)
    (folder / "vocab.json").write_text(text, encoding="utf8")
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2), encoding="utf8")


def encode(
    texts: list[str], folder: Path, dropout: float = 0.0, seed: int = 0, processes: int = 0
) -> Flat:
    """Cut texts into ids, `</s>` at the end of each; with dropout, sample the cuts."""
    model = (folder / "source.spm").read_bytes()
    jobs = [
        (texts[start : start + _CHUNK], model, dropout, seed + number)
        for number, start in enumerate(range(0, len(texts), _CHUNK))
    ]
    workers = min(processes or os.cpu_count() or 1, len(jobs))
    if workers == 1:
        return _join([_encode_chunk(job) for job in jobs])
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        return _join(pool.map(_encode_chunk, jobs, chunksize=1))


def _encode_chunk(job: tuple[list[str], bytes, float, int]) -> Flat:
    texts, model, dropout, seed = job
    pieces = spm.SentencePieceProcessor(model_proto=model)
    if dropout:
        cutter = Cutter(pieces, dropout, seed)
        cut = [cutter(text) for text in texts]
    else:
        cut = pieces.encode(texts, out_type=int, num_threads=1)
    lengths = np.array([len(ids) + 1 for ids in cut], dtype=np.int32)
    # </s> stands before SentencePiece's ids in vocab.json, so every id moves up by one.
    ends = np.array([-1])
    joined = np.concatenate([part for ids in cut for part in (np.array(ids, dtype=int), ends)])
    return (joined + 1).astype(np.int16), lengths


def _join(parts: list[Flat]) -> Flat:
    return np.concatenate([ids for ids, _ in parts]), np.concatenate([n for _, n in parts])
