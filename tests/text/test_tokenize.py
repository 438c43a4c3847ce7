"""Tests of `text/tokenize.py`."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import pytest
import torch
import transformers
from tiny import TINY
from tiny_tokenizers import BUILDERS, CHAT_TEMPLATE, ENGLISH, GERMAN, TRANSLATORS, chatty, gpt2
from torch import Tensor
from transformers import (
    BartModel,
    EncoderDecoderConfig,
    EncoderDecoderModel,
    M2M100Model,
    MBartModel,
    T5Model,
)

from headcount.errors import InputError, ModelError, UsageError
from headcount.rooms.chat.chat import Frame, chat_turns
from headcount.text.encoding import encode
from headcount.text.spans import EncodeReport, TokenRow, special_ids
from headcount.text.tokenize import (
    COUNTS_FROM_PADDING,
    Intake,
    RowTokenizer,
    intake_of,
    must_have_template,
    position_limit,
    shift_of,
)


def marked(text: str, account: EncodeReport | None = None) -> list[str]:
    """The tokens of a turn, special ones with a star."""
    tokenizer = chatty()
    (row,) = RowTokenizer(tokenizer, account or EncodeReport()).chat_rows([text])
    tokens = tokenizer.convert_ids_to_tokens(list(row.ids))
    return [f"{t}*" if s else t for t, s in zip(tokens, row.special, strict=True)]


def test_the_frame_is_not_the_systems_words() -> None:
    frame = Frame("<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\n", "<|im_end|>\n")
    rendered = chat_turns(chatty(), ["Be kind."])[0]
    start, end = frame.content(rendered)
    assert rendered[start:end] == "Be kind."
    assert start > rendered.index("Be kind."), "not the system's words"


def test_a_frame_that_does_not_hold_has_no_content() -> None:
    assert Frame("<user>", "<end>").content("<system>Hi<end>") == (0, 0)
    assert Frame("ab", "bc").content("abc") == (0, 0)


def test_the_templates_marks_are_special() -> None:
    tokens = marked("Rain fell.")
    stars = [token for token in tokens if token.endswith("*")]
    assert stars == ["<|im_start|>*", "<|im_end|>*"] * 2


def test_marks_in_the_users_words_are_text_and_counted() -> None:
    account = EncodeReport()
    tokens = marked("<|im_end|> Rain <|im_start|>", account)
    assert sum(token.endswith("*") for token in tokens) == 4
    assert account.lookalikes == 2
    spelt = "".join(token for token in tokens if not token.endswith("*"))
    assert "<|im_end|>ĠRainĠ<|im_start|>" in spelt


def test_separators_are_the_ends_of_turns() -> None:
    (batch,) = encode(["Rain fell."], chatty(), stacks={"dec"}, chat=True)
    side = batch.sides["target"]
    found = [t for t, s in zip(side.tokens[0], side.separator[0].tolist(), strict=True) if s]
    assert found == ["<|im_end|>", "<|im_end|>"]


def test_no_template() -> None:
    with pytest.raises(UsageError) as caught:
        must_have_template(gpt2())
    assert str(caught.value) == (
        "GPT2Tokenizer has no chat template; leave out chat=True (--chat), or use the instruct "
        "version of the model."
    )
    with pytest.raises(UsageError, match="has no chat template"):
        encode(["Rain."], gpt2(), stacks={"dec"}, chat=True)


def test_a_template_that_refuses() -> None:
    tokenizer = copy.deepcopy(chatty())
    tokenizer.chat_template = "{{ raise_exception('a system turn is needed') }}" + CHAT_TEMPLATE
    with pytest.raises(InputError, match="refuses a single user turn: a system turn is needed"):
        chat_turns(tokenizer, ["Rain."])


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ("{{ 'a' * 10**10 }}", "MemoryError"),
        ("{% set s = namespace(x='a') %}{% for i in range(40) %}{% set s.x = s.x ~ s.x %}"
         "{% endfor %}{{ s.x }}", "MemoryError"),
        ("{{ '%*d' % (10**10, 1) }}", "MemoryError|OverflowError"),
        ("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
         "takes more than 2 seconds or 1 GB"),
        ("{{ 10 ** (10 ** 10) }}", "takes more than 2 seconds or 1 GB"),
        ("{{ 1 / 0 }}", "breaks on a single user turn: ZeroDivisionError"),
        ("{{ messages[9].content }}", "refuses a single user turn"),
        ("{{ 'a' * 10**6 }}", "writes 1,000,000 characters for a turn of"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "RecursionError"),
        ("{{ nothing.there() }}", "refuses a single user turn"),
    ],
)  # fmt: skip
def test_a_template_that_takes_all_there_is_ends_in_a_sentence(
    template: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headcount.rooms.chat.chat._SECONDS", 2)
    tokenizer = copy.deepcopy(chatty())
    tokenizer.chat_template = template
    with pytest.raises(InputError, match=told):
        RowTokenizer(tokenizer, EncodeReport()).chat_rows(["Rain."])


def test_markup_lets_the_user_write_marks() -> None:
    account = EncodeReport()
    (row,) = RowTokenizer(chatty(), account, markup=True).chat_rows(["Rain <|im_end|>"])
    assert chatty().convert_ids_to_tokens(list(row.ids)).count("<|im_end|>") == 3
    assert sum(row.special) == 4
    assert account.lookalikes == 0


def test_places_in_the_turn_are_places_in_the_text() -> None:
    frame = Frame("<u>", "<e>")
    inside = [(0, 3), (3, 5), (5, 8), (8, 11)]
    assert frame.places("Hi all", "<u>Hi all<e>", inside) == [None, (0, 2), (2, 5), None]
    assert frame.places(" Hi", "<u>Hi<e>", [(3, 5)]) == [(1, 3)], "a template may strip"
    assert frame.places("Hi", "<u>HI<e>", [(3, 5)]) == [None], "changed text has no places"


# ---  -------------------------------------------------------------------------------------------


PAD, EOS, CODE = 0, 2, 9
LABELS = torch.tensor([[11, 12, 13, EOS, CODE], [14, EOS, CODE, -100, -100]])


def shifted(model: object) -> list[list[int]]:
    shift = shift_of(model)
    assert shift is not None
    return shift(LABELS.clone()).tolist()


def one_on(start: int) -> list[list[int]]:
    return [[start, 11, 12, 13, EOS], [start, 14, EOS, CODE, PAD]]


@pytest.mark.parametrize(
    ("family", "settings", "expected"),
    [
        ("marian", {"decoder_start_token_id": PAD}, one_on(PAD)),
        ("bart", {"decoder_start_token_id": EOS}, one_on(EOS)),
        ("t5", {"decoder_start_token_id": PAD}, one_on(PAD)),
        ("m2m100", {"decoder_start_token_id": EOS}, one_on(EOS)),
        ("mbart", {}, one_on(CODE)),
    ],
)
def test_each_family_starts_its_own_way(
    family: str, settings: dict[str, int], expected: list[list[int]]
) -> None:
    assert shifted(TINY[family](**settings)) == expected


@pytest.mark.parametrize(
    ("family", "bare", "start"),
    [
        ("bart", BartModel, EOS),
        ("t5", T5Model, PAD),
        ("m2m100", M2M100Model, EOS),
        ("mbart", MBartModel, CODE),
    ],
)
def test_models_without_a_head_start_as_those_with_one(family: str, bare: type, start: int) -> None:
    config = TINY[family](decoder_start_token_id=PAD if family == "t5" else EOS).config
    assert shifted(bare(config)) == one_on(start)


def test_two_models_put_together() -> None:
    small = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    half = TINY["bert"](**small).config
    config = EncoderDecoderConfig.from_encoder_decoder_configs(half, half)
    config.decoder_start_token_id, config.pad_token_id = 1, PAD
    assert shifted(EncoderDecoderModel(config=config)) == one_on(1)


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "vit"])
def test_others_have_no_shift(family: str) -> None:
    assert shift_of(TINY[family]()) is None


@pytest.mark.parametrize("family", ["marian", "t5", "bart"])
@pytest.mark.parametrize("half", ["encoder", "decoder"])
def test_one_half_of_an_encoder_decoder_has_no_shift(family: str, half: str) -> None:
    alone = getattr(TINY[family](), f"get_{half}")()
    assert shift_of(alone) is None


def test_a_model_that_does_not_say_how_it_starts() -> None:
    class Mystery(torch.nn.Module):
        class config:  # noqa: N801
            is_encoder_decoder = True
            pad_token_id = 0
            decoder_start_token_id = 0

        def forward(self, input_ids: Tensor, decoder_input_ids: Tensor) -> None: ...

    with pytest.raises(ModelError, match="Mystery does not say how its decoder starts"):
        shift_of(Mystery())


def test_what_a_model_takes() -> None:
    bert = intake_of(TINY["bert"]())
    assert bert.accepts("token_type_ids")
    assert bert.needs_positions
    assert (bert.source_limit, bert.pad_id, bert.shift) == (64, 0, None)
    distilbert = intake_of(TINY["distilbert"]())
    assert not distilbert.accepts("token_type_ids")
    roberta = intake_of(TINY["roberta"](type_vocab_size=1))
    assert not roberta.accepts("token_type_ids"), "it has one type, and pairs have two"
    assert not roberta.needs_positions, "it numbers its positions itself"
    assert not intake_of(TINY["t5"]()).needs_positions


def test_an_adapter_is_looked_through() -> None:
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(r=2, target_modules=["q_proj"])
    wrapped = peft.get_peft_model(TINY["marian"](decoder_start_token_id=PAD), config)
    assert intake_of(wrapped).takes == intake_of(TINY["marian"]()).takes
    assert shifted(wrapped) == one_on(PAD)


def test_by_default_everything_is_accepted() -> None:
    def shift(labels: Tensor) -> Tensor:
        return labels

    assert Intake().accepts("anything")
    assert not Intake(takes=frozenset({"input_ids"}), shift=shift).accepts("anything")


# ---  -------------------------------------------------------------------------------------------


def config(name: str, **settings: object) -> transformers.PretrainedConfig:
    return getattr(transformers, f"{name}Config")(**settings)


@pytest.mark.parametrize(
    ("name", "settings", "limit"),
    [
        ("Bert", {}, 512),
        ("Albert", {}, 512),
        ("DistilBert", {}, 512),
        ("ModernBert", {}, 8192),
        ("Roberta", {"max_position_embeddings": 514, "pad_token_id": 1}, 512),
        ("XLMRoberta", {"max_position_embeddings": 514, "pad_token_id": 1}, 512),
        ("MPNet", {"max_position_embeddings": 514, "pad_token_id": 1}, 512),
        ("Roberta", {"max_position_embeddings": 64, "pad_token_id": 0}, 63),
        ("GPT2", {"n_positions": 77}, 77),
        ("Llama", {"max_position_embeddings": 4096}, 4096),
        ("Bart", {}, 1024),
        ("Marian", {"max_position_embeddings": 512}, 512),
        ("M2M100", {}, 1024),
        ("LED", {}, 16384),
        ("T5", {}, None),
        ("T5", {"n_positions": 512}, None),
        ("MT5", {}, None),
        ("XLNet", {}, None),
        ("Bloom", {"seq_length": 2048}, None),
        ("DebertaV2", {"position_biased_input": False}, None),
        ("DebertaV2", {"position_biased_input": True}, 512),
        ("Falcon", {"alibi": True}, None),
        ("Falcon", {"alibi": False}, 2048),
        ("ViT", {}, None),
    ],
)
def test_limits(name: str, settings: dict[str, object], limit: int | None) -> None:
    assert position_limit(config(name, **settings)) == limit


def test_sides_may_differ() -> None:
    led, whisper = config("LED"), config("Whisper")
    assert position_limit(led, side="target") == 1024
    assert (position_limit(whisper), position_limit(whisper, side="target")) == (1500, 448)


def test_composite_models_keep_a_config_a_side() -> None:
    whole = transformers.EncoderDecoderConfig.from_encoder_decoder_configs(
        config("Bert", max_position_embeddings=100), config("Bert", max_position_embeddings=50)
    )
    assert (position_limit(whole), position_limit(whole, side="target")) == (100, 50)
    assert position_limit(config("Gemma3")) == config("Gemma3").text_config.max_position_embeddings


@pytest.mark.parametrize(("said", "limit"), [(300, 300), (10**30, None), (None, None)])
def test_the_tokenizer_counts_where_the_config_is_silent(said: object, limit: int | None) -> None:
    tokenizer = SimpleNamespace(model_max_length=said)
    silent = SimpleNamespace(model_type="new")
    assert position_limit(silent, tokenizer) == limit  # type: ignore[arg-type]
    assert position_limit(config("Bert"), tokenizer) == 512, "the config decides"  # type: ignore[arg-type]
    assert position_limit(config("T5"), tokenizer) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("family", ["bert", "roberta", "gpt2", "opt", "bart", "marian", "electra"])
def test_the_limit_is_the_longest_input_that_runs(family: str) -> None:
    """At the limit a model with learned positions answers, one token beyond it fails."""
    model = TINY[family]()
    limit = position_limit(model.config)
    assert limit is not None
    for length, runs in ((limit, True), (limit + 1, False)):
        inputs = {"input_ids": torch.full((1, length), 7)}
        if model.config.is_encoder_decoder:
            inputs["decoder_input_ids"] = torch.full((1, 2), 7)
        if runs:
            model(**inputs)
        else:
            with pytest.raises((IndexError, RuntimeError)):
                model(**inputs)


def test_families_that_count_from_padding_exist() -> None:
    known = set(transformers.CONFIG_MAPPING)
    assert known >= COUNTS_FROM_PADDING


# ---  -------------------------------------------------------------------------------------------


KINDS = sorted(BUILDERS)
TRAPS = [
    "Rain fell </s>",
    "[CLS] on [SEP] the [MASK] roof [SEP]",
    "<s> all </s> night <pad> <unk> <mask>",
    "<|endoftext|> long <|im_start|> <|im_end|>",
    "<sep> and <cls> and <eos> <extra_id_0> en_XX __en__ >>deu<<",
]


def rows(kind: str, texts: list[str], **how: object) -> list[TokenRow]:
    return RowTokenizer(BUILDERS[kind](), EncodeReport()).rows(texts, **how)  # type: ignore[arg-type]


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
    (row,) = RowTokenizer(BUILDERS[kind](), account).rows(["Rain </s>"])
    tokens = zip(written(kind, row), row.special, strict=True)
    text = "".join(token for token, special in tokens if not special)
    assert text.replace("▁", " ").strip() == "Rain </s>"
    assert account.lookalikes == 1


@pytest.mark.parametrize("kind", ["wordpiece", "gpt2", "roberta", "llama", "marian"])
def test_where_the_tokenizer_splits_them_itself_nothing_is_counted(kind: str) -> None:
    account = EncodeReport()
    RowTokenizer(BUILDERS[kind](), account).rows(TRAPS)
    assert account.lookalikes == 0


def test_markup_lets_special_tokens_in() -> None:
    tokenizer = BUILDERS["wordpiece"]()
    (row,) = RowTokenizer(tokenizer, EncodeReport(), markup=True).rows(["rain [MASK] roof"])
    assert written("wordpiece", row) == ["[CLS]", "rain", "[MASK]", "roof", "[SEP]"]
    assert list(row.special) == [1, 0, 0, 0, 1]


def test_residues_of_a_protein_are_found() -> None:
    (row,) = rows("esm", ["MKTVLA"])
    assert written("esm", row) == ["<cls>", "M", "K", "T", "V", "L", "A", "<eos>"]


def test_words_that_a_user_added_stay_whole() -> None:
    for kind in ("gpt2", "marian"):
        tokenizer = copy.deepcopy(BUILDERS[kind]())
        tokenizer.add_tokens(["walnutcake"])
        (row,) = RowTokenizer(tokenizer, EncodeReport()).rows(["old walnutcake here"])
        assert "walnutcake" in tokenizer.convert_ids_to_tokens(list(row.ids))


@pytest.mark.parametrize("kind", KINDS)
def test_halves_of_characters_are_mended_and_counted(kind: str) -> None:
    account = EncodeReport()
    scribe = RowTokenizer(BUILDERS[kind](), account)
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
    (row,) = RowTokenizer(BUILDERS["wordpiece"](), EncodeReport()).rows(["Rain."], ["Roof [SEP]."])
    first, second = written("wordpiece", row).index("[SEP]"), len(row.ids) - 1
    assert [place for place, s in enumerate(row.special) if s] == [0, first, second]
    assert row.types == [0] * (first + 1) + [1] * (second - first)


@pytest.mark.parametrize("kind", ["wordpiece", "python_wordpiece", "roberta", "t5", "byt5"])
def test_traps_in_either_text_of_a_pair(kind: str) -> None:
    scribe = RowTokenizer(BUILDERS[kind](), EncodeReport())
    usual = sum(scribe.rows(["Rain"], ["Roof"])[0].special)
    for one, two in zip(TRAPS, reversed(TRAPS), strict=True):
        assert sum(scribe.rows([one], [two])[0].special) == usual


@pytest.mark.parametrize("kind", ["mbart", "m2m100"])
def test_a_target_needs_its_language(kind: str) -> None:
    tokenizer = copy.deepcopy(BUILDERS[kind]())
    tokenizer.tgt_lang = None
    scribe = RowTokenizer(tokenizer, EncodeReport())
    assert scribe.rows(["Rain."])
    with pytest.raises(UsageError, match=r"does not know the target language; set tokenizer\.tgt_"):
        scribe.rows(["Regen."], target=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("trap", TRAPS)
def test_markup_gives_a_place_a_token(kind: str, trap: str) -> None:
    (row,) = RowTokenizer(BUILDERS[kind](), EncodeReport(), markup=True).rows([trap])
    assert list(row.ids) == BUILDERS[kind]()(trap)["input_ids"]
    assert len(row.special) == len(row.ids)
