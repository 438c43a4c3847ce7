"""Fine-tuning on GLUE, on made-up rows and a BERT of a few thousand weights."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import f1_score, matthews_corrcoef

import headcount as hc
from headcount.errors import HeadcountError, InputError, ModelError, UsageError
from headcount.records.journal import Journal
from headcount.rooms.labels.labelled import classification
from headcount.tasks import Labelled
from research import DOCS, ROOT
from research.glue.__main__ import main
from research.glue.config import Config, Each, choose, read_config
from research.glue.encoded import Batch, Encoded, encode, lay_epoch
from research.glue.finetune import predict, rate_at
from research.glue.model import build, draw_head, logits_of
from research.glue.rows import LABELS, METRICS, cut_by_text, read_rows
from research.glue.score import difference, majority, score, statistics_of
from research.glue.step import loss_of
from research.glue.summary import summarise
from research.glue.sweep import Sweep, fingerprint
from research.glue.toy import toy_rows, toy_subject

FOLDER = ROOT / "research" / "glue"
WIDTHS = (8, 16, 24)


@pytest.fixture(autouse=True)
def _settings_as_before() -> Any:
    """The sweep asks PyTorch for repeatable algorithms; other tests did not."""
    was = torch.are_deterministic_algorithms_enabled()
    filled = torch.utils.deterministic.fill_uninitialized_memory
    yield
    torch.use_deterministic_algorithms(was)
    torch.utils.deterministic.fill_uninitialized_memory = filled


@pytest.fixture(scope="module")
def quick() -> Config:
    """The smoke config cut to two epochs of a few steps."""
    smoke = read_config(FOLDER / "config.smoke.toml")
    each = {task: Each(epochs=2, rate=3e-3) for task in smoke.tasks}
    return replace(smoke, toy=64, each=each)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the command writes for the smoke config."""
    folder = tmp_path_factory.mktemp("glue")
    words = ["--config", str(FOLDER / "config.smoke.toml"), "--device", "cpu", "--seeds", "1"]
    words += ["--out", str(folder / "glue.json"), "--journal", str(folder / "runs.jsonl")]
    assert main([*words, "--save", str(folder / "saved"), "--note", "a trial"]) == 0
    return {**json.loads((folder / "glue.json").read_text()), "folder": folder}


# --- the command --------------------------------------------------------------------------------


def test_it_learns(told: dict[str, Any]) -> None:
    found = told["results"]["toy"]
    assert found["sst2"]["accuracy"]["mean"] > 0.9 > found["sst2"]["majority_accuracy"]
    assert found["mrpc"]["accuracy"]["mean"] > found["mrpc"]["majority_accuracy"] + 0.1
    assert found["stsb"]["spearman"]["mean"] > 0.7
    for task, scores in found.items():
        for metric in METRICS[task]:
            one = scores[metric]
            assert one["low"] <= one["mean"] <= one["high"]
            assert [each["seed"] for each in one["seeds"]] == [0]


def test_it_says_how_it_was_made(told: dict[str, Any]) -> None:
    assert told["notes"] == ["a trial"]
    assert told["config"]["each"]["sst2"]["rate"] == 3e-3
    origin = told["results"]["toy"]["sst2"]["provenance"]
    assert set(origin["versions"]) >= {"torch", "transformers", "headcount"}
    assert "command" not in origin  # it would name folders of the machine


def test_a_saved_model_is_a_task_s_subject(told: dict[str, Any]) -> None:
    """The weights on disk give the figure in the JSON, by the toolkit's own route."""
    subject = hc.load(told["folder"] / "saved" / "toy-mrpc-0", device="cpu")
    assert type(subject.model).__name__ == "BertForSequenceClassification"
    assert subject.model.config.id2label == {0: "0", 1: "1"}
    task = classification(toy_rows("mrpc", 256).dev, metric="f1")
    assert task.evaluate(subject).value == pytest.approx(
        told["results"]["toy"]["mrpc"]["f1"]["mean"], abs=1e-5
    )


def test_without_data_it_says_what_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("HEADCOUNT_DATA", raising=False)
    assert main(["--journal", str(tmp_path / "runs.jsonl")]) == 2
    assert "pass --data DIR, or set HEADCOUNT_DATA" in capsys.readouterr().err


@pytest.mark.parametrize("model", ["minilm", "e5-small"])
def test_the_page_says_what_the_json_says(model: str) -> None:
    results = ROOT / "research" / "results"
    page = (DOCS / "glue.md").read_text(encoding="utf8")
    found = json.loads((results / "glue.json").read_text())
    for task, metrics in METRICS.items():
        for metric in metrics:
            one = found["results"][model][task][metric]
            mean, low, high, sd = (f"{100 * one[key]:.1f}" for key in ("mean", "low", "high", "sd"))
            assert f"| {mean} [{low}, {high}] | {sd} |" in page, (task, metric)
            [apart] = (side[task][metric] for side in found["differences"].values())
            mean, low, high = (f"{100 * apart[key]:.1f}" for key in ("mean", "low", "high"))
            assert f"| {mean} [{low}, {high}] |" in page, (task, metric)


# --- runs ---------------------------------------------------------------------------------------


def test_a_seed_is_the_same_run_wherever_it_stands(quick: Config) -> None:
    alone = Sweep(quick, None, "cpu").run("toy", "sst2", 1)
    after = Sweep(quick, None, "cpu")
    first = after.run("toy", "sst2", 0)
    again = after.run("toy", "sst2", 1)
    assert again["outputs"] == alone["outputs"]
    assert again["loss"] == alone["loss"]
    assert first["outputs"] != again["outputs"]


def test_a_stopped_sweep_goes_on(quick: Config, tmp_path: Path) -> None:
    config = choose(quick, ["sst2", "stsb"], None, 1)
    with Journal.open(tmp_path / "runs.jsonl", fingerprint(config)) as journal:
        assert not Sweep(config, None, "cpu").go(journal, time_limit=1e-9)
        assert not journal.done
    with Journal.open(tmp_path / "runs.jsonl", fingerprint(config)) as journal:
        assert Sweep(choose(config, ["sst2"], None, 1), None, "cpu").go(journal)
        held = journal.done["toy/sst2/0"]
        assert Sweep(config, None, "cpu").go(journal)
        assert list(journal.done) == ["toy/sst2/0", "toy/stsb/0"]
        assert journal.done["toy/sst2/0"] is held


def test_a_run_that_breaks_is_no_result(quick: Config) -> None:
    broken = replace(quick, each={"sst2": Each(epochs=1, rate=float("inf"))})
    with pytest.raises(ModelError, match="outputs are not finite after training"):
        Sweep(broken, None, "cpu").run("toy", "sst2", 0)


def test_only_finished_tasks_are_summed_up(quick: Config) -> None:
    run = Sweep(quick, None, "cpu").run("toy", "sst2", 0)
    found = summarise(quick, {"toy/sst2/0": run}, [])["results"]["toy"]
    assert list(found) == ["sst2"]
    assert found["sst2"]["accuracy"]["sd"] is None
    assert found["sst2"]["rows"]["train"] == 48


# --- settings -----------------------------------------------------------------------------------


def test_a_task_s_own_settings_go_over_the_common_ones() -> None:
    config = read_config(FOLDER / "config.toml")
    assert config.each["rte"] == Each(epochs=5, rate=1e-4)
    assert config.each["sst2"] == Each(epochs=3, rate=5e-5)
    assert set(config.tasks) == set(METRICS) == set(LABELS)


def test_a_key_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('models = ["toy"]\ntasks = ["rte"]\n[each.rte]\nepoch = 3\n')
    with pytest.raises(InputError, match=r"each\.epoch, which the recipe does not know"):
        read_config(path)


def test_an_unknown_task_is_named(quick: Config) -> None:
    with pytest.raises(UsageError, match="no task 'sst-2'; choose from sst2, mrpc, stsb"):
        choose(quick, ["sst-2"], None, None)


@pytest.mark.parametrize("steps", [1, 7, 100])
def test_the_rate_rises_to_its_peak_and_falls_to_nothing(steps: int) -> None:
    rates = [rate_at(step, steps, 2.0, 0.1) for step in range(steps)]
    assert max(rates) == 2.0
    top = rates.index(2.0)
    assert rates[: top + 1] == sorted(rates[: top + 1])
    assert rates[top:] == sorted(rates[top:], reverse=True)
    assert min(rates) > 0


# --- rows ---------------------------------------------------------------------------------------


def _write(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf8")


def test_qnli_without_a_train_file_is_cut_by_question(tmp_path: Path) -> None:
    lines = [f"{n}\tquestion {n // 2}?\tsentence {n}\t{LABELS['qnli'][n % 2]}" for n in range(40)]
    _write(tmp_path, "QNLI/dev.tsv", "\n".join(["index\tquestion\tsentence\tlabel", *lines]) + "\n")
    rows = read_rows("qnli", tmp_path)
    assert (len(rows.train), len(rows.dev)) == (32, 8)
    assert not {row.text for row in rows.train} & {row.text for row in rows.dev}
    assert rows.note.endswith("16 to learn from and 4 held out")
    assert read_rows("qnli", tmp_path).dev == rows.dev


def test_qnli_with_a_train_file_is_as_it_is(tmp_path: Path) -> None:
    for split in ("train", "dev"):
        text = f"index\tquestion\tsentence\tlabel\n0\tWhy?\tSo {split}.\tentailment\n"
        _write(tmp_path, f"QNLI/{split}.tsv", text)
    rows = read_rows("qnli", tmp_path)
    assert [row.second for row in (*rows.train, *rows.dev)] == ["So train.", "So dev."]


def test_any_other_task_needs_its_train_file(tmp_path: Path) -> None:
    _write(tmp_path, "SST-2/dev.tsv", "sentence\tlabel\nfine\t1\n")
    with pytest.raises(HeadcountError, match=r"no train\.tsv of SST-2"):
        read_rows("sst2", tmp_path)


def test_another_seed_holds_out_other_rows() -> None:
    rows = [Labelled(f"question {number}", "x") for number in range(50)]
    assert cut_by_text(rows, seed=0)[1] != cut_by_text(rows, seed=1)[1]


@pytest.mark.data
def test_the_published_files_have_the_known_sizes(data_dir: Path) -> None:
    sizes = {
        "mrpc": (3668, 408),
        "rte": (2490, 277),
        "cola": (8551, 1043),
        "stsb": (5749, 1500),
    }
    for task, known in sizes.items():
        rows = read_rows(task, data_dir / "glue")
        assert (len(rows.train), len(rows.dev)) == known
    rows = read_rows("qnli", data_dir / "glue")
    assert len(rows.train) + len(rows.dev) == 5463


# --- tensors ------------------------------------------------------------------------------------


def _encoded(task: str = "mrpc") -> Encoded:
    return encode(toy_rows(task, 60).train, toy_subject().tokenizer, LABELS[task], WIDTHS[-1])


def test_every_row_is_in_one_batch_of_its_width() -> None:
    rows = _encoded()
    laid = lay_epoch(rows.lengths, WIDTHS, 8, torch.Generator().manual_seed(1))
    places = torch.cat([numbers for _, numbers in laid])
    assert sorted(places[places >= 0].tolist()) == list(range(len(rows)))
    assert int((places < 0).sum()) == -len(rows) % 8
    for width, numbers in laid:
        longest = int(rows.lengths[numbers[numbers >= 0]].max())
        assert len(numbers) == 8
        assert longest <= width


def test_a_batch_holds_what_the_tokenizer_says() -> None:
    tokenizer, made = toy_subject().tokenizer, toy_rows("mrpc", 60).train
    rows = encode(made, tokenizer, LABELS["mrpc"], 24)
    batch = rows.batch(24, torch.tensor([3, 0, -1]))
    told = tokenizer([made[3].text], [made[3].second])
    length = len(told["input_ids"][0])
    assert batch.ids[0, :length].tolist() == told["input_ids"][0]
    assert batch.types[0, :length].tolist() == told["token_type_ids"][0]
    assert batch.real.sum(1).tolist()[:2] == [length, int(rows.lengths[0])]
    assert batch.weight.tolist() == [1, 1, 0]


def test_padding_and_filling_change_nothing() -> None:
    model, rows = build(toy_subject(), 2).eval(), _encoded()
    short = (rows.lengths <= 16).nonzero()[:3, 0]
    with torch.no_grad():
        narrow = logits_of(model, rows.batch(16, short))
        filled = rows.batch(24, torch.cat([short, torch.tensor([-1])]))
        wide = logits_of(model, filled)
        torch.testing.assert_close(wide[:3], narrow)
        torch.testing.assert_close(loss_of(wide, filled), loss_of(narrow, rows.batch(16, short)))


def test_logits_are_those_of_a_flat_attention_mask() -> None:
    model, batch = build(toy_subject(), 2).eval(), _encoded().batch(24, torch.arange(5))
    with torch.no_grad():
        plain = model(batch.ids, attention_mask=batch.real.long(), token_type_ids=batch.types)
        torch.testing.assert_close(logits_of(model, batch), plain.logits)


def test_predictions_come_back_in_the_order_of_the_rows(quick: Config) -> None:
    model, rows = build(toy_subject(), 2), _encoded()
    found = predict(model, rows, quick.train, batch=7)
    with torch.no_grad():
        one = [logits_of(model, rows.batch(24, torch.tensor([n])))[0] for n in range(len(rows))]
    torch.testing.assert_close(found, torch.stack(one))


def test_only_the_head_is_drawn() -> None:
    subject = toy_subject()
    model = build(subject, 2)
    draw_head(model, 5)
    for name, weight in subject.model.state_dict().items():
        assert torch.equal(model.bert.state_dict()[name], weight), name
    drawn = model.classifier.weight.clone()
    draw_head(model, 6)
    assert not torch.equal(model.classifier.weight, drawn)
    assert not model.classifier.bias.any()


def test_a_number_is_learned_by_squares() -> None:
    batch = Batch(*[torch.zeros(2, 3)] * 3, torch.tensor([1.0, 5.0]), torch.tensor([1.0, 0.0]))
    assert loss_of(torch.tensor([[3.0], [0.0]]), batch).item() == 4.0


# --- scores -------------------------------------------------------------------------------------


def _run(seed: int, outputs: int, rows: int = 200) -> dict[str, Any]:
    dice = np.random.default_rng(seed)
    gold = np.random.default_rng(99).integers(0, 2, rows)
    said = dice.normal(size=(rows, outputs)) + (np.eye(2)[gold][:, :outputs] * 1.5)
    return {"seed": seed, "outputs": said.tolist(), "gold": gold.tolist()}


@pytest.mark.parametrize("metric", ["accuracy", "f1", "matthews", "spearman", "pearson"])
def test_scores_are_those_of_other_programs(metric: str) -> None:
    run = _run(0, 1 if metric in ("spearman", "pearson") else 2)
    outputs, gold = np.array(run["outputs"]), np.array(run["gold"])
    said = outputs.argmax(1)
    others = {
        "accuracy": lambda: (said == gold).mean(),
        "f1": lambda: f1_score(gold, said),
        "matthews": lambda: matthews_corrcoef(gold, said),
        "spearman": lambda: spearmanr(outputs[:, 0], gold)[0],
        "pearson": lambda: pearsonr(outputs[:, 0], gold)[0],
    }
    assert score([run], metric, draws=10)["mean"] == pytest.approx(others[metric](), abs=1e-5)


def test_seeds_are_averaged_and_their_interval_is_narrower() -> None:
    runs = [_run(seed, 2) for seed in range(3)]
    found = score(runs, "accuracy", draws=500)
    values = [each["value"] for each in found["seeds"]]
    assert found["mean"] == pytest.approx(np.mean(values), abs=1e-5)
    assert found["sd"] == pytest.approx(np.std(values, ddof=1), abs=1e-5)
    assert found["low"] < found["mean"] < found["high"]
    widths = [each["high"] - each["low"] for each in found["seeds"]]
    assert found["high"] - found["low"] < min(widths)


def test_a_difference_is_paired() -> None:
    ours, theirs = [_run(0, 2), _run(1, 2)], [_run(2, 2), _run(3, 2)]
    same = difference(ours, ours, "matthews", draws=50)
    assert same == {"mean": 0.0, "low": 0.0, "high": 0.0}
    found = difference(ours, theirs, "matthews", draws=50)
    means = [score(side, "matthews", draws=10)["mean"] for side in (ours, theirs)]
    assert found["mean"] == pytest.approx(means[0] - means[1], abs=2e-5)
    assert found["low"] < found["mean"] < found["high"]


def test_statistics_hold_a_row_an_example() -> None:
    assert statistics_of(_run(0, 2), "accuracy").shape == (200, 2)
    assert statistics_of(_run(0, 1), "spearman").shape == (200, 2)


def test_the_majority_is_that_of_the_dev_rows() -> None:
    run = {"outputs": [[0.0, 1.0]] * 4, "gold": [1, 1, 0, 1]}
    assert majority(run) == 0.75
    assert majority({"outputs": [[0.3]], "gold": [2.5]}) is None


# --- what learning starts from ------------------------------------------------------------------


def test_random_weights_can_be_the_start(quick: Config) -> None:
    """Every weight is drawn by the seed, and the same seed is the same run."""
    sweep = Sweep(replace(quick, init="random"), None, "cpu")
    first, other = sweep.run("toy", "sst2", 0), sweep.run("toy", "sst2", 1)
    assert first["init"] == "random"
    assert (
        Sweep(replace(quick, init="random"), None, "cpu").run("toy", "sst2", 0)["outputs"]
        == (first["outputs"])
    )
    assert first["outputs"] != other["outputs"]
    step = sweep._step("toy", 2)
    step.begin(0, [])
    subject = toy_subject()
    for name, weight in step.model.base_model.named_parameters():
        pretrained = subject.inner.get_parameter(name)
        assert weight.dim() == 1 or not torch.equal(weight, pretrained), name


def test_a_frozen_encoder_does_not_learn(quick: Config) -> None:
    sweep = Sweep(replace(quick, init="frozen"), None, "cpu")
    found = sweep.run("toy", "sst2", 0)
    model = sweep._step("toy", 2).model
    for name, weight in toy_subject().inner.named_parameters():
        assert torch.equal(model.base_model.get_parameter(name), weight), name
    assert found["loss"][1] < found["loss"][0]


def test_another_start_is_another_journal(quick: Config) -> None:
    assert "init" not in fingerprint(quick)
    assert fingerprint(replace(quick, init="random")) != fingerprint(quick)
    with pytest.raises(UsageError, match="There is no start 'cold'; choose from pretrained"):
        choose(quick, None, None, None, "cold")
