"""Sizes that a small file only declares, lines without end, and text made to stall a pattern."""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fuzz.targets import Target
from fuzz.trial import try_out
from gguf_files import write_llama
from subjects import save
from tiny import TINY

import headcount as hc
from headcount.text import read_corpus

# --- Models -------------------------------------------------------------------------------------


def _config(folder: Path, **settings: Any) -> Path:
    save(folder / "model", "bert", "wordpiece")
    file = folder / "model" / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))
    return file


def _header(folder: Path) -> Path:
    """A tensor of four terabytes."""
    save(folder / "model", "bert", "wordpiece")
    file = folder / "model" / "model.safetensors"
    data = file.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    giant = {"dtype": "F32", "shape": [10**9, 10**3], "data_offsets": [0, 4 * 10**12]}
    raw = json.dumps(header | {"embeddings.word_embeddings.weight": giant}).encode()
    file.write_bytes(len(raw).to_bytes(8, "little") + raw + data[8 + size :])
    return file


def _header_size(folder: Path) -> Path:
    """A header of a petabyte."""
    file = _header(folder)
    file.write_bytes((10**15).to_bytes(8, "little") + file.read_bytes()[8:])
    return file


def _gguf(folder: Path, change: Callable[[bytearray], None]) -> Path:
    file = folder / "tiny.gguf"
    write_llama(file, TINY["llama"]())
    data = bytearray(file.read_bytes())
    change(data)
    file.write_bytes(data)
    return file


def _at(data: bytearray, name: bytes) -> int:
    return data.index(name) + len(name)


def _array(kind: int) -> Callable[[bytearray], None]:
    """An array of so many values in the place of a number."""

    def change(data: bytearray) -> None:
        place = _at(data, b"llama.block_count")
        data[place : place + 8] = struct.pack("<IIQ", 9, kind, 3 * 10**8)

    return change


def _put(name: bytes, offset: int, value: bytes) -> Callable[[bytearray], None]:
    def change(data: bytearray) -> None:
        place = (_at(data, name) if name else 0) + offset
        data[place : place + len(value)] = value

    return change


_MANY = struct.pack("<Q", 3 * 10**8)
MODELS: dict[str, Callable[[Path], Path]] = {
    "a million layers": partial(_config, num_hidden_layers=10**6),
    "layers beyond counting": partial(_config, num_hidden_layers=10**30),
    "a hundred million labels": partial(_config, num_labels=10**8),
    "10^12 words": partial(_config, vocab_size=10**12),
    "10^11 places": partial(_config, max_position_embeddings=10**11),
    "a width of 4 x 10^8": partial(_config, hidden_size=4 * 10**8),
    "a million heads": partial(_config, num_attention_heads=10**6),
    "a tensor of terabytes": _header,
    "a header of a petabyte": _header_size,
    "GGUF: many keys": partial(_gguf, change=_put(b"", 16, _MANY)),
    "GGUF: many tensors": partial(_gguf, change=_put(b"", 8, _MANY)),
    "GGUF: an array of numbers": partial(_gguf, change=_array(0)),
    "GGUF: an array of texts": partial(_gguf, change=_array(8)),
    "GGUF: a million layers": partial(
        _gguf, change=_put(b"llama.block_count", 4, struct.pack("<I", 10**6))
    ),
    "GGUF: a tensor of terabytes": partial(
        _gguf, change=_put(b"token_embd.weight", 4, struct.pack("<Q", 10**12))
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_declared_size_is_refused_before_memory_is_taken(name: str, tmp_path: Path) -> None:
    file = MODELS[name](tmp_path)
    place = file if file.suffix == ".gguf" else file.parent
    target = Target(name, file.name, lambda _: None, lambda _: hc.load(place).heads, named="")
    trial = try_out(target, file.parent, file.read_bytes())
    assert trial.ended == "refused", trial.why
    assert trial.megabytes < 300


# --- Text ---------------------------------------------------------------------------------------

_WORD = b"1\ta\ta\tX\t_\t%s\t0\troot\t%s\t%s\n\n"
_GAP = b"ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL\n"

#: A file's name, its bytes, how it is read.
TEXTS: dict[str, tuple[str, bytes, dict[str, Any]]] = {
    "a line of 100 MB": ("a.txt", b"x" * 10**8, {}),
    "a line of 1 GB, packed": ("a.txt.gz", gzip.compress(b"x" * 10**9, 1), {}),
    "a million columns": ("a.tsv", b"a\t" * 10**6 + b"\n", {}),
    "10^8 columns": ("a.tsv", b"\t" * 10**8 + b"\n", {}),
    "a million columns with commas": ("a.csv", b"a," * 10**6 + b"\n", {}),
    "JSON of 100 MB": ("a.jsonl", b'{"sents": [' + b"[]," * 33 * 10**6, {}),
    "a word of 100 MB": ("a.conllu", b"1\t" + b"x" * 10**8, {}),
    "many spaces": ("a.conllu", b"1" + b" " * 10**5 + b"\n", {}),
    "many features": ("a.conllu", _WORD % (b"A=B|" * 10**5, b"_", b"_"), {}),
    "many edges": ("a.conllu", _WORD % (b"_", b"4:obj|" * 10**5, b"_"), {}),
    "many remarks": ("a.conllu", _WORD % (b"_", b"_", b"A=B|" * 10**5), {}),
    "a number with many dots": ("a.conllu", b"1" + b".1" * 10**5 + b"\ta\n\n", {}),
    "many brackets": (
        *("a.conllu", b"# newdoc id = x\n" + _WORD % (b"_", b"_", b"Entity=" + b"(e1" * 10**5)),
        {"passage": 30},
    ),
    "many quotes": ("a.csv", b'a,b\n"' + b'""' * 10**6 + b"\n", {}),
    "a long passage": (
        *("a.tsv", _GAP + b"1\t" + b"a'b-" * 50_000 + b"\ta\t0\ta\t0\tTRUE\tb\t2\tFALSE\tx\n"),
        {},
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_text_is_read_within_bounds(name: str, tmp_path: Path) -> None:
    file, data, how = TEXTS[name]
    target = Target(name, file, lambda _: None, lambda at: list(read_corpus(at / file, **how)))
    trial = try_out(target, tmp_path, data)
    assert trial.ended != "crash", trial.why
