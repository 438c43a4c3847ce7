"""`headcount survey` with annotated text: what it prints, keeps and refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from headcount.bundle import sample
from headcount.records.run import FRAMES, Run

Command = Callable  # see conftest.py
Saved = Callable[[str], Path]

TREE = """# text = Rain fell
1\tRain\train\tNOUN\t_\t_\t2\tnsubj\t_\t_
2\tfell\tfall\tVERB\t_\t_\t0\troot\t_\t_

"""


@pytest.fixture
def desk(headcount: Command, tmp_path: Path) -> Path:
    """A folder with a few corpora, some of which lack what they should have."""
    (tmp_path / "s.txt").write_text("Rain fell.\nIt stopped.\nThe wind came back.\n")
    bare = TREE.replace("\t2\tnsubj", "\t_\t_").replace("\t0\troot", "\t_\t_")
    (tmp_path / "bare.conllu").write_text(bare)
    (tmp_path / "tree.conllu").write_text(TREE * 4)
    (tmp_path / "counts.tsv").write_text("rain\tmany\n")
    (tmp_path / "plain.jsonl").write_text('{"sents": [["Rain", "fell"]], "clusters": []}\n')
    return tmp_path


def test_a_treebank_is_told_in_roles(headcount: Command, saved: Saved) -> None:
    ended = headcount("survey", saved("bert"), "--treebank", "sample", "--limit", 30)
    assert ended.code == 0, ended.err
    assert " of 8 heads " in ended.out.splitlines()[0]
    assert "coreference (--coref), argument (--arguments)." in " ".join(ended.out.split())
    assert "30 sentences of sample.conllu" in ended.out
    assert "confidence" not in ended.out  # the columns are there for those who ask


def test_columns_are_shown_beside_roles_when_chosen(headcount: Command, saved: Saved) -> None:
    words = ["--treebank", "sample", "--limit", 8, "--columns", "self,next"]
    ended = headcount("survey", saved("bert"), *words)
    assert "Self" in ended.out
    assert "a role that we can name" in ended.out


def test_json_has_the_verdicts(headcount: Command, saved: Saved) -> None:
    words = ["--treebank", "sample", "--limit", 20, "--control", "random-init", "--twins", 2]
    ended = headcount("survey", saved("bert"), *words, "--json")
    told = json.loads(ended.out)
    assert isinstance(told["roles"], list)
    for verdict in told["roles"]:
        assert set(FRAMES["roles"]) == set(verdict)
    assert "rare" in told["columns"]


def test_plain_text_is_not_judged_unless_asked(
    desk: Path, headcount: Command, saved: Saved
) -> None:
    plain = headcount("survey", saved("bert"), "--text", "s.txt", "--json")
    assert "roles" not in json.loads(plain.out)
    asked = headcount("survey", saved("bert"), "--text", "s.txt", "--roles")
    assert "Not asked: syntactic (--treebank)" in " ".join(asked.out.split())


def test_a_run_keeps_every_frame(desk: Path, headcount: Command, saved: Saved) -> None:
    words = ["--treebank", "sample", "--coref", "sample", "--control", "random-init"]
    ended = headcount("survey", saved("bert"), *words, "--limit", 20, "-o", "run")
    assert ended.code == 0, ended.err
    run = Run.open("run", create=False)
    assert {"relations", "roles", "control", "coreference"} <= set(run.frames)
    relations = run.read_frame("relations")
    assert {*FRAMES["relations"], "control"} <= set(relations.columns)
    assert isinstance(run.read_table().details["roles"], pd.DataFrame)


def test_a_translator_reads_the_sample_with_its_translations(
    headcount: Command, saved: Saved
) -> None:
    ended = headcount("survey", saved("marian"), "--treebank", "sample", "--limit", 6)
    assert ended.code == 0, ended.err
    assert "6 pairs of sample.conllu" in " ".join(ended.out.split())


def test_a_translators_own_words_keep_the_trees(headcount: Command, saved: Saved) -> None:
    words = ["--treebank", sample.path(), "--limit", 3, "--own-output", "-o", "run"]
    ended = headcount("survey", saved("marian"), *words)
    assert ended.code == 0, ended.err
    assert "in its own words" in " ".join(ended.out.split())
    assert "enc" in set(Run.open("run", create=False).read_frame("relations")["stack"])


def test_text_and_treebank_are_both_told(desk: Path, headcount: Command, saved: Saved) -> None:
    ended = headcount("survey", saved("bert"), "--text", "s.txt", "--treebank", "tree.conllu")
    told = " ".join(ended.out.split())
    assert "3 sentences of s.txt" in told
    assert "4 sentences of tree.conllu" in told


WRONG = {
    "missing treebank": ("--treebank none.conllu", 1, "There is no file none.conllu"),
    "missing coreference": ("--coref none.jsonl", 1, "There is no file none.jsonl"),
    "missing arguments": ("--arguments none.jsonl", 1, "There is no file none.jsonl"),
    "no trees": ("--treebank bare.conllu", 1, "bare.conllu has no trees: no word has a HEAD"),
    "a plain text is no treebank": ("--treebank s.txt", 1, "s.txt has no trees"),
    "no clusters": ("--coref plain.jsonl", 1, "plain.jsonl has no coreference"),
    "no text to parse": ("--parser x.udpipe", 2, "No --text or --pairs was given"),
    "missing parser": ("--text s.txt --parser x.udpipe", 1, "x.udpipe"),
    "no such pipeline": ("--text s.txt --parser en_none", 2, "There is no parser 'en_none'"),
    "parser and treebank": (
        "--text s.txt --parser x.udpipe --treebank tree.conllu",
        2,
        "leave one of them out",
    ),
    "control": (
        "--treebank sample --control shuffle",
        2,
        "--control is 'shuffle'; choose random-init or random-but-embeddings.",
    ),
    "twins": ("--treebank sample --twins 0", 2, "--twins is 0; it must be 1 or more."),
    "rows": ("--treebank sample --word-rows last", 2, "--word-rows is 'last'; choose mean"),
    "counts": (
        "--treebank sample --word-frequencies counts.tsv",
        1,
        "Line 1 of counts.tsv is 'rain",
    ),
    "no counts": ("--treebank sample --word-frequencies no.tsv", 1, "There is no file no.tsv"),
    "language": (
        "--treebank sample --word-frequencies wordfreq:xx",
        2,
        "wordfreq has no language 'xx'",
    ),
}


@pytest.mark.parametrize(("words", "code", "message"), WRONG.values(), ids=WRONG)
def test_wrong_words_are_told_before_a_model_is_loaded(
    words: str, code: int, message: str, desk: Path, headcount: Command
) -> None:
    if "wordfreq" in words:
        pytest.importorskip("wordfreq")
    ended = headcount("survey", "no-such-model", *words.split())
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.startswith("Error: ")
    assert message in ended.err
    assert ended.err.count("\n") == 1


def test_a_relation_that_never_occurs(headcount: Command, saved: Saved) -> None:
    words = ["--treebank", "sample", "--limit", 5, "--relations", "nsubj,subject"]
    ended = headcount("survey", saved("bert"), *words)
    assert ended.code == 2
    assert "The relation 'subject' never occurs in this treebank" in ended.err


def test_no_rare_word_in_the_corpus(desk: Path, headcount: Command, saved: Saved) -> None:
    ended = headcount("survey", saved("bert"), "--text", "s.txt", "--roles")
    assert ended.code == 0
    told = " ".join(ended.out.split())
    assert "no sentence has a token that is not among the 500 most frequent of the corpus" in told
