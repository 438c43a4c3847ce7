"""Verdicts on several corpora: which repeat."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from subjects import subject_of

import headcount as hc
from headcount.errors import UsageError
from headcount.records import HeadTable
from headcount.rooms.nulls import jaccard_by_role
from headcount.text import read_sample

HEADS = [hc.Head("enc", 0, index) for index in range(4)]


def judged(*heads: int, role: str = "rare", weights: str = "a") -> HeadTable:
    rows = [(*HEADS[head], role, "rarest") for head in heads]
    roles = pd.DataFrame(rows, columns=["stack", "layer", "head", "role", "label"])
    return HeadTable.of(HEADS, {}, details={"roles": roles}, provenance={"weights": weights})


def test_a_verdict_is_counted_on_every_corpus_that_has_it() -> None:
    found = hc.repeats({"A": judged(0, 1), "B": judged(1, 2), "C": judged(1)})
    assert dict(zip(found["head"], found["repeats"], strict=True)) == {0: 1, 1: 3, 2: 1}
    assert set(found["corpora"]) == {3}
    # A and B share 1 of 3, A and C 1 of 2, B and C 1 of 2.
    assert jaccard_by_role(found)["jaccard"].tolist() == [
        pytest.approx((1 / 3 + 1 / 2 + 1 / 2) / 3)
    ]


def test_a_survey_of_several_treebanks_says_what_repeats(tmp_path: Path) -> None:
    subject, trees = hc.load("translator", device="cpu"), list(read_sample())
    how: dict[str, Any] = {
        "roles": hc.RoleOptions(roles=[hc.roles.Syntactic(support=40, level=1.0)], nulls=False),
        "columns": [],
        "reading": hc.ReadingOptions(stacks=["enc"]),
    }
    both = {"first": trees[::2], "second": trees[1::2]}
    table = hc.survey(subject, treebank=both, run=tmp_path / "run", **how)
    roles = table.details["roles"]
    assert len(roles)
    assert set(roles["repeats"]) <= {1, 2}
    assert len(table.details["repeats"]) >= len(roles)
    alone = hc.survey(subject, treebank=both["second"], **how)
    key = ["stack", "layer", "head", "label"]
    shared = roles.merge(alone.details["roles"][key], on=key)
    assert len(shared) == (roles["repeats"] == 2).sum()
    again = hc.HeadTable.load(tmp_path / "run")
    assert again.details["roles"]["repeats"].tolist() == roles["repeats"].tolist()
    assert "of all on first, second, two corpora share" in again.provenance["remarks"][-1]


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"A": judged(0)}, "1 survey repeats nothing; give two corpora or more"),
        ({"A": judged(0), "B": judged(0, weights="b")}, "The survey of B is of another model"),
        ({"A": judged(0), "B": HeadTable.of(HEADS, {})}, "No head was judged on B"),
    ],
)
def test_what_cannot_be_compared(tables: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        hc.repeats(tables)


def test_one_treebank_by_name_is_refused() -> None:
    with pytest.raises(UsageError, match="One treebank by name repeats nothing"):
        hc.survey(subject_of("bert", "wordpiece"), treebank={"one": list(read_sample())[:5]})


def test_the_command_line_takes_several_files(headcount: Any, tmp_path: Path) -> None:
    for name in ("one", "two"):
        words = "\n".join(f"{n}\t{w}\t_\tNOUN\t_\t_\t{h}\t{r}\t_\t_" for n, w, h, r in TREE)
        (tmp_path / f"{name}.conllu").write_text((words + "\n\n") * 12, encoding="utf8")
    files = ",".join(str(tmp_path / f"{name}.conllu") for name in ("one", "two"))
    done = headcount("survey", "translator", "--treebank", files, "--device", "cpu")
    assert "of all on one, two, two corpora share" in " ".join(done.out.split())


TREE = [(1, "Rain", 2, "nsubj"), (2, "fell", 0, "root"), (3, "there", 2, "advmod")]
