from __future__ import annotations

from pathlib import Path

import pytest

from headcount.bundle import sample
from headcount.errors import InputError, UsageError
from headcount.text.corpus import read_corpus
from headcount.text.sentence import Pair, Sentence

COREF = '{"sents": [["Go"]], "clusters": []}\n'
PREDICATES = '{"tokens": ["Go"], "preds": []}\n'


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("text", [COREF, PREDICATES, "\n" + COREF])
def test_json_lines_are_told_by_their_keys(text: str, tmp_path: Path) -> None:
    (found,) = read_corpus(written(tmp_path, "a.jsonl", text))
    assert isinstance(found, Sentence)
    assert found.text == "Go"


@pytest.mark.parametrize(
    ("text", "keys"),
    [('{"text": "Go"}', "text"), ("[1]", "no keys"), ("{", "no keys"), ("", "no keys")],
)
def test_other_json_lines_are_refused(text: str, keys: str, tmp_path: Path) -> None:
    path = written(tmp_path, "a.jsonl", text)
    with pytest.raises(InputError) as caught:
        read_corpus(path)
    assert str(caught.value) == (
        f"{path} has a first line with {keys}; JSON lines of a corpus have sents and clusters "
        "(coreference) or tokens and preds (predicates); say which they should be with --format "
        "(format=)."
    )


def test_a_format_overrules_the_first_line(tmp_path: Path) -> None:
    path = written(tmp_path, "a.jsonl", '{"text": "Go"}\n' + COREF)
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
    assert corpus.hash == read_corpus(sample.path("sample.en-de.tsv")).hash


def test_translations_that_are_not_there() -> None:
    with pytest.raises(InputError, match=r"has no comment 'text_fr'; .* such as text_de"):
        read_corpus(sample.path(), translation="text_fr")
    with pytest.raises(UsageError, match="only a treebank's comments hold translations"):
        read_corpus(sample.path("sample.txt"), translation="text_de")


def test_a_strict_reader_refuses_what_another_skips(tmp_path: Path) -> None:
    good, bad = "1\tGo\t_\t_\t_\t_\t0\troot\t_\t_\n", "1\tGo\t_\t_\t_\t_\t7\troot\t_\t_\n"
    path = written(tmp_path, "a.conllu", f"{good}\n{bad}")
    assert read_corpus(path).skipped == {"sentences with a head out of range": 1}
    with pytest.raises(InputError, match="a head out of range: word 1"):
        read_corpus(path, strict=True)


def test_pairs_between_commas_have_a_header(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", 'id,en,de\n1,"Rain, snow.",Regen.\n')
    assert list(read_corpus(path, columns=("en", "de"))) == [Pair("Rain, snow.", "Regen.")]
    assert list(read_corpus(path, columns=(1, 2))) == [Pair("Rain, snow.", "Regen.")]
    assert len(read_corpus(path, columns=(1, 2), header=False)) == 2
    tabs = written(tmp_path, "a.tsv", "en\tde\nRain.\tRegen.\n")
    assert len(read_corpus(tabs)) == 2
    assert list(read_corpus(tabs, header=True)) == [Pair("Rain.", "Regen.")]
    assert list(read_corpus(tabs, columns=("de", "en"))) == [Pair("Regen.", "Rain.")]
