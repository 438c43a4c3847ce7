from __future__ import annotations

import gzip
import io
import lzma
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.errors import InputError, UsageError
from headcount.text.corpus import Corpus, read_corpus
from headcount.text.sentence import Pair, Sentence, texts_of

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
    assert texts(read_corpus(path)) == [("1", "Rain.")]
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
    trees = [item.has_tree for item in stanford if isinstance(item, Sentence)]
    assert trees.count(False) == 3, "the three that the data's notes speak of"
