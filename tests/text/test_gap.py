from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from corpus_files import file_of

from headcount.errors import InputError
from headcount.text.coreference import HEADER, read_gap
from headcount.text.corpus import read_corpus
from headcount.text.sentence import Sentence, Span

TEXT = "Ann Lee phoned Bo's sister, but she was out."
ROW = {
    "ID": "test-1",
    "Text": TEXT,
    "Pronoun": "she",
    "Pronoun-offset": "32",
    "A": "Ann Lee",
    "A-offset": "0",
    "A-coref": "FALSE",
    "B": "Bo",
    "B-offset": "15",
    "B-coref": "TRUE",
}


def lines(*rows: dict[str, str]) -> str:
    return "\n".join("\t".join(cells) for cells in (HEADER, *(row.values() for row in rows))) + "\n"


def read(
    *rows: dict[str, str], strict: bool = False, skipped: Counter[str] | None = None
) -> list[Sentence]:
    counts = Counter() if skipped is None else skipped
    return list(read_gap(file_of(lines(*rows), "t.tsv"), counts, strict=strict))


def spelt(sentence: Sentence, span: Span) -> str:
    words = sentence.words or ()
    return sentence.text[words[span.first].start : words[span.last].end]


def test_the_pronoun_and_its_names() -> None:
    (found,) = read(ROW)
    assert [[spelt(found, span) for span in cluster] for cluster in found.clusters] == [
        ["Ann Lee"],
        ["Bo", "she"],
    ]
    assert found.comments["sent_id"] == "test-1"
    assert (
        spelt(found, Span(int(found.comments["pronoun"]), int(found.comments["pronoun"]))) == "she"
    )
    assert (found.comments["A"], found.comments["B"]) == ("0", "3")


def test_a_pronoun_that_means_neither() -> None:
    (found,) = read({**ROW, "B-coref": "FALSE"})
    assert [len(cluster) for cluster in found.clusters] == [1, 1, 1]


FAULTS = {
    "offset": ({**ROW, "A-offset": "1"}, "has 'Ann Lee' at 1, where the text has 'nn Lee '"),
    "beyond": ({**ROW, "B-offset": "999"}, "has 'Bo' at 999, where the text has ''"),
    "word": ({**ROW, "Pronoun-offset": "x"}, "has 'she' at x"),
    "truth": ({**ROW, "A-coref": "maybe"}, "has A-coref 'maybe'; it is TRUE or FALSE"),
    "short": ({"ID": "1", "Text": "a"}, "has 2 columns; GAP has 10 or more"),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_a_faulty_line_is_skipped_or_refused(kind: str) -> None:
    row, said = FAULTS[kind]
    skipped: Counter[str] = Counter()
    assert len(read(ROW, row, ROW, skipped=skipped)) == 2
    assert skipped.total() == 1
    with pytest.raises(InputError) as caught:
        read(ROW, row, strict=True)
    assert str(caught.value).startswith(f"t.tsv, line 3 {said}")


def test_another_table_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"t\.tsv is not a GAP file: its first line does not name ID"
    ):
        list(read_gap(file_of("Rain.\tRegen.\n", "t.tsv"), Counter()))


def test_its_header_tells_it_from_pairs(tmp_path: Path) -> None:
    path = tmp_path / "gap.tsv"
    path.write_text(lines(ROW), encoding="utf-8")
    corpus = read_corpus(path)
    assert not corpus.paired
    assert corpus.annotated


@pytest.mark.data
@pytest.mark.parametrize(("name", "count"), [("validation", 454), ("test", 2000)])
def test_the_real_files(name: str, count: int, data_dir: Path) -> None:
    corpus = read_corpus(data_dir / "coref" / f"gap-{name}.tsv.xz")
    assert (len(corpus), dict(corpus.skipped)) == (count, {})
