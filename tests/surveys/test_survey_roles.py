"""hc.survey with annotated text: roles in the details, twins beside them, runs that keep both."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tiny_subjects import encoder, translator, writer

import headcount as hc
from headcount.bundle import sample
from headcount.errors import InputError, UsageError
from headcount.surveys.roles.role import COLUMNS, verdicts_of
from headcount.text.sentence import split_words
from headcount.wiring import Needs

TREES, CLUSTERS = sample.path("sample.conllu"), sample.path("coref.jsonl")
FAST: dict[str, Any] = {"limit": 24}


class AnyOffset(hc.roles.Positional):
    """Every head is at some offset most often, and its twin is asked for a tenth of it."""

    def chance(self, twin: hc.HeadTable, verdict: hc.roles.Verdict) -> float:
        return super().chance(twin, verdict) / 10


ANY = AnyOffset(share=0.0, level=1.0)


def test_plain_text_is_surveyed_as_ever() -> None:
    table = hc.survey(encoder(), ["Rain fell.", "It stopped."])
    assert set(table.details) == {"offsets", "positions"}
    assert "rare" not in table.names


def test_a_treebank_brings_relations_and_roles() -> None:
    table = hc.survey(
        encoder(), treebank=TREES, **FAST, roles=hc.RoleOptions(frequencies={"the": 9})
    )
    assert {"relations", "roles", "rarity", "trials"} <= set(table.details)
    assert tuple(table.details["roles"].columns) == (*COLUMNS, "rests")
    assert {"role", "roles"} <= set(table.names)
    assert {"rare", "rare_two"} <= set(table.names)
    assert table.provenance["corpus"] == str(TREES)
    assert table.provenance["counts"]["sentences"] == 24


def test_the_text_has_the_columns_and_the_treebank_the_relations() -> None:
    subject, text = encoder(), ["Rain fell.", "It stopped.", "Then the wind came back."]
    table = hc.survey(subject, text, treebank=TREES, **FAST)
    alone = hc.survey(subject, text)
    np.testing.assert_array_equal(table.frame[alone.names], alone.frame)
    assert table.provenance["corpus"] == "texts in hand"
    assert len(table.provenance["corpora"]) == 2


def test_roles_can_be_asked_of_plain_text() -> None:
    table = hc.survey(encoder(), ["Rain fell.", "It stopped."] * 3, roles=True)
    assert "roles" in table.details
    assert "relations" not in table.details


def test_your_own_role_costs_no_more_than_it_reads() -> None:
    table = hc.survey(encoder(), ["Rain fell."] * 3, roles=[ANY])
    assert not {"rarity", "trials"} & set(table.details)
    assert len(verdicts_of(table.details["roles"])) > 0


def test_a_twin_stands_beside_every_verdict() -> None:
    table = hc.survey(
        encoder(), treebank=TREES, **FAST, roles=hc.RoleOptions(roles=[ANY], control="random-init")
    )
    found = verdicts_of(table.details["roles"])
    assert len(found) == len(table)
    assert len({verdict.control for verdict in found}) == 1
    assert 0 < found[0].control < 1
    assert table.details["relations"]["control"].dropna().between(0, 1).all()
    assert table.details["relations"]["control"].notna().mean() > 0.9
    assert set(table.details["control"]["column"]) == set(table.names) - {"role", "roles"}


def test_a_head_that_does_no_better_than_a_random_twin_has_no_role() -> None:
    positional = hc.roles.Positional(share=0.0, level=1.0)
    alone = hc.survey(encoder(), treebank=TREES, roles=[positional], **FAST)
    held = hc.survey(
        encoder(),
        treebank=TREES,
        **FAST,
        roles=hc.RoleOptions(roles=[positional], control="random-init"),
    )
    assert len(alone.details["roles"]) == len(alone)
    assert len(held.details["roles"]) < len(held) / 4


def test_several_twins_are_averaged() -> None:
    subject = encoder()
    judged = [
        hc.RoleOptions(roles=[ANY], control="random-init", twins=seeds)
        for seeds in ([0], [1], [0, 1])
    ]
    tables = [hc.survey(subject, treebank=TREES, roles=roles, limit=8) for roles in judged]
    controls = [verdicts_of(table.details["roles"])[0].control for table in tables]
    assert controls[2] == pytest.approx((controls[0] + controls[1]) / 2)


def test_a_twin_leaves_the_model_and_the_numbers_alone() -> None:
    subject = encoder()
    before = subject.weights_hash
    plain = hc.survey(subject, treebank=TREES, limit=8)
    beside = hc.survey(
        subject, treebank=TREES, limit=8, roles=hc.RoleOptions(control="random-but-embeddings")
    )
    assert hc.Subject(subject.model).weights_hash == before
    np.testing.assert_array_equal(plain.frame, beside.frame)


def test_coreference_has_its_own_pass() -> None:
    table = hc.survey(encoder(), treebank=TREES, coref=CLUSTERS, limit=10)
    assert "coreference" in table.details
    assert "coreference" in table.names


def test_a_decoder_and_a_translator() -> None:
    decoder = hc.survey(writer(), treebank=TREES, limit=12)
    assert {"induction", "sink"} <= set(decoder.names)
    pairs = sample.pairs()[:12]
    table = hc.survey(translator(), pairs, roles=True)
    assert {"alignment", "source_end"} <= set(table.names)
    encoder_only = hc.survey(translator(), treebank=TREES, limit=6)
    assert encoder_only.notes["confidence"] == "dec: not surveyed; cross: not surveyed"


def test_other_stacks_are_not_judged() -> None:
    table = hc.survey(
        translator(), sample.pairs()[:8], roles=[ANY], reading=hc.ReadingOptions(stacks=["enc"])
    )
    assert set(table.details["roles"]["stack"]) == {"enc"}
    everywhere = hc.survey(translator(), sample.pairs()[:8], roles=[ANY])
    assert set(everywhere.details["roles"]["stack"]) == {"enc", "dec"}


def test_a_parser_makes_the_trees() -> None:
    def parser(text: str) -> hc.Sentence:
        words = [
            replace(word, head=int(n > 0), deprel="dep" if n else "root")
            for n, word in enumerate(split_words(text))
        ]
        return hc.Sentence(text, tuple(words))

    table = hc.survey(
        encoder(), ["Rain fell on the roof."] * 6, roles=hc.RoleOptions(parser=parser)
    )
    assert set(table.details["relations"]["relation"]) == {"all", "dep"}


def test_word_rows_and_relations_are_chosen() -> None:
    ask: dict[str, Any] = {"treebank": TREES, "limit": 30, "relations": ["nsubj"]}
    mean, first = (
        hc.survey(encoder(), **ask, reading=hc.ReadingOptions(word_rows=how))
        for how in ("mean", "first")
    )
    assert set(mean.details["relations"]["relation"]) == {"nsubj"}
    one, other = (table.details["relations"]["accuracy"] for table in (mean, first))
    assert not np.array_equal(one, other)


def test_a_run_keeps_roles_and_relations(tmp_path: Path) -> None:
    table = hc.survey(encoder(), treebank=TREES, roles=[ANY], **FAST)
    table.save(tmp_path / "run")
    run = hc.Run.open(tmp_path / "run", create=False)
    assert {"roles", "relations", "positions"} <= set(run.frames)
    again = hc.HeadTable.load(tmp_path / "run")
    pd.testing.assert_frame_equal(again.details["roles"], table.details["roles"])
    assert str(verdicts_of(again.details["roles"])[0]) == str(
        verdicts_of(table.details["roles"])[0]
    )


def test_numbers_do_not_depend_on_batches() -> None:
    subject = encoder()
    ask: dict[str, Any] = {"treebank": TREES, "frequencies": {"the": 9}, **FAST}
    one, many = (
        hc.survey(subject, **ask, reading=hc.ReadingOptions(batch_size=size)) for size in (1, 8)
    )
    for name in ("rarity", "positions"):
        mine, theirs = one.details[name], many.details[name]
        pd.testing.assert_frame_equal(mine, theirs, rtol=1e-5, atol=1e-6)


def test_your_own_tally_is_the_one_that_counts() -> None:
    from headcount.surveys.surface import Confidence

    tally = Confidence(drop=frozenset())
    assert tally.needs != Needs()
    hc.survey(encoder(), ["Rain fell."], columns=["self"], tallies=[tally])
    assert list(tally.sums)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"roles": "positional"}, UsageError, r"roles is 'positional'; give a list of roles"),
        ({"control": "twin"}, UsageError, "There is no control 'twin'"),
        ({"treebank": ["Rain fell."]}, InputError, "texts in hand has no trees"),
        ({"relations": ["nsubjx"]}, UsageError, "The relation 'nsubjx' never occurs"),
        ({"frequencies": "none.tsv"}, InputError, r"There is no file none\.tsv"),
        ({"parser": "nowhere.udpipe"}, UsageError, "leave one of them out"),
    ],
)
def test_slips_are_told(given: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        hc.survey(encoder(), **({"treebank": TREES, "limit": 10} | given))


def test_a_corpus_without_a_rare_token_is_told() -> None:
    table = hc.survey(encoder(), ["Rain fell."] * 4, roles=True)
    assert np.isnan(table.frame["rare"]).all()
    assert "not among the 500 most frequent" in table.notes["rare"]


@pytest.mark.real
def test_minilm_has_the_heads_that_everybody_finds(minilm: hc.Subject) -> None:
    table = hc.survey(minilm, treebank=TREES, roles=hc.RoleOptions(control="random-init"))
    found = verdicts_of(table.details["roles"])
    by_role = {role: {str(v.head) for v in found if v.role == role} for role in hc.roles.KINDS}
    assert "enc.0.2" in by_role["positional"]  # looks at the token before
    assert "enc.2.8" in by_role["syntactic"]
    assert {"enc.1.1", "enc.2.9"} <= by_role["duplicate"]
    for verdict in found:
        if verdict.role in ("positional", "syntactic"):
            assert verdict.control < 0.5 < verdict.value


def test_how_often_the_rarest_token_is_pointed_to_can_be_asked_by_name() -> None:
    table = hc.survey(encoder(), ["Rain fell in the night.", "It stopped."] * 4, columns=["rare"])
    assert "rare" in table.names
    assert "roles" not in table.details
