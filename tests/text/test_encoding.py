"""Tests of `text/encoding.py`."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tiny import TINY
from tiny_tokenizers import (
    BUILDERS,
    DECODERS,
    ENCODERS,
    ENGLISH,
    PAIRS,
    TRANSLATORS,
    gpt2,
    llama,
    marian,
    roberta,
    wordpiece,
)
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.errors import InputError, UsageError
from headcount.models.subject import Subject
from headcount.text import Batch, BatchSize, Intake, Side, encode, intake_of, read_corpus
from headcount.text.encoding import fit_for, model_kind

ALL = ("enc", "dec", "cross")
#: For every tokenizer of a translator a tiny model that speaks it.
MODELS = {
    "t5": "t5",
    "roberta": "bart",
    "mbart": "mbart",
    "marian": "marian",
    "marian_two_vocabularies": "marian",
    "m2m100": "m2m100",
}


def model_for(kind: str, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    ids = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id}
    by_pad = MODELS[kind] in ("t5", "marian")
    start = tokenizer.pad_token_id if by_pad else tokenizer.eos_token_id
    size = 1 + max(
        max(row)
        for side in ("text", "text_target")
        for row in tokenizer(**{side: [*ENGLISH, *(t for _, t in PAIRS)]})["input_ids"]
    )
    size = max(size, len(tokenizer), tokenizer.pad_token_id + 1)
    return TINY[MODELS[kind]](vocab_size=size, decoder_start_token_id=start, **ids)


def written(side: Side, tokenizer: PreTrainedTokenizerBase) -> str:
    """The first row in words: * special, | separator, ! punctuation, . stop; the rest as text."""
    marks = {"*": side.special, "|": side.separator, "!": side.punctuation, ".": side.stops}
    words: list[str] = []
    plain: list[str] = []
    for place, token in zip(side.real[0].nonzero()[:, 0].tolist(), side.tokens[0], strict=True):
        found = "".join(mark for mark, flags in marks.items() if flags[0, place])
        if not found:
            plain.append(token)
            continue
        words += [tokenizer.convert_tokens_to_string(plain).strip(), token + found]
        plain = []
    words.append(tokenizer.convert_tokens_to_string(plain).strip())
    return " ".join(filter(None, words))


def one(
    text: str | tuple[str, str], tokenizer: PreTrainedTokenizerBase, stack: str, **how: object
) -> Batch:
    (batch,) = encode([text], tokenizer, stacks={stack}, **how)  # type: ignore[arg-type]
    return batch


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("wordpiece", "[CLS]* rain fell ,!. on !! [SEP]*|"),
        ("python_wordpiece", "[CLS]* rain fell ,!. on !! [SEP]*|"),
        ("roberta", "<s>* Rain fell ,!. on !! </s>*|"),
        ("t5", "Rain fell ,!. on !! </s>*|"),
        ("xlm_roberta", "<s>* Rain fell ,!. on !! </s>*|"),
        ("xlnet", "Rain fell ,!. on !! <sep>*| <cls>*"),
        ("byt5", "Rain fell ,!. on !! </s>*|"),
    ],
)
def test_an_encoders_side(kind: str, expected: str) -> None:
    batch = one("Rain fell, on!", BUILDERS[kind](), "enc")
    assert list(batch.sides) == ["source"]
    assert written(batch.sides["source"], BUILDERS[kind]()) == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("gpt2", "Rain fell ,!. on !!"),
        ("llama", "<s>* Rain fell ,!. on !!"),
    ],
)
def test_a_decoders_side_has_no_separator(kind: str, expected: str) -> None:
    batch = one("Rain fell, on!", BUILDERS[kind](), "dec")
    assert list(batch.sides) == ["target"]
    assert written(batch.sides["target"], BUILDERS[kind]()) == expected


def test_a_beginning_that_is_also_the_end_is_no_separator() -> None:
    tokenizer = copy.deepcopy(gpt2())
    tokenizer.add_bos_token = True
    batch = one("Rain fell", tokenizer, "dec")
    assert written(batch.sides["target"], tokenizer) == "<|endoftext|>* Rain fell"


def test_an_end_that_the_tokenizer_adds_is_a_separator() -> None:
    tokenizer = copy.deepcopy(llama())
    tokenizer.add_eos_token = True
    batch = one("Rain", tokenizer, "dec")
    assert written(batch.sides["target"], tokenizer) == "<s>* Rain </s>*|"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("wordpiece", "[CLS]* rain .!. [SEP]*| on !! [SEP]*|"),
        ("roberta", "<s>* Rain .!. </s>*| </s>*| on !! </s>*|"),
        ("t5", "Rain .!. </s>*| on !! </s>*|"),
        ("xlnet", "Rain .!. <sep>*| on !! <sep>*| <cls>*"),
    ],
)
def test_pairs_for_an_encoder(kind: str, expected: str) -> None:
    batch = one(("Rain.", "on!"), BUILDERS[kind](), "enc")
    assert written(batch.sides["source"], BUILDERS[kind]()) == expected


def test_token_types_of_a_pair() -> None:
    batch = one(("Rain.", "on!"), wordpiece(), "enc")
    assert batch.inputs["token_type_ids"].tolist() == [[0, 0, 0, 0, 1, 1, 1]]


@pytest.mark.parametrize(
    ("kind", "source", "target"),
    [
        ("t5", "Rain .!. </s>*|", "<pad>* Regen .!."),
        ("roberta", "<s>* Rain .!. </s>*|", "</s>* <s>* Regen .!."),
        ("mbart", "Rain .!. </s>*| en_XX*", "de_DE* Regen .!. </s>*|"),
        ("m2m100", "__en__* Rain .!. </s>*|", "</s>* __de__* Regen .!."),
        ("marian", "Rain .!. </s>*|", "<pad>* Regen .!."),
        ("marian_two_vocabularies", "Rain .!. </s>*|", "<pad>* Regen .!."),
    ],
)
def test_both_sides_of_a_translator(kind: str, source: str, target: str) -> None:
    tokenizer = BUILDERS[kind]()
    model = model_for(kind, tokenizer)
    (batch,) = encode([("Rain.", "Regen.")], tokenizer, stacks=ALL, intake=intake_of(model))
    assert written(batch.sides["source"], tokenizer) == source
    assert written(batch.sides["target"], tokenizer) == target


@pytest.mark.parametrize("kind", TRANSLATORS)
def test_a_translator_answers_as_with_its_own_labels(kind: str) -> None:
    """Fed our decoder input, padded in a batch, the model says what it says to labels alone."""
    tokenizer = BUILDERS[kind]()
    model = model_for(kind, tokenizer)
    encoded = encode(PAIRS, tokenizer, stacks=ALL, intake=intake_of(model), batch_size=4)
    for batch in encoded:
        assert batch.labels is not None
        with torch.no_grad():
            logits = model(**batch.inputs).logits
        for row, index in enumerate(batch.index):
            source, target = PAIRS[index]
            inputs = tokenizer(source, text_target=target, return_tensors="pt")
            with torch.no_grad():
                alone = model(**inputs).logits[0]
            real = batch.sides["target"].real[row]
            assert batch.labels[row][real].tolist() == inputs["labels"][0].tolist()
            torch.testing.assert_close(logits[row][real], alone, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", ["marian", "t5", "mbart"])
def test_the_encoder_of_a_translator_alone(kind: str) -> None:
    tokenizer = BUILDERS[kind]()
    model = model_for(kind, tokenizer)
    encoded = encode(ENGLISH, tokenizer, stacks={"enc"}, intake=intake_of(model), batch_size=4)
    for batch in encoded:
        assert list(batch.sides) == ["source"]
        assert model(**batch.inputs).logits.shape[:2] == (len(batch), 1)
    (paired,) = encode(PAIRS[:1], tokenizer, stacks={"enc"}, intake=intake_of(model))
    assert list(paired.sides) == ["source"]
    assert paired.labels is None


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "albert", "modernbert"])
@pytest.mark.parametrize("paired", [False, True])
def test_encoders_run_on_what_they_are_given(family: str, paired: bool) -> None:
    tokenizer = roberta() if family == "roberta" else wordpiece()
    model = TINY[family](vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id)
    corpus = PAIRS if paired else ENGLISH
    for batch in encode(corpus, tokenizer, stacks={"enc"}, intake=intake_of(model), batch_size=3):
        assert model(**batch.inputs).last_hidden_state.shape[0] == len(batch)


CASES = [("bert", "wordpiece"), ("roberta", "roberta"), ("gpt2", "gpt2"), ("llama", "llama")]


@pytest.mark.parametrize(("family", "kind"), CASES)
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_on_either_side_leaves_the_answer_alone(family: str, kind: str, side: str) -> None:
    tokenizer = BUILDERS[kind]()
    ids = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
    model = TINY[family](**ids)
    stack = "enc" if family in ("bert", "roberta") else "dec"
    how = {"stacks": {stack}, "intake": intake_of(model), "padding_side": side}
    for batch in encode(ENGLISH, tokenizer, batch_size=4, **how):  # type: ignore[arg-type]
        with torch.no_grad():
            together = model(**batch.inputs)[0]
        for row, index in enumerate(batch.index):
            (alone,) = encode([ENGLISH[index]], tokenizer, **how)  # type: ignore[arg-type]
            with torch.no_grad():
                expected = model(**alone.inputs)[0][0]
            real = next(iter(batch.sides.values())).real[row]
            torch.testing.assert_close(together[row][real], expected, atol=1e-4, rtol=1e-4)


def test_the_tokenizers_own_padding_side_is_not_asked() -> None:
    tokenizer = copy.deepcopy(wordpiece())
    tokenizer.padding_side = "left"
    (batch,) = encode(["Rain.", "Rain fell on it."], tokenizer, stacks={"enc"})
    assert batch.sides["source"].real[:, 0].all()


def test_batches_are_sorted_by_length_and_say_who_is_who() -> None:
    encoded = encode(ENGLISH, wordpiece(), stacks={"enc"}, batch_size=3)
    batches = list(encoded)
    assert [len(batch) for batch in batches] == [3, 3, 3, 1]
    assert sorted(i for batch in batches for i in batch.index) == list(range(10))
    widths = [batch.sides["source"].ids.shape[1] for batch in batches]
    assert widths == sorted(widths, reverse=True)
    for batch in batches:
        for row, index in enumerate(batch.index):
            expected = wordpiece()(ENGLISH[index])["input_ids"]
            side = batch.sides["source"]
            assert side.ids[row][side.real[row]].tolist() == expected


def test_of_a_translation_the_longer_text_says_where_it_comes() -> None:
    """One short on one side alone is not put to short ones, whose padding it would make."""
    tokenizer = BUILDERS["marian"]()
    pairs = [("Rain.", "Regen."), ("Rain.", "Regen fiel. " * 4), ("Rain fell. " * 4, "Regen.")]
    encoded = encode(
        [*pairs, pairs[0]],
        tokenizer,
        stacks=ALL,
        intake=intake_of(model_for("marian", tokenizer)),
        batch_size=2,
    )
    assert [sorted(batch.index) for batch in encoded] == [[1, 2], [0, 3]]


def test_without_sorting_the_order_is_the_corpus() -> None:
    encoded = encode(ENGLISH, wordpiece(), stacks={"enc"}, batch_size=3, sort=False)
    assert [batch.index for batch in encoded] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]


def test_pools_are_joined_so_that_only_the_last_batch_is_small() -> None:
    many = [ENGLISH[number % 10] for number in range(200)]
    encoded = encode(many, wordpiece(), stacks={"enc"}, batch_size=3, max_length=12)
    sizes = [len(batch) for batch in encoded]
    assert set(sizes[:-1]) == {3}
    assert sum(sizes) == encoded.report.rows > 200


def test_a_batch_has_no_more_cells_than_allowed_and_nothing_is_lost() -> None:
    allowed = 300
    few = encode(ENGLISH, wordpiece(), stacks={"enc"}, batch_size=BatchSize(rows=4, cells=allowed))
    batches = list(few)
    sizes = [(len(one), one.sides["source"].real.shape[1]) for one in batches]
    assert all(rows == 1 or rows * tokens**2 <= allowed for rows, tokens in sizes)
    assert any(rows < 4 for rows, _ in sizes[:-1])
    assert any(rows > 1 for rows, _ in sizes)
    assert sorted(place for one in batches for place in one.index) == list(range(len(ENGLISH)))


def test_windows_and_the_report() -> None:
    intake = Intake(source_limit=10)
    encoded = encode(ENGLISH, wordpiece(), stacks={"enc"}, intake=intake, batch_size=4)
    rows: dict[tuple[int, int], list[int]] = {}
    for batch in encoded:
        side = batch.sides["source"]
        assert side.ids.shape[1] <= 10
        for row, key in enumerate(zip(batch.index, batch.window, strict=True)):
            rows[key] = side.ids[row][side.real[row]].tolist()
    report = encoded.report
    for index, text in enumerate(ENGLISH):
        pieces = [rows[key] for key in sorted(rows) if key[0] == index]
        whole = wordpiece()(text)["input_ids"]
        assert [n for piece in pieces for n in piece[1:-1]] == whole[1:-1]
        assert all((piece[0], piece[-1]) == (whole[0], whole[-1]) for piece in pieces)
    long = [index for index, window in rows if window == 1]
    assert report.windowed == len(long) > 0
    assert report.windows == sum(index in long for index, _ in rows)
    assert report.rows == len(rows)
    assert report.tokens == {"source": sum(map(len, rows.values()))}
    assert "too long and gave" in report.sentences_in_words()[0]


def test_truncated_pairs_are_cut_as_the_tokenizer_would() -> None:
    intake = Intake(source_limit=16)
    encoded = encode(PAIRS, wordpiece(), stacks={"enc"}, intake=intake, batch_size=4)
    for batch in encoded:
        side = batch.sides["source"]
        for row, index in enumerate(batch.index):
            expected = wordpiece()(*PAIRS[index], truncation="longest_first", max_length=16)
            assert side.ids[row][side.real[row]].tolist() == expected["input_ids"]
    assert encoded.report.truncated == 10
    assert encoded.report.windowed == 0
    wordpiece().backend_tokenizer.no_truncation()


def test_long_translations_are_truncated_on_each_side() -> None:
    tokenizer = marian()
    intake = Intake(shift=lambda labels: labels.roll(1, 1), source_limit=8, target_limit=6)
    encoded = encode(PAIRS, tokenizer, stacks=ALL, intake=intake)
    (batch,) = encoded
    assert batch.sides["source"].ids.shape[1] == 8
    assert batch.sides["target"].ids.shape[1] == 6
    assert batch.sides["source"].separator.sum(dim=1).tolist() == [1] * 10, "</s> is kept"
    assert encoded.report.truncated == 10


def test_long_as_an_error(tmp_path: Path) -> None:
    path = tmp_path / "c.txt"
    path.write_text("\nRain fell on the tin roof all night long.\n")
    encoded = encode(read_corpus(path), wordpiece(), stacks={"enc"}, max_length=5, long="error")
    with pytest.raises(InputError, match=r"Item 1 of .*c\.txt \(line 2\) has \d+ tokens and the"):
        list(encoded)


def test_a_text_of_which_no_token_is_left_is_skipped_and_counted() -> None:
    encoded = encode(["Rain.", "\u200b", "\x00\x01"], wordpiece(), stacks={"enc"})
    (batch,) = encoded
    assert batch.index == [0]
    assert (encoded.report.empty, encoded.report.sentences) == (2, 3)


def test_nothing_but_such_texts_gives_no_batch() -> None:
    encoded = encode(["\u200b"], wordpiece(), stacks={"enc"})
    assert list(encoded) == []
    assert encoded.report.empty == 1


@pytest.mark.parametrize("kind", [*ENCODERS, *DECODERS])
def test_a_single_token_is_kept_and_counted(kind: str) -> None:
    encoded = encode(["."], BUILDERS[kind](), stacks={"enc" if kind in ENCODERS else "dec"})
    (batch,) = encoded
    assert len(batch) == 1
    side = next(iter(batch.sides.values()))
    expected = int((side.real & ~side.special).sum()) == 1
    assert encoded.report.single == expected


def test_each_pass_starts_a_new_account() -> None:
    encoded = encode(ENGLISH, wordpiece(), stacks={"enc"})
    first = [batch.inputs["input_ids"].tolist() for batch in encoded]
    report = encoded.report
    assert [batch.inputs["input_ids"].tolist() for batch in encoded] == first
    assert encoded.report == report


def test_no_tokenizer() -> None:
    with pytest.raises(UsageError) as caught:
        encode(["Rain."], None, stacks={"enc"})
    assert str(caught.value) == (
        "Reading text needs a tokenizer and this subject has none; pass one: "
        "--load tokenizer=, or hc.Subject(model, tokenizer)."
    )


def test_a_translator_without_targets() -> None:
    intake = intake_of(model_for("marian", marian()))
    with pytest.raises(InputError) as caught:
        encode(["Rain."], marian(), stacks=ALL, intake=intake)
    assert str(caught.value) == (
        "texts in hand has no targets, which a decoder's heads need; give pairs (--pairs, a .tsv "
        "with source and target), or look at the encoder alone (--reading stacks=enc)."
    )


@pytest.mark.parametrize(
    ("how", "error", "said"),
    [
        ({"stacks": {"dec"}, "corpus": PAIRS}, InputError, "a decoder-only model cannot take"),
        ({"chat": True, "corpus": PAIRS}, UsageError, "a chat turn is one text"),
        ({"stacks": set(ALL), "corpus": PAIRS}, UsageError, r"pass intake=intake_of\(model\)"),
        ({"stacks": set()}, UsageError, "stacks are enc, dec, cross"),
        ({"stacks": {"encoder"}}, UsageError, r"\['encoder'\] cannot be encoded for"),
        ({"batch_size": 0}, UsageError, "The batch size is 0; it must be 1 or more"),
        ({"long": "cut"}, UsageError, "long is 'cut'; choose window, truncate or error"),
        ({"padding_side": "up"}, UsageError, "The padding side is 'up'; choose right or left"),
        ({"max_length": 0}, UsageError, "The maximum length is 0"),
        (
            {"max_length": 600, "intake": Intake(source_limit=512)},
            UsageError,
            "The maximum length is 600; this model takes 1 to 512 tokens",
        ),
    ],
)
def test_wrong_usage(how: dict[str, object], error: type[Exception], said: str) -> None:
    settings = {"stacks": {"enc"}, **how}
    corpus = settings.pop("corpus", ENGLISH)
    with pytest.raises(error, match=said):
        encode(corpus, wordpiece(), **settings)  # type: ignore[arg-type]


def test_a_length_with_no_room_for_text() -> None:
    with pytest.raises(UsageError, match="leaves no room for text beside 2 special tokens"):
        list(encode(ENGLISH, wordpiece(), stacks={"enc"}, max_length=2))


def test_markup() -> None:
    batch = one("rain [MASK] on", wordpiece(), "enc", markup=True)
    assert written(batch.sides["source"], wordpiece()) == "[CLS]* rain [MASK] on [SEP]*|"


def test_limits_of_a_decoder_are_its_targets() -> None:
    encoded = encode(ENGLISH, gpt2(), stacks={"dec"}, intake=Intake(target_limit=5))
    assert all(batch.inputs["input_ids"].shape[1] <= 5 for batch in encoded)
    assert encoded.report.windowed > 0


def test_most_of_the_time_goes_to_the_tokenizer() -> None:
    """Sides are table lookups: three times the tokenizer's own time would mean they are not."""
    texts = [f"{one} {two}" for one in ENGLISH for two in ENGLISH] * 20
    tokenizer = gpt2()

    def seconds(work: Callable[[], object]) -> float:
        spent = []
        for _ in range(3):
            start = time.process_time()
            work()
            spent.append(time.process_time() - start)
        return min(spent)

    alone = seconds(lambda: tokenizer(texts))
    encoded = encode(texts, tokenizer, stacks={"dec"}, batch_size=32)
    assert seconds(lambda: [len(batch) for batch in encoded]) < 3 * alone


@pytest.mark.real
def test_the_real_minilm(minilm: Subject) -> None:
    """Its file asks for truncation and padding to 128; neither is ours, and both stay."""
    tokenizer, model = minilm.tokenizer, minilm.model
    assert tokenizer is not None
    before = tokenizer.backend_tokenizer.to_str()
    texts = ["The cat sat, [SEP] on the mat.", "word " * 700]
    encoded = encode(texts, tokenizer, stacks={"enc"}, intake=intake_of(model, tokenizer))
    rows = {key: batch for batch in encoded for key in zip(batch.index, batch.window, strict=True)}
    assert sorted(rows) == [(0, 0), (1, 0), (1, 1)]
    assert encoded.report.windows == 2
    assert tokenizer.backend_tokenizer.to_str() == before
    (short,) = encode(texts[:1], tokenizer, stacks={"enc"})
    assert written(short.sides["source"], tokenizer) == (
        "[CLS]* the cat sat ,!. [! sep ]! on the mat .!. [SEP]*|"
    )
    assert torch.isfinite(model(**short.inputs).last_hidden_state).all()


@pytest.mark.real
def test_the_real_smollm2(smollm2: Subject) -> None:
    tokenizer = smollm2.tokenizer
    assert tokenizer is not None
    (plain,) = encode(["Rain fell, twice."], tokenizer, stacks={"dec"})
    assert written(plain.sides["target"], tokenizer) == "Rain fell ,!. twice .!."
    (chat,) = encode(["Rain <|im_end|>."], tokenizer, stacks={"dec"}, chat=True)
    side = chat.sides["target"]
    places = zip(side.tokens[0], side.special[0].tolist(), side.separator[0].tolist(), strict=True)
    specials = [(token, bool(ends)) for token, special, ends in places if special]
    assert specials == [("<|im_start|>", False), ("<|im_end|>", True)] * 2


# ---  -------------------------------------------------------------------------------------------


def test_kinds() -> None:
    assert model_kind({"enc"}, Intake()) == "encoder"
    assert model_kind(["dec"], Intake()) == "decoder"
    assert model_kind(("enc",), Intake(shift=lambda labels: labels)) == "encoder-decoder"


@pytest.mark.parametrize(
    ("kind", "asked", "limits"),
    [
        ("encoder", None, (512, 64)),
        ("encoder", 100, (100, 64)),
        ("encoder-decoder", 512, (512, 64)),
        ("encoder-decoder", 50, (50, 50)),
        ("decoder", None, (64, 64)),
    ],
)
def test_each_side_has_its_limit(kind: str, asked: int | None, limits: tuple[int, int]) -> None:
    intake = Intake(source_limit=512, target_limit=64)
    fit = fit_for(kind, intake, asked, "window", False)  # type: ignore[arg-type]
    assert (fit.limit, fit.label_limit) == limits


def test_no_limit_at_all() -> None:
    fit = fit_for("encoder", Intake(), None, "window", False)
    assert (fit.limit, fit.label_limit) == (None, None)
    assert fit_for("encoder", Intake(), 10**6, "window", False).limit == 10**6


def test_more_than_the_model_takes() -> None:
    with pytest.raises(UsageError, match="is 65; this model takes 1 to 64 tokens"):
        fit_for("decoder", Intake(source_limit=512, target_limit=64), 65, "window", False)
