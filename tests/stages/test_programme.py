"""Programmes: passes become one table, and can be run again on another model."""

from __future__ import annotations

import numpy as np
from tiny_subjects import encoder

from headcount.bundle import sample
from headcount.models.subject import Subject
from headcount.survey.passes import Manner, Programme
from headcount.survey.roles.catalogue import all_roles
from headcount.survey.survey import SurveyOptions, planned, read_corpora

READS = frozenset(name for role in all_roles() for name in role.reads)

TREES = sample.path("sample.conllu")


def programme(subject: Subject, *texts: str) -> Programme:
    corpora = read_corpora([*texts] or None, treebank=TREES, limit=12)
    found = planned(subject, corpora, Manner(("enc",)), SurveyOptions(reads=READS))
    return Programme(found.passes)


def test_every_corpus_is_told() -> None:
    subject = encoder()
    table = programme(subject, "Rain fell.", "It stopped.").run(subject)
    assert table.provenance["corpus"] == "texts in hand"
    assert set(table.provenance["corpora"]) == {"texts in hand", str(TREES)}
    counts = table.provenance["corpora"][str(TREES)]["counts"]
    assert counts["sentences"] == 12
    assert "relations" in table.details


def test_the_columns_come_from_the_text() -> None:
    subject = encoder()
    two = programme(subject, "Rain fell.", "It stopped.").run(subject)
    corpora = read_corpora(["Rain fell.", "It stopped."])
    alone = planned(subject, corpora, Manner(("enc",)), SurveyOptions()).run(subject)
    np.testing.assert_array_equal(two.frame[alone.names], alone.frame)


def test_a_programme_can_be_run_again() -> None:
    subject = encoder()
    first = programme(subject)
    spare = first.again()
    one, other = first.run(subject), spare.run(subject)
    np.testing.assert_array_equal(one.frame, other.frame)
    assert one.details["relations"].equals(other.details["relations"])


def test_stages_are_told() -> None:
    subject, told = encoder(), []

    class Told:
        def __init__(self, name: str, unit: str) -> None:
            told.append((name, unit))

        def __enter__(self):  # type: ignore[no-untyped-def]
            return lambda done, total: told.append((done, total))

        def __exit__(self, *_: object) -> None: ...

    programme(subject).run(subject, Told, " of the twin")  # type: ignore[arg-type]
    assert told[0] == ("Surveying of the twin", "sentences")
    assert told[-1] == (12, 12)
