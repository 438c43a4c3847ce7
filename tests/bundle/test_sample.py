"""The bundled sample: well formed, rich enough, and the same in each of its files."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from statistics import mean

import pytest
from bundle.ud_validator import Tree, faults, mentions, read
from scripts_of import script

from headcount.bundle import sample
from headcount.errors import UsageError
from headcount.text.corpus import read_corpus
from headcount.text.sentence import Pair

TEXT = sample.path().read_text(encoding="utf8")
TREES = read(TEXT)
FILES = script("sample_files")

#: What a head may be asked about must occur often enough to be asked about.
FLOORS = {
    **dict.fromkeys(("nsubj", "det", "case", "obl", "obj", "advmod"), 100),
    **dict.fromkeys(("conj", "cc", "nmod:poss", "aux", "mark", "nmod", "amod", "cop"), 50),
    **dict.fromkeys(("advcl", "xcomp", "ccomp", "acl:relcl", "nummod", "compound"), 25),
    **dict.fromkeys(("aux:pass", "nsubj:pass", "compound:prt", "iobj", "obl:unmarked"), 20),
    **dict.fromkeys(("expl", "parataxis"), 10),
    **dict.fromkeys(("acl", "appos", "flat", "csubj", "vocative", "obl:agent"), 5),
}


def words(tree: Tree) -> list[str]:
    """The sentence's words, punctuation aside."""
    return [node.form for node in tree.nodes if node.upos != "PUNCT"]


def rich(clusters: dict[str, list[tuple[int, int]]]) -> bool:
    """Whether coreference has something to do here."""
    return len(clusters) >= 2 or any(len(spans) >= 3 for spans in clusters.values())


# --- the annotation -----------------------------------------------------------------------------


def test_the_treebank_has_no_faults() -> None:
    assert faults(TEXT) == []


def test_it_reads_as_trees_without_loss() -> None:
    corpus = read_corpus(sample.path())
    assert not corpus.skipped
    assert [sentence.text for sentence in corpus] == sample.sentences()
    assert all(sentence.has_tree for sentence in corpus)


def test_there_are_enough_sentences_of_the_right_length() -> None:
    lengths = [len(words(tree)) for tree in TREES]
    assert len(lengths) >= 220
    assert 9 <= mean(lengths) <= 11
    assert min(lengths) >= 4
    assert max(lengths) <= 22


def test_passages_are_short_and_many() -> None:
    sizes = [len(passage.sents) for passage in FILES.passages()]
    assert len(sizes) >= 45
    assert set(sizes) <= {4, 5, 6}


def test_coreference_has_something_to_do() -> None:
    assert sum(rich(clusters) for clusters in mentions(TEXT).values()) >= 30


def test_every_relation_occurs_often_enough() -> None:
    counts = Counter(node.deprel for tree in TREES for node in tree.nodes)
    rare = {name: counts[name] for name, floor in FLOORS.items() if counts[name] < floor}
    assert not rare


@pytest.mark.parametrize(
    ("what", "mark", "floor"),
    [
        ("questions", "?", 15),
        ("contractions of not", "n't", 15),
        ("negation", "not", 5),
        ("possessives", "'s", 5),
        ("direct speech", '"', 15),
    ],
)
def test_english_is_varied(what: str, mark: str, floor: int) -> None:
    assert sum(any(node.form == mark for node in tree.nodes) for tree in TREES) >= floor, what


def test_most_words_are_rare() -> None:
    counts = Counter(word.lower() for tree in TREES for word in words(tree))
    assert sum(count == 1 for count in counts.values()) > len(counts) / 2


def test_translations_are_german_and_all_different() -> None:
    german = [target for _, target in sample.pairs()]
    assert len(set(german)) == len(german)
    assert all(target[-1] in ".?!“" for target in german)
    assert not set(german) & set(sample.sentences())


# --- its files ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES.derived())
def test_a_derived_file_is_up_to_date(name: str) -> None:
    kept = sample.path(name).read_text(encoding="utf8")
    assert kept == FILES.derived()[name], "run `python scripts/sample_files.py`"


def test_the_files_are_the_source_and_what_follows_from_it() -> None:
    assert set(sample.FILES) == {"sample.conllu", *FILES.derived()}
    assert all(sample.path(name).is_file() for name in sample.FILES)


def test_plain_lines_and_pairs_read_as_corpora() -> None:
    lines = read_corpus(sample.path("sample.txt"))
    assert [sentence.text for sentence in lines] == sample.sentences()
    pairs = read_corpus(sample.path("sample.en-de.tsv"))
    assert list(pairs) == [Pair(*pair) for pair in sample.pairs()]


def test_coreference_is_the_same_in_both_notations() -> None:
    lines = sample.path("coref.jsonl").read_text(encoding="utf8").splitlines()
    records = [json.loads(line) for line in lines]
    marked = mentions(TEXT)
    assert [record["doc"] for record in records] == list(marked)
    for record in records:
        clusters = {frozenset(map(tuple, spans)) for spans in record["clusters"]}
        assert clusters == set(map(frozenset, marked[record["doc"]].values()))


def test_coreference_counts_the_words_of_the_trees() -> None:
    sents = [sent for passage in FILES.passages() for sent in passage.sents]
    assert sents == [tuple(node.form for node in tree.nodes) for tree in TREES]


def test_spans_lie_inside_one_sentence() -> None:
    for passage in FILES.passages():
        owner = [number for number, sent in enumerate(passage.sents) for _ in sent]
        for first, last in (span for spans in passage.clusters for span in spans):
            assert first <= last
            assert owner[first] == owner[last], passage.doc


def test_the_readme_counts_right() -> None:
    clusters = [cluster for passage in FILES.passages() for cluster in passage.clusters]
    counts = {
        "passages": len(FILES.passages()),
        "sentences": len(sample.sentences()),
        "words, punctuation included": sum(len(tree.nodes) for tree in TREES),
        "clusters of coreferent mentions": len(clusters),
        "mentions": sum(map(len, clusters)),
    }
    readme = sample.path().with_name("README.md").read_text(encoding="utf8")
    for what, count in counts.items():
        assert f"| {what} | {count:,} |" in readme


def test_an_unknown_file_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match=r"The sample has no file 'x.txt'; it has sample.conllu, "):
        sample.path("x.txt")


def test_reading_it_loads_no_model_library() -> None:
    code = "import sys; from headcount.bundle import sample; sample.pairs(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "transformers", "pandas"} & set(done.stdout.split())
