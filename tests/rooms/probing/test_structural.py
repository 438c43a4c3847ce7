"""The structural probe: distances of a tree, hidden states, spanning trees and their figure."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_subjects import encoder, translator, writer

import headcount as hc
from headcount.bundle import sample
from headcount.errors import ModelError, UsageError
from headcount.models.subject import Subject
from headcount.rooms.probing.data import UNKNOWN, ProbeExample, gather, probed_heads, settings_for
from headcount.rooms.probing.scorers import (
    spanning_trees,
    structural_hits,
    trained,
    tree_distances,
    undirected_arcs,
    undirected_hits,
    word_states,
)
from headcount.text import Corpus, read_corpus

SETTINGS = settings_for("headcount", "structural")


def example(heads: list[int], index: int = 0, marks: tuple[int, ...] = ()) -> ProbeExample:
    gold = torch.tensor(heads)
    scored = gold != UNKNOWN
    scored[list(marks)] = False
    words = tuple("abcdefghij"[: len(heads)])
    return ProbeExample(index, words, gold, scored, torch.zeros(len(heads), dtype=torch.long))


def drawn(count: int, words: int = 7) -> list[ProbeExample]:
    """Trees at random: each word hangs from one before it, the first is the root."""
    draw = np.random.default_rng(0)
    return [
        example([0, *(int(draw.integers(1, n + 1)) for n in range(1, words))], index)
        for index in range(count)
    ]


def embedded(one: ProbeExample, width: int = 12) -> torch.Tensor:
    """States in which squared distances are those of the tree: a direction of its own each arc."""
    found = torch.zeros(len(one), width)
    for word, head in enumerate(one.heads.tolist()):
        if head:
            found[word] = found[head - 1]
            found[word, word] = 1.0
    return found


@pytest.fixture(scope="module")
def bank() -> Corpus:
    return read_corpus(sample.path("sample.conllu"), limit=30)


def test_distances_count_the_arcs() -> None:
    found = tree_distances(example([2, 0, 2, 3]))
    assert found.tolist() == [[0, 1, 2, 3], [1, 0, 1, 2], [2, 1, 0, 1], [3, 2, 1, 0]]
    assert np.isinf(tree_distances(example([0, UNKNOWN]))[0, 1])


def test_arcs_count_whatever_their_direction() -> None:
    one = example([2, 0, 2, 3], marks=(3,))
    chosen = np.array([0, 1, 4, 2])  # 1-2 turned round, 2-3 missed
    assert undirected_hits([undirected_arcs(chosen)], [one]).tolist() == [[1, 2]]
    assert undirected_hits([undirected_arcs(one.heads.numpy())], [one]).tolist() == [[2, 2]]


def test_a_tree_in_the_states_is_found_in_its_layer() -> None:
    examples = drawn(60)
    noise = torch.Generator().manual_seed(1)
    states = {
        one.index: torch.stack([torch.randn(7, 12, generator=noise), embedded(one)])
        for one in examples
    }
    settings = settings_for("headcount", "structural", rate=0.01, epochs=40, batch=8)
    train, test = (examples[:50], states), (examples[50:], states)
    hits, about = structural_hits(train, test, settings, seed=0)
    assert about == {"layer": 1, "layers": 1, "rank": 12}
    assert hits.sum(0)[0] / hits.sum(0)[1] > 0.95
    assert hits.shape == (10, 2)
    again, _ = structural_hits(train, test, settings, seed=0)
    np.testing.assert_array_equal(hits, again)
    by_layer = spanning_trees(trained(examples[:50], states, settings, 0), examples[50:], states)
    blind = undirected_hits(by_layer[0], examples[50:]).sum(0)
    assert blind[0] / blind[1] < 0.6  # noise has no tree in it


def test_spanning_trees_leave_marks_out_and_have_all_other_words() -> None:
    one = example([2, 0, 2, 2], marks=(3,))
    states = {0: embedded(one)[None]}
    model = trained([one], states, SETTINGS, 0)
    (arcs,) = spanning_trees(model, [one], states)[0]
    assert arcs.sum() == 2 * 2  # three words, two arcs, both ways
    assert not arcs[3].any()


@pytest.mark.parametrize("make", [encoder, writer, translator])
def test_states_are_those_of_the_model(make: object, bank: Corpus) -> None:
    subject: Subject = make()  # type: ignore[operator]
    read = gather(subject, bank, SETTINGS, maps=False)
    one = word_states(subject, bank, read, 1)
    subject.model.train()  # dropout would show
    many = word_states(subject, bank, read, 8)
    assert subject.model.training
    subject.model.eval()
    assert one.keys() == many.keys() == {example.index for example in read.examples}
    for example in read.examples[:5]:
        assert one[example.index].shape[1] == len(example)
        torch.testing.assert_close(one[example.index], many[example.index], atol=5e-3, rtol=1e-2)
    layers = len({head.layer for head in probed_heads(subject)})
    assert len(one[read.examples[0].index]) == layers + 1


def test_a_words_state_is_the_mean_of_its_pieces() -> None:
    subject = encoder()
    corpus = read_corpus(sample.path("sample.conllu"), limit=1)
    read = gather(subject, corpus, SETTINGS, maps=False)
    (found,) = word_states(subject, corpus, read, 1).values()
    text = next(iter(corpus)).text
    inputs = subject.tokenizer(text, return_tensors="pt", return_offsets_mapping=True)  # type: ignore[misc]
    offsets = inputs.pop("offset_mapping")[0].tolist()
    with torch.no_grad():
        states = subject.model(**inputs, output_hidden_states=True).hidden_states
    end = len(read.examples[0].forms[0])
    pieces = [place for place, (a, b) in enumerate(offsets) if b > a and b <= end]
    torch.testing.assert_close(
        found[1, 0].float(), states[1][0, pieces].mean(0), atol=2e-3, rtol=1e-2
    )


def test_a_model_without_hidden_states_is_refused(
    bank: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = encoder()
    read = gather(subject, bank, SETTINGS, maps=False)
    monkeypatch.setattr(type(subject.inner), "forward", lambda *_, **__: object())
    with pytest.raises(ModelError, match="gives no hidden states, which the structural probe"):
        word_states(subject, bank, read, 8)


def test_it_stands_beside_the_others(bank: Corpus, tmp_path: Path) -> None:
    subject = encoder()
    found = hc.probe(subject, bank, baselines=["structural"], epochs=1, run=tmp_path)
    rows = found.results.set_index("probe")
    assert np.isnan(rows.loc["structural", "uas"])
    assert 0 <= rows.loc["structural", "uuas"] <= 1
    assert rows.loc["attention", "uuas"] >= 0
    assert any("structural probe of seed 0" in remark for remark in found.provenance["remarks"])
    alone = hc.probe(subject, bank, kind="structural", epochs=1)
    assert alone.uuas == pytest.approx(rows.loc["structural", "uuas"])
    assert "UUAS" in repr(alone)
    alone.save(tmp_path / "alone")
    back = hc.Probe.load(tmp_path / "alone", subject)
    for one in (alone, back):
        with pytest.raises(UsageError, match="The structural probe is a baseline"):
            one.parse("Rain fell.")


def test_reading_hidden_states_leaves_nothing_on_the_model(bank: Corpus) -> None:
    subject = encoder()
    read = gather(subject, bank, SETTINGS, maps=False, batch_size=8)
    word_states(subject, bank, read, 8)
    assert not any(module._forward_hooks for module in subject.model.modules())
