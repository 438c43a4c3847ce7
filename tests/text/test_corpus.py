"""Tests of `text/corpus.py`."""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from headcount.bundle import sample
from headcount.errors import Fault, InputError, UsageError
from headcount.rooms.treebanks.conllu import side_by_side
from headcount.text import spaced
from headcount.text.corpus import Corpus, read_corpus, read_in_hand
from headcount.text.sentence import (
    Multiword,
    Pair,
    Predicate,
    Sentence,
    Span,
    Word,
    split_words,
    texts_of,
)

TEXTS = ["Rain fell.", "It stopped.", "Nobody noticed."]


def written(tmp_path: Path, text: str, name: str = "c.txt") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def texts(corpus: Corpus) -> list[tuple[str, ...]]:
    return [texts_of(item) for item in corpus]


def test_a_list_of_texts() -> None:
    corpus = read_corpus(TEXTS)
    assert list(corpus) == [Sentence(text) for text in TEXTS]
    assert len(corpus) == 3
    assert not corpus.paired
    assert corpus.name == "texts in hand"
    assert repr(corpus) == "Corpus('texts in hand', 3 sentences)"


def test_pairs_as_tuples_lists_or_pairs() -> None:
    corpus = read_corpus([("Rain.", "Regen."), ["Snow.", "Schnee."], Pair("Fog.", "Nebel.")])
    assert texts(corpus) == [("Rain.", "Regen."), ("Snow.", "Schnee."), ("Fog.", "Nebel.")]
    assert corpus.paired


def test_sentences_pass_as_they_are() -> None:
    sentence = Sentence("Rain fell.", comments={"id": "1"})
    assert next(iter(read_corpus([sentence]))) is sentence


def test_a_generator_can_be_gone_through_twice() -> None:
    corpus = read_corpus(text for text in TEXTS)
    assert list(corpus) == list(corpus)
    assert len(list(corpus)) == 3


def test_a_corpus_is_taken_as_it_is() -> None:
    corpus = read_corpus(TEXTS)
    assert read_corpus(corpus) is corpus
    assert len(read_corpus(corpus, limit=2)) == 2


def test_plain_lines(tmp_path: Path) -> None:
    path = written(tmp_path, "\ufeffRain fell.\r\n\r\n \t\r\nIt stopped.")
    corpus = read_corpus(path)
    assert texts(corpus) == [("Rain fell.",), ("It stopped.",)]
    assert [item.line for item in corpus] == [1, 4]
    assert corpus.skipped == {"blank lines": 2}
    assert corpus.name == str(path)


def test_blank_texts_in_hand_are_counted() -> None:
    assert read_corpus(["", "Rain.", "\u3000"]).skipped == {"blank lines": 2}


def test_nothing_skipped_is_said_plainly(tmp_path: Path) -> None:
    assert dict(read_corpus(TEXTS).skipped) == {}
    assert dict(read_corpus(written(tmp_path, "a\tb\n", "c.tsv")).skipped) == {}


def test_tsv_and_its_columns(tmp_path: Path) -> None:
    path = written(tmp_path, "1\tRain.\tRegen.\n", "c.tsv")
    assert texts(read_corpus(path)) == [("Rain.", "Regen.")], "a number is no text"
    assert texts(read_corpus(path, columns=(0, 1))) == [("1", "Rain.")]
    corpus = read_corpus(path, columns=(1, 2))
    assert texts(corpus) == [("Rain.", "Regen.")]
    assert corpus.skipped == {"columns not read": 1}


def test_conllu_keeps_its_account_when_limited(tmp_path: Path) -> None:
    one = "1\tRain\t_\t_\t_\t_\t0\troot\t_\t_\n1.1\tx\t_\t_\t_\t_\t_\t_\t_\t_\n\n"
    corpus = read_corpus(written(tmp_path, one * 3, "c.conllu"))
    assert (len(corpus), corpus.skipped) == (3, {"empty nodes": 3})
    assert corpus.limit(2).skipped == {"empty nodes": 3}
    assert len(list(corpus.limit(2))) == 2


def test_a_format_overrules_the_suffix(tmp_path: Path) -> None:
    path = written(tmp_path, "Rain.\tRegen.\n", "c.txt")
    assert not read_corpus(path).paired
    assert read_corpus(path, format="tsv").paired


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(b"Rain.\tRegen.\n")

    monkeypatch.setattr("sys.stdin", Stdin)
    corpus = read_corpus("-", format="tsv")
    assert texts(corpus) == texts(corpus) == [("Rain.", "Regen.")]


def test_the_hash_is_of_the_texts_not_of_the_file(tmp_path: Path) -> None:
    text = "Rain fell.\n\nIt stopped.\n"
    plain = written(tmp_path, text)
    windows = written(tmp_path, "\ufeff" + text.replace("\n", "\r\n"), "d.txt")
    (tmp_path / "e.txt.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "f.txt.xz").write_bytes(lzma.compress(text.encode()))
    paths = [plain, windows, tmp_path / "e.txt.gz", tmp_path / "f.txt.xz"]
    hashes = {read_corpus(path).hash for path in paths}
    hashes.add(read_corpus(["Rain fell.", "It stopped."]).hash)
    assert len(hashes) == 1


@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=4))
def test_the_hash_tells_texts_apart(found: list[str]) -> None:
    here = read_corpus(found).hash
    assert here == read_corpus(list(found)).hash
    assert here != read_corpus([*found, "x"]).hash
    assert here != read_corpus([*found[:-1], found[-1] + "x"]).hash
    if len(found) > 1:
        assert here != read_corpus(["".join(found)]).hash


def test_the_hash_of_half_a_character() -> None:
    assert read_corpus(["a\ud83d"]).hash != read_corpus(["a\ufffd"]).hash


TREE = (Word("Rain", head=2, deprel="nsubj"), Word("fell", head=0, deprel="root"))


@pytest.mark.parametrize(
    "other",
    [
        Sentence("Rain fell"),
        Sentence("Rain fell", (TREE[0], replace(TREE[1], deprel="obj"))),
        Sentence("Rain fell", (replace(TREE[0], head=0), replace(TREE[1], head=1))),
        Sentence("Rain fell", (replace(TREE[0], feats={"Number": "Sing"}), TREE[1])),
        Sentence("Rain fell", TREE, clusters=((Span(0, 0),),)),
        Sentence("Rain fell", TREE, predicates=(Predicate(1),)),
        Sentence("Rain fell", TREE, multiwords=(Multiword(1, 2, "Rain fell"),)),
        Sentence("Rain fell", TREE, comments={"doc": "tale"}),
    ],
)
def test_the_hash_covers_annotations(other: Sentence) -> None:
    """So that a stage of a run is done again when trees were corrected."""
    here = Sentence("Rain fell", TREE)
    assert read_corpus([here]).hash == read_corpus([here]).hash
    assert read_corpus([here]).hash != read_corpus([other]).hash
    assert read_corpus([(here, "x")]).hash != read_corpus([(other, "x")]).hash
    assert read_corpus([(here, other)]).hash != read_corpus([(other, here)]).hash


def test_the_hash_covers_what_a_parser_finds() -> None:
    def flat(text: str) -> Sentence:
        return Sentence(text, split_words(text))

    def deep(text: str) -> Sentence:
        return Sentence(text, tuple(replace(word, head=0) for word in split_words(text)))

    one, two = (read_corpus(["Rain fell."], parser=parser) for parser in (flat, deep))
    assert len({read_corpus(["Rain fell."]).hash, one.hash, two.hash}) == 3


def test_plain_texts_keep_their_hash() -> None:
    assert read_corpus(["Rain fell."]).hash.startswith("5c0db72810799b24")
    assert read_corpus([("Rain.", "Regen.")]).hash.startswith("86d12c153aa6772d")


def test_limit_takes_the_first() -> None:
    corpus = read_corpus(TEXTS).limit(2)
    assert texts(corpus) == [("Rain fell.",), ("It stopped.",)]
    assert len(corpus) == 2
    assert corpus.hash == read_corpus(TEXTS[:2]).hash


def test_limit_beyond_the_end_takes_all() -> None:
    corpus = read_corpus(TEXTS)
    assert len(corpus.limit(99)) == len(corpus.limit(99, seed=1)) == 3


def test_limit_with_a_seed_samples_in_order() -> None:
    numbers = [f"text {number}" for number in range(200)]
    corpus = read_corpus(numbers)
    one, two = corpus.limit(20, seed=1), corpus.limit(20, seed=2)
    assert texts(one) == texts(corpus.limit(20, seed=1))
    assert texts(one) != texts(two)
    places = [numbers.index(text) for (text,) in texts(one)]
    assert places == sorted(set(places))
    assert len(places) == 20
    assert places != list(range(20))


def test_limit_while_reading_reads_no_further(tmp_path: Path) -> None:
    path = written(tmp_path, "Rain.\nSnow.\n")
    with path.open("ab") as file:
        file.write(b"\xff broken\n")
    assert len(read_corpus(path, limit=2)) == 2
    with pytest.raises(InputError, match="is not UTF-8"):
        read_corpus(path, limit=2, seed=0)


@pytest.mark.parametrize("count", [0, -3])
def test_a_limit_is_at_least_one(count: int) -> None:
    with pytest.raises(UsageError, match=f"The limit is {count}; it must be 1 or more"):
        read_corpus(TEXTS).limit(count)
    with pytest.raises(UsageError, match="it must be 1 or more"):
        read_corpus(TEXTS, limit=count)


def test_a_file_that_changes_under_our_hands(tmp_path: Path) -> None:
    path = written(tmp_path, "Rain.\nSnow.\n")
    corpus = read_corpus(path)
    path.write_text("Rain.\n")
    with pytest.raises(InputError, match="had 2 sentences and now has 1: it changed"):
        list(corpus)


def test_a_long_file_is_not_held_in_memory(tmp_path: Path) -> None:
    corpus = read_corpus(written(tmp_path, "Rain.\nSnow.\n"))
    first, again = next(iter(corpus)), next(iter(corpus))
    assert first == again
    assert first is not again


@pytest.mark.parametrize("text", ["", "\n \n\n"])
def test_an_empty_file(text: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    blank = " (3 blank lines skipped)" if text else ""
    with pytest.raises(InputError) as caught:
        read_corpus(path)
    assert str(caught.value) == f"{path} is empty: it has no sentence{blank}."


def test_an_empty_list() -> None:
    with pytest.raises(InputError, match="texts in hand is empty: it has no sentence"):
        read_corpus([])


@pytest.mark.parametrize(
    ("items", "said"),
    [
        (["Rain.", ("a", "b")], "texts in hand mixes sentences and pairs; give one kind."),
        ([("a", "b", "c")], "Item 1 of the texts in hand has 3 parts; a pair has two."),
        (["Rain.", 7], "Item 2 of the texts in hand is a int; a corpus holds strings"),
        ([("a", None)], "Item 1 of the texts in hand is a tuple; a corpus holds strings"),
        ([("a", " ")], "Pair 1 of the texts in hand has no target."),
        ([("", "b")], "Pair 1 of the texts in hand has no source."),
    ],
)
def test_faulty_items_are_named(items: list[object], said: str) -> None:
    with pytest.raises(InputError) as caught:
        read_corpus(items)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize("source", [b"Rain.", {"a": 1}, 7])
def test_what_is_no_corpus(source: object) -> None:
    with pytest.raises(InputError, match="is not a corpus; pass a list of texts"):
        read_corpus(source)  # type: ignore[arg-type]


def test_a_missing_file_with_an_odd_suffix_is_missing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no file"):
        read_corpus(tmp_path / "corpus.json")


@pytest.mark.data
def test_real_corpora(data_dir: Path) -> None:
    dev = read_corpus(data_dir / "parallel" / "tatoeba.en-de.dev.tsv")
    assert (len(dev), dev.paired, dict(dev.skipped)) == (2500, True, {})
    train = read_corpus(data_dir / "parallel" / "tatoeba.en-de.train.tsv.xz", limit=1000)
    assert train.skipped == {"columns not read": 1}
    assert len(read_corpus(data_dir / "text" / "wikitext2-paragraphs.txt.xz")) == 3000
    stanford = read_corpus(data_dir / "treebanks" / "en_gum5-stanford-train.conll.xz")
    assert stanford.skipped.total() == 3, "the three that the data's notes speak of"


# ---  -------------------------------------------------------------------------------------------


RAIN = Sentence("Rain fell.", (Word("Rain"), Word("fell"), Word(".")))


def test_words_without_a_place_are_looked_up() -> None:
    (found,) = read_in_hand([RAIN], Counter())
    assert isinstance(found, Sentence)
    assert [(word.start, word.end) for word in found.words or ()] == [(0, 4), (5, 9), (9, 10)]
    (pair,) = read_in_hand([Pair("Rain fell.", "x", annotated=(RAIN, None))], Counter())
    assert isinstance(pair, Pair)
    assert pair.annotated == (found, None)


def test_words_of_another_text_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        list(read_in_hand(["x", Sentence("Snow fell.", RAIN.words)], Counter()))
    assert str(caught.value) == (
        "Item 2 of the texts in hand has words that do not make up its text, 'Snow fell.'; give "
        "each word its start and end."
    )


def test_a_pair_of_sentences_keeps_their_words() -> None:
    (found,) = read_in_hand([(RAIN, "Regen fiel.")], Counter())
    assert isinstance(found, Pair)
    assert (found.source, found.target) == ("Rain fell.", "Regen fiel.")
    first, second = found.annotated
    assert first is not None
    assert second is None
    assert first.words is not None
    assert first.words[1].start == 5


# ---  -------------------------------------------------------------------------------------------


COREF = '{"sents": [["Go"]], "clusters": []}\n'
PREDICATES = '{"tokens": ["Go"], "preds": []}\n'


def written_readers(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("text", [COREF, PREDICATES, "\n" + COREF])
def test_json_lines_are_told_by_their_keys(text: str, tmp_path: Path) -> None:
    (found,) = read_corpus(written_readers(tmp_path, "a.jsonl", text))
    assert isinstance(found, Sentence)
    assert found.text == "Go"


@pytest.mark.parametrize(
    ("text", "keys"),
    [('{"label": 1}', "label"), ("[1]", "no keys"), ("{", "no keys"), ("", "no keys")],
)
def test_other_json_lines_are_refused(text: str, keys: str, tmp_path: Path) -> None:
    path = written_readers(tmp_path, "a.jsonl", text)
    with pytest.raises(InputError) as caught:
        read_corpus(path)
    assert str(caught.value) == (
        f"{path} has a first line with {keys}; JSON lines of a corpus have text, tokens "
        "and preds (predicates) or sents and clusters (coref); name the format with "
        "--input format= (format=)."
    )


def test_a_format_overrules_the_first_line(tmp_path: Path) -> None:
    path = written_readers(tmp_path, "a.jsonl", '{"text": "Go"}\n' + COREF)
    corpus = read_corpus(path, format="coref")
    assert len(corpus) == 1
    assert corpus.skipped == {"lines without sents and clusters": 1}


def test_a_treebanks_comments_hold_translations() -> None:
    corpus = read_corpus(sample.path(), translation="text_de")
    assert corpus.paired
    assert corpus.annotated
    assert [
        (item.source, item.target) for item in corpus if isinstance(item, Pair)
    ] == sample.pairs()
    first = next(iter(corpus))
    assert isinstance(first, Pair)
    source, target = first.annotated
    assert target is None
    assert source is not None
    assert source.has_tree
    assert corpus.hash != read_corpus(sample.path("sample.en-de.tsv")).hash, "it has trees"


def test_translations_that_are_not_there() -> None:
    with pytest.raises(InputError, match=r"has no comment 'text_fr'; .* such as text_de"):
        read_corpus(sample.path(), translation="text_fr")
    with pytest.raises(UsageError, match="only a treebank's comments hold translations"):
        read_corpus(sample.path("sample.txt"), translation="text_de")


def test_a_strict_reader_refuses_what_another_skips(tmp_path: Path) -> None:
    good, bad = "1\tGo\t_\t_\t_\t_\t0\troot\t_\t_\n", "1\tGo\t_\t_\t_\t_\t7\troot\t_\t_\n"
    path = written_readers(tmp_path, "a.conllu", f"{good}\n{bad}")
    assert read_corpus(path).skipped == {"sentences with a head out of range": 1}
    with pytest.raises(InputError, match="a head out of range: word 1"):
        read_corpus(path, strict=True)


def test_pairs_between_commas_have_a_header(tmp_path: Path) -> None:
    path = written_readers(tmp_path, "a.csv", 'id,en,de\n1,"Rain, snow.",Regen.\n')
    assert list(read_corpus(path, columns=("en", "de"))) == [Pair("Rain, snow.", "Regen.")]
    assert list(read_corpus(path, columns=(1, 2))) == [Pair("Rain, snow.", "Regen.")]
    assert len(read_corpus(path, columns=(1, 2), header=False)) == 2
    tabs = written_readers(tmp_path, "a.tsv", "en\tde\nRain.\tRegen.\n")
    assert len(read_corpus(tabs)) == 2
    assert list(read_corpus(tabs, header=True)) == [Pair("Rain.", "Regen.")]
    assert list(read_corpus(tabs, columns=("de", "en"))) == [Pair("Regen.", "Rain.")]


# --- Tables, folders, patterns and datasets ------------------------------------------------------

REVIEWS = [("A fine film.", 1), ("Dull, and long.", 0), ("I left early.", 0)]


def reviews(folder: Path, name: str) -> Path:
    """The same three reviews with labels, in any of the formats and packings."""
    path, kind = folder / name, name.split(".")[1]
    if kind in ("parquet", "arrow"):
        table = pa.table({"label": [y for _, y in REVIEWS], "text": [x for x, _ in REVIEWS]})
        sink = pa.BufferOutputStream()
        if kind == "parquet":
            parquet.write_table(table, sink)
        else:
            with pa.ipc.new_stream(sink, table.schema) as stream:
                stream.write_table(table)
        raw = sink.getvalue().to_pybytes()
    elif kind == "jsonl":
        raw = "".join(json.dumps({"label": y, "text": x}) + "\n" for x, y in REVIEWS).encode()
    elif kind == "txt":
        raw = "".join(f"{x}\n" for x, _ in REVIEWS).encode()
    else:
        rows = [["label", "text"], *([str(y), x] for x, y in REVIEWS)]
        room = io.StringIO()
        csv.writer(room, delimiter="," if kind == "csv" else "\t", lineterminator="\n").writerows(
            rows
        )
        raw = room.getvalue().encode()
    packing = path.suffix
    if packing == ".zst":
        with pa.CompressedOutputStream(pa.OSFile(str(path), "wb"), "zstd") as file:
            file.write(raw)
    else:
        opener = {".gz": gzip.open, ".xz": lzma.open}.get(packing, open)
        with opener(path, "wb") as file:
            file.write(raw)
    return path


@pytest.mark.parametrize("packing", ["", ".gz", ".xz", ".zst"])
@pytest.mark.parametrize("kind", ["txt", "jsonl", "csv", "tsv", "parquet", "arrow"])
def test_labels_are_never_half_of_a_pair(kind: str, packing: str, tmp_path: Path) -> None:
    path = reviews(tmp_path, f"reviews.{kind}{packing}")
    corpus = read_corpus(path)
    assert not corpus.paired
    assert [item.text for item in corpus] == [text for text, _ in REVIEWS]
    assert corpus.skipped["header lines"] == (kind in ("csv", "tsv"))
    if kind != "txt":
        assert corpus.skipped["columns not read"] == 1
        assert [item.text for item in read_corpus(path, column="text", limit=1)] == ["A fine film."]
        with pytest.raises(InputError, match=r"has no column 'txt' .closest: text.; it has label"):
            read_corpus(path, column="txt")


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("a.csv", "A fine film.,1\nDull.,0\n", ["A fine film.", "Dull."]),  # no header
        ("a.tsv", "1\tA fine film.\n0\tDull.\n", ["A fine film.", "Dull."]),
        ("a.csv", "what,stars\n" + "Good film.,pos\nBad one.,neg\n" * 4, None),
        ("a.tsv", "Only one column.\nAnd no tab.\n", ["Only one column.", "And no tab."]),
        ("a.csv", "text,label\n,1\nGood.,0\n", ["Good."]),
        ("a.jsonl", '{"review": "Good.", "stars": 4}\n{"stars": 1}\nx\n', ["Good."]),
    ],
)
def test_the_text_of_a_table_is_found(
    name: str, text: str, found: list[str] | None, tmp_path: Path
) -> None:
    corpus = read_corpus(written_readers(tmp_path, name, text))
    assert not corpus.paired
    assert [item.text for item in corpus] == (found or ["Good film.", "Bad one."] * 4)


def test_what_was_left_out_of_a_table_is_counted(tmp_path: Path) -> None:
    text = '{"review": "Good.", "stars": 4}\n{"stars": 1}\nx\n[2]\n'
    path = written_readers(tmp_path, "a.jsonl", text)
    assert dict(read_corpus(path).skipped) == {
        "columns not read": 1,
        "rows without text": 1,
        "lines that are not JSON": 1,
        "lines that are no JSON object": 1,
    }
    with pytest.raises(Fault, match="line 3 is not JSON"):
        read_corpus(path, strict=True)


def test_a_table_that_does_not_say_its_text_is_refused(tmp_path: Path) -> None:
    three = written_readers(tmp_path, "a.csv", "x,y,z\nRain fell.,It did.,So what.\n")
    with pytest.raises(InputError) as caught:
        read_corpus(three)
    assert str(caught.value) == (
        f"{three} has 3 columns that could be the text among x, y, z; name the one to read with "
        "--input column=NAME (column=), or two of a pair with columns=."
    )
    assert [item.text for item in read_corpus(three, column=2)] == ["So what."]
    numbers = written_readers(tmp_path, "b.csv", "x,y\n1,2\n")
    with pytest.raises(InputError, match="has no column of text among x, y; name the one"):
        read_corpus(numbers)


def test_folders_and_patterns_stand_for_their_files(tmp_path: Path) -> None:
    reviews(tmp_path, "b.jsonl.zst")
    reviews(tmp_path, "a.csv.gz")
    (tmp_path / "deeper").mkdir()
    reviews(tmp_path / "deeper", "c.parquet")
    (tmp_path / "README.md").write_text("no corpus")
    corpus = read_corpus(tmp_path)
    assert (len(corpus), corpus.name) == (9, f"{tmp_path} (3 files)")
    assert corpus.hash == read_corpus([text for text, _ in REVIEWS] * 3).hash
    assert len(read_corpus(f"{tmp_path}/*.gz")) == 3
    assert len(read_corpus(str(tmp_path / "**" / "*.parquet"), column="text")) == 3
    with pytest.raises(InputError, match=r"No file is called .*x\*; check the pattern"):
        read_corpus(f"{tmp_path}/x*")
    (tmp_path / "b.jsonl.zst").write_bytes(b"no such packing")
    with pytest.raises(InputError, match=r"b\.jsonl\.zst cannot be read: ZSTD decompress failed"):
        read_corpus(tmp_path)


def test_a_damaged_binary_table_is_named(tmp_path: Path) -> None:
    for name in ("a.parquet", "a.arrow"):
        path = written_readers(tmp_path, name, "this is no table")
        with pytest.raises(InputError, match=rf"{name} cannot be read as {name[2:]}: .*fetch it"):
            read_corpus(path)


def test_a_saved_dataset_folder_is_one_table(tmp_path: Path) -> None:
    """As `Dataset.save_to_disk` writes it: Arrow streams beside two files that describe them."""
    (tmp_path / "train").mkdir()
    for number in range(2):
        reviews(tmp_path / "train", "x.arrow").rename(
            tmp_path / "train" / f"data-{number:05}-of-00002.arrow"
        )
    for name in ("dataset_info.json", "state.json"):
        (tmp_path / "train" / name).write_text("{}")
    assert len(read_corpus(tmp_path / "train")) == 6
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train"]}')
    with pytest.raises(InputError, match=r"is a dataset with the splits train; give one .*/train"):
        read_corpus(tmp_path)


class Dataset:
    """What `read_corpus` uses of a dataset of Hugging Face's `datasets`."""

    split = "train"

    def __init__(self, rows: list[dict[str, object]]) -> None:
        self.rows = rows

    @property
    def column_names(self) -> list[str]:
        return list(self.rows[0])

    def __iter__(self) -> Iterator[dict[str, object]]:
        return iter(self.rows)

    def select_columns(self, names: list[str]) -> Dataset:
        return Dataset([{name: row[name] for name in names} for row in self.rows])


def test_dataset_objects_are_tables() -> None:
    dataset = Dataset([{"idx": n, "sentence": text} for n, (text, _) in enumerate(REVIEWS)])
    corpus = read_corpus(dataset)
    assert (len(corpus), corpus.name) == (3, "dataset train, column sentence")
    with pytest.raises(InputError, match="has the splits train; pass one of them"):
        read_corpus({"train": dataset})


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl.zst", "a.csv.gz", "a.parquet"])
def test_a_large_file_takes_little_memory(name: str, tmp_path: Path) -> None:
    """Read twice, whole, of 12 MB no more than 2 are ever held."""
    row = "A sentence that is neither long nor short, and stands here often. " * 16
    count = 12_000_000 // len(row)
    path, kind = tmp_path / name, name.split(".")[1]
    if kind == "parquet":
        table = pa.table({"text": [f"{number} {row}" for number in range(count)]})
        parquet.write_table(table, path, row_group_size=512)
        del table
    else:
        line = {"jsonl": json.dumps({"text": row}), "csv": f'"{row}",1', "txt": row}[kind] + "\n"
        sink: Any = pa.OSFile(str(path), "wb")
        if path.suffix == ".zst":
            sink = pa.CompressedOutputStream(sink, "zstd")
        with gzip.open(path, "wb") if path.suffix == ".gz" else sink as file:
            for _ in range(0, count, 100):
                file.write(line.encode() * 100)
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        corpus = read_corpus(path)
        assert sum(1 for _ in corpus) == len(corpus) >= count
        held = tracemalloc.get_traced_memory()[1] + pa.total_allocated_bytes() - before
    finally:
        tracemalloc.stop()
    assert held < 2_000_000, f"{held:,} bytes were held at once"


# ---  -------------------------------------------------------------------------------------------


def numbered(number: str, *forms: str) -> Sentence:
    return spaced([Word(form) for form in forms], comments={"sent_id": number})


def test_each_side_keeps_its_words() -> None:
    english = read_corpus([numbered("1", "Rain", "."), Sentence("Go!")])
    german = read_corpus([numbered("1", "Regen", "."), Sentence("Geh!")])
    found = side_by_side(english, german)
    first, second = found
    assert isinstance(first, Pair)
    assert isinstance(second, Pair)
    assert (first.source, first.target) == ("Rain .", "Regen .")
    assert [each and [word.form for word in each.words or ()] for each in first.annotated] == [
        ["Rain", "."],
        ["Regen", "."],
    ]
    assert second.annotated == (None, None)
    assert found.paired
    assert found.annotated


def test_corpora_that_do_not_belong_together_are_refused() -> None:
    one, two = read_corpus([numbered("1", "Rain")]), read_corpus([numbered("2", "Regen")])
    with pytest.raises(InputError, match="The sentences 1 and 2 stand side by side"):
        side_by_side(one, two)
    with pytest.raises(InputError, match="has 1 sentences and texts in hand has 2; side by side"):
        side_by_side(one, read_corpus(["a", "b"]))
    with pytest.raises(InputError, match="texts in hand holds pairs already"):
        side_by_side(one, read_corpus([("a", "b")]))
