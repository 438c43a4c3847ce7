"""A programme: which tallies look at which corpus."""

from __future__ import annotations

from tiny_subjects import encoder, translator, writer

from headcount.bundle import sample
from headcount.models.subject import Subject
from headcount.survey.passes import Manner
from headcount.survey.roles.catalogue import all_roles
from headcount.survey.survey import SurveyOptions, planned, read_corpora

READS = frozenset(name for role in all_roles() for name in role.reads)

TREES, CLUSTERS = sample.path("sample.conllu"), sample.path("coref.jsonl")


def kinds(
    subject: Subject, wishes: SurveyOptions, **given: object
) -> list[tuple[str, set[str], list[str]]]:
    """Each pass: its name, its tallies, its stacks."""
    corpora = read_corpora(given.pop("corpus", None), limit=8, **given)  # type: ignore[arg-type]
    found = planned(subject, corpora, Manner(subject.anatomy.stacks), wishes)
    return [
        (one.name, {type(tally).__name__ for tally in one.tallies}, list(one.manner.stacks))
        for one in found.passes
    ]


def test_without_roles_there_is_one_pass_and_no_trial() -> None:
    corpora = read_corpora(TREES, limit=4)
    found = planned(encoder(), corpora, Manner(("enc",)), SurveyOptions())
    assert len(found.passes) == 1
    assert found.trials == ()
    assert not {"Relations", "Rarity"} & {type(one).__name__ for one in found.passes[0].tallies}


def test_one_corpus_is_gone_through_once() -> None:
    (only,) = kinds(encoder(), SurveyOptions(reads=READS), treebank=TREES)
    assert {"Relations", "Rarity", "Offsets", "Confidence"} <= only[1]


def test_each_other_corpus_has_its_own_pass() -> None:
    text, trees, mentions = kinds(
        encoder(),
        SurveyOptions(reads=READS),
        corpus=["Rain fell."] * 3,
        treebank=TREES,
        coref=CLUSTERS,
    )
    assert "Relations" not in text[1]
    assert "Relations" in trees[1]
    assert "Confidence" not in trees[1]
    assert mentions[1] == {"Coreference", "PronounChoice"}


def test_without_targets_only_a_translators_encoder_is_looked_at() -> None:
    (only,) = kinds(translator(), SurveyOptions(reads=READS), treebank=TREES)
    assert only[2] == ["enc"]


def test_the_authors_published_no_program_for_rare_tokens_and_mentions() -> None:
    (only,) = kinds(encoder(), SurveyOptions(convention="code", reads=READS), treebank=TREES)
    assert "Rarity" not in only[1]


def test_a_decoder_has_trials() -> None:
    corpora = read_corpora(None, treebank=TREES, limit=8)
    subject = writer()
    found = planned(subject, corpora, Manner(("dec",)), SurveyOptions(reads=READS))
    assert {"repeats", "sink"} <= {trial.name for trial in found.trials}
