"""How often a survey finds a role where there is none: models and trees without any meaning.

The stated level is 5% of surveys with even one false verdict; a test fails where so many have one
that chance makes as many at that level in less than 5% of cases. Seeds are fixed. The dozen surveys
of every day see a gross fault alone (a rate of 30% in three cases of four); with HEADCOUNT_LONG=1
there are a hundred, which see twice the level more often than not. Encoder-decoders read pairs, so
that alignment and source-end are judged: six surveys every day, of which none may be false (seen
is a rate of 30% in seven cases of eight), and a hundred with HEADCOUNT_LONG=1.
"""

from __future__ import annotations

import os
import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from tiny import TINY
from tiny_subjects import encoder, writer

import headcount as hc
from headcount.rooms.nulls import layer_confidence, sharp_twin
from headcount.rooms.relations.syntactic import Syntactic
from headcount.rooms.resting.separator import NoOp
from headcount.rooms.resting.sink import SourceEnd
from headcount.rooms.trials.recall import Alignment
from headcount.surveys import Pass, PassOptions, read_corpora
from headcount.surveys.roles import KINDS, verdicts_of
from headcount.text import read_sample
from headcount.text.sentence import Pair, Sentence

TREES = list(read_sample())
TRANSLATED: list[Any] = list(read_sample(translation="text_de"))

LONG = bool(os.environ.get("HEADCOUNT_LONG"))
LEVEL = 0.05


def allowed(surveys: int) -> int:
    """Chance makes more false surveys than this in at most 5% of cases."""
    return int(binom.ppf(0.95, surveys, LEVEL))


def power(surveys: int, rate: float, most: int | None = None) -> float:
    """How often a test of so many surveys fails where this share of them is false."""
    return float(binom.sf(allowed(surveys) if most is None else most, surveys, rate))


def found_in(make: Any, seed: int) -> int:
    """Roles that a survey finds in a model that learned nothing."""
    some = random.Random(seed).sample(TREES, 30)
    table = hc.survey(
        make(seed=seed),
        treebank=some,
        roles=hc.RoleOptions(control="random-init", twins=[seed + 100]),
        reading=hc.ReadingOptions(seed=seed),
    )
    return len(table.details["roles"])


def test_a_model_that_learned_nothing_has_no_roles() -> None:
    seeds = range(50 if LONG else 6)
    false = [found_in(make, seed) > 0 for make in (encoder, writer) for seed in seeds]
    assert sum(false) <= allowed(len(false)), f"{sum(false)} of {len(false)} surveys are false"


def test_a_sharp_random_model_of_full_size_has_no_job(learnt: hc.Subject) -> None:
    """144 heads with random weights, each layer as confident as the trained one.

    It may look at one place or at one kind of word, which its random embeddings decide; no head may
    be said to do something. Two a day; `python -m research.nulls.false` counts 100.
    """
    stacks = learnt.anatomy.stacks[:1]
    like = Pass(
        "Surveying",
        read_corpora(TREES).text,
        (),
        PassOptions(stacks, 16, None, "window", False, True, None, 0),
    )
    surveys, false = 100 if LONG else 2, 0
    goal = layer_confidence(learnt, like)
    assert min(goal.values()) > 0.15  # a plain random twin has about 0.07
    for seed in range(surveys):
        twin = sharp_twin(learnt, like, seed=seed, goal=goal)
        table = hc.survey(
            twin, treebank=TREES, roles=True, reading=hc.ReadingOptions(stacks=stacks)
        )
        false += any(KINDS[one.role].says == "job" for one in verdicts_of(table))
    assert false <= (allowed(surveys) if LONG else 0)


def test_what_these_tests_see() -> None:
    """As the docstring of this file says."""
    assert power(12, LEVEL) < 0.05
    assert power(12, 0.3) > 0.74
    assert power(100, LEVEL) < 0.05
    assert power(100, 2 * LEVEL) > 0.5
    assert power(6, 0.3, most=0) > 0.87


# --- encoder-decoders, which read pairs ---------------------------------------------------------


@pytest.fixture(scope="module")
def learnt() -> hc.Subject:
    """The bundled translator: its heads align, and rest on the end of the source."""
    return hc.load("translator", device="cpu")


def speaker(seed: int, tokenizer: Any) -> hc.Subject:
    """A random encoder-decoder with words as tokens: of letters hardly any could be linked."""
    ids = {name: getattr(tokenizer, name) for name in ("pad_token_id", "eos_token_id")}
    sizes = {"vocab_size": len(tokenizer), "max_position_embeddings": 128}
    start = {"decoder_start_token_id": tokenizer.pad_token_id}
    return hc.Subject(TINY["marian"](seed=seed, **ids, **sizes, **start), tokenizer, name="marian")


def found_in_pairs(subject: hc.Subject, seed: int) -> int:
    """Roles that a survey of pairs with trees finds; both questions of pairs must be asked."""
    some = random.Random(seed).sample(TRANSLATED, 60)
    table = hc.survey(
        subject,
        some,
        treebank=some,
        roles=hc.RoleOptions(control="random-init", twins=[seed + 100]),
        reading=hc.ReadingOptions(seed=seed),
    )
    trials = table.details["trials"].groupby("column")
    assert trials["n"].min()[["alignment", "alignment_read", "source_end"]].min() > 50
    assert trials["value"].count()[["alignment", "source_end"]].min() == 12
    return len(table.details["roles"])


def test_an_encoder_decoder_that_learned_nothing_has_no_roles(learnt: hc.Subject) -> None:
    surveys = 100 if LONG else 6
    false = sum(
        found_in_pairs(speaker(seed, learnt.tokenizer), seed) > 0 for seed in range(surveys)
    )
    print(f"{false} of {surveys} surveys of random encoder-decoders have a false role")
    assert false <= (allowed(surveys) if LONG else 0)


def roles_of_pairs(subject: hc.Subject, pairs: list[Any]) -> set[str]:
    """What heads of cross attention are said to do."""
    table = hc.survey(
        subject,
        pairs,
        roles=[Alignment(), SourceEnd()],
        reading=hc.ReadingOptions(stacks=["cross"]),
    )
    return set(table.details["roles"]["role"])


def test_heads_that_learned_to_read_pairs_are_seen(learnt: hc.Subject) -> None:
    """As many pairs as the random models read are enough, so that theirs is no empty test."""
    some = random.Random(0).sample(TRANSLATED, 60)
    assert roles_of_pairs(learnt, some) == {"alignment", "source-end"}


def test_pairs_that_mean_nothing_give_no_alignment_head(learnt: hc.Subject) -> None:
    """Every source with the target of another: there is nothing to align."""
    surveys = 20 if LONG else 1
    false = 0
    for seed in range(surveys):
        some: list[Pair] = random.Random(seed).sample(TRANSLATED, 120)
        moved = [replace(one, target=two.target) for one, two in pairwise([*some, some[0]])]
        false += "alignment" in roles_of_pairs(learnt, moved)
    print(f"{false} of {surveys} surveys of pairs that mean nothing have an alignment head")
    assert false <= (allowed(surveys) if LONG else 0)


# --- trees without meaning ----------------------------------------------------------------------


def shuffled(sentence: Sentence, draw: random.Random) -> Sentence:
    """The same words, with a tree of the same labels and arcs between words drawn at random."""
    words = list(sentence.words or ())
    order = draw.sample(range(len(words)), len(words))  # word -> the word whose place it takes
    moved = []
    for place, word in enumerate(words):
        other = words[order[place]]
        head = (
            other.head if other.head is None or other.head < 1 else order.index(other.head - 1) + 1
        )
        moved.append(replace(word, head=head, deprel=other.deprel))
    return replace(sentence, words=tuple(moved))


def test_trees_that_mean_nothing_give_no_syntactic_head() -> None:
    subject, false = hc.load("translator", device="cpu"), 0
    surveys = 20 if LONG else 3
    for seed in range(surveys):
        draw = random.Random(seed)
        false += verdicts(subject, [shuffled(one, draw) for one in TREES]) > 0
    assert false <= (allowed(surveys) if LONG else 0)
    assert verdicts(subject, TREES) > 0  # the same call sees heads where trees mean something


def verdicts(subject: hc.Subject, trees: list[Sentence]) -> int:
    """Syntactic heads, and heads that rest without their relation."""
    table = hc.survey(
        subject, treebank=trees, roles=[Syntactic()], reading=hc.ReadingOptions(stacks=["enc"])
    )
    assert table.details["relations"]["accuracy"].notna().any()
    resting = NoOp().judge(table) if "rest_by_relation" in table.details else ()
    return len(Syntactic().judge(table)) + len(resting)


def test_shuffled_trees_are_trees() -> None:
    moved = shuffled(TREES[0], random.Random(0))
    heads = [word.head for word in moved.words or ()]
    assert sum(head == 0 for head in heads) == sum(w.head == 0 for w in TREES[0].words or ())
    assert np.isin([head for head in heads if head], range(1, len(heads) + 1)).all()
