"""Sizes that a small file only declares, lines without end, and text made to stall a pattern."""

from __future__ import annotations

import gzip
import io
import json
import struct
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fuzz.targets import Target
from fuzz.trial import try_out
from gguf_files import write_llama
from subjects import save
from tiny import TINY

import headcount as hc
from headcount.errors import InputError, RunError
from headcount.records import parquet
from headcount.rooms.arrow import reading
from headcount.rooms.exhibits import Exhibit, Text, read_exhibits, write_exhibits
from headcount.rooms.probing.data import read_vectors
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

_CHAIN = b"".join(b"%d\ta\ta\tX\t_\t_\t%d\troot\t_\t_\n" % (n, n - 1) for n in range(1, 100_001))

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
    "a sentence of 25 million lines": ("a.conllu.gz", gzip.compress(b"# x\n" * 25_000_000, 1), {}),
    "a chain of 100,000 words": ("a.conllu", _CHAIN, {}),
    "a text of 4 million lines": ("a.conll", b"1\ta\n" * 4_000_000, {}),
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


# --- Files of a run -----------------------------------------------------------------------------


def _exhibit(folder: Path, members: dict[str, bytes]) -> None:
    """A run whose one exhibit has these members."""
    text = Text(["Rain"], [False])
    seen = Exhibit("one", "Rain", {"src": text}, {"enc": ("src", "src")}, _MAPS)
    with hc.Run.open(folder / "run") as run:
        write_exhibits(run, [seen])
    with zipfile.ZipFile(folder / "run/exhibits/one.npz", "w", zipfile.ZIP_DEFLATED, True, 1) as to:
        for name, data in members.items():
            with to.open(name, "w") as file:
                for _ in range(1 if len(data) < 10**6 else 400):
                    file.write(data)


def _npy(count: int) -> bytes:
    sink = io.BytesIO()
    about = {"descr": "<f2", "fortran_order": False, "shape": (count,)}
    np.lib.format.write_array_header_1_0(sink, about)
    return sink.getvalue()


_MAPS = {("enc", 0): np.ones((1, 1, 1), dtype=np.float32)}
EXHIBITS = {
    "zeros": {"enc.0.npy": _npy(2 * 10**8) + b"\0" * 10**6},
    "a lie": {"enc.0.npy": _npy(10**12)},
    "many": {f"enc.{n}.npy": _npy(10**7) for n in range(100)},
}


@pytest.mark.parametrize("name", EXHIBITS)
def test_an_exhibit_is_refused_before_it_takes_the_memory(name: str, tmp_path: Path) -> None:
    _exhibit(tmp_path, EXHIBITS[name])
    file = tmp_path / "run/exhibits/one.npz"
    read = partial(read_exhibits, tmp_path / "run")
    target = Target(name, "run/exhibits/one.npz", lambda _: None, lambda _: read(), named="")
    trial = try_out(target, tmp_path, file.read_bytes())
    assert trial.ended == "refused", trial.why
    assert trial.megabytes < 100
    with pytest.raises(RunError, match=r"would take .* bytes of memory, and such a file at most"):
        read()


def test_a_table_that_unpacks_to_more_than_it_may_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pd.DataFrame({"a": np.zeros(10**5)})
    (tmp_path / "a.parquet").write_bytes(parquet.frame_bytes(frame))
    assert len(parquet.read_frame(tmp_path / "a.parquet")) == 10**5
    monkeypatch.setattr(parquet, "_MOST", 10**5)
    with pytest.raises(RunError, match=r"would take 8\d{5}|would take 8\d\d,\d{3} bytes of memory"):
        parquet.read_frame(tmp_path / "a.parquet")


# --- Binary files of strings: a kilobyte that holds a long string many times ---------------------

LONG = "a" * (1 << 16)
_ONE = pa.DictionaryArray.from_arrays(pa.array([0] * 2000, pa.int32()), pa.array([LONG]))


def _parquet(folder: Path, texts: pa.Array | None = None, **how: Any) -> None:
    texts = pa.array([LONG] * 500) if texts is None else texts
    pq.write_table(pa.table({"text": texts}), folder / "a.parquet", compression="zstd", **how)


def _arrow(folder: Path, texts: pa.Array | None = None, **how: Any) -> None:
    table = pa.table({"text": pa.array([LONG] * 500) if texts is None else texts})
    options = pa.ipc.IpcWriteOptions(**how)
    with pa.ipc.new_stream(folder / "a.arrow", table.schema, options=options) as stream:
        stream.write_table(table)


def _gzipped(folder: Path) -> None:
    with gzip.open(folder / "a.parquet.gz", "wb", compresslevel=1) as file:
        file.write(b"\0" * (1 << 25))


_BY_BEGIN = {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}}
BINARY: dict[str, Callable[[Path], None]] = {
    "dictionary": partial(_parquet, texts=_ONE),
    "packed pages": partial(_parquet, use_dictionary=False),
    "beginnings": partial(_parquet, **_BY_BEGIN),
    "lists": partial(_parquet, texts=pa.ListArray.from_arrays([0, 2000], _ONE)),
    "Arrow, dictionary": partial(_arrow, texts=_ONE),
    "Arrow, packed": partial(_arrow, compression="zstd"),
    "Arrow, packed dictionary": partial(_arrow, texts=_ONE, compression="lz4"),
    "gzip": _gzipped,
}


@pytest.mark.parametrize("name", BINARY)
def test_a_file_of_strings_is_refused_before_it_takes_the_memory(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a sixteenth of the limit, so that the test takes no memory either."""
    monkeypatch.setattr(reading, "_SMALL", 16 << 20)
    BINARY[name](tmp_path)
    (file,) = tmp_path.iterdir()

    def read(_: Path) -> None:
        with pytest.raises(InputError, match=r"unpack to [\d,]+ bytes or more, over 100 times its"):
            read_corpus(file)

    target = Target(name, file.name, lambda _: None, read, named=file.name)
    trial = try_out(target, tmp_path, file.read_bytes())
    assert trial.ended == "read", trial
    assert trial.megabytes < 40


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_a_packed_arrow_stream_is_read(compression: str | None, tmp_path: Path) -> None:
    texts = pa.array([f"Rain fell {number} times." for number in range(1000)])
    for given in (texts, texts.dictionary_encode()):
        _arrow(tmp_path, given, compression=compression)
        assert [one.text for one in read_corpus(tmp_path / "a.arrow")] == texts.to_pylist()


@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_every_way_to_write_strings_is_read(encoding: str, tmp_path: Path) -> None:
    texts = pa.array([f"Rain fell {number} times." for number in range(1000)])
    _parquet(tmp_path, texts, use_dictionary=False, column_encoding={"text": encoding})
    assert [one.text for one in read_corpus(tmp_path / "a.parquet")] == texts.to_pylist()


def test_a_table_of_one_long_name_many_times_is_refused(tmp_path: Path) -> None:
    """The same in a run: `heads.parquet` is read whole."""
    many = pa.array([0] * 20_000, pa.int32())
    _parquet(tmp_path, pa.DictionaryArray.from_arrays(many, pa.array([LONG])))
    with pytest.raises(RunError, match="would take 1,310,720,000 bytes of memory"):
        parquet.read_frame(tmp_path / "a.parquet")


def test_vectors_that_unpack_to_more_than_they_may_are_refused(tmp_path: Path) -> None:
    """4 MB that come to 4 GB."""
    zeros, header = bytes(1 << 20), io.BytesIO()
    about = {"descr": "<f4", "fortran_order": False, "shape": (1 << 20, 1 << 10)}
    np.lib.format.write_array_header_1_0(header, about)
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        with packed.open("vectors.npy", "w", force_zip64=True) as member:
            member.write(header.getvalue())
            for _ in range(1024):
                member.write(zeros)
        packed.writestr("words.npy", b"")
    target = Target("vectors", "a.npz", lambda _: None, lambda at: read_vectors(at / "a.npz"))
    trial = try_out(target, tmp_path, (tmp_path / "a.npz").read_bytes())
    assert trial.ended == "refused", trial.why
    assert trial.megabytes < 300
    with pytest.raises(InputError, match=r"comes to 1,024 MiB, over a hundred times its size"):
        read_vectors(tmp_path / "a.npz")
