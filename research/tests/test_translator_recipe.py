"""The translator's recipe, on a made-up corpus and a model of a few thousand weights."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional
from transformers import MarianTokenizer
from transformers.models.marian.modeling_marian import shift_tokens_right

from headcount.errors import InputError
from headcount.models.subject import Subject
from headcount.records.heads import Head
from headcount.wiring import valve
from research import ROOT
from research.translator import checkpoint, dynamics
from research.translator.__main__ import main
from research.translator.clock import Clock
from research.translator.config import Config, Phase, read_config
from research.translator.corpus import IGNORED, Corpus, lay_rows, slot_widths
from research.translator.evaluate import dev_loss, translate
from research.translator.loss import smoothed_loss, summed_loss
from research.translator.model import (
    build_model,
    logits_of,
    trained_parameters,
)
from research.translator.pairs import make_toy, read_pairs
from research.translator.pieces import encode, train_pieces
from research.translator.prepare import Prepared, prepare
from research.translator.schedule import dial_table
from research.translator.train import Run
from research.translator.weights import Weights

FOLDER = ROOT / "research" / "translator"


@pytest.fixture(scope="module")
def config() -> Config:
    """The smoke config cut to twelve steps, with dropout so that the dice matter."""
    smoke = read_config(FOLDER / "config.smoke.toml")
    cuts = {"steps": 12, "warmup": 4, "save_every": 4, "log_every": 2, "dev_every": 6}
    return replace(
        smoke,
        data=replace(smoke.data, toy=60),
        model=replace(smoke.model, layers=1, heads=2, width=16, inner=16, dropout=0.2),
        train=replace(smoke.train, rows=4, dev_sentences=4, snapshots=2, **cuts),
    )


@pytest.fixture(scope="module")
def prepared(config: Config, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return prepare(config, None, tmp_path_factory.mktemp("prepared"))


class Killed(Exception):
    pass


class KilledAt(Run):
    """A run that is killed right after a step."""

    dies: int

    def _after_step(self) -> None:
        super()._after_step()
        if self.step == self.dies:
            raise Killed


def straight(config: Config, prepared: Prepared, out: Path) -> Run:
    run = Run(config, prepared, out, "cpu")
    run.go()
    return run


def losses(run: Run) -> list[tuple[int, float, float, float]]:
    return [(e["step"], e["loss"], e["plain"], e["dev_loss"]) for e in run.curve]


# -- the loop ------------------------------------------------------------------------------


def test_a_run_killed_and_resumed_ends_in_the_same_bits(
    config: Config, prepared: Prepared, tmp_path: Path
) -> None:
    whole = straight(config, prepared, tmp_path / "whole")
    (tmp_path / "killed").mkdir(exist_ok=True)
    first = KilledAt(config, prepared, tmp_path / "killed", "cpu")
    first.dies = 10
    with pytest.raises(Killed):
        first.go()
    torch.manual_seed(999)  # whatever a new process has done before
    second = Run(config, prepared, tmp_path / "killed", "cpu")
    second.resume()
    assert second.step == 8
    second.go()
    assert losses(second) == losses(whole)
    for name, tensor in whole.weights.tensors.items():
        assert torch.equal(second.weights.tensors[name], tensor), name


def test_dropout_draws_from_the_seed(config: Config, prepared: Prepared, tmp_path: Path) -> None:
    once = straight(config, prepared, tmp_path / "a")
    other = replace(config, train=replace(config.train, seed=14))
    assert losses(once) != losses(straight(other, prepared, tmp_path / "b"))


@pytest.mark.parametrize("damage", ["cut", "gone", "scribbled note"])
def test_a_broken_checkpoint_falls_back_to_the_one_before(
    config: Config,
    prepared: Prepared,
    tmp_path: Path,
    damage: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = KilledAt(config, prepared, tmp_path, "cpu")
    run.dies = 8
    with pytest.raises(Killed):
        run.go()
    newest = tmp_path / "checkpoints" / "step-00000008.safetensors"
    if damage == "cut":
        os.truncate(newest, newest.stat().st_size // 2)
    elif damage == "gone":
        newest.unlink()
    else:
        newest.with_suffix(".json").write_text('{"step": 8, "sha')
    again = Run(config, prepared, tmp_path, "cpu")
    again.resume()
    assert again.step == 4
    assert "step-00000008 is not whole" in capsys.readouterr().out
    again.go()
    assert again.step == 12


def test_no_checkpoint_means_a_fresh_start(tmp_path: Path) -> None:
    assert checkpoint.load_last(tmp_path / "checkpoints") is None


def test_only_the_last_two_checkpoints_stay(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        checkpoint.save(tmp_path, step, {"w": torch.full((2,), float(step))}, {})
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"step-0000000{step}.{kind}" for step in (2, 3) for kind in ("json", "safetensors")
    ]
    tensors, state = checkpoint.load_last(tmp_path) or ({}, {})
    assert tensors["w"].tolist() == [3.0, 3.0]
    assert state["step"] == 3


def test_patience_ends_a_run_that_no_longer_improves(
    config: Config, prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient = replace(config, train=replace(config.train, dev_every=2, patience=2))
    monkeypatch.setattr(Run, "_look", lambda self: {"dev_loss": 1.0, "dev_bleu": 5.0 - self.step})
    assert straight(impatient, prepared, tmp_path).step == 6


def test_the_smoke_command_learns_scores_and_packs(
    config: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All three commands on the smoke config, with few steps; on a bare clone."""
    text = (FOLDER / "config.smoke.toml").read_text()
    short = tmp_path / "short.toml"
    short.write_text(text.replace("steps = 300", "steps = 60").replace("toy = 400", "toy = 100"))
    for command in ("train", "evaluate", "dynamics"):
        assert main([command, str(short), "--out", str(tmp_path / "run"), "--device", "cpu"]) == 0
    curve = json.loads((tmp_path / "run" / "curve.json").read_text())
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    dynamics = json.loads((tmp_path / "run" / "dynamics.json").read_text())
    assert curve[-1]["dev_loss"] < 3.0  # a uniform guess costs log(60) = 4.1
    assert "tok:13a" in result["float32"]["test"]["bleu_signature"]
    assert abs(result["int8"]["dev"]["loss"] - result["float32"]["dev"]["loss"]) < 0.02
    assert result["packed_bytes"] < 1.6 * result["parameters"]
    last = dynamics["snapshots"][-1]
    assert len(last["gradient"]) == 24
    assert [point["shut"] for point in last["curve"]] == [0, 3, 5, 8, 10, 12, 15, 17, 20, 22]
    assert last["curve"][0]["loss"] == pytest.approx(result["float32"]["dev"]["loss"], rel=1e-4)


# -- batches -------------------------------------------------------------------------------


def random_corpus(count: int, seed: int, longest: int = 40) -> Corpus:
    draw = np.random.default_rng(seed)
    sides = []
    for _ in range(2):
        lengths = draw.integers(1, longest, count).astype(np.int32)
        sides.append((draw.integers(2, 50, lengths.sum()).astype(np.int16), lengths))
    return Corpus.build(*sides)


def pairs_in(rows: torch.Tensor, empty: int) -> list[int]:
    return sorted(rows[rows != empty].tolist())


@pytest.mark.parametrize("length", [64, 96, 128])
@pytest.mark.parametrize("count", [1, 7, 500])
def test_every_pair_stands_in_exactly_one_slot(length: int, count: int) -> None:
    corpus = random_corpus(count, seed=count)
    layout = lay_rows(corpus, torch.arange(count), length, 4, torch.Generator().manual_seed(0))
    assert pairs_in(layout.rows, count) == list(range(count))
    assert layout.left_out == 0
    assert len(layout.rows) % 4 == 0
    for row, width in zip(layout.rows.tolist(), layout.widths.tolist(), strict=True):
        held = [pair for pair in row if pair != count]
        assert len(held) <= length // width
        assert all(corpus.widths[pair] <= width for pair in held)


def test_pairs_longer_than_a_row_are_counted_not_lost_in_silence() -> None:
    corpus = random_corpus(200, seed=3)
    layout = lay_rows(corpus, torch.arange(200), 24, 4, torch.Generator().manual_seed(0))
    fitting = [pair for pair in range(200) if corpus.widths[pair] <= 24]
    assert pairs_in(layout.rows, 200) == fitting
    assert layout.left_out == 200 - len(fitting) > 0


def test_widths_waste_little_of_a_row() -> None:
    for length in (64, 96, 128):
        assert slot_widths(length)[-1] == length
        assert all(width * (length // width) > length * 0.8 for width in slot_widths(length))


def test_the_order_is_a_function_of_seed_and_epoch(config: Config, prepared: Prepared) -> None:
    run = Run(config, prepared, Path(), "cpu")
    first, again = run.lay_epoch(), run.lay_epoch()
    run.epoch = 1
    assert torch.equal(first.rows, again.rows)
    assert not torch.equal(first.rows, run.lay_epoch().rows)


def test_a_batch_equals_naive_padding_of_the_same_pairs(prepared: Prepared) -> None:
    """Ids, labels, decoder inputs and logits of a packed row, against Marian's own forward."""
    corpus, pairs = prepared.dev, prepared.splits.dev
    tokenizer = MarianTokenizer.from_pretrained(prepared.folder)
    pad = tokenizer.pad_token_id
    shape = read_config(FOLDER / "config.smoke.toml").model
    model = build_model(shape, len(tokenizer), seed=1).eval()
    layout = lay_rows(corpus, torch.arange(len(pairs)), 64, 2, torch.Generator().manual_seed(2))
    batch = corpus.batch(layout.rows, layout.widths, 64, pad, pad)
    packed = logits_of(model, batch)
    seen = 0
    for row, width in enumerate(layout.widths.tolist()):
        for slot, pair in enumerate(layout.rows[row].tolist()[: 64 // width]):
            if pair == len(pairs):
                continue
            span = slice(slot * width, (slot + 1) * width)
            naive = tokenizer(
                pairs[pair].source,
                text_target=pairs[pair].target,
                padding="max_length",
                max_length=width,
                return_tensors="pt",
            )
            labels = naive.labels.masked_fill(naive.labels == pad, IGNORED)
            assert torch.equal(batch.source[row, span], naive.input_ids[0])
            assert torch.equal(batch.real[row, span], naive.attention_mask[0].bool())
            assert torch.equal(batch.labels[row, span], labels[0])
            assert torch.equal(batch.target[row, span], shift_tokens_right(labels, pad, pad)[0])
            inputs = {key: naive[key] for key in ("input_ids", "attention_mask")}
            logits = model(**inputs, labels=labels).logits[0]
            told = labels[0] != IGNORED
            assert torch.allclose(packed[row, span][told], logits[told], atol=1e-5)
            seen += 1
    assert seen == len(pairs)


def test_phases_choose_direct_pairs_and_segmentations(prepared: Prepared) -> None:
    count = len(prepared.direct)
    direct = torch.arange(count) % 3 == 0
    mixed = replace(prepared, direct=direct)
    assert prepared.versions == 2
    assert torch.equal(mixed.chosen(Phase(1.0), epoch=4), torch.arange(count) + count)
    plain = mixed.chosen(Phase(1.0, indirect=False, sampled=False), epoch=4)
    assert torch.equal(plain, torch.arange(count)[direct])


def test_dev_loss_is_the_mean_over_tokens_pair_by_pair(prepared: Prepared) -> None:
    tokenizer = MarianTokenizer.from_pretrained(prepared.folder)
    shape = read_config(FOLDER / "config.smoke.toml").model
    model = build_model(shape, len(tokenizer), seed=3).eval()
    total, tokens = 0.0, 0
    for pair in prepared.splits.dev:
        inputs = tokenizer(pair.source, text_target=pair.target, return_tensors="pt")
        count = inputs.labels.numel()
        total, tokens = total + model(**inputs).loss.item() * count, tokens + count
    assert dev_loss(model, prepared.dev, 64, rows=3) == pytest.approx(total / tokens, rel=1e-5)


# -- pieces and pairs ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def tongues(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tongues")
    texts = [
        "Über süße Äpfel, Öl und Straßen: „Ja“!",
        "Съешь ещё этих мягких французских булок — да!",
        "Don't worry, it's Tom's.",
    ]
    settings = replace(read_config(FOLDER / "config.smoke.toml").pieces, vocabulary=90)
    train_pieces(texts * 5, settings, folder, ("en", "de"))
    return folder


@pytest.mark.parametrize(
    "text", ["süße Äpfel und Öl", "ещё булок — да!", "it's Tom's, „Ja“!", "Über Straßen"]
)
def test_the_tokenizer_folder_loads_and_brings_every_letter_back(tongues: Path, text: str) -> None:
    tokenizer = MarianTokenizer.from_pretrained(tongues)
    ids = tokenizer(text_target=text).input_ids
    assert tokenizer.unk_token_id not in ids
    assert tokenizer.decode(ids, skip_special_tokens=True) == text
    assert (tokenizer.eos_token_id, tokenizer.pad_token_id) == (0, len(tokenizer) - 1)


def test_encode_agrees_with_the_tokenizer(tongues: Path) -> None:
    texts = ["Öl und Äpfel", "да!", "x"]
    tokenizer = MarianTokenizer.from_pretrained(tongues)
    flat, lengths = encode(texts, tongues)
    expected = [tokenizer(text).input_ids for text in texts]
    assert lengths.tolist() == [len(ids) for ids in expected]
    assert flat.tolist() == [index for ids in expected for index in ids]


def test_sampled_pieces_follow_the_seed_and_spell_the_same_text(
    tongues: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("research.translator.pieces._CHUNK", 10)
    texts = ["Über Straßen und süße Äpfel"] * 25
    one, lengths = encode(texts, tongues, dropout=0.5, seed=1, processes=1)
    two, _ = encode(texts, tongues, dropout=0.5, seed=1, processes=2)
    other, _ = encode(texts, tongues, dropout=0.5, seed=2, processes=2)
    assert one.tolist() == two.tolist()
    assert one.tolist() != other.tolist()
    assert len(set(lengths.tolist())) > 1
    tokenizer = MarianTokenizer.from_pretrained(tongues)
    start = 0
    for length in lengths.tolist():
        ids = one[start : start + length].tolist()
        assert tokenizer.decode(ids, skip_special_tokens=True) == texts[0]
        start += length


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("only a source", "line 2 has 1 columns"),
        ("a\tb\tD\textra", "line 2 has 4 columns"),
        ("a source\t", "line 2 has an empty target"),
        ("\ta target", "line 2 has an empty source"),
        ("a\tb\tX", "line 2 has 'X' in its third column; D and I are allowed"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text(f"Hello.\tHallo.\n{line}\n", encoding="utf8")
    with pytest.raises(InputError, match=message):
        read_pairs(path)


def test_columns_and_directness_are_read(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("a\tb\tI\nc\u2028d\te\tD\n", encoding="utf8")
    assert [(p.source, p.target, p.direct) for p in read_pairs(path)] == [
        ("a", "b", False),
        ("c\u2028d", "e", True),
    ]


def test_a_missing_corpus_and_an_unknown_key_are_told_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[data]\ntrain = "no.tsv"\n')
    assert main(["train", str(path), "--out", str(tmp_path), "--data", str(tmp_path)]) == 1
    assert "no.tsv is not there" in capsys.readouterr().err
    path.write_text("[train]\nstep = 3\n")
    assert main(["train", str(path), "--out", str(tmp_path)]) == 1
    assert "sets train.step, which the recipe does not know" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["en-de", "en-ru"])
def test_the_real_configs_have_the_promised_shape(name: str) -> None:
    config = read_config(FOLDER / f"config.{name}.toml")
    model = build_model(config.model, config.pieces.vocabulary, seed=0)
    weights = sum(parameter.numel() for parameter in trained_parameters(model))
    assert weights == 13_107_200
    assert model.config.encoder_layers * model.config.encoder_attention_heads == 48


# -- dynamics ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def subject(prepared: Prepared) -> Subject:
    tokenizer = MarianTokenizer.from_pretrained(prepared.folder)
    shape = read_config(FOLDER / "config.smoke.toml").model
    return Subject(build_model(shape, len(tokenizer), seed=7).eval(), tokenizer, name="toy")


def test_importance_is_the_mean_slope_of_each_pairs_loss(
    prepared: Prepared, subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Michel et al. 2019, section 4.1, by differences: one pair and one head at a time."""
    pairs = prepared.splits.dev[:3]
    monkeypatch.setattr(dynamics, "_BATCH", 2)
    importance = dynamics.gradient_importance(subject, pairs)
    assert len(importance) == 24
    for name in ("enc.0.1", "dec.1.3", "cross.1.0"):
        slopes = []
        for pair in pairs:
            inputs = dynamics._inputs(subject, [pair])
            ends = []
            for scale in (1.01, 0.99):
                with torch.no_grad(), valve(subject, {name: scale}):
                    ends.append(dynamics._losses(subject.model, inputs).double().item())
            slopes.append(abs(ends[0] - ends[1]) / 0.02)
        place = [str(head) for head in subject.heads].index(name)
        assert importance[place].item() == pytest.approx(sum(slopes) / 3, rel=0.02, abs=2e-3)


def test_the_order_divides_each_layer_by_its_norm() -> None:
    heads = [Head("enc", layer, index) for layer in (0, 1) for index in (0, 1)]
    order = dynamics.pruning_order(torch.tensor([30.0, 40.0, 0.1, 0.9]), heads)
    assert [str(head) for head in order] == ["enc.1.0", "enc.0.0", "enc.0.1", "enc.1.1"]


def test_the_curve_starts_at_the_whole_model(prepared: Prepared, subject: Subject) -> None:
    pairs = prepared.splits.dev[:4]
    curve = dynamics.pruning_curve(subject, pairs, subject.heads)
    assert curve[0]["loss"] == dynamics._mean_loss(subject, pairs)
    assert curve[-1]["loss"] != curve[0]["loss"]


# -- search, loss, optimiser, clock --------------------------------------------------------


@pytest.mark.parametrize("beams", [1, 4])
def test_batched_search_equals_one_by_one(prepared: Prepared, beams: int) -> None:
    tokenizer = MarianTokenizer.from_pretrained(prepared.folder)
    shape = read_config(FOLDER / "config.smoke.toml").model
    model = build_model(shape, len(tokenizer), seed=5)
    sources = [pair.source for pair in make_toy(9, seed=2)]
    alone = [translate(model, tokenizer, [s], beams, longest=20)[0] for s in sources]
    assert len(set(alone)) > 1
    assert translate(model, tokenizer, sources, beams, batch=4, longest=20) == alone


def test_smoothed_loss_is_torchs(prepared: Prepared) -> None:
    torch.manual_seed(0)
    logits, labels = torch.randn(3, 5, 11), torch.randint(0, 11, (3, 5))
    labels[0, 2:] = IGNORED
    smooth, plain = smoothed_loss(logits, labels, 0.1)
    flat = (logits.view(-1, 11), labels.view(-1))
    expected = functional.cross_entropy(*flat, label_smoothing=0.1, reduction="sum")
    assert smooth.item() == pytest.approx(expected.item(), rel=1e-5)
    expected = functional.cross_entropy(*flat, reduction="sum")
    assert plain.item() == pytest.approx(expected.item(), rel=1e-5)


def test_agreement_is_the_papers_sum() -> None:
    """Liang et al. 2021, eq. 4, halved so that it compares with a single pass; in loops."""
    torch.manual_seed(0)
    logits, labels = torch.randn(4, 3, 7), torch.randint(0, 7, (2, 3))
    labels[1, 2] = IGNORED
    both = torch.cat([labels, labels])
    loss, _ = summed_loss(logits, both, smoothing=0.0, agreement=5.0)
    expected = 0.0
    for row in range(2):
        for place in range(3):
            if labels[row, place] == IGNORED:
                continue
            first, second = (logits[r, place].softmax(-1) for r in (row, row + 2))
            right = labels[row, place]
            likelihood = -first[right].log() - second[right].log()
            apart = (first * (first / second).log()).sum() + (second * (second / first).log()).sum()
            expected += (likelihood + 5.0 * apart / 2).item() / 2
    assert loss.item() == pytest.approx(expected, rel=1e-5)


def test_a_step_is_adams_and_the_average_follows(config: Config) -> None:
    torch.manual_seed(0)
    mine, theirs = torch.nn.Linear(4, 3), torch.nn.Linear(4, 3)
    theirs.load_state_dict(mine.state_dict())
    parameters = list(mine.parameters())
    weights = Weights(parameters, torch.cat([p.detach().flatten() for p in parameters]))
    settings = replace(config.train, warmup=2, peak=0.1, clip=1e9)
    table, average = dial_table(settings, 5), weights.average.clone()
    adam = torch.optim.Adam(theirs.parameters(), betas=(0.9, 0.98), eps=1e-9)
    for step in range(5):
        inputs = torch.randn(2, 4)
        mine(inputs).square().sum().backward()
        weights.step(weights.gradient(), table[step], settings.clip)
        adam.zero_grad()
        theirs(inputs).square().sum().backward()
        adam.param_groups[0]["lr"] = table[step, 0].item()
        adam.step()
        average = table[step, 3] * average + (1 - table[step, 3]) * weights.master
    assert torch.allclose(mine.weight, theirs.weight, atol=1e-6)
    assert torch.allclose(weights.average, average, atol=1e-6)


def test_long_gradients_are_clipped(config: Config) -> None:
    parameter = torch.nn.Parameter(torch.zeros(2))
    weights = Weights([parameter], torch.zeros(2))
    weights.step(torch.tensor([30.0, 40.0]), dial_table(config.train, 1)[0], clip=1.0)
    assert weights.norm.item() == pytest.approx(50.0)
    assert torch.allclose(weights.mean, torch.tensor([0.06, 0.08]), atol=1e-6)


def test_the_clock_cuts_the_schedule_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("research.translator.clock.time.monotonic", lambda: now[0])
    clock = Clock(limit=143.0)
    clock.start(0)
    now[0] = 10.0
    clock.stop(100)
    assert clock.fit(100, 5000) == 5000  # ten seconds are too few to tell
    clock.start(100)
    now[0] = 20.0
    clock.stop(200)
    assert clock.speed == 10.0
    assert clock.fit(200, 5000) == 201 + int((143 - 20 - 20) * 10 / 1.15)
    assert clock.fit(300, 5000) == 5000


def test_a_cut_schedule_still_ends_at_zero(
    config: Config, prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Clock, "fit", lambda self, step, steps: min(steps, 9))
    run = straight(config, prepared, tmp_path)
    assert run.step == 9
    assert run.stride.table[8, 0] < 0.1 * config.train.peak
