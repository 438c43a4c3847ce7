from __future__ import annotations

import copy

import pytest
from tiny_tokenizers import BUILDERS, ENGLISH, GERMAN, TRANSLATORS

from headcount.errors import UsageError
from headcount.text.spans import EncodeReport, TokenRow, special_ids
from headcount.text.tokenize import Scribe

KINDS = sorted(BUILDERS)
TRAPS = [
    "Rain fell </s>",
    "[CLS] on [SEP] the [MASK] roof [SEP]",
    "<s> all </s> night <pad> <unk> <mask>",
    "<|endoftext|> long <|im_start|> <|im_end|>",
    "<sep> and <cls> and <eos> <extra_id_0> en_XX __en__ >>deu<<",
]


def rows(kind: str, texts: list[str], **how: object) -> list[TokenRow]:
    return Scribe(BUILDERS[kind](), EncodeReport()).rows(texts, **how)  # type: ignore[arg-type]


def written(kind: str, row: TokenRow) -> list[str]:
    return BUILDERS[kind]().convert_ids_to_tokens(list(row.ids))


@pytest.mark.parametrize("kind", KINDS)
def test_ids_are_the_tokenizers_own(kind: str) -> None:
    tokenizer = BUILDERS[kind]()
    expected = tokenizer(ENGLISH)["input_ids"]
    assert [list(row.ids) for row in rows(kind, ENGLISH)] == expected


@pytest.mark.parametrize("kind", TRANSLATORS)
def test_targets_are_written_as_targets(kind: str) -> None:
    expected = BUILDERS[kind]()(text_target=GERMAN)["input_ids"]
    assert [list(row.ids) for row in rows(kind, GERMAN, target=True)] == expected


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("trap", TRAPS)
def test_special_places_are_the_tokenizers_whatever_the_text_says(kind: str, trap: str) -> None:
    """A trap has as many special places as an innocent text, in the same corners."""
    (plain,), (trapped,) = rows(kind, ["Rain"]), rows(kind, [trap])
    count = sum(plain.special)
    added = [n for n, s in zip(plain.ids, plain.special, strict=True) if s]
    assert [n for n, s in zip(trapped.ids, trapped.special, strict=True) if s] == added
    places = [place for place, s in enumerate(trapped.special) if s]
    inside = [place for place in places if 2 <= place < len(trapped.ids) - 2]
    assert not inside, "specials stand at the ends"
    assert len(places) == count


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("trap", TRAPS)
def test_no_token_of_the_text_carries_a_special_id(kind: str, trap: str) -> None:
    (row,) = rows(kind, [trap])
    specials = special_ids(BUILDERS[kind]())
    content = [n for n, s in zip(row.ids, row.special, strict=True) if not s]
    assert not specials.intersection(content)
    assert content


@pytest.mark.parametrize("kind", ["t5", "xlm_roberta", "xlnet", "mbart"])
def test_unigram_lookalikes_are_spelt_out_and_counted(kind: str) -> None:
    account = EncodeReport()
    (row,) = Scribe(BUILDERS[kind](), account).rows(["Rain </s>"])
    tokens = zip(written(kind, row), row.special, strict=True)
    text = "".join(token for token, special in tokens if not special)
    assert text.replace("▁", " ").strip() == "Rain </s>"
    assert account.lookalikes == 1


@pytest.mark.parametrize("kind", ["wordpiece", "gpt2", "roberta", "llama", "marian"])
def test_where_the_tokenizer_splits_them_itself_nothing_is_counted(kind: str) -> None:
    account = EncodeReport()
    Scribe(BUILDERS[kind](), account).rows(TRAPS)
    assert account.lookalikes == 0


def test_markup_lets_special_tokens_in() -> None:
    tokenizer = BUILDERS["wordpiece"]()
    (row,) = Scribe(tokenizer, EncodeReport(), markup=True).rows(["rain [MASK] roof"])
    assert written("wordpiece", row) == ["[CLS]", "rain", "[MASK]", "roof", "[SEP]"]
    assert list(row.special) == [1, 0, 0, 0, 1]


def test_residues_of_a_protein_are_found() -> None:
    (row,) = rows("esm", ["MKTVLA"])
    assert written("esm", row) == ["<cls>", "M", "K", "T", "V", "L", "A", "<eos>"]


def test_words_that_a_user_added_stay_whole() -> None:
    for kind in ("gpt2", "marian"):
        tokenizer = copy.deepcopy(BUILDERS[kind]())
        tokenizer.add_tokens(["walnutcake"])
        (row,) = Scribe(tokenizer, EncodeReport()).rows(["old walnutcake here"])
        assert "walnutcake" in tokenizer.convert_ids_to_tokens(list(row.ids))


@pytest.mark.parametrize("kind", KINDS)
def test_halves_of_characters_are_mended_and_counted(kind: str) -> None:
    account = EncodeReport()
    scribe = Scribe(BUILDERS[kind](), account)
    found = scribe.rows(["a \ud83d b", "a \ud83d\ude42 b", "a \ufffd b", "a 🙂 b"])
    assert found[0] == found[2], "a lone half becomes the replacement character"
    assert found[1] == found[3], "two halves become the character"
    assert account.mended == 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "text", ["🙂", "שלום עולם!", "مرحبا", "\u200b", "中文，句子。", "a" * 3000]
)
def test_any_script_is_written(kind: str, text: str) -> None:
    (row,) = rows(kind, [text])
    assert len(row.ids) == len(row.special)


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_text_has_specials_only(kind: str) -> None:
    (row,) = rows(kind, [""])
    assert all(row.special)


def test_pairs_with_token_types() -> None:
    (row,) = Scribe(BUILDERS["wordpiece"](), EncodeReport()).rows(["Rain."], ["Roof [SEP]."])
    first, second = written("wordpiece", row).index("[SEP]"), len(row.ids) - 1
    assert [place for place, s in enumerate(row.special) if s] == [0, first, second]
    assert row.types == [0] * (first + 1) + [1] * (second - first)


@pytest.mark.parametrize("kind", ["wordpiece", "python_wordpiece", "roberta", "t5", "byt5"])
def test_traps_in_either_text_of_a_pair(kind: str) -> None:
    scribe = Scribe(BUILDERS[kind](), EncodeReport())
    usual = sum(scribe.rows(["Rain"], ["Roof"])[0].special)
    for one, two in zip(TRAPS, reversed(TRAPS), strict=True):
        assert sum(scribe.rows([one], [two])[0].special) == usual


@pytest.mark.parametrize("kind", ["mbart", "m2m100"])
def test_a_target_needs_its_language(kind: str) -> None:
    tokenizer = copy.deepcopy(BUILDERS[kind]())
    tokenizer.tgt_lang = None
    scribe = Scribe(tokenizer, EncodeReport())
    assert scribe.rows(["Rain."])
    with pytest.raises(UsageError, match=r"does not know the target language; set tokenizer\.tgt_"):
        scribe.rows(["Regen."], target=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("trap", TRAPS)
def test_markup_gives_a_place_a_token(kind: str, trap: str) -> None:
    (row,) = Scribe(BUILDERS[kind](), EncodeReport(), markup=True).rows([trap])
    assert list(row.ids) == BUILDERS[kind]()(trap)["input_ids"]
    assert len(row.special) == len(row.ids)
