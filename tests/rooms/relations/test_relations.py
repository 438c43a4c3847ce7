"""Dependency hits: three directions, edges of sentences, ties, what is refused and what is told."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from trees import batch_of, side_of, sight, sighting_of, site, tree, words_of

from headcount.errors import InputError, UsageError
from headcount.records.run import FRAMES, Run
from headcount.rooms.relations.relations import DIRECTIONS, Relations
from headcount.rooms.words.counts import HitsTest, RelationCounts
from headcount.text.words import Words

CAT = tree("The/det/2 cat/nsubj/3 sat/root/0")
#: Row by row: The -> cat, cat -> sat, sat -> The.
MAP = [[0.1, 0.7, 0.2], [0.1, 0.3, 0.6], [0.5, 0.3, 0.2]]


def counted(tally: Relations) -> RelationCounts:
    (counts,) = tally.counts()
    return counts


def hits(tally: Relations, relation: str, direction: str) -> tuple[int, int]:
    """Hits of the first head, and arcs."""
    found = counted(tally).of(relation, direction)
    return int(found.hits[:, 0].sum()), int(found.arcs.sum())


def tally_of(*sightings: object, **settings: object) -> Relations:
    tally = Relations(**settings)  # type: ignore[arg-type]
    for sighting in sightings:
        tally.update(sighting)  # type: ignore[arg-type]
    return tally


def test_the_three_directions_ask_different_things() -> None:
    tally = tally_of(sight([CAT], [[MAP]]))
    # The's row points to cat; cat's row to sat
    assert hits(tally, "det", "dep->head") == (1, 1)
    assert hits(tally, "nsubj", "dep->head") == (1, 1)
    # cat's row (the head of The) points to sat, not to The; sat's row points to The, not to cat
    assert hits(tally, "det", "head->dep") == (0, 1)
    assert hits(tally, "nsubj", "head->dep") == (0, 1)
    # who attends most to The is sat (0.5), to cat is The (0.7)
    assert hits(tally, "det", "head<-dep") == (0, 1)
    assert hits(tally, "nsubj", "head<-dep") == (0, 1)


def test_a_verbs_row_finds_one_of_two_dependents() -> None:
    both = tree("I/nsubj/2 saw/root/0 it/obj/2")
    tally = tally_of(sight([both], [[[[0, 1, 0], [0.2, 0, 0.8], [0, 1, 0]]]]))
    assert hits(tally, "obj", "head->dep") == (1, 1)
    assert hits(tally, "nsubj", "head->dep") == (0, 1)
    assert hits(tally, "nsubj", "head<-dep") == (1, 1)
    assert hits(tally, "obj", "head<-dep") == (1, 1)


def test_all_counts_every_word_and_the_root_is_never_right() -> None:
    tally = tally_of(sight([CAT], [[MAP]]))
    assert hits(tally, "all", "dep->head") == (2, 3)
    assert hits(tally, "all", "head->dep") == (0, 2)
    assert "root" not in set(tally.frame()["relation"])
    assert "root" in set(tally_of(sight([CAT], [[MAP]]), convention="code").frame()["relation"])


def test_a_word_is_never_its_own_answer() -> None:
    # all weight on the word itself: the next best, and in Clark's program the first word
    eager = [[0.8, 0.05, 0.15], [0.0, 1.0, 0.0], [0.1, 0.2, 0.7]]
    assert hits(tally_of(sight([CAT], [[eager]])), "det", "dep->head") == (0, 1)
    backwards = tree("He/nsubj/3 was/cop/1 here/root/0")
    for convention, right in (("headcount", 1), ("paper", 1), ("code", 1)):
        tally = tally_of(sight([backwards], [[eager]]), convention=convention)
        assert hits(tally, "cop", "dep->head") == (right, 1)


def test_zeroing_and_leaving_out_differ_on_a_row_of_zeros() -> None:
    nothing = [[0.0] * 3] * 3
    there = tree("a/dep/2 b/root/0 c/dep/2")
    # The first word's own weight counts as 0 in Clark's program, so it points to itself
    assert hits(tally_of(sight([there], [[nothing]])), "dep", "dep->head") == (1, 2)
    assert hits(tally_of(sight([there], [[nothing]]), convention="code"), "dep", "dep->head") == (
        0,
        2,
    )


def test_ties_go_to_the_first_word() -> None:
    even = [[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]]
    second = tree("a/dep/2 b/dep/1 c/root/0")
    for convention in ("headcount", "paper", "code"):
        tally = tally_of(sight([second], [[even]]), convention=convention)
        assert hits(tally, "dep", "dep->head") == (2, 2)
        assert hits(tally, "dep", "head<-dep") == (2, 2)


def test_padding_is_no_word() -> None:
    pair = tree("Rain/nsubj/2 fell/root/0")
    long = tree("a/dep/2 b/root/0 c/dep/2 d/dep/2 e/dep/2")
    zeros = [[[0.0] * 2] * 2]
    for convention in ("headcount", "code"):
        tally = tally_of(
            sight([pair, long], [zeros, [[[0.2] * 5] * 5]], extra=2), convention=convention
        )
        expected = 1 if convention == "headcount" else 0  # Clark's row of zeros points to itself
        assert hits(tally, "nsubj", "dep->head") == (expected, 1)


def test_a_sentence_of_one_word() -> None:
    one, other = tree("Go/root/0"), CAT
    for convention in ("headcount", "paper", "code"):
        tally = tally_of(sight([one, other], [[[[1.0]]], [MAP]]), convention=convention)
        assert hits(tally, "all", "dep->head") == (2, 4)
        assert hits(tally, "all", "head<-dep")[1] == 4
    alone = tally_of(sight([one], [[[[1.0]]]])).frame()
    assert set(alone["relation"]) == {"all"}
    assert alone["p"].isna().all()


POSS = tree("my/poss/4 dog/poss/4 's/possessive/2 bone/root/0")
#: my -> bone, dog -> my, 's -> bone, bone -> 's
OWN = [[0.0, 0.1, 0.1, 0.8], [0.9, 0.0, 0.05, 0.05], [0.1, 0.1, 0.0, 0.8], [0.1, 0.1, 0.8, 0.0]]


def test_the_mark_speaks_for_a_possessor() -> None:
    assert hits(tally_of(sight([POSS], [[OWN]]), convention="paper"), "poss", "dep->head") == (2, 2)
    plain = tally_of(sight([POSS], [[OWN]]), convention="paper", possessive=False)
    assert hits(plain, "poss", "dep->head") == (1, 2)
    assert hits(tally_of(sight([POSS], [[OWN]])), "poss", "dep->head") == (1, 2)
    asked = tally_of(sight([POSS], [[OWN]]), possessive=True)
    assert hits(asked, "poss", "dep->head") == (2, 2)


def test_the_mark_is_not_heard_where_the_possessor_points_to_the_last_word() -> None:
    """The condition of Clark's program: with a prediction at the last word, that one is scored."""
    to_last = [*OWN[:1], [0.0, 0.0, 0.1, 0.9], [0.9, 0.0, 0.0, 0.1], OWN[3]]
    found = tally_of(sight([POSS], [[to_last]]), convention="code")
    assert hits(found, "poss", "dep->head") == (2, 2)  # dog -> bone is right, 's -> my is not asked
    asked = tally_of(sight([POSS], [[to_last]]), possessive=True)
    assert hits(asked, "poss", "dep->head") == (1, 2)


def test_a_possessor_at_the_end_has_no_mark_behind_it() -> None:
    last = tree("bone/root/0 his/poss/1")
    for convention in ("headcount", "paper", "code"):
        tally = tally_of(sight([last], [[[[0, 1.0], [1.0, 0]]]]), convention=convention)
        assert hits(tally, "poss", "dep->head") == (1, 1)


def test_universal_possessors_and_curly_marks() -> None:
    universal = tree("dog/nmod:poss/3 ’s/case/1 bone/root/0")
    maps = [[[0.0, 0.9, 0.1], [0.1, 0.0, 0.9], [1.0, 0.0, 0.0]]]
    assert hits(tally_of(sight([universal], [maps]), possessive=True), "nmod", "dep->head") == (
        1,
        1,
    )
    assert hits(tally_of(sight([universal], [maps]), convention="code"), "nmod", "dep->head") == (
        0,
        1,
    )


def offsets(tally: Relations, relation: str, direction: str) -> dict[int, int]:
    counts = counted(tally)
    found = counts.of(relation, direction).offsets.sum(0)
    return {offset: int(n) for offset, n in zip(counts.tried, found, strict=True) if n}


def test_offsets_of_each_direction() -> None:
    tally = tally_of(sight([CAT], [[MAP]]))
    assert counted(tally).tried == tuple(range(-8, 9))
    assert offsets(tally, "det", "dep->head") == {1: 1}
    assert offsets(tally, "det", "head->dep") == {-1: 1}
    assert offsets(tally, "det", "head<-dep") == {1: 1}
    assert offsets(tally, "all", "dep->head") == {1: 2}  # the root is nobody's offset


def test_clarks_offsets_end_at_the_edge() -> None:
    tally = tally_of(sight([CAT], [[MAP]]), convention="code")
    # left of the sentence is the root: sat (place 3) reaches it by -3; right of it is sat
    assert offsets(tally, "root", "dep->head") == {-3: 1}
    assert offsets(tally, "nsubj", "dep->head") == {1: 1, 2: 1}
    mine = tally_of(sight([CAT], [[MAP]]), offsets=(-1, 1))
    assert counted(mine).tried == (-1, 1)


def test_words_split_in_pieces() -> None:
    """Columns are summed; rows averaged, or the first piece's alone."""
    sentence = tree("b/dep/2 c/nsubj/3 d/root/0")
    pieces = torch.tensor([[[1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]]], dtype=torch.bool)
    side = side_of(Words(pieces, pieces.any(-1), [sentence]))
    maps = torch.tensor(
        [[0.1, 0.25, 0.25, 0.4], [0.4, 0, 0, 0.6], [0.9, 0, 0, 0.1], [0.6, 0.2, 0.2, 0.0]]
    )[None, None]
    # c's first piece points to d, the mean of both to b
    for settings, right in (
        ({}, 0),
        ({"convention": "paper"}, 0),
        ({"convention": "code"}, 1),
        ({"rows": "first"}, 1),
    ):
        tally = tally_of(sighting_of(site(), side, maps, batch_of(side)), **settings)
        assert hits(tally, "dep", "dep->head") == (1, 1)  # b -> c, by the sum of its pieces
        assert hits(tally, "nsubj", "dep->head") == (right, 1)


def test_arcs_of_words_that_are_not_there_do_not_count() -> None:
    words = words_of([CAT])
    cut = Words(words.pieces & torch.tensor([True, True, False])[:, None], words.there, [CAT])
    cut = Words(cut.pieces, cut.pieces.any(-1), [CAT])
    side = side_of(cut)
    tally = tally_of(sighting_of(site(), side, torch.tensor([[MAP]]), batch_of(side)))
    assert hits(tally, "all", "dep->head") == (1, 1)


def test_a_stack_that_looks_back_only() -> None:
    back = tree("It/nsubj/2 rained/root/0 hard/advmod/2")
    maps = [[[1.0, 0, 0], [0.6, 0.4, 0], [0.1, 0.7, 0.2]]]
    tally = tally_of(sight([back], [maps], site("dec", causal=True)))
    assert hits(tally, "advmod", "dep->head") == (1, 1)  # rained stands before hard
    assert hits(tally, "nsubj", "dep->head")[1] == 0  # rained comes after It
    assert hits(tally, "nsubj", "head->dep") == (1, 1)
    assert hits(tally, "advmod", "head->dep")[1] == 0
    assert hits(tally, "nsubj", "head<-dep") == (1, 1)  # who attends to It
    assert hits(tally, "advmod", "head<-dep")[1] == 0
    assert hits(tally, "all", "dep->head") == (1, 1)
    assert offsets(tally, "all", "dep->head") == {-1: 1}
    assert tally.remarks == [
        "dec: attention looks back only, so arcs count whose target stands before"
    ]


def test_cross_attention_has_no_arcs() -> None:
    tally = tally_of(sight([CAT], [[MAP]], site("cross")))
    assert tally.details() == {}
    assert tally.remarks == [
        "cross: queries and keys are different texts, so no dependency joins them"
    ]


def test_words_without_annotation_and_heads_outside() -> None:
    loose = tree("Hm oh/dep/9 well/dep/3 no/dep/1")
    tally = tally_of(sight([loose], [[[[0.25] * 4] * 4]]))
    assert hits(tally, "all", "dep->head")[1] == 1  # "no" alone has a head that is another word


def test_plain_text_is_silent_and_a_treebank_without_trees_is_told() -> None:
    silent = tally_of(sight([tree("No tree here")], [[[[0.2] * 3] * 3]]))
    assert silent.details() == {}
    assert silent.compute() == []
    with pytest.raises(InputError, match="No word of this text has a head and a relation"):
        silent.frame()


def test_numbers_that_are_none() -> None:
    broken = tally_of(sight([CAT], [[[[float("nan")] * 3] * 3]]))
    (reading,) = broken.compute()
    assert reading.note is None
    assert np.isnan(reading.value).all()


def test_subtypes_fold_unless_asked_for() -> None:
    passive = tree("It/nsubj:pass/2 broke/root/0")
    active = tree("It/nsubj/2 broke/root/0")
    tally = tally_of(sight([passive, active], [[[[0, 1.0], [1.0, 0]]]] * 2))
    counts = counted(tally)
    assert counts.of("nsubj", "dep->head").arcs.sum() == 2
    assert counts.of("nsubj:pass", "dep->head").arcs.sum() == 1
    assert counts.of("nsubj", "dep->head", subtypes=True).arcs.sum() == 1
    assert set(tally.frame()["relation"]) == {"all", "nsubj"}
    named = HitsTest(relations=["nsubj:pass"])
    tally = tally_of(sight([passive, active], [[[[0, 1.0], [1.0, 0]]]] * 2), test=named)
    assert set(tally.frame()["relation"]) == {"nsubj:pass"}


def test_a_relation_asked_for_by_name() -> None:
    only = tally_of(sight([CAT], [[MAP]]), test=HitsTest(relations=["det"]))
    assert set(only.frame()["relation"]) == {"det"}
    wrong = tally_of(sight([CAT], [[MAP]]), test=HitsTest(relations=["nsub"]))
    with pytest.raises(
        UsageError, match="'nsub' never occurs in this treebank; did you mean nsubj"
    ):
        wrong.frame()
    absent = tally_of(sight([CAT], [[MAP]]), test=HitsTest(relations=["xyz"]))
    with pytest.raises(UsageError, match="'xyz' never occurs in this treebank; it has all, det"):
        absent.details()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"convention": "mine"}, "no convention 'mine'; choose headcount, paper or code"),
        ({"directions": ["up"]}, "no direction 'up'; choose dep->head, head->dep, head<-dep"),
        (
            {"directions": ["head->dep"], "convention": "code"},
            "'head->dep' does not exist under the convention 'code'",
        ),
    ],
)
def test_settings_that_mean_nothing(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Relations(**settings)  # type: ignore[arg-type]


def test_directions_can_be_chosen() -> None:
    tally = tally_of(sight([CAT], [[MAP]]), directions=("head->dep",))
    assert set(tally.frame()["direction"]) == {"head->dep"}
    assert counted(tally_of(sight([CAT], [[MAP]]))).directions == DIRECTIONS
    code = tally_of(sight([CAT], [[MAP]]), convention="code")
    assert counted(code).directions == ("dep->head", "head<-dep")


def test_windows_of_one_sentence_are_one_sentence() -> None:
    tally = tally_of(
        sight([CAT, CAT], [[MAP], [MAP]], index=[4, 4]), sight([CAT], [[MAP]], index=[5])
    )
    found = counted(tally).of("det", "dep->head")
    assert found.arcs.tolist() == [2, 1]


def test_layers_that_met_their_batches_in_another_order() -> None:
    first, second = (
        sight([CAT], [[MAP]]),
        sight([tree("Go/root/0 on/prt/1")], [[[[0, 1.0], [1.0, 0]]]]),
    )

    def at(sighting: object, layer: int) -> object:
        return type(sighting)(**{**sighting.__dict__, "site": site(layer=layer)})

    tally = tally_of(at(first, 0), at(second, 0), at(second, 1), at(first, 1))
    found = counted(tally)
    for relation in ("det", "prt", "nsubj"):
        columns = found.of(relation, "dep->head").hits
        np.testing.assert_array_equal(columns[:, 0], columns[:, 1])


def test_the_frame_can_be_written(tmp_path: pytest.TempPathFactory) -> None:
    frame = tally_of(sight([CAT], [[MAP]])).details()["relations"]
    assert tuple(frame.columns)[: len(FRAMES["relations"])] == FRAMES["relations"]
    with Run.open(str(tmp_path) + "/run") as run:
        run.write_frame("relations", frame)
        pd.testing.assert_frame_equal(run.read_frame("relations"), frame, check_dtype=False)
