"""`headcount prune`: heads removed, the model saved, the curve told; and what is refused."""

from __future__ import annotations

import errno
import json
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from subjects import save
from tiny_tokenizers import ENGLISH, PAIRS
from transformers import PreTrainedModel

import headcount as hc
from headcount.records.journal import Journal
from headcount.records.run import Run

TASK = "classification:dev.tsv,metric=loss"


@pytest.fixture
def classes(tmp_path: Path) -> Path:
    """A folder with a tiny classifier and its examples."""
    save(tmp_path / "model", "bert", "wordpiece", model_class="BertForSequenceClassification")
    rows = [f"{text}\t{number % 2}" for number, (text, _) in enumerate(PAIRS * 2)]
    (tmp_path / "dev.tsv").write_text("\n".join(["text\tlabel", *rows]))
    return tmp_path


# --- what it does -------------------------------------------------------------------------------


def test_half_of_the_heads_and_a_model_that_loads(headcount: Callable, classes: Path) -> None:
    line = ["prune", "model", "--task", TASK, "--drop-share", 0.5, "--ranking", "step=25"]
    ended = headcount(*line, "--by", "gradient,random", "-o", "small")
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    told = "By gradient: loss in nats (higher is worse) over 10 examples (held-out)"
    assert lines[0].startswith(told)
    assert ["0", "8"] in [line.split()[:2] for line in lines]
    chosen = next(line for line in lines if line.startswith("→"))
    assert chosen.split()[1:3] == ["4", "4"]
    assert "random 0  random 1  random 2" in ended.out
    told = " ".join(ended.out.split())
    assert "4 of 8 heads removed (enc 4): enc." in told
    assert re.search(r"Without them: (at most [\d.]+ nats|nothing) is lost \(95% bound, ", told)
    assert "(95% bound, n = 10; smallest detectable loss 0.0" in told
    assert "Loads with AutoModelForSequenceClassification.from_pretrained('small/model'" in told
    assert "Wrote small/ (headcount ls small/run lists what run/ holds)." in told
    small = hc.load("small/model", device="cpu")
    run = Run.open(classes / "small" / "run", create=False)
    going = run.stages["prune"]["settings"]["going"]
    assert {str(head) for head in small.heads}.isdisjoint(going)
    assert len(small.heads) == 4
    assert set(run.read_frame("curve")["order"]) == {"gradient", "random 0", "random 1", "random 2"}
    table = run.read_table()
    assert table.names == ["gradient", "removal_step"]
    steps = table.frame["removal_step"]
    assert {str(head) for head in table.heads if steps[head] <= 2} == set(going)
    assert not (classes / "small" / "run" / "prune.jsonl").exists()  # it has ended
    picture = (classes / "small" / "curve.svg").read_text()
    assert picture.startswith("<?xml")
    again = headcount(*line, "-o", "small")
    assert again.code == 2
    assert (
        "'small' holds a pruned model already; choose another folder, or pass --force" in again.err
    )


def test_the_heads_that_are_left_are_surveyed_anew(headcount: Callable, classes: Path) -> None:
    (classes / "text.txt").write_text("\n".join(text for text, _ in PAIRS))
    assert headcount("survey", "model", "--text", "text.txt", "--roles", "-o", "before").code == 0
    line = ["prune", "model", "--task", TASK, "--drop-share", 0.5, "--ranking", "step=25"]
    ended = headcount(*line, "--scores", "before", "--export", "survey=text.txt", "-o", "small")
    assert (ended.code, ended.err) == (0, "")
    told = " ".join(ended.out.split())
    assert "Roles of the heads that are left, surveyed anew: 4 of 8 heads, both models on" in told
    assert "The roles before are those that the run of --scores has." in told
    left = Run.open(classes / "small" / "survey", create=False).read_table()
    assert len(left.heads) == 4
    assert "roles" in left.names
    roles = Run.open(classes / "before", create=False).read_frame("roles")
    function = Run.open(classes / "small" / "run", create=False)
    if len(roles):
        assert set(function.read_frame("function")["score"]) >= {"removal_step"}


def test_roles_before_and_after_are_told_head_by_head(
    headcount: Callable, classes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every head of the whole model is positional; of what is left one head, and another a sink."""
    work, whole = import_module("headcount.rooms.agreement.agreement"), 8
    real = work.survey

    def survey(subject: hc.Subject, *args: object, **kwargs: object) -> hc.HeadTable:
        table, heads = real(subject, *args, **kwargs), subject.heads
        named = [("positional", head) for head in (heads if len(heads) == whole else heads[:1])]
        named += [("sink", heads[1])] if len(heads) < whole else []
        table.details["roles"] = hc.roles.verdict_frame(
            hc.roles.Verdict(head, role, "", 1.0) for role, head in named
        )
        return table

    monkeypatch.setattr(work, "survey", survey)
    (classes / "text.txt").write_text("\n".join(text for text, _ in PAIRS))
    line = ["prune", "model", "--heads", "enc.0.0,enc.0.1,enc.1.3", "--export", "survey=text.txt"]
    ended = headcount(*line, "--dry-run")
    assert (ended.code, ended.err) == (0, "")
    told = [" ".join(line.split()) for line in ended.out.splitlines()]
    title = "Roles of the heads that are left, surveyed anew: 5 of 8 heads, both models on text.txt"
    place = told.index(title)
    assert told[place + 1] == "role before after heads"
    assert " ".join(told[place + 2 : place + 5]).startswith(
        "positional 8 -> 1 kept enc.0.2; removed enc.0.0, enc.0.1, enc.1.3; lost enc.0.3, "
        "enc.1.0, enc.1.1, 1 more sink 0 -> 1 gained enc.0.3"
    )
    done = json.loads(headcount(*line, "-o", "small", "--json").out)
    assert len(done["roles_before"]) == whole
    assert [row["role"] for row in done["roles"]] == ["positional", "sink"]
    assert [row["change"] for row in done["role_survival"]].count("lost") == 4
    assert done["role_survival"][0] == {
        "role": "positional", "rests": False, "stack": "enc", "layer": 0, "head": 0,
        "change": "removed",
    }  # fmt: skip
    kept = Run.open(classes / "small" / "survey", create=False).read_frame("role_survival")
    assert kept.to_dict("records") == done["role_survival"]
    assert (classes / "small" / "survey-before" / "roles.parquet").is_file()


def test_a_survey_of_no_text_is_refused_before_the_work(headcount: Callable, classes: Path) -> None:
    line = ["prune", "model", "--task", TASK, "--keep", 4, "-o", "small", "--survey", "gone.txt"]
    ended = headcount(*line)
    assert ended.code != 0
    assert "gone.txt" in ended.err
    assert "Traceback" not in ended.err
    assert not (classes / "small").exists()


def test_a_random_order_alone_has_no_verdict_and_ends_well(
    headcount: Callable, classes: Path
) -> None:
    line = ["prune", "model", "--task", TASK, "--max-loss", 50, "--by", "random", "--dry-run"]
    ended = headcount(*line, "--ranking", "step=50")
    assert (ended.code, ended.err) == (0, "")
    assert "heads can go" not in ended.out


def test_a_dry_run_writes_nothing(headcount: Callable, classes: Path) -> None:
    line = ["prune", "model", "--task", TASK, "--max-loss", 50, "--ranking", "step=50", "--dry-run"]
    ended = headcount(*line)
    assert (ended.code, ended.err) == (0, "")
    told = " ".join(ended.out.split())
    assert "4 heads can be pruned within 50 nats: at most 0." in told
    assert "would need" not in told  # every step passed
    assert "(95% bound, n = 10; smallest detectable loss 0." in told
    assert "4 of 8 heads would go (enc 4): enc." in told
    assert "parameters " in told
    assert sorted(path.name for path in classes.iterdir()) == ["dev.tsv", "model"]


def test_the_same_for_machines(headcount: Callable, classes: Path) -> None:
    line = [
        "prune",
        "model",
        "--task",
        TASK,
        "--max-loss",
        0,
        "--ranking",
        "step=50",
        "--dry-run",
        "--json",
    ]
    told = json.loads(headcount(*line).out)
    assert told["limit"] == 0
    assert len(told["bounds"]) == 3  # one head, two, and half of them
    assert len(told["curve"]) == 4
    assert told["heads"]["before"] == 8
    assert told["parameters"]["before"] >= told["parameters"]["after"]
    assert (told["step"] > 0) is (told["bounds"][0] <= 0)
    assert told["chosen"]["part"] == "held-out"
    assert (told["unit"], told["point"]) == ("nats", 1.0)


def test_points_of_accuracy_throughout_and_what_is_no_better_than_chance(
    headcount: Callable, classes: Path
) -> None:
    """One unit in the table, the sentences and the card; JSON keeps shares, and says so."""
    line = ["prune", "model", "--task", "classification:dev.tsv", "--drop-share", 0.5]
    ended = headcount(*line, "--ranking", "step=25", "-o", "small")
    assert (ended.code, ended.err) == (0, "")
    curve = Run.open(classes / "small" / "run", create=False).read_frame("curve")
    told = " ".join(ended.out.split())
    assert "By gradient: accuracy in points (higher is better) over 10 examples" in told
    whole, last = curve.iloc[0], curve.iloc[2]
    before, after = 100 * whole["value"], 100 * last["value"]
    assert f"accuracy {before:.4g} -> {after:.4g} points: {after - before:+.3g} [" in told
    most = 100 * last["bound"]
    lost = f"at most {most:.2g} points of accuracy" if most > 0 else "nothing"
    assert f"{lost} is lost (95% bound, n = 10; " in told
    card = (classes / "small" / "model" / "README.md").read_text(encoding="utf8")
    assert f"- accuracy, in points: {before:.4g} -> {after:.4g} ({after - before:+.3g}, 95%" in card
    labels = [row.split("\t")[1] for row in (classes / "dev.tsv").read_text().splitlines()[1:]]
    assert set(labels) == {"0", "1"}
    rows = [row for row in ended.out.splitlines() if row.endswith("at chance")]
    low = curve[(curve["step"] > 0) & (curve["low"] <= curve["chance"])]
    assert len(rows) == len(low) > 0  # it has learned nothing
    json_too = headcount(*line, "--ranking", "step=25", "--dry-run", "--json")
    machine = json.loads(json_too.out)
    assert (machine["unit"], machine["point"]) == ("points", 0.01)
    assert machine["chosen"]["value"] == last["value"]
    assert 0.5 <= machine["chosen"]["chance"] <= 0.8


def test_another_loss_takes_the_curve_that_was_measured(
    headcount: Callable, classes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headcount.models.saving.save.check_fresh", lambda jobs: [0.0])
    line = ["prune", "model", "--task", TASK, "--ranking", "step=50", "-o", "small", "--max-loss"]
    first = headcount(*line, 0)
    told = " ".join(first.out.split())
    assert first.code == 1
    assert "No head can be removed within 0 nats" in told
    wanted = re.search(r"(\d+) heads? would need --max-loss (\S+?)[,;]", told)
    assert wanted is not None, told
    with monkeypatch.context() as measured:
        anew = lambda *_, **__: pytest.fail("measured anew")  # noqa: E731
        measured.setattr("headcount.pruning.plan.score", anew)
        measured.setattr(Journal, "append", anew)
        again = headcount(*line, wanted[2], "--force")
    assert again.code == 0
    assert again.err.startswith(
        "Resumed from small/run/: the scores and the curve of the same model, examples, order and "
        "steps are used again."
    )
    told = " ".join(again.out.split())
    found = re.search(
        rf"(\d+) heads? can be pruned within {wanted[2]} nats: (at most|nothing)", told
    )
    assert found is not None, told
    assert int(found[1]) >= int(wanted[1])
    other = headcount(
        *line[:-1], "--keep", 4, "--force", "--ranking", "step=25"
    )  # not the same curve
    assert (other.code, other.err) == (0, "")


def test_nothing_that_can_go_for_sure(
    headcount: Callable, classes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("headcount.rooms.figures.figure"), "can_draw", lambda: False)
    line = ["prune", "model", "--task", "classification:dev.tsv", "--max-loss", 0.5, "-o", "small"]
    ended = headcount(*line)  # ten held-out examples can promise no half point of accuracy
    assert (ended.code, ended.out) == (2, "")
    assert (
        "It takes 464 examples to show that 0.5 points of accuracy (0.005) or less is lost, even "
        "if no answer changes, and half of the 20 examples is 10. Give more, other examples to "
        "judge by (judge=, --judge FILE), or allow 19.39 or more (max_loss=, --max-loss)."
    ) in " ".join(ended.err.split())
    assert not list(classes.glob("small/model"))
    few = (classes / "dev.tsv").read_text(encoding="utf8").splitlines()[:4]
    (classes / "few.tsv").write_text("\n".join(few), encoding="utf8")
    line[3:6] = [TASK, "--max-loss", 0]
    ended = headcount(*line, "--judge", "few.tsv")
    assert ended.code == 1
    assert "No model was saved in small/: no head is within the limit." in " ".join(
        ended.err.split()
    )
    told = " ".join(ended.out.split())
    assert "over 3 examples (held-out)" in told
    assert "No head can be removed within 0 nats: " in told, told
    assert "Traceback" not in ended.err
    assert (
        "Note: No curve.svg was drawn: that takes matplotlib; `pip install 'headcount[plot]'`"
        in told
    )
    assert [path.name for path in (classes / "small").iterdir()] == ["run"]


def test_a_decoder_says_what_it_says_before_and_after(
    headcount: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headcount.models.saving.save.check_fresh", lambda jobs: [0.0])
    save(tmp_path / "model", "gpt2", "gpt2")
    (tmp_path / "dev.txt").write_text("\n".join(text for text, _ in PAIRS), encoding="utf8")
    line = ["prune", "model", "--task", "lm:dev.txt", "--keep", 4, "--ranking", "step=50"]
    told = json.loads(headcount(*line, "-o", "small", "--json").out)
    assert [set(one) for one in told["said"]] == [{"prompt", "before", "after"}] * 3
    card = (tmp_path / "small" / "model" / "README.md").read_text(encoding="utf8")
    assert "examples of dev.txt (held-out), heads ordered by gradient; " in card
    assert "The loss on plain text says little of chat" in card
    refused = headcount("prune", "model", "--task", TASK, "--keep", 4, "--chat", "--dry-run")
    assert (refused.code, "--chat is of lm tasks, and this is" in refused.err) == (2, True)
    none = headcount(*line, "--chat", "--dry-run")
    assert none.code == 2
    assert "has no chat template" in none.err


def test_a_file_to_judge_by_that_is_not_there_is_told_first(
    headcount: Callable, classes: Path
) -> None:
    line = ["prune", "model", "--task", TASK, "--max-loss", 0, "-o", "small"]
    ended = headcount(*line, "--judge", "dev.tsw")
    assert ended.code == 1
    assert "There is no file dev.tsw (closest: dev.tsv)" in " ".join(ended.err.split())


def test_named_heads_need_no_task(headcount: Callable, classes: Path) -> None:
    ended = headcount("prune", "model", "--heads", "enc.0.1,enc.1", "--dry-run")
    assert (ended.code, ended.err) == (0, "")
    told = " ".join(ended.out.split())
    assert "5 of 8 heads would go (enc 5): enc.0.1, enc.1.0, enc.1.1, enc.1.2, enc.1.3" in told
    measured = headcount("prune", "model", "--heads", "enc.0.1", "--task", TASK, "--dry-run")
    assert "By heads: loss in nats (higher is worse) over 20 examples (all)" in measured.out
    assert list(classes.iterdir())


def test_broken_off_it_goes_on(
    headcount: Callable, classes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = [
        "prune",
        "model",
        "--task",
        TASK,
        "--max-loss",
        50,
        "--ranking",
        "step=50",
        "-o",
        "small",
    ]
    added = Journal.append

    def stopping(journal: Journal, unit: str, result: object) -> None:
        if unit.startswith("curve batch"):
            raise KeyboardInterrupt
        added(journal, unit, result)

    monkeypatch.setattr(Journal, "append", stopping)
    ended = headcount(*line)
    assert ended.code == 130
    assert "Interrupted; what was done is in small/, and the same command" in ended.err
    monkeypatch.setattr(Journal, "append", added)
    monkeypatch.setattr("headcount.pruning.plan.score", lambda *_, **__: pytest.fail("scored anew"))
    monkeypatch.setattr("headcount.models.saving.save.check_fresh", lambda jobs: [0.0])
    ended = headcount(*line)
    assert ended.code == 0
    assert re.match(r"Resumed from small/run/: \d+ measurements of a pruning that", ended.err)


# --- learning -----------------------------------------------------------------------------------


def test_what_is_left_is_healed(headcount: Callable, classes: Path) -> None:
    line = ["prune", "model", "--task", TASK, "--keep", 4, "--ranking", "step=50", "--dry-run"]
    ended = headcount(*line, "--heal", "--training", "heal-steps=6", "--training", "lr=0.001")
    assert (ended.code, ended.err) == (0, "")
    told = ended.out.splitlines()
    after = next(place for place, line in enumerate(told) if line.startswith("after training, "))
    before = next(place for place, line in enumerate(told) if line.startswith("loss "))
    assert told[after].split()[3:5] == told[before].split()[1:3]  # from the same whole model
    assert " ".join(told[after : after + 2]).startswith("after training, loss")
    assert ended.out.count("Without them: ") == 2  # cut, and healed


def test_gates_close_heads(
    headcount: Callable, classes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headcount.models.saving.save.check_fresh", lambda jobs: [0.0])
    line = ["prune", "model", "--task", TASK, "--gates", "--keep", 5, "--training", "gate-steps=40"]
    ended = headcount(*line, "--training", "train=classification:dev.tsv", "-o", "small")
    assert (ended.code, ended.err) == (0, "")
    assert "By gates: loss in nats (higher is worse) over 10 examples (held-out)" in ended.out
    assert "after training, loss " in ended.out
    run = Run.open(classes / "small" / "run", create=False)
    frame = run.read_frame("curve")
    assert set(frame["order"]) == {"gates"}
    assert frame["healed"].tolist() == [False, True]
    assert int(frame["heads_left"].iloc[-1]) == 5
    assert not (classes / "small" / "training").exists()
    assert len(hc.load("small/model", device="cpu").heads) == frame["heads_left"].iloc[-1]


def test_gates_that_had_too_few_steps_still_keep_as_many_as_were_asked_for(
    headcount: Callable, classes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headcount.models.saving.save.check_fresh", lambda jobs: [0.0])
    line = ["prune", "model", "--task", TASK, "--gates", "--keep", 2, "--training", "gate-steps=1"]
    ended = headcount(*line, "-o", "small")
    assert "Training left 8 gates open where 2 were asked for" in " ".join(ended.out.split())
    assert len(hc.load("small/model", device="cpu").heads) == 2


def test_gates_that_were_broken_off_go_on(
    headcount: Callable, classes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headcount.models.saving.save.check_fresh", lambda jobs: [0.0])
    line = ["prune", "model", "--task", TASK, "--gates", "--keep", 5, "--training", "gate-steps=40"]

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(hc.Subject, "save", stop)
        ended = headcount(*line, "-o", "small")
    assert "Interrupted; what was done is in small/, and the same command goes on." in ended.err
    assert (classes / "small" / "training" / "gates").is_dir()
    ended = headcount(*line, "-o", "small")
    assert (ended.code, ended.err) == (0, "")
    assert (classes / "small" / "model" / "config.json").is_file()
    assert not (classes / "small" / "training").exists()


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 2, "No goal was given; say how many heads to prune, with one of --max-loss, --keep"),
        (["--keep", 3, "--heads", "enc.0.1"], 2, "--keep and --heads were both given"),
        (["--heads", "enc"], 2, "All 8 heads of the model would go; leave at least one"),
        (["--heads", "enc.0.1,enc.0.1"], 2, "enc.0.1 is named twice; name each head"),
        (["--heads", "enc.0.9"], 2, "There is no head enc.0.9; this model has enc.0.0 to"),
        (["--heads", "first"], 2, "'first' is not a head's name"),
        (["--drop-share", 2], 2, "The share to drop is 2; it must be above 0 and below 1"),
        (["--keep", 9], 2, "9 heads are to be kept, and there are 8 to choose from"),
        (["--keep", 1, "--ranking", "at-least=1"], 2, "7 heads are to be pruned, but at most 6"),
        (["--keep", 3, "--by", "gradiant"], 2, "There is no score 'gradiant'"),
        (["--keep", 3, "--stacks", "cross"], 2, "There is no stack 'cross' in this model"),
        (
            ["--keep", 3, "--export", "onnx"],
            2,
            "--export and --verify write, and --dry-run does not",
        ),
        (["--keep", 3, "-o", "here"], 2, "Both -o and --dry-run were given"),
        (["--keep", 3, "--scores", "nowhere"], 1, "nowhere"),
        (["--training", "price=0.1"], 2, "--training price (lambda) is of gates; add --gates."),
        (
            ["--gates", "--drop-share", 0.5],
            2,
            "--gates takes --training price=X or --keep, not",
        ),
        (["--gates"], 2, "No goal was given"),
        (
            ["--keep", 3, "--training", f'train="{TASK}"'],
            2,
            "--training train is what gates or healing learn from",
        ),
        (["--heads", ""], 2, "--heads names no head; write it as enc.5.3"),
        (["--heads", "enc.0.1", "--by", "ablation"], 2, "--by means nothing with --heads"),
        (
            ["--heads", "enc.0.1", "--training", "gate-steps=9"],
            2,
            "--training gate-steps means nothing without --gates",
        ),
        (
            ["--gates", "--keep", 3, "--ranking", "exact"],
            2,
            "--ranking exact means nothing with --gates",
        ),
        (["--gates", "--training", "price=-1"], 2, "--training price is -1; it must be 0 or more."),
        (
            ["--gates", "--keep", 3, "--training", "lr=0"],
            2,
            "--training lr is 0; it must be above 0.",
        ),
        (
            ["--gates", "--keep", 3, "--training", "learn=some"],
            2,
            "--training learn is 'some'; choose all, gates",
        ),
        (["--max-loss", "nan"], 2, "The loss allowed is nan points; it must be 0 or more."),
        (
            ["--keep", 3, "--training", "heal-steps=9"],
            2,
            "--training heal-steps means nothing without --heal",
        ),
        (
            ["--keep", 3, "--by", "ablation", "--ranking", "normalize=layer"],
            2,
            "--ranking normalize is of",
        ),
        (["--keep", 3, "--stacks", "encoder"], 2, "There is no stack 'encoder'; stacks are"),
        (
            ["--keep", 3, "--heal", "--training", "train=lm:none.txt"],
            1,
            "There is no file none.txt",
        ),
    ],
)
def test_mistakes_are_told(
    headcount: Callable, classes: Path, words: list[str], code: int, message: str
) -> None:
    ended = headcount("prune", "model", "--task", TASK, "--dry-run", *words)
    assert (ended.code, ended.out) == (code, "")
    assert message in ended.err
    assert "Traceback" not in ended.err


def test_mistakes_show_before_a_model_library_is_loaded(classes: Path) -> None:
    code = "import sys; sys.modules['torch'] = None; from headcount.cli.main import run; run()"
    line = [sys.executable, "-c", code, "prune", "model", "--keep", "3", "-o"]
    for more, said in (
        (["dev.tsv/small", "--task", TASK], "'dev.tsv' is a file, so 'dev.tsv/small' cannot be"),
        (["out", "--task", "lm:none.txt"], "There is no file none.txt"),
    ):
        done = subprocess.run([*line, *more], capture_output=True, text=True, cwd=classes)
        assert said in done.stderr
        assert "Traceback" not in done.stderr


def test_a_goal_without_a_task_or_a_folder(headcount: Callable, classes: Path) -> None:
    ended = headcount("prune", "model", "--keep", 3, "--dry-run")
    assert "--keep needs a task to choose heads by" in ended.err
    ended = headcount("prune", "model", "--heads", "enc.0.1", "--heal", "--dry-run")
    assert "--heal needs a task to learn from" in ended.err
    ended = headcount("prune", "model", "--keep", 3, "--task", TASK)
    assert "Neither -o nor --dry-run was given" in ended.err


def test_a_head_inside_a_group_cannot_go_alone(headcount: Callable, tmp_path: Path) -> None:
    save(tmp_path / "llama", "llama", "llama", num_key_value_heads=2)
    (tmp_path / "texts.txt").write_text("\n".join(ENGLISH))
    ended = headcount("prune", "llama", "--heads", "dec.0.1", "--task", "lm:texts.txt", "-o", "out")
    assert (ended.code, ended.out) == (2, "")
    assert "Heads of dec.0 cannot go alone: 2 query heads share the keys of a group" in ended.err
    assert "add dec.0.0" in ended.err
    assert not (tmp_path / "out").exists()


def test_what_is_there_is_left_alone(
    headcount: Callable, classes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headcount.models.saving.save.check_fresh", lambda jobs: [0.0])
    (classes / "mine").mkdir()
    (classes / "mine" / "notes.txt").write_text("dear diary")
    line = ["prune", "model", "--heads", "enc.0.1", "-o"]
    ended = headcount(*line, "mine")
    assert (ended.code, ended.out) == (2, "")
    assert "'mine' is a folder that is not empty; choose another name, or pass --force" in ended.err
    ended = headcount(*line, "dev.tsv")
    assert "'dev.tsv' is a file; choose another name for the output folder." in ended.err
    assert headcount(*line, "mine", "--force").code == 0
    assert (classes / "mine" / "notes.txt").read_text() == "dear diary"
    assert (classes / "mine" / "model" / "config.json").exists()


def test_a_full_disk_leaves_no_half_model_and_loses_nothing(
    headcount: Callable, classes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = ["prune", "model", "--task", TASK, "--keep", 4, "--ranking", "step=50", "-o", "small"]

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(PreTrainedModel, "save_pretrained", full)
        ended = headcount(*line)
    assert ended.code == 1
    assert "small/model could not be written: the disk is full." in ended.err
    assert sorted(path.name for path in (classes / "small").iterdir()) == ["run"]
    assert (classes / "small" / "run" / "prune.jsonl").exists()  # and the same command goes on


def test_a_model_pruned_by_an_older_tool_is_noted(headcount: Callable, classes: Path) -> None:
    config = json.loads((classes / "model" / "config.json").read_text())
    config["pruned_heads"] = {"0": [1]}
    (classes / "model" / "config.json").write_text(json.dumps(config))
    ended = headcount("prune", "model", "--heads", "enc.0.1", "--dry-run")
    assert ended.code == 0
    told = " ".join(ended.out.split())
    assert "lists pruned_heads" in told
    assert "which transformers 5 ignores" in told
