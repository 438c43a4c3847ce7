"""`headcount score`: a model on a task, whole and with heads shut."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from subjects import save
from tiny_tokenizers import ENGLISH

import headcount as hc
from headcount import tasks
from headcount.bundle import sample
from headcount.cli.printing import _significant
from headcount.models.loading import load
from headcount.records.journal import Journal
from headcount.records.run import Run
from headcount.records.table import HeadTable
from headcount.wiring import valve

Saved = Callable[[str], Path]

SPEC = "translation:sample,metric=loss"


def test_the_metric_with_its_interval(headcount: Callable) -> None:
    ended = headcount("score", "translator", "--task", SPEC, "--limit", 12)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("loss 1.")
    assert ended.out.splitlines()[0].endswith("] over 12 examples")


def test_json_equals_python_and_shut_heads_are_tested(headcount: Callable) -> None:
    line = ["score", "translator", "--task", SPEC, "--limit", 12, "--shut", "enc.0.7,cross.5.1"]
    told = json.loads(headcount(*line, "--json").out)
    translator = load("translator", device="cpu")
    task = tasks.translation(sample.pairs()[:12], metric="loss")
    whole = task.evaluate(translator)
    with valve(translator, {"enc.0.7": 0.0, "cross.5.1": 0.0}):
        without = task.evaluate(translator)
    assert told["value"] == pytest.approx(whole.value, rel=1e-5)
    assert told["without"]["shut"] == ["enc.0.7", "cross.5.1"]
    assert told["without"]["value"] == pytest.approx(float(without.value), rel=1e-5)
    loss = without.against(whole)
    assert told["without"]["difference"]["value"] == pytest.approx(float(loss.value), rel=1e-3)
    assert told["without"]["difference"]["p"] == pytest.approx(float(loss.p), rel=1e-2)
    assert told["low"] < told["value"] < told["high"]
    printed = headcount(*line).out
    assert "without enc.0.7, cross.5.1: " in printed
    assert "(sign-flip)" in " ".join(printed.split())


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 2, "No --task was given"),
        (["--task", "translaton:sample"], 2, "closest: translation"),
        (["--task", "translation:nowhere.tsv"], 1, "There is no file nowhere.tsv"),
        (["--task", SPEC, "--shut", "enc.9.9"], 2, "There is no head enc.9.9"),
        (["--task", SPEC, "--shut", "first"], 2, "'first' is not a head's name"),
        (["--task", "classification:sample"], 1, "sample"),
    ],
)
def test_mistakes_are_told(headcount: Callable, words: list[str], code: int, message: str) -> None:
    ended = headcount("score", "translator", *words)
    assert (ended.code, ended.out) == (code, "")
    assert message in ended.err
    assert "Traceback" not in ended.err


def test_a_model_of_the_wrong_kind_is_refused(headcount: Callable, saved: Saved) -> None:
    ended = headcount("score", saved("bert"), "--task", SPEC)
    assert ended.code == 1
    assert "translation needs an encoder-decoder" in ended.err


def test_too_few_examples_for_a_test_lose_no_score(headcount: Callable) -> None:
    line = ["score", "translator", "--task", SPEC, "--limit", 3, "--shut", "enc.0.7"]
    ended = headcount(*line)
    assert ended.code == 0
    assert " without enc.0.7: " in ended.out
    assert "The difference is not tested." in ended.out
    told = json.loads(headcount(*line, "--json").out)
    assert told["without"]["difference"]["value"] == pytest.approx(
        told["without"]["value"] - told["value"]
    )
    assert told["provenance"]["subject"]["weights_hash"]
    assert told["provenance"]["versions"]["torch"]
    assert told["provenance"]["limit"] == 3


# --- scores of heads ----------------------------------------------------------------------------


def test_a_layer_is_shut_by_its_name(headcount: Callable) -> None:
    line = ["score", "translator", "--task", SPEC, "--limit", 3, "--shut", "cross.5", "--json"]
    told = json.loads(headcount(*line).out)
    assert told["without"]["shut"] == [f"cross.5.{index}" for index in range(8)]


def test_heads_are_ranked_at_a_glance_and_kept(headcount: Callable, tmp_path: Path) -> None:
    line = ["score", "translator", "--task", SPEC, "--limit", 8, "--by", "gradient,confidence"]
    ended = headcount(*line, "-o", "run")
    assert (ended.code, ended.err) == (0, "")
    table = HeadTable.load(tmp_path / "run")
    assert table.names == ["gradient", "confidence"]
    first, last = (str(table.rank("gradient")[place]) for place in (0, -1))
    lines = ended.out.splitlines()
    assert lines[0].startswith("Gradient. How fast the loss changes")
    assert lines[2].split()[:2] == ["1", first]
    assert lines[12].split()[:2] == ["144", last]
    assert "The first tenth, 14 heads: enc " in ended.out
    assert "Rank agreement of gradient and confidence: " in ended.out
    assert "Wrote run/ (headcount ls run lists what it holds)." in ended.out
    frame = Run.open(tmp_path / "run", create=False).read_frame("agreement")
    assert set(frame["stack"]) == {"all", "enc", "dec", "cross"}


def test_ablation_says_who_costs_something(headcount: Callable, tmp_path: Path) -> None:
    head = {"model_class": "BertForSequenceClassification", "num_labels": 2}
    save(tmp_path / "model", "bert", "wordpiece", **head)
    lines = ["text\tlabel", *(f"{text}\t{number % 2}" for number, text in enumerate(ENGLISH))]
    (tmp_path / "dev.tsv").write_text("\n".join(lines))
    line = ["score", "model", "--task", "classification:dev.tsv", "--by", "ablation"]
    ended = headcount(*line)
    assert (ended.code, ended.err) == (0, "")
    assert "of 8 cost something (p < 0.05 after Holm)." in ended.out
    layers = headcount(*line, "--scoring", "unit=layer", "--scoring", "mode=uniform", "-o", "run")
    assert [row.split()[1] for row in layers.out.splitlines()[2:4]] in (
        ["enc.0", "enc.1"],
        ["enc.1", "enc.0"],
    )
    kept = HeadTable.load(tmp_path / "run")
    assert kept.names[0] == "ablation_layer"
    assert kept.provenance["settings"]["mode"] == "uniform"


def test_the_same_for_machines(headcount: Callable) -> None:
    line = ["score", "translator", "--task", SPEC, "--limit", 4, "--by", "gradient"]
    told = json.loads(headcount(*line, "--convention", "paper", "--json").out)
    assert told["by"] == ["gradient"]
    assert told["agreement"] == []
    assert told["provenance"]["settings"] == {
        "per": "example",
        "normalize": "layer",
        "batch_size": 16,
    }
    assert len(told["heads"]) == 144
    assert told["heads"][0]["gradient_low"] <= told["heads"][0]["gradient"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--by", "gradiant"], 2, "There is no score 'gradiant'; choose gradient, ablation, contr"),
        (["--by", ""], 2, "No score was asked for"),
        (["--by", "gradient", "--shut", "enc.0"], 2, "Both --shut and --by were given"),
        (
            ["--by", "gradient", "--scoring", "mode=mean"],
            2,
            "mode is 'mean', an option of ablation",
        ),
        (["--by", "ablation", "--scoring", "unit=pair"], 2, "The unit of ablation is 'pair'"),
        (
            ["--scoring", "per=token"],
            2,
            "--scoring per is for scores of heads; say which, e.g. --by gradient",
        ),
        (["-o", "run"], 2, "--out is for scores of heads"),
        (
            ["--by", "confidence", "--scoring", "per=token"],
            2,
            "per is 'token', an option of gradient or",
        ),
        (
            ["--by", "gradient", "--scoring", "normalize=l2"],
            2,
            "--scoring normalize is 'l2'; choose layer or none",
        ),
    ],
)
def test_mistakes_of_scores_are_told(
    headcount: Callable, words: list[str], code: int, message: str
) -> None:
    ended = headcount("score", "translator", "--task", SPEC, "--limit", 2, *words)
    assert (ended.code, ended.out) == (code, "")
    assert message in ended.err
    assert "Traceback" not in ended.err


def test_ctrl_c_ends_as_shells_say_and_leaves_what_there_is(
    headcount: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = ["score", "translator", "--task", SPEC, "--limit", 8, "--batch-size", 2]
    line += ["--by", "gradient", "-o", "run"]
    added = Journal.append

    def stopping(journal: Journal, unit: str, result: object) -> None:
        if unit == "gradient 2":
            raise KeyboardInterrupt
        added(journal, unit, result)

    monkeypatch.setattr(Journal, "append", stopping)
    ended = headcount(*line)
    assert ended.code == 130
    assert "Interrupted; what was measured is in run/, and the same call goes on." in ended.err
    assert HeadTable.load(tmp_path / "run").notes["gradient"] == (
        "interrupted after 4 of 8 examples"
    )
    monkeypatch.setattr(Journal, "append", added)
    assert headcount(*line).code == 0
    assert not HeadTable.load(tmp_path / "run").notes


def test_scores_of_other_examples_are_told(headcount: Callable) -> None:
    kept = ["-o", "run", "--limit", 4]
    assert headcount("survey", "translator", "--pairs", "sample", *kept).code == 0
    line = ["score", "translator", "--task", SPEC, *kept]
    assert headcount(*line, "--by", "gradient").code == 0
    ended = headcount(*line[:-1], 6, "--by", "confidence")
    told = " ".join(ended.out.split())
    assert "confidence was measured on other texts (sample.en-de.tsv)." in told
    assert "gradient was measured on other examples (4 of the bundled sample)." in told


def test_layers_are_counted_as_layers() -> None:
    heads = [hc.Head("enc", layer, index) for layer in range(3) for index in range(4)]
    values = {"ablation": [0.1] * 4 + [0.2] * 4 + [0.0] * 4}
    values["ablation_p_adjusted"] = [0.01] * 4 + [0.02] * 4 + [1.0] * 4
    table = hc.HeadTable.of(heads, values)
    said = list(_significant(table, "ablation"))
    assert said[0] == "2 of 3 layers cost something (p < 0.05 after Holm)."


def test_a_set_of_heads_is_knocked_out_against_others(headcount: Callable, tmp_path: Path) -> None:
    line = ["score", "translator", "--task", SPEC, "--limit", 6, "--by", "knockout"]
    told = headcount(*line, "--shut", "enc.5.3", "-o", tmp_path / "run")
    assert (told.code, told.err) == (0, "")
    assert "enc.5.3" in told.out
    with Run.open(tmp_path / "run") as run:
        assert run.read_frame("knockout")["draws"].tolist() == [7]
    refused = headcount(*line)
    assert refused.code == 2
    assert "--by knockout takes whole roles away: name a run with verdicts" in refused.err
