"""Coreference: what is asked of a head, where, and what is told when nothing can be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tiny_subjects
from trees import sight, site

import headcount as hc
from headcount.errors import UsageError
from headcount.models.subject import Subject
from headcount.rooms.coreference.tally import (
    BASELINES,
    PRONOUNS,
    CoreferenceTally,
    Mention,
    PronounChoice,
    agree,
    before,
    concord_of,
    head_word,
    mentions_of,
)
from headcount.text.sentence import Sentence, Span, Word, spaced


def passage(text: str, *clusters: tuple[int, ...], doc: str | None = None) -> Sentence:
    """A text with clusters of one-word mentions."""
    spans = tuple(tuple(Span(place, place) for place in cluster) for cluster in clusters)
    comments = {} if doc is None else {"doc": doc}
    return replace(spaced([Word(form) for form in text.split()]), clusters=spans, comments=comments)


def pointing(size: int, *arrows: tuple[int, int]) -> list[list[float]]:
    """A map in which some words put most weight on another; the others look at themselves."""
    maps = np.eye(size)
    for source, target in arrows:
        maps[source] = 0.2 * np.eye(size)[source] + 0.6 * np.eye(size)[target] + 0.2 / size
    return maps.tolist()


def accuracies(tally: CoreferenceTally, kind: str = "all", split: str = "all") -> list[float]:
    frame = tally.frame()
    rows = frame[(frame["kind"] == kind) & (frame["split"] == split)]
    return rows[rows["against"] == "nearest"]["accuracy"].tolist()


ANN = passage("Ann saw Tom . She left him", (0, 4), (2, 6))


def test_the_most_attended_word_must_head_an_antecedent() -> None:
    tally = CoreferenceTally()
    right, wrong = pointing(7, (4, 0), (6, 2)), pointing(7, (4, 2), (6, 2))
    tally.update(sight([ANN], [[right, wrong]]))
    assert accuracies(tally) == [1.0, 0.5]
    assert accuracies(tally, "pronoun") == [1.0, 0.5]
    frame = tally.frame()
    assert set(frame["kind"]) == {"all", "pronoun"}  # first mentions are not asked
    assert set(frame["n"]) == {2}
    # the nearest mention of She is Tom, of him it is She; by gender, She leaves both open
    assert set(frame[frame["against"] == "nearest"]["baseline"]) == {0.0}
    assert set(frame[frame["against"] == "head match"]["baseline"]) == {0.0}


def test_any_antecedent_will_do_and_the_word_itself_is_none() -> None:
    text = passage("Ann ran . She hid . She sang", (0, 3, 6))
    tally = CoreferenceTally()
    tally.update(sight([text], [[pointing(8, (6, 0), (3, 3)), pointing(8, (6, 3), (3, 0))]]))
    assert accuracies(tally) == [1.0, 1.0]  # 3 looks at itself most, and at 0 next


@pytest.mark.parametrize(("convention", "accuracy"), [("headcount", 1.0), ("paper", 0.5)])
def test_candidates(convention: str, accuracy: float) -> None:
    ahead = np.array(pointing(7, (6, 2)))
    ahead[4] = [0.2, 0, 0.1, 0.0, 0.1, 0.6, 0]  # mostly ahead, then at Ann
    tally = CoreferenceTally(convention)
    tally.update(sight([ANN], [[ahead.tolist()]]))
    assert accuracies(tally) == [accuracy]


def test_a_causal_head_is_never_asked_what_it_cannot_see() -> None:
    tally = CoreferenceTally(convention="paper")
    where = site("dec", causal=True)
    tally.update(sight([ANN], [[pointing(7, (4, 0), (6, 2))]], where))
    assert accuracies(tally) == [1.0]


def test_passages_of_a_document_are_one_text() -> None:
    texts = [passage("Ann ran . She hid", (0, 3), doc=name) for name in ("one", "one", "two")]
    tally = CoreferenceTally()
    tally.update(sight(texts, [[pointing(5, (3, 0))]] * 3))
    assert set(tally.frame().query("split == 'all'")["texts"]) == {2}
    assert set(tally.frame().query("split == 'all'")["n"]) == {3}


def test_batches_and_shards_never_show() -> None:
    texts = [passage(f"Ann {word} . She hid", (0, 3)) for word in ("ran", "sang", "fell", "wept")]
    maps = [[pointing(5, (3, 0)), pointing(5, (3, 1 + n % 2 * -1))] for n in range(4)]
    whole, first, second = CoreferenceTally(), CoreferenceTally(), CoreferenceTally()
    whole.update(sight(texts, maps))
    first.update(sight(texts[2:], maps[2:], index=[2, 3], extra=3))
    second.update(sight(texts[:2], maps[:2], index=[0, 1]))
    first.merge(second)
    np.testing.assert_array_equal(
        first.frame().drop(columns="note").sort_index(axis=1).to_numpy(dtype=str),
        whole.frame().drop(columns="note").sort_index(axis=1).to_numpy(dtype=str),
    )
    assert first.compute()[0].value.tolist() == whole.compute()[0].value.tolist() == [1.0, 0.5]


@pytest.mark.parametrize(
    "text",
    [
        passage("Ann ran", (0,)),
        passage("Ann ran"),
        passage("Ann", (0,)),
        passage("Ann ran", (0, 7), (9, 12)),
        replace(spaced([Word("Ann"), Word("Hill")]), clusters=((Span(0, 1), Span(1, 1)),)),
    ],
    ids=["one mention", "none", "one word", "outside", "nested"],
)
def test_without_an_antecedent_nothing_is_claimed(text: Sentence) -> None:
    tally = CoreferenceTally()
    size = len(text.words or ())
    tally.update(sight([text], [[np.eye(size).tolist()]]))
    assert tally.details() == {}
    reading = tally.compute()[0]
    assert np.isnan(reading.value).all()
    assert reading.note == "no mention has an antecedent in the same text"


def test_cross_heads_are_not_asked() -> None:
    tally = CoreferenceTally()
    tally.update(sight([ANN], [[pointing(7)]], site("cross")))
    assert tally.compute()[0].note == "queries and keys are different texts"


def test_attention_that_is_no_number_is_told() -> None:
    tally = CoreferenceTally()
    maps = np.full((7, 7), np.nan)
    tally.update(sight([ANN], [[maps.tolist()]]))
    assert tally.compute()[0].note is None
    assert np.isnan(tally.compute()[0].value).all()


def test_a_survey_of_plain_text_has_no_value_and_says_why() -> None:
    table = hc.survey(
        tiny_subjects.encoder(), ["Rain fell on the tin roof."], tallies=[CoreferenceTally()]
    )
    assert table.frame["coreference"].isna().all()
    assert "no mention has an antecedent" in table.notes["coreference"]


def test_windows_of_a_long_text_ask_what_they_hold() -> None:
    text = passage("Ann sat . " * 3 + "She saw Ann . She hid", (0, 9, 11, 13))
    table = hc.survey(
        tiny_subjects.encoder(),
        [text],
        tallies=[CoreferenceTally()],
        reading=hc.ReadingOptions(max_length=12, batch_size=2),
    )
    frame = table.details["coreference"]
    assert 0 < frame.query("split == 'all'")["n"].max() < 3


def test_settings_that_mean_nothing() -> None:
    with pytest.raises(UsageError, match="not exist under the convention 'code'"):
        CoreferenceTally(convention="code")


@pytest.mark.data
@pytest.mark.real
def test_a_head_of_a_real_model_finds_antecedents(data_dir: Path, minilm: Subject) -> None:
    tally = CoreferenceTally()
    corpus = data_dir / "coref" / "ontogum-dev.jsonl.xz"
    table = hc.survey(minilm, corpus, limit=80, tallies=[tally], columns=["coreference"])
    frame = table.details["coreference"].query("split == 'all' and kind == 'all'")
    rules = frame.groupby("against")["baseline"].max()
    assert rules["nearest"] < rules["head match"] < rules["rules"]
    assert frame["accuracy"].max() > rules["nearest"] + 0.1
    assert frame["accuracy"].max() < rules["rules"]


# --- Antecedents without a model ----------------------------------------------------------------


#         0   1   2    3   4      5    6  7     8    9   10     11    12
TEXT = "Mr Hill met Mrs Hill . Hill sang ; the dogs heard her"
SPANS = {
    "Mr Hill": Span(0, 1), "Mrs Hill": Span(3, 4), "Hill": Span(6, 6), "the dogs": Span(9, 10),
    "her": Span(12, 12),
}  # fmt: skip


def passage_antecedents(*clusters: tuple[str, ...]) -> Sentence:
    found = tuple(tuple(SPANS[name] for name in cluster) for cluster in clusters)
    return replace(spaced([Word(form) for form in TEXT.split()]), clusters=found)


def said(text: str, rule: str) -> str | None:
    mentions = mentions_of(passage_antecedents(*((name,) for name in SPANS)))
    mention = next(one for one in mentions if one.span == SPANS[text])
    found = BASELINES[rule](mention, before(mention, mentions))
    return None if found is None else found.text


@pytest.mark.parametrize(
    ("mention", "rule", "named"),
    [
        ("her", "nearest", "the dogs"),
        ("her", "head match", None),
        ("her", "rules", "hill"),  # gender unknown, so it agrees, and it is nearer
        ("Hill", "nearest", "mrs hill"),
        ("Hill", "head match", "mrs hill"),
        ("Hill", "rules", "mrs hill"),
        ("the dogs", "rules", "hill"),  # nothing agrees in number: the last sieve
        ("Mr Hill", "nearest", None),
        ("Mr Hill", "rules", None),
    ],
)
def test_what_each_rule_names(mention: str, rule: str, named: str | None) -> None:
    assert said(mention, rule) == named


def test_the_same_words_come_before_a_nearer_head() -> None:
    words = [Word(form) for form in ["the", "cat", "saw", "a", "cat", ";", "the", "cat", "ran"]]
    spans = (Span(0, 1), Span(3, 4), Span(6, 7))
    mentions = mentions_of(replace(spaced(words), clusters=tuple((span,) for span in spans)))
    found = BASELINES["rules"](mentions[2], before(mentions[2], mentions))
    assert found is not None
    assert found.span == spans[0]


def test_what_lies_inside_or_around_is_no_candidate() -> None:
    words = [Word(form) for form in ["Ann", "met", "his", "mother"]]
    clusters = ((Span(0, 0),), (Span(2, 2),), (Span(2, 3),))
    his, mother = mentions_of(replace(spaced(words), clusters=clusters))[1:]
    ann: Mention = mentions_of(replace(spaced(words), clusters=clusters))[0]
    assert before(mother, [ann, his, mother]) == [ann]


def test_what_is_not_known_agrees() -> None:
    they, she = PRONOUNS["they"], PRONOUNS["she"]
    assert not agree(they, she)
    assert agree(PRONOUNS["you"], PRONOUNS["you"])
    assert not agree(PRONOUNS["i"], she)
    name = concord_of([Word("Hill")], Word("Hill"), "proper")
    assert agree(name, she)
    assert not agree(name, they)


@pytest.mark.parametrize(
    ("phrase", "head", "number"),
    [
        ("dogs", Word("dogs", xpos="NNS"), "p"),
        ("dog", Word("dog", xpos="NN"), "s"),
        ("sheep", Word("sheep", feats={"Number": "Plur"}), "p"),
        ("Tom and Ann", Word("Tom"), "p"),
        ("bus", Word("bus"), "s"),
        ("dogs", Word("dogs"), "p"),
        ("ten", Word("ten", xpos="CD"), None),
    ],
)
def test_number(phrase: str, head: Word, number: str | None) -> None:
    words = [Word(form) for form in phrase.split()]
    assert concord_of(words, head, "nominal").number == number


# --- Mentions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phrase", "head"),
    [
        ("her", "her"),
        ("the old mayor", "mayor"),
        ("the mayor of York", "mayor"),
        ("Ann Hill , the mayor", "Hill"),
        ("a man who sings", "man"),
        ("Ann 's", "Ann"),
        ("the cats ’", "cats"),
        ("Tom and Ann", "Tom"),
        ("that", "that"),
        ("of late", "late"),
    ],
)
def test_without_a_tree_the_last_word_before_what_follows_the_noun(phrase: str, head: str) -> None:
    words = [Word(form) for form in ["Yes", *phrase.split(), "ran"]]
    assert words[head_word(words, Span(1, len(words) - 2))].form == head


def test_with_a_tree_the_word_that_hangs_outside() -> None:
    words = [
        Word("mayor", head=4), Word("of", head=3), Word("York", head=1), Word("left", head=0),
    ]  # fmt: skip
    assert head_word(words, Span(0, 2)) == 0
    assert head_word(words, Span(2, 2)) == 2


def test_punctuation_is_no_head_and_half_a_tree_is_none() -> None:
    words = [Word('"', upos="PUNCT", head=3), Word("Emma", upos="PROPN", head=3), Word("x", head=0)]
    assert head_word(words, Span(0, 1)) == 1
    words[1] = Word("Emma", upos="PROPN")
    assert head_word(words, Span(0, 1)) == 1


def test_a_tree_that_turns_in_a_circle_falls_back_on_the_rule() -> None:
    words = [Word("the", head=2), Word("mayor", head=1), Word("left", head=0)]
    assert head_word(words, Span(0, 1)) == 1


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        (Word("it", upos="PRON"), "pronoun"),
        (Word("his", xpos="PRP$"), "pronoun"),
        (Word("who", xpos="WP"), "pronoun"),
        (Word("York", upos="PROPN"), "proper"),
        (Word("Alps", xpos="NNPS"), "proper"),
        (Word("Mayor", upos="NOUN"), "nominal"),
        (Word("She"), "pronoun"),
        (Word("York"), "proper"),
        (Word("mayor"), "nominal"),
    ],
)
def test_kinds_by_tag_or_by_letters(word: Word, kind: str) -> None:
    sentence = replace(spaced([Word("Well"), word]), clusters=((Span(1, 1),),))
    assert mentions_of(sentence)[0].kind == kind


def test_a_capital_that_starts_a_sentence_is_no_name_if_the_word_is_known() -> None:
    words = [Word(form) for form in ["Cats", "ran", ".", "Cats", "hid", ";", "two", "cats"]]
    sentence = replace(spaced(words), clusters=((Span(0, 0), Span(3, 3)),))
    assert [mention.kind for mention in mentions_of(sentence)] == ["nominal", "nominal"]
    alone = replace(spaced(words[:3]), clusters=((Span(0, 0),),))
    assert mentions_of(alone)[0].kind == "proper"


def test_spans_outside_the_text_and_doubles_are_left_out() -> None:
    clusters = ((Span(0, 0), Span(0, 0), Span(1, 0), Span(2, 9), Span(-1, 0)), ())
    sentence = replace(spaced([Word("Ann"), Word("ran")]), clusters=clusters)
    assert [mention.span for mention in mentions_of(sentence)] == [Span(0, 0)]
    assert mentions_of(spaced([Word("Ann")])) == []


# --- Pronouns between two names -----------------------------------------------------------------


#        0    1    2   3    4   5    6
TEXT_PRONOUN_CHOICE = "Ann Hill met Eve ; she left"


ANN_PRONOUN_CHOICE, EVE = Span(0, 1), Span(3, 3)


def passage_pronoun_choice(
    meant: str = "A",
    text: str = TEXT_PRONOUN_CHOICE,
    pronoun: int = 5,
    a: Span = ANN_PRONOUN_CHOICE,
    b: Span = EVE,
) -> Sentence:
    names = {"A": a, "B": b}
    together = [Span(pronoun, pronoun), *(span for name, span in names.items() if name in meant)]
    alone = [(span,) for name, span in names.items() if name not in meant]
    comments = {
        "pronoun": str(pronoun), "A": str(a.first), "B": str(b.first),
        "A-coref": str("A" in meant).upper(), "B-coref": str("B" in meant).upper(),
    }  # fmt: skip
    words = spaced([Word(form) for form in text.split()], comments=comments)
    return replace(words, clusters=(tuple(sorted(together)), *alone))


def looking(first: float, second: float, third: float, pronoun: int = 5) -> list[list[float]]:
    """A map whose pronoun looks so much at Ann, Hill and Eve."""
    maps = np.zeros((7, 7))
    maps[pronoun, [0, 1, 3]] = first, second, third
    return maps.tolist()


def rows(tally: PronounChoice, kind: str = "all") -> dict[str, float]:
    frame = tally.frame().query("split == 'all' and kind == @kind").set_index("against")
    return {"accuracy": frame["accuracy"].iloc[0], **frame["baseline"].to_dict()}


def test_a_name_gets_the_sum_of_its_words() -> None:
    tally = PronounChoice()
    tally.update(
        sight(
            [passage_pronoun_choice("A"), passage_pronoun_choice("B")],
            [[looking(0.2, 0.2, 0.3)]] * 2,
        )
    )
    assert rows(tally) == {"accuracy": 0.5, "nearest": 0.5, "first": 0.5}


def test_nearest_and_first_are_told_by_place() -> None:
    tally = PronounChoice()
    swapped = passage_pronoun_choice("A", a=EVE, b=ANN_PRONOUN_CHOICE)  # A stands second here
    tally.update(sight([swapped], [[looking(0.2, 0.2, 0.3)]]))
    assert rows(tally) == {"accuracy": 0.0, "nearest": 1.0, "first": 0.0}


def test_bias_is_feminine_over_masculine() -> None:
    he = TEXT_PRONOUN_CHOICE.replace("she", "He")
    texts = [
        passage_pronoun_choice("A"),
        passage_pronoun_choice("B"),
        passage_pronoun_choice("A", he),
        passage_pronoun_choice("A", he),
    ]
    maps = [
        looking(0.3, 0.3, 0.1),
        looking(0.3, 0.3, 0.1),
        looking(0.3, 0.3, 0.1),
        looking(0, 0, 1),
    ]
    tally = PronounChoice()
    tally.update(sight(texts, [[one] for one in maps]))
    assert rows(tally, "feminine")["accuracy"] == rows(tally, "masculine")["accuracy"] == 0.5
    assert set(tally.frame().query("split == 'all'")["bias"]) == {1.0}


def test_a_tie_is_no_hit() -> None:
    tally = PronounChoice()
    tally.update(
        sight(
            [passage_pronoun_choice("A"), passage_pronoun_choice("B")],
            [[looking(0.1, 0.1, 0.2)]] * 2,
        )
    )
    assert rows(tally)["accuracy"] == 0.0


@pytest.mark.parametrize(
    "text",
    [
        passage_pronoun_choice(""),
        passage_pronoun_choice("AB"),
        replace(passage_pronoun_choice("A"), comments={}),
        replace(passage_pronoun_choice("A"), clusters=()),
        passage_pronoun_choice("A", pronoun=99),
    ],
    ids=["neither", "both", "another corpus", "no names", "outside"],
)
def test_what_asks_nothing(text: Sentence) -> None:
    tally = PronounChoice()
    tally.update(sight([text], [[looking(0.2, 0.2, 0.3)]]))
    assert tally.details() == {}
    assert "no text has a pronoun between two names" in str(tally.compute()[0].note)


def test_a_causal_head_is_asked_only_about_names_it_has_seen() -> None:
    tally, ahead = (
        PronounChoice(),
        passage_pronoun_choice("A", pronoun=2, text="Ann Hill she Eve ; met left"),
    )
    tally.update(sight([ahead], [[looking(0.2, 0.2, 0.3, 2)]], site("dec", causal=True)))
    assert tally.details() == {}
    tally.update(
        sight([passage_pronoun_choice("A")], [[looking(0.2, 0.2, 0.3)]], site("dec", causal=True))
    )
    assert rows(tally)["accuracy"] == 1.0


@pytest.mark.data
@pytest.mark.real
def test_gap_is_read_and_asked(data_dir: Path, minilm: Subject) -> None:
    table = hc.survey(
        minilm, data_dir / "coref" / "gap-validation.tsv.xz", limit=40, tallies=[PronounChoice()],
        columns=["pronoun_choice"],
    )  # fmt: skip
    frame = table.details["pronoun_choice"]
    assert set(frame["kind"]) == {"all", "feminine", "masculine"}
    assert frame.query("split == 'all' and kind == 'all'")["n"].max() > 25
