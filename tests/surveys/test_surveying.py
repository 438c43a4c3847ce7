"""The survey: from text, or ready inputs, to a table of every head."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from subjects import subject_of
from tiny import TINY
from tiny_subjects import encoder, translator, writer
from tiny_tokenizers import ENGLISH, GERMAN, PAIRS
from watching import told

import headcount as hc
from headcount.bundle import sample
from headcount.errors import InputError, ModelError, UsageError
from headcount.models.subject import Subject
from headcount.records.columns import Column
from headcount.surveys.passes import PassOptions
from headcount.surveys.roles.role import all_roles
from headcount.surveys.surface import Entropy
from headcount.surveys.surveying import SurveyOptions, plan_survey, read_corpora, ready_corpora
from headcount.surveys.tally import Reading, SumsTally, add_micro, over_rows, read_micro
from headcount.text.sentence import Argument, Predicate, Sentence, Span, Word, split_words
from headcount.wiring import Needs, Sighting, Watch, rows, taps

#: Every survey has these, in this order.
COLUMNS = [
    "confidence", "entropy", "entropy_first", "entropy_uniform", "self", "previous", "next",
    "first", "separator", "separator_to_separator", "rest_to_separator", "punctuation",
    "best_offset", "best_offset_share",
]  # fmt: skip
POSITIONS = {"self", "previous", "next", "best_offset", "best_offset_share"}
SEPARATORS = {"separator", "separator_to_separator", "rest_to_separator"}


def missing(table: hc.HeadTable, stack: str) -> set[str]:
    """The columns that are NA for every head of a stack; a column is never NA for some alone."""
    frame = table.stack(stack).frame
    some = frame.isna().any()
    assert (some == frame.isna().all()).all()
    return {str(name) for name in frame.columns[some]}


# --- which columns, and where they are NA ---------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "tokenizer"),
    [
        ("bert", "wordpiece"),
        ("bert", "python_wordpiece"),
        ("roberta", "roberta"),
        ("roberta", "xlm_roberta"),
        ("electra", "wordpiece"),
        ("albert", "wordpiece"),
        ("modernbert", "wordpiece"),
        ("distilbert", "wordpiece"),
        ("deberta", "wordpiece"),
        ("mpnet", "roberta"),
        ("xlnet", "xlnet"),
    ],
)
@pytest.mark.parametrize("corpus", [ENGLISH, PAIRS], ids=["sentences", "pairs"])
def test_an_encoder_has_every_column(family: str, tokenizer: str, corpus: list[Any]) -> None:
    table = hc.survey(subject_of(family, tokenizer), corpus)
    assert list(table.frame.columns) == COLUMNS
    assert table.frame.index.names == ["stack", "layer", "head"]
    assert table.stacks == ["enc"]
    assert missing(table, "enc") == set()
    assert table.notes == {}


@pytest.mark.parametrize("family", ["gpt2", "llama", "qwen3", "gemma3", "gpt_oss", "gptj"])
@pytest.mark.parametrize("tokenizer", ["gpt2", "llama"])
def test_a_decoder_does_not_look_ahead(family: str, tokenizer: str) -> None:
    table = hc.survey(subject_of(family, tokenizer), ENGLISH)
    assert list(table.frame.columns) == COLUMNS
    assert missing(table, "dec") == {"next"} | SEPARATORS  # neither tokenizer ends a sentence
    assert table.notes["next"] == "dec: a causal head cannot look ahead"
    assert table.notes["separator"] == "dec: the keys hold no separator or end of sentence"


@pytest.mark.parametrize(
    ("family", "tokenizer", "decoder"),
    [
        # Decoder inputs are shifted: the end of sentence is the label behind the last of them.
        ("marian", "marian", SEPARATORS),
        ("marian", "marian_two_vocabularies", SEPARATORS),
        ("t5", "t5", SEPARATORS),
        ("bart", "roberta", SEPARATORS),
        ("m2m100", "m2m100", SEPARATORS),
    ],
)
def test_a_translator_has_three_stacks(family: str, tokenizer: str, decoder: set[str]) -> None:
    table = hc.survey(subject_of(family, tokenizer, vocab_size=640), PAIRS)
    assert list(table.frame.columns) == COLUMNS
    assert table.stacks == ["enc", "dec", "cross"]
    assert missing(table, "enc") == set()
    assert missing(table, "dec") == {"next"} | decoder
    assert missing(table, "cross") == POSITIONS | {"separator_to_separator"}
    assert table.notes["self"] == "cross: queries and keys are different texts"


def test_mbarts_labels_end_with_the_language() -> None:
    table = hc.survey(subject_of("mbart", "mbart"), PAIRS)
    assert missing(table, "enc") == set()
    assert missing(table, "dec") == {"next"}  # the end of sentence stands before the code
    assert missing(table, "cross") == POSITIONS


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_a_column_without_author_code_is_missing_with_a_note(family: str) -> None:
    tokenizer = {"bert": "wordpiece", "llama": "llama"}[family]
    table = hc.survey(
        subject_of(family, tokenizer), ENGLISH, reading=hc.ReadingOptions(convention="code")
    )
    for name in ("confidence", "best_offset", "best_offset_share"):
        assert table.frame[name].isna().all()
        assert table.notes[name].startswith("the authors published no program for it")
    assert table.frame["entropy"].notna().all()
    with pytest.raises(UsageError, match="Column 'confidence' does not exist under the convention"):
        hc.survey(
            subject_of(family, tokenizer),
            ENGLISH,
            columns=["confidence"],
            reading=hc.ReadingOptions(convention="code"),
        )


def test_text_without_punctuation_is_not_zero() -> None:
    table = hc.survey(subject_of("bert", "wordpiece"), ["Rain fell on the roof", "Two crows"])
    assert missing(table, "enc") == {"punctuation"}
    assert table.notes["punctuation"] == "enc: the keys hold no punctuation"


# --- the numbers --------------------------------------------------------------------------------


@dataclass
class Looked:
    """One sentence as the eager model shows it: maps `[head, query, key]` of a layer, tokens."""

    maps: np.ndarray
    queries: list[str]
    keys: list[str]


MARKS = set('.,;:?!()"-„“') | {"..."}


def looked_at(subject: Subject, text: Any, layer: int) -> Looked:
    """Run one sentence, or one pair, by hand."""
    texts = (text,) if isinstance(text, str) else text
    ids = subject.tokenizer(*texts, return_tensors="pt")  # type: ignore[misc]
    subject.model.set_attn_implementation("eager")
    with torch.no_grad():
        maps = subject.model(**ids, output_attentions=True).attentions[layer][0]
    subject.model.set_attn_implementation("sdpa")
    tokens = subject.tokenizer.convert_ids_to_tokens(ids["input_ids"][0])  # type: ignore[union-attr]
    return Looked(maps.double().numpy(), tokens, tokens)


def by_hand(looked: Sequence[Looked], head: int, ends: set[str]) -> dict[str, float]:
    """The columns by their definitions, in loops."""
    found: dict[str, list[float]] = {name: [] for name in COLUMNS}
    tops: list[float] = []
    offsets: list[int] = []
    for one in looked:
        n = len(one.queries)
        rows = one.maps[head]
        sep = [place for place, token in enumerate(one.keys) if place and token in ends]
        marks = [place for place, token in enumerate(one.keys) if token.strip("#▁Ġ") in MARKS]
        open_keys = [place for place in range(n) if place not in sep]
        entropies = [-sum(p * math.log(p) for p in row if p > 0) for row in rows]
        found["entropy"].append(sum(entropies) / n)
        found["entropy_first"].append(entropies[0])
        found["entropy_uniform"].append(math.log(n))
        found["self"].append(sum(rows[i][i] for i in range(n)) / n)
        found["previous"].append(sum(rows[i][i - 1] for i in range(1, n)) / (n - 1))
        found["next"].append(sum(rows[i][i + 1] for i in range(n - 1)) / (n - 1))
        found["first"].append(sum(row[0] for row in rows) / n)
        found["separator"].append(sum(row[s] for row in rows for s in sep) / n)
        found["separator_to_separator"].append(sum(rows[i][s] for i in sep for s in sep) / len(sep))
        found["rest_to_separator"].append(
            sum(rows[i][s] for i in open_keys for s in sep) / len(open_keys)
        )
        found["punctuation"].append(sum(row[m] for row in rows for m in marks) / n)
        words = open_keys[1:]  # the first token is [CLS] or <s>
        tops += [max(rows[i][key] for key in words) for i in words]
        for i in open_keys:
            offsets.append(max(open_keys, key=lambda key: rows[i][key]) - i)
    numbers = {name: sum(values) / len(values) for name, values in found.items() if values}
    most = max(set(offsets), key=lambda offset: (offsets.count(offset), -abs(offset), -offset))
    numbers["confidence"] = sum(tops) / len(tops)
    numbers["best_offset"] = most
    numbers["best_offset_share"] = offsets.count(most) / len(offsets)
    return numbers


@pytest.mark.parametrize("corpus", [ENGLISH[:5], PAIRS[:5]], ids=["sentences", "pairs"])
@pytest.mark.parametrize(
    ("family", "tokenizer", "ends"),
    [("bert", "wordpiece", {"[SEP]"}), ("roberta", "roberta", {"</s>"})],
)
def test_a_survey_is_its_definitions(
    family: str, tokenizer: str, ends: set[str], corpus: list[Any]
) -> None:
    subject = subject_of(family, tokenizer)
    table = hc.survey(subject, corpus, reading=hc.ReadingOptions(batch_size=3))
    for layer in range(2):
        looked = [looked_at(subject, text, layer) for text in corpus]
        for head in range(4):
            expected = by_hand(looked, head, ends)
            found = table.frame.loc[("enc", layer, head)]
            for name in COLUMNS:
                assert found[name] == pytest.approx(expected[name], abs=2e-5), (name, layer, head)


def test_intervals_hold_the_values_and_stay_in_range() -> None:
    table = hc.survey(subject_of("bert", "wordpiece"), ENGLISH[:3])
    for name in table.low:
        low, high = table.low[name], table.high[name]
        assert (low <= table.frame[name]).all()
        assert (table.frame[name] <= high).all()
        smallest, largest = table.column(str(name)).range
        assert smallest is None or (low >= smallest).all()
        assert largest is None or (high <= largest).all()
    assert set(table.low) == set(COLUMNS) - {"best_offset"}


@pytest.mark.parametrize(
    ("family", "tokenizer", "corpus"),
    [
        ("bert", "wordpiece", ENGLISH),
        ("llama", "llama", ENGLISH),
        ("t5", "t5", PAIRS),
        ("deberta", "wordpiece", ENGLISH),
    ],
)
def test_a_batch_of_one_gives_the_same(family: str, tokenizer: str, corpus: list[Any]) -> None:
    subject = subject_of(family, tokenizer)
    one, many = (
        hc.survey(subject, corpus, reading=hc.ReadingOptions(batch_size=size)) for size in (1, 7)
    )
    np.testing.assert_allclose(one.frame, many.frame, atol=2e-5)
    assert one.notes == many.notes


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    ("family", "tokenizer", "corpus"),
    [("bert", "wordpiece", ENGLISH), ("llama", "llama", ENGLISH), ("marian", "marian", PAIRS)],
)
def test_half_precision_gives_nearly_the_same(
    family: str, tokenizer: str, corpus: list[Any], dtype: torch.dtype
) -> None:
    full, half = subject_of(family, tokenizer), subject_of(family, tokenizer)
    half.model.to(dtype)
    names = [name for name in COLUMNS if not name.startswith("best")]
    tables = [hc.survey(subject, corpus, columns=names) for subject in (full, half)]
    tolerance = 0.03 if dtype == torch.bfloat16 else 0.005
    np.testing.assert_allclose(tables[0].frame, tables[1].frame, atol=tolerance)
    assert tables[1].provenance["subject"]["dtype"] == str(dtype).removeprefix("torch.")


@pytest.mark.parametrize(
    "text",
    ["Rain", "🙂", "🙂🙂🙂 👩‍👩‍👧", "שלום עולם, מה שלומך?", "مرحبا بالعالم", ".", "a\u202eb"],
)
@pytest.mark.parametrize(
    ("family", "tokenizer"), [("bert", "wordpiece"), ("gpt2", "gpt2"), ("llama", "llama")]
)
def test_odd_sentences_are_sentences(family: str, tokenizer: str, text: str) -> None:
    table = hc.survey(subject_of(family, tokenizer), [text])
    measured = table.frame[["confidence", "entropy", "self", "first", "best_offset_share"]]
    assert np.isfinite(measured.to_numpy()).all()
    assert table.provenance["counts"]["sentences"] == 1


def test_a_single_token_has_no_neighbour() -> None:
    table = hc.survey(subject_of("gpt2", "gpt2"), ["a", "b"])
    assert {"previous", "next"} <= missing(table, "dec")
    assert table.notes["previous"] == "dec: every sentence was a single token"
    assert (table.frame["self"] == 1).all()


def test_empty_lines_are_counted_and_never_vote() -> None:
    subject = subject_of("bert", "wordpiece")
    plain, gappy = (hc.survey(subject, text) for text in (["Rain."], ["", "Rain.", "  "]))
    assert plain.frame.equals(gappy.frame)
    assert gappy.provenance["counts"]["skipped"] == {"blank lines": 2}


def test_sentences_without_a_token_are_counted_or_refused() -> None:
    subject = subject_of("bert", "wordpiece")
    table = hc.survey(subject, ["\u200b", "Rain."])
    assert table.provenance["remarks"] == ["1 of 2 sentences had no token and was skipped."]
    with pytest.raises(InputError, match="No sentence of texts in hand has a token for this tok"):
        hc.survey(subject, ["\u200b"])


def test_long_sentences_become_windows() -> None:
    subject = subject_of("bert", "wordpiece")
    table = hc.survey(subject, [" ".join(ENGLISH * 3), "Rain."])
    counts = table.provenance["counts"]
    assert counts["windowed"] == 1
    assert counts["windows"] > 2
    assert counts["rows"] == counts["windows"] + 1
    assert table.provenance["remarks"] == [
        f"1 of 2 sentences was too long and gave {counts['windows']} windows."
    ]


# --- what can be chosen ---------------------------------------------------------------------------


def test_some_columns_and_some_stacks() -> None:
    subject = subject_of("marian", "marian")
    whole = hc.survey(subject, PAIRS)
    table = hc.survey(
        subject,
        PAIRS,
        columns=["entropy", "self"],
        reading=hc.ReadingOptions(stacks=["cross", "enc"]),
    )
    assert table.names == ["entropy", "self"]
    assert table.heads == whole.heads
    assert table.stack("enc").frame.equals(whole.stack("enc").frame[["entropy", "self"]])
    assert table.stack("dec").frame.isna().all(axis=None)
    assert table.notes == {
        "entropy": "dec: not surveyed",
        "self": "cross: queries and keys are different texts; dec: not surveyed",
    }
    assert table.stack("enc").notes == {}


def test_an_encoder_decoders_encoder_reads_single_sentences() -> None:
    subject = subject_of("marian", "marian")
    alone = hc.survey(subject, ENGLISH, reading=hc.ReadingOptions(stacks=["enc"])).stack("enc")
    paired = hc.survey(subject, PAIRS).stack("enc")
    np.testing.assert_allclose(alone.frame, paired.frame, atol=2e-5)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"stacks": ["dec"]}, "bert has no stack 'dec'; it has enc."),
        ({"stacks": []}, "No stack was asked for; bert has enc."),
        ({"columns": ["slf"]}, "There is no column 'slf'; did you mean self?"),
        ({"columns": ["zzz"]}, "There is no column 'zzz'; there are confidence, entropy"),
        ({"convention": "mine"}, "There is no convention 'mine'; choose headcount, paper or code."),
        ({"batch_size": 0}, "The batch size is 0; it must be 1 or more."),
        ({"limit": 0}, "The limit is 0; it must be 1 or more."),
        ({"long": "drop"}, "long is 'drop'; choose window, truncate or error."),
        (
            {"confidence_without": "cls"},
            "Confidence without 'cls' does not exist; choose special, separator, nothing.",
        ),
        (
            {"confidence_without": "special", "convention": "code"},
            "Column 'confidence' does not exist under the convention 'code'",
        ),
    ],
)
def test_wrong_choices_are_named(how: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        hc.survey(subject_of("bert", "wordpiece"), ENGLISH, **how)
    assert str(caught.value).startswith(message)


#: By what confidence leaves out: words of the column, and which tokens stay.
KEPT = {
    "special": ("special tokens ([CLS], [SEP], start", lambda token: token not in BRACKETED),
    "separator": ("[CLS] and start tokens are kept.", lambda token: token != "[SEP]"),
    "nothing": ("special tokens are kept.", lambda token: True),
}
BRACKETED = {"[CLS]", "[SEP]"}


@pytest.mark.parametrize("without", KEPT)
def test_confidence_leaves_out_what_is_asked_on_every_path(without: str) -> None:
    subject, (words, keeps) = subject_of("bert", "wordpiece"), KEPT[without]
    ask: dict[str, Any] = {"columns": ["confidence"], "confidence_without": without}
    table = hc.survey(subject, PAIRS[:5], **ask)
    with mock.patch.object(taps, "_SMALL_MAP", -1), mock.patch.dict(rows.TILE, {"cpu": 64}):
        tiled = hc.survey(subject, PAIRS[:5], **ask)
    assert [one.provenance["attention"] for one in (table, tiled)] == [["scores"], ["tiled"]]
    np.testing.assert_allclose(table.frame, tiled.frame, atol=2e-6)
    tops = []
    for one in (looked_at(subject, pair, 1) for pair in PAIRS[:5]):
        kept = np.array([keeps(token) for token in one.keys])
        tops.append(one.maps[:, kept][:, :, kept].max(-1))
    expected = np.concatenate(tops, axis=1).mean(1)
    np.testing.assert_allclose(table.frame.loc[("enc", 1), "confidence"], expected, atol=2e-6)
    assert words in table.columns["confidence"].meaning
    assert table.provenance["settings"]["confidence_without"] == without


def test_the_paper_keeps_the_first_token_in_confidence() -> None:
    subject = subject_of("bert", "wordpiece")
    ours, paper, asked = (
        hc.survey(subject, ENGLISH, columns=["confidence"], **how)  # type: ignore[arg-type]
        for how in (
            {},
            {"convention": "paper"},
            {"convention": "paper", "confidence_without": "special"},
        )
    )
    assert ours.frame.equals(asked.frame)
    assert not np.allclose(ours.frame, paper.frame, atol=1e-3)
    settings = [one.provenance["settings"]["confidence_without"] for one in (ours, paper)]
    assert settings == ["special", "separator"]


def test_a_decoders_start_is_left_out_of_confidence() -> None:
    """Its own row sees nothing else, so that it would count as sure."""
    subject = subject_of("marian", "marian")
    table = hc.survey(
        subject,
        PAIRS,
        columns=["confidence"],
        reading=hc.ReadingOptions(confidence_without="special"),
    )
    kept = hc.survey(
        subject,
        PAIRS,
        columns=["confidence"],
        reading=hc.ReadingOptions(confidence_without="separator"),
    )
    assert (table.stack("dec").frame < kept.stack("dec").frame).all(axis=None)
    np.testing.assert_allclose(table.stack("enc").frame, kept.stack("enc").frame)


def test_segments_can_be_left_out_as_clarks_extraction_did() -> None:
    subject = subject_of("bert", "wordpiece")
    two, one = (
        hc.survey(subject, PAIRS, reading=hc.ReadingOptions(segments=segments))
        for segments in (True, False)
    )
    assert not np.allclose(two.frame["entropy"], one.frame["entropy"])
    single = [
        hc.survey(subject, ENGLISH, reading=hc.ReadingOptions(segments=segments))
        for segments in (True, False)
    ]
    assert single[0].frame.equals(single[1].frame)


def test_corpora_come_from_files_too(tmp_path: Path) -> None:
    subject = subject_of("bert", "wordpiece")
    (tmp_path / "a.txt").write_text("\n".join(ENGLISH), encoding="utf8")
    table = hc.survey(subject, tmp_path / "a.txt", limit=4)
    assert table.frame.equals(hc.survey(subject, ENGLISH[:4]).frame)
    assert table.provenance["corpus"] == str(tmp_path / "a.txt")


def test_progress_goes_up_to_the_whole() -> None:
    steps: list[tuple[int, int]] = []
    text = [*ENGLISH, " ".join(ENGLISH)]  # the last gives windows: still one sentence
    with told(lambda done, total, title: steps.append((done, total))):
        hc.survey(subject_of("bert", "wordpiece"), text, reading=hc.ReadingOptions(batch_size=4))
    assert steps == sorted(steps)
    assert steps[-1] == (11, 11)
    assert {total for _, total in steps} == {11}


@dataclass
class LastToken(SumsTally):
    """Mean mass on a sentence's last token: a statistic of one's own."""

    columns = (Column("last", meaning="Mean mass on the last token."),)
    needs = Needs(maps=True)

    def update(self, sighting: Sighting) -> None:
        assert sighting.maps is not None
        last = sighting.keys.real.sum(-1) - 1
        mass = sighting.maps[torch.arange(len(last)), :, :, last]
        rows = sighting.queries.real
        add_micro(self.sums, sighting.site, "last", over_rows(mass, rows), rows.sum(-1))

    def compute(self) -> list[Reading]:
        return read_micro(self.sums, "last", "no text")


def test_a_tally_of_ones_own_joins_the_table() -> None:
    table = hc.survey(
        subject_of("bert", "wordpiece"), ENGLISH, columns=["first"], tallies=[LastToken()]
    )
    assert table.names == ["first", "last"]
    assert table.column("last").meaning == "Mean mass on the last token."
    assert table.frame["last"].between(0, 1).all()


def test_offsets_are_kept_and_mass_by_offset_on_request() -> None:
    subject = subject_of("bert", "wordpiece")
    table = hc.survey(subject, ENGLISH)
    assert set(table.details) == {"offsets", "positions"}
    tokens = table.details["offsets"].groupby(["layer", "head"])["tokens"].sum()
    counted = table.provenance["counts"]
    assert set(tokens) == {counted["tokens"]["source"] - counted["rows"]}  # separators left out
    table = hc.survey(subject, ENGLISH, tallies=["offset-mass"])
    mass = table.details["offset_mass"].groupby(["layer", "head"])["mass"].sum()
    np.testing.assert_allclose(mass, 1, atol=1e-5)
    assert table.names == COLUMNS


def test_provenance_says_where_the_numbers_come_from() -> None:
    subject = subject_of("bert", "wordpiece")
    about = hc.survey(
        subject, ENGLISH, limit=3, reading=hc.ReadingOptions(seed=5, convention="paper")
    ).provenance
    assert about["model"] == "bert"
    assert about["weights"] == subject.weights_hash
    assert about["convention"] == "paper"
    assert about["seed"] == 5
    assert about["counts"]["sentences"] == 3
    assert about["settings"] == {
        "max_length": None, "long": "window", "chat": False,
        "stacks": ["enc"], "segments": True, "limit": 3, "confidence_without": "separator",
    }  # fmt: skip
    again = hc.survey(subject, ENGLISH, limit=3, reading=hc.ReadingOptions(seed=6)).provenance
    assert again["data"] != about["data"]
    assert set(about["versions"]) >= {"headcount", "torch", "transformers"}


def test_a_table_is_saved_and_read_as_it_was(tmp_path: Path) -> None:
    table = hc.survey(subject_of("marian", "marian"), PAIRS)
    table.save(tmp_path / "run")
    back = hc.HeadTable.load(tmp_path / "run")
    assert back.frame.equals(table.frame)
    assert back.notes == table.notes
    assert back.details["offsets"].equals(table.details["offsets"])


# --- models of every kind -------------------------------------------------------------------------


def test_the_model_is_left_as_it_was() -> None:
    subject = subject_of("bert", "wordpiece")
    subject.model.train()
    before = subject.weights_hash
    hc.survey(subject, ENGLISH)
    assert subject.model.training
    assert subject.model.config._attn_implementation == "sdpa"
    assert Subject(subject.model).weights_hash == before
    assert not any(module._forward_hooks for module in subject.model.modules())


def adapted(family: str, tokenizer: str, targets: list[str]) -> Subject:
    """A model in a LoRA wrapper whose adapters do something."""
    from peft import LoraConfig, get_peft_model

    bare = subject_of(family, tokenizer)
    wrapped = get_peft_model(bare.model, LoraConfig(target_modules=targets, r=4))
    noise = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, weight in wrapped.named_parameters():
            if "lora_" in name:
                weight.copy_(0.2 * torch.randn(weight.shape, generator=noise))
    return Subject(wrapped, bare.tokenizer, name="adapted")


@pytest.mark.parametrize(
    ("family", "tokenizer", "targets"),
    [
        ("bert", "wordpiece", ["query", "value"]),
        ("llama", "llama", ["q_proj", "v_proj", "o_proj"]),
        ("deberta", "wordpiece", ["in_proj"]),
    ],
)
def test_a_lora_wrapped_model_is_surveyed_as_it_works(
    family: str, tokenizer: str, targets: list[str]
) -> None:
    subject = adapted(family, tokenizer, targets)
    bare = subject_of(family, tokenizer)
    assert subject.heads == bare.heads
    table = hc.survey(subject, ENGLISH)
    assert not np.allclose(table.frame["entropy"], hc.survey(bare, ENGLISH).frame["entropy"])
    merged = Subject(subject.model.merge_and_unload(), bare.tokenizer)
    np.testing.assert_allclose(table.frame, hc.survey(merged, ENGLISH).frame, atol=2e-5)
    assert table.provenance["subject"]["adapter"] == "PeftModel"


@pytest.mark.parametrize(
    ("family", "tokenizer"), [("bert", "wordpiece"), ("llama", "llama"), ("marian", "marian")]
)
def test_a_quantised_model_is_surveyed(family: str, tokenizer: str) -> None:
    full = subject_of(family, tokenizer)
    packed = torch.ao.quantization.quantize_dynamic(
        subject_of(family, tokenizer).model, {torch.nn.Linear}, dtype=torch.qint8
    )
    subject = Subject(packed, full.tokenizer, name="packed")
    assert subject.heads == full.heads
    corpus = PAIRS if family == "marian" else ENGLISH
    names = ["confidence", "entropy", "first", "punctuation"]
    tables = [hc.survey(one, corpus, columns=names) for one in (full, subject)]
    np.testing.assert_allclose(tables[0].frame, tables[1].frame, atol=0.1)
    assert not np.array_equal(tables[0].frame, tables[1].frame)
    assert subject.weights_hash != full.weights_hash


def test_ready_pixels() -> None:
    subject = Subject(TINY["vit"](), name="vit")
    images = torch.randn(5, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    table = hc.survey(subject, [{"pixel_values": images[:3]}, {"pixel_values": images[3:]}])
    assert missing(table, "enc") == SEPARATORS | {"punctuation"}
    assert table.notes["separator"] == "enc: nothing is known of the tokens of ready inputs"
    assert table.notes["punctuation"] == "enc: nothing is known of the tokens of ready inputs"
    assert table.provenance["counts"]["sentences"] == 5
    assert table.frame["entropy_uniform"].round(6).eq(round(math.log(5), 6)).all()
    whole = hc.survey(subject, {"pixel_values": images})
    np.testing.assert_allclose(table.frame, whole.frame, atol=2e-5)


def test_ready_sound_with_a_decoder() -> None:
    subject = Subject(TINY["whisper"](), name="whisper")
    noise = torch.Generator().manual_seed(1)
    inputs = {
        "input_features": torch.randn(2, 8, 20, generator=noise),
        "decoder_input_ids": torch.randint(5, 96, (2, 6), generator=noise),
    }
    table = hc.survey(subject, [inputs])
    unknown = SEPARATORS | {"punctuation"}
    assert missing(table, "enc") == unknown
    assert missing(table, "dec") == unknown | {"next"}
    assert missing(table, "cross") == unknown | POSITIONS
    uniform = table.stack("cross").frame["entropy_uniform"]
    assert uniform.round(6).eq(round(math.log(10), 6)).all()  # the convolution halves 20 frames
    assert table.provenance["counts"]["tokens"] == {"target": 12}
    assert table.provenance["corpus"] == "ready inputs"


def test_ready_ids_with_padding_equal_the_tokenizers() -> None:
    subject = subject_of("bert", "wordpiece")
    ids = subject.tokenizer(ENGLISH, padding=True, return_tensors="pt")  # type: ignore[misc]
    ready, text = hc.survey(subject, ids), hc.survey(subject, ENGLISH)
    names = ["entropy", "entropy_first", "entropy_uniform", "self", "previous", "next", "first"]
    np.testing.assert_allclose(ready.frame[names], text.frame[names], atol=2e-5)


@pytest.mark.parametrize(
    ("inputs", "how", "error", "message"),
    [
        (
            {"input_ids": torch.ones(1, 3).long()},
            {"limit": 2},
            UsageError,
            "limit is 2, but these are ready inputs and no text; leave it out.",
        ),
        (
            {"input_ids": torch.ones(1, 3).long()},
            {"chat": True},
            UsageError,
            "chat is True, but these are ready inputs and no text; leave it out.",
        ),
        (
            [{"input_ids": [[1, 2]]}],
            {},
            InputError,
            "'input_ids' of ready input 1 is a list; give tensors whose first axis is the batch",
        ),
        ([{}], {}, InputError, "Ready input 1 is not a mapping of tensors, or an empty one."),
        (
            [{"input_ids": torch.ones(1, 3).long()}, "Rain."],
            {},
            InputError,
            "Ready input 2 is not a mapping of tensors",
        ),
    ],
)
def test_ready_inputs_that_are_none(
    inputs: Any, how: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        hc.survey(subject_of("bert", "wordpiece"), inputs, **how)
    assert str(caught.value).startswith(message)


# --- what is broken -------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [None, ["best_offset"], ["first"]])
def test_a_weight_that_is_no_number_is_named(columns: list[str] | None) -> None:
    subject = subject_of("bert", "wordpiece")
    assert subject.heads  # found while all was well
    token = subject.tokenizer.convert_tokens_to_ids("the")  # type: ignore[union-attr]
    with torch.no_grad():
        subject.model.embeddings.word_embeddings.weight[token] = float("nan")
    with pytest.raises(ModelError, match=r"The weight embeddings\.word_embeddings\.weight of bert"):
        hc.survey(
            subject, [*ENGLISH, "the"], columns=columns, reading=hc.ReadingOptions(batch_size=1)
        )


def test_numbers_too_large_for_half_precision_are_said() -> None:
    subject = subject_of("llama", "llama")
    with torch.no_grad():
        for layer in subject.model.model.layers:
            layer.mlp.down_proj.weight.fill_(6e4)
    subject.model.half()
    with pytest.raises(
        ModelError, match=r"is not a number.*float16 may be too narrow: use --load dtype=float32"
    ):
        hc.survey(subject, ENGLISH)


def test_too_little_memory_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_out(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(Watch, "__call__", run_out)
    with pytest.raises(ModelError, match=r"not enough memory for a batch of bert; use a sma"):
        hc.survey(subject_of("bert", "wordpiece"), ENGLISH)


@pytest.mark.parametrize(("family", "tokenizer"), [("bert", "wordpiece"), ("gpt2", "gpt2")])
def test_a_tokenizer_of_another_model_is_told(family: str, tokenizer: str) -> None:
    subject = subject_of(family, tokenizer, vocab_size=170)
    with pytest.raises(ModelError, match=rf"holds the token id \d+ and {family} embeds 170"):
        hc.survey(subject, ENGLISH)


def test_without_a_tokenizer_text_cannot_be_read() -> None:
    with pytest.raises(UsageError, match="needs a tokenizer and this subject has none"):
        hc.survey(Subject(TINY["bert"]()), ENGLISH)


def test_two_texts_for_a_decoder_and_one_for_a_translator() -> None:
    with pytest.raises(InputError, match="holds pairs, which a decoder-only model cannot take"):
        hc.survey(subject_of("gpt2", "gpt2"), PAIRS)
    with pytest.raises(InputError, match="has no targets, which a decoder's heads need"):
        hc.survey(subject_of("marian", "marian"), GERMAN)


# --- real models ----------------------------------------------------------------------------------


@pytest.mark.real
def test_minilm(minilm: Subject) -> None:
    table = hc.survey(minilm, ENGLISH)
    assert (len(table), table.names) == (72, COLUMNS)
    assert str(table.rank("previous")[0]) == "enc.0.2"
    assert table.frame.loc[("enc", 0, 2), "best_offset"] == -1
    assert table.frame.loc[("enc", 0, 2), "best_offset_share"] > 0.9


@pytest.mark.real
def test_smollm2(smollm2: Subject) -> None:
    table = hc.survey(smollm2, ENGLISH[:2], columns=["confidence", "first", "next"])
    assert len(table) == 30 * 9
    assert table.frame["next"].isna().all()
    assert table.frame["first"].iloc[9 * 4 :].mean() > 0.4  # the first token is a sink


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"subject": "minilm"}, "survey takes a Subject, not the text 'minilm'; write hc."),
        ({"columns": "entropy"}, r"columns is the text 'entropy'; give a list"),
        ({"tallies": Entropy()}, "give a list of tallies"),
        ({"tallies": [Entropy]}, "give a list of tallies"),
    ],
)
def test_slips_in_the_call_are_told(call: dict[str, Any], message: str) -> None:
    given = {"subject": subject_of("bert", "wordpiece"), "corpus": ["Rain fell."], **call}
    with pytest.raises(UsageError, match=message):
        hc.survey(**given)


def test_an_own_column_can_be_asked_for() -> None:
    subject = subject_of("bert", "wordpiece")
    own = Entropy()
    own.columns = (Column("breadth"),)
    own.compute = lambda: []  # type: ignore[method-assign]
    text = ["Rain fell.", "It is."]
    table = hc.survey(subject, text, columns=["breadth", "self"], tallies=[own])
    assert table.names == ["self", "breadth"]
    assert hc.survey(subject, text, columns=["breadth"], tallies=[own]).names == ["breadth"]


# --- The corpora of a survey --------------------------------------------------------------------


TREES = sample.path("sample.conllu")
CLUSTERS = sample.path("coref.jsonl")
PLAIN = ["Rain fell.", "It stopped."]


def tree(text: str) -> Sentence:
    """Every word hangs from the first."""
    words = [Word(w.form, head=int(n > 0), start=w.start, end=w.end) for n, w in
             enumerate(split_words(text))]  # fmt: skip
    return Sentence(text, tuple(words))


def test_a_treebank_alone_is_also_the_text() -> None:
    found = read_corpora(None, treebank=TREES, limit=5)
    assert found.text is found.treebank
    assert found.text_is_annotated
    assert len(found.text) == 5


def test_text_and_treebank_may_differ() -> None:
    found = read_corpora(PLAIN, treebank=TREES, limit=2)
    assert found.text is not found.treebank
    assert not found.text_is_annotated
    assert found.text.name == "texts in hand"


def test_a_text_with_trees_is_the_treebank() -> None:
    found = read_corpora(TREES, limit=3)
    assert found.treebank is found.text
    assert read_corpora(PLAIN).treebank is None


def test_coreference_alone_is_the_text() -> None:
    found = read_corpora(None, coref=CLUSTERS)
    assert found.text is found.coref
    assert found.treebank is None


def test_coreference_in_a_treebank_is_read_by_passage() -> None:
    found = read_corpora(PLAIN, coref=TREES)
    assert found.coref is not None
    passages = [item for item in found.coref if isinstance(item, Sentence)]
    assert max(len(one.words or ()) for one in passages) > 30
    assert any(one.clusters for one in passages)


def test_a_treebank_of_the_same_documents_lends_its_trees() -> None:
    alone, lent = (read_corpora(PLAIN, coref=CLUSTERS, treebank=one).coref for one in (None, TREES))
    assert alone is not None
    assert lent is not None
    heads = [
        [word.head for item in corpus for word in getattr(item, "words", ())]
        for corpus in (alone, lent)
    ]
    assert len(heads[0]) == len(heads[1])
    assert not any(head is not None for head in heads[0])
    assert all(head is not None for head in heads[1])


def test_a_treebank_of_other_documents_is_no_matter() -> None:
    found = read_corpora(None, coref=CLUSTERS, treebank=[tree("Rain fell.")]).coref
    assert found is not None
    assert not found.skipped


def test_a_parser_makes_a_treebank_of_the_text() -> None:
    found = read_corpora(PLAIN, parser=tree)
    assert found.text is found.treebank
    first = next(iter(found.text))
    assert isinstance(first, Sentence)
    assert [word.form for word in first.words or ()] == ["Rain", "fell", "."]


def test_predicates_are_arguments() -> None:
    read = Predicate(1, "fall.01", (Argument("ARG1", Span(0, 0)),))
    given = [Sentence("Rain fell", split_words("Rain fell"), predicates=(read,))]
    assert read_corpora(None, arguments=given).arguments is not None


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"treebank": PLAIN}, InputError, "texts in hand has no trees: no word has a HEAD"),
        (
            {"treebank": [Sentence("Rain fell", split_words("Rain fell"))]},
            InputError,
            "has no trees: no word has a HEAD; give a treebank",
        ),
        ({"coref": PLAIN}, InputError, "has no coreference: no two mentions mean the same"),
        ({"arguments": PLAIN}, InputError, "has no predicate with an argument"),
        ({"parser": tree}, UsageError, "A parser was given and no text to parse"),
        ({"corpus": PLAIN, "parser": tree, "treebank": TREES}, UsageError, "leave one of them out"),
        ({}, UsageError, "There is nothing to read: give a corpus, or a treebank in its place"),
    ],
)
def test_what_lacks_what_it_is_read_for_is_refused(
    given: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        read_corpora(given.pop("corpus", None), **given)  # type: ignore[arg-type]


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no file"):
        read_corpora(None, treebank=tmp_path / "none.conllu")


def test_ready_inputs_take_no_settings_of_texts() -> None:
    ready = [{"input_ids": torch.ones(1, 4, dtype=torch.long)}]
    assert ready_corpora(ready, ["enc"], PassOptions(("enc",))).treebank is None
    with pytest.raises(UsageError, match=r"treebank is .* but these are ready inputs"):
        ready_corpora(ready, ["enc"], PassOptions(("enc",)), treebank=TREES)
    with pytest.raises(UsageError, match="max_length is 3, but these are ready inputs"):
        ready_corpora(ready, ["enc"], PassOptions(("enc",), max_length=3))


# --- A programme --------------------------------------------------------------------------------


READS = frozenset(name for role in all_roles() for name in role.reads)

TREES_PLANNING, CLUSTERS_PLANNING = sample.path("sample.conllu"), sample.path("coref.jsonl")


def kinds(
    subject: Subject, convention: str = "headcount", **given: object
) -> list[tuple[str, set[str], list[str]]]:
    """Each pass: its name, its tallies, its stacks."""
    corpora = read_corpora(given.pop("corpus", None), limit=8, **given)  # type: ignore[arg-type]
    options = SurveyOptions(PassOptions(subject.anatomy.stacks), convention, reads=READS)
    found = plan_survey(subject, corpora, options)
    return [
        (one.name, {type(tally).__name__ for tally in one.tallies}, list(one.inputs.stacks))
        for one in found.passes
    ]


def test_without_roles_there_is_one_pass_and_no_trial() -> None:
    corpora = read_corpora(TREES_PLANNING, limit=4)
    found = plan_survey(encoder(), corpora, SurveyOptions(PassOptions(("enc",))))
    assert len(found.passes) == 1
    assert found.trials == ()
    assert not {"Relations", "Rarity"} & {type(one).__name__ for one in found.passes[0].tallies}


def test_one_corpus_is_gone_through_once() -> None:
    (only,) = kinds(encoder(), treebank=TREES_PLANNING)
    assert {"Relations", "Rarity", "Offsets", "Confidence"} <= only[1]


def test_each_other_corpus_has_its_own_pass() -> None:
    text, trees, mentions = kinds(
        encoder(),
        corpus=["Rain fell."] * 3,
        treebank=TREES_PLANNING,
        coref=CLUSTERS_PLANNING,
    )
    assert "Relations" not in text[1]
    assert "Relations" in trees[1]
    assert "Confidence" not in trees[1]
    assert mentions[1] == {"CoreferenceTally", "PronounChoice"}


def test_without_targets_only_a_translators_encoder_is_looked_at() -> None:
    (only,) = kinds(translator(), treebank=TREES_PLANNING)
    assert only[2] == ["enc"]


def test_the_authors_published_no_program_for_rare_tokens_and_mentions() -> None:
    (only,) = kinds(encoder(), "code", treebank=TREES_PLANNING)
    assert "Rarity" not in only[1]


def test_a_decoder_has_trials() -> None:
    corpora = read_corpora(None, treebank=TREES_PLANNING, limit=8)
    subject = writer()
    found = plan_survey(subject, corpora, SurveyOptions(PassOptions(("dec",)), reads=READS))
    assert {"repeats", "sink"} <= {trial.name for trial in found.trials}
