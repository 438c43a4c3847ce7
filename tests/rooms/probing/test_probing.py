"""`hc.probe`: what it trains, tells, keeps and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tiny_subjects import encoder, translator
from trees import tree

import headcount as hc
from headcount.bundle import sample
from headcount.errors import InputError, ModelError, RunError, UsageError
from headcount.models.subject import Subject
from headcount.rooms.probing.data import KINDS
from headcount.rooms.probing.probing import probe_summary
from headcount.text import Corpus, read_corpus

TREES = [
    tree("The/det/3 old/amod/3 ferry/nsubj/4 leaves/root/0 ./punct/4"),
    tree("Rain/nsubj/2 fell/root/0"),
    tree("She/nsubj/2 mends/root/0 clocks/obj/2"),
    tree("Two/nummod/2 crows/nsubj/3 argued/root/0"),
]


@pytest.fixture(scope="module")
def subject() -> Subject:
    return encoder()


@pytest.fixture(scope="module")
def bank() -> Corpus:
    return read_corpus(sample.path("sample.conllu"), limit=50)


def test_all_kinds_side_by_side(subject: Subject, bank: Corpus, tmp_path: Path) -> None:
    found = hc.probe(subject, bank, baselines=True, seeds=2, epochs=1, run=tmp_path / "run")
    assert found.kind == "attention"
    assert set(found.results["probe"]) == set(KINDS)
    assert found.results["seed"].value_counts().to_dict() == {0: 6, 1: 6}
    directed = found.results[found.results["probe"] != "structural"]
    assert directed["uas"].between(0, 1).all()
    assert found.results["uuas"].between(0, 1).all()
    together = probe_summary(found.hits, found.undirected)
    assert together["probe"].tolist() == list(KINDS)
    right = together.set_index("probe").loc["right-branching"]
    assert right["seed_low"] == pytest.approx(right["seed_high"])
    with hc.Run.open(tmp_path / "run", create=False) as run:
        assert run.stage("probe").done
        assert run.read_frame("probes")["probe"].tolist() == found.results["probe"].tolist()
        table = run.read_table()
    np.testing.assert_allclose(table.frame["probe_weight"], found.table.frame["probe_weight"])  # type: ignore[union-attr]


def test_it_learns(subject: Subject) -> None:
    """A treebank learnt by heart: words of one kind always hang from the same place."""
    found = hc.probe(subject, TREES, test=TREES, words="own", epochs=60, rate=0.05)
    assert found.kind == "words"
    assert found.uas > 0.9
    assert found.parse("Rain fell").heads == [2, 0]


@pytest.mark.parametrize("words", ["own", "file"])
def test_a_probe_comes_back_from_the_disk(words: str, subject: Subject, tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("rain 1 2\nfell 3 -1\nthe 0 1\n")
    given = words if words == "own" else tmp_path / "v.txt"
    found = hc.probe(subject, TREES, test=TREES, words=given, epochs=3, seed=5)
    found.save(tmp_path / "kept")
    back = hc.Probe.load(tmp_path / "kept", subject)
    text = "The rain fell on nobody."
    np.testing.assert_allclose(back.parse(text).chances, found.parse(text).chances, atol=1e-6)
    assert back.uas == found.uas
    assert back.explain(text, "rain", "ROOT").equals(found.explain(text, "rain", "ROOT"))
    with pytest.raises(ModelError, match="was trained on other weights"):
        hc.Probe.load(tmp_path / "kept", encoder(seed=3))
    (tmp_path / "kept" / "probe.safetensors").write_bytes(b"no")
    with pytest.raises(RunError, match="holds no probe that can be read"):
        hc.Probe.load(tmp_path / "kept", subject)


@pytest.mark.parametrize("link", ["probe", "probe/probe.json", "probe/probe.safetensors"])
def test_a_probe_is_reached_through_no_link(link: str, subject: Subject, tmp_path: Path) -> None:
    hc.probe(subject, TREES, test=TREES, epochs=1).save(tmp_path / "run" / "probe")
    assert hc.Probe.load(tmp_path / "run", subject).kind == "attention"
    (tmp_path / "run" / link).rename(tmp_path / "elsewhere")
    (tmp_path / "run" / link).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunError, match=rf"{link} is a link, and nothing in a folder of headcount"):
        hc.Probe.load(tmp_path / "run", subject)


def test_the_hub_is_not_asked_for_a_name_in_a_file(
    subject: Subject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hc.probe(subject, TREES, test=TREES, epochs=1).save(tmp_path)
    about = json.loads((tmp_path / "probe.json").read_text())
    about["model"] |= {"source": "evil/model", "revision": None}
    (tmp_path / "probe.json").write_text(json.dumps(about))
    monkeypatch.setattr(
        "huggingface_hub.HfApi.model_info", lambda *_, **__: pytest.fail("the hub was asked")
    )
    with pytest.raises(ModelError, match=r"trained on 'evil/model', which is not loaded from this"):
        hc.Probe.load(tmp_path)
    assert hc.Probe.load(tmp_path, subject).kind == "attention"


@pytest.mark.parametrize("kind", ["right-branching", "distances", "random-init"])
def test_baselines_are_kept_like_any_probe(kind: str, subject: Subject, tmp_path: Path) -> None:
    found = hc.probe(subject, TREES, test=TREES, kind=kind, epochs=1, run=tmp_path)
    again = hc.probe(subject, TREES, test=TREES, run=tmp_path, epochs=1)
    with hc.Run.open(tmp_path, create=False) as run:
        assert run.read_frame("probes")["probe"].tolist() == [kind, again.kind]
    found.save(tmp_path / "alone")
    back = hc.Probe.load(tmp_path / "alone", subject)
    assert back.parse("Rain fell.").heads == found.parse("Rain fell.").heads


def test_seeds_conventions_and_words(subject: Subject) -> None:
    def heads(**how: object) -> list[float]:
        found = hc.probe(subject, TREES, test=TREES, **how)  # type: ignore[arg-type]
        assert found.scorer is not None
        return next(found.scorer.parameters()).flatten().tolist()

    assert heads(seed=1) == heads(seed=1)
    assert heads(seed=1) != heads(seed=2)
    assert heads(convention="code") == pytest.approx(heads(convention="paper"), abs=0.05)
    shifted, straight = (heads(convention=one, words="own") for one in ("code", "paper"))
    assert shifted != straight


def test_given_weights_are_where_training_begins(subject: Subject) -> None:
    size = 2 * len(subject.heads)
    found = hc.probe(
        subject, TREES, test=TREES, initial={"weights": np.full(size, 7.0)}, epochs=1, rate=1e-9
    )
    assert found.scorer is not None
    assert next(found.scorer.parameters()).tolist() == pytest.approx([7.0] * size)


def test_a_translators_encoder(bank: Corpus) -> None:
    found = hc.probe(translator(), bank, epochs=1)
    assert found.table is not None
    assert found.table.frame["probe_weight"].notna().groupby(level="stack").all().to_dict() == {
        "enc": True,
        "dec": False,
        "cross": False,
    }


def test_one_sentence(subject: Subject) -> None:
    with pytest.raises(InputError, match="has one sentence, so none is left to test"):
        hc.probe(subject, TREES[:1])
    found = hc.probe(subject, TREES[:1], test=TREES[1:2])
    assert np.isnan(found.results["low"].iloc[0])


def test_what_is_refused(subject: Subject, tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("katze 1 2\n")
    with pytest.raises(InputError, match=r"v\.txt has a vector for none of the 10 words"):
        hc.probe(subject, TREES, words=tmp_path / "v.txt")
    with pytest.raises(UsageError, match="There is no probe 'labels'; choose right-branching"):
        hc.probe(subject, TREES, kind="labels")
    with pytest.raises(UsageError, match="There is no convention 'mine'"):
        hc.probe(subject, TREES, convention="mine")
    with pytest.raises(UsageError, match="takes a Subject, not the text 'minilm'"):
        hc.probe("minilm", TREES)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="has no trees: no word has a HEAD"):
        hc.probe(subject, [tree("Go on"), tree("Go up")])
    found = hc.probe(subject, TREES, kind="distances")
    with pytest.raises(UsageError, match="looks at no attention"):
        found.explain("Rain fell", "Rain", "fell")


@pytest.mark.real
def test_a_real_model_knows_more_than_its_random_twin(minilm: Subject) -> None:
    bank = sample.path("sample.conllu")
    found = hc.probe(minilm, bank, words="own", baselines=True, epochs=3, limit=80)
    uas = found.results.set_index("probe")["uas"]
    assert uas["words"] > uas["random-init"] + 0.1
    assert uas["words"] > uas["right-branching"] + 0.1
    assert found.parse("The cat sat on the mat.").heads[:2] == [2, 3]
