"""A whole pruning into a folder: what it leaves there, and how another one takes its place."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from tiny_subjects import classifier, writer
from tiny_tokenizers import ENGLISH, PAIRS

import headcount as hc
from headcount import tasks
from headcount.errors import UsageError
from headcount.models.saving.save import Saved, draft_of
from headcount.pruning.goal import OutputFolder, ResultOptions, output_folder
from headcount.pruning.plan import Plan
from headcount.pruning.pruned import Pruned, TrainingOptions, prune_run
from headcount.records import files
from headcount.records.files import replace_folder, write_bytes
from headcount.records.heads import Head
from headcount.records.run import Run
from headcount.surveys.roles.role import Verdict, verdict_frame
from headcount.surveys.shards import _Kept

anew = import_module("headcount.rooms.agreement.agreement")

CLASSES = tasks.classification(
    [(source, number % 2) for number, (source, _) in enumerate(PAIRS)], metric="loss"
)

GATES = TrainingOptions(steps=20, lr=1e-3)


def drawn(plan: Plan, path: Path) -> list[str]:
    """A picture of the curve, in place of one that matplotlib draws."""
    write_bytes(path, str(len(plan.going)).encode())
    return []


class Killed(BaseException):
    """The process is gone: from here on no file changes, and nothing is tidied up."""


def kill_at(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Die at the change of this number of a file after the model got its name."""
    left: list[int] = []

    def dying(change: Callable[..., Any]) -> Callable[..., Any]:
        def dies(*args: Any, **kwargs: Any) -> Any:
            read = change is opened and not args[1] & os.O_CREAT
            if left and not read and not str(args[0]).endswith(".lock"):
                left[0] -= 1
                if left[0] <= 0:
                    raise Killed
            found = change(*args, **kwargs)
            if change is rename and Path(args[1]).name == "model":
                left.append(count)
            return found

        return dies

    rename, opened = Path.rename, os.open
    monkeypatch.setattr(files, "_exchanged", lambda *_: False)
    changes = [(os, name) for name in ("open", "replace", "unlink", "rmdir", "mkdir")]
    for owner, name in [*changes, (shutil, "rmtree"), (Path, "rename")]:
        monkeypatch.setattr(owner, name, dying(getattr(owner, name)))


def killed(*_: object, **__: object) -> None:
    raise Killed


@pytest.fixture(autouse=True)
def unproved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Saving is tested elsewhere; a process for each test here would take long."""
    monkeypatch.setattr("headcount.models.saving.save.check_fresh", lambda jobs: [0.0])


def test_another_model_takes_the_place_by_force_alone(tmp_path: Path) -> None:
    first, second = classifier(), classifier()
    with torch.no_grad():
        next(second.model.parameters()).mul_(2)
    options = {"by": "random", "keep": 4, "step": 50}
    done = prune_run(first, CLASSES, place=output_folder(tmp_path / "out", force=False), **options)
    assert set(done.saved) == {"model"}
    with pytest.raises(hc.HeadcountError, match="holds a pruned model already"):
        output_folder(tmp_path / "out", force=False)
    place = output_folder(tmp_path / "out", force=True)
    again = prune_run(second, CLASSES, place=place, result=ResultOptions(force=True), **options)
    run = Run.open(place.run, create=False)
    assert run.provenance["weights"] == second.weights_hash
    assert run.stages["prune"]["settings"]["going"] == [str(h) for h in again.plan.going]  # type: ignore[union-attr]
    assert not place.is_under_way


def records(folder: Path) -> dict[str, Any]:
    """All that a pruning leaves behind, but for times."""
    run = Run.open(folder / "run", create=False)
    stage = {k: v for k, v in run.stages["prune"].items() if k in ("settings", "notes")}
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
    curve = run.read_frame("curve").to_dict("records")
    heads = (folder / "model" / "heads").read_text()
    return {"files": files, "stage": stage, "curve": str(curve), "heads": heads}


def saved_heads(subject: hc.Subject, folder: Path, *, force: bool, **_: object) -> Saved:
    """A folder with the names of the heads in place of a model."""
    assert force or not folder.exists()
    with draft_of(folder) as draft:
        draft.mkdir()
        (draft / "heads").write_text(" ".join(map(str, subject.heads)))
        replace_folder(draft, folder)
    return Saved(folder, "none", "", "", 0.0)


@pytest.mark.parametrize("given", [{"by": "random"}, {"gates": GATES}])
def test_killed_after_the_model_it_ends_with_the_same_records(
    tmp_path: Path, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = classifier()
    monkeypatch.setattr(hc.Subject, "save", saved_heads)

    def done(folder: Path) -> None:
        place = output_folder(folder, force=False)
        prune_run(subject, CLASSES, place=place, draw=drawn, keep=5, **given)

    done(tmp_path / "whole")
    folder, deaths = tmp_path / "killed", 0
    while True:  # every run goes a little further than the one before
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, deaths + 1)
            try:
                done(folder)
                break
            except Killed:
                deaths += 1
        assert (folder / "model").is_dir()
        assert OutputFolder(folder).is_under_way
    assert deaths > 8
    assert records(folder) == records(tmp_path / "whole")
    with pytest.raises(UsageError, match="holds a pruned model already"):
        done(folder)


def test_an_unfinished_model_is_taken_over_by_the_same_pruning_alone(tmp_path: Path) -> None:
    subject, place = classifier(), OutputFolder(tmp_path)

    def done(heads: str, *, force: bool = False) -> None:
        output_folder(tmp_path, force=force)
        prune_run(subject, None, heads=heads, place=place, force=force)

    with pytest.MonkeyPatch.context() as patch:
        kill_at(patch, 1)
        with pytest.raises(Killed):
            done("enc.0.1")
    with pytest.raises(UsageError, match="holds a pruned model already"):
        done("enc.0.2")
    done("enc.0.1")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    with pytest.MonkeyPatch.context() as patch:  # before the new model has its name
        for name in ("headcount.models.saving.save.put_in_place", "pathlib.Path.unlink"):
            patch.setattr(name, killed)
        with pytest.raises(Killed):
            done("enc.0.2", force=True)
    assert place.mark.is_file()
    with pytest.raises(UsageError, match="holds a pruned model already"):
        done("enc.0.2")
    done("enc.0.2", force=True)
    assert Head("enc", 0, 2) not in hc.load(str(place.model), device="cpu").heads


def test_what_a_killed_process_left_is_cleared(tmp_path: Path) -> None:
    for name in ("model", ".model.0a1b2c3d.tmp", ".model.0a1b2c3d.old"):
        (tmp_path / name).mkdir()
    (tmp_path / ".curve.svg.0a1b2c3d.tmp").write_text("half")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".run.json.0a1b2c3d.tmp").write_text("half")
    place = output_folder(tmp_path, force=True)
    prune_run(classifier(), CLASSES, place=place, heads="enc.0.1", force=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "run"]
    names = {path.name for path in place.run.iterdir()}
    assert names == {"run.json", "heads.parquet", "curve.parquet", "prune-ended.jsonl"}


@pytest.mark.parametrize("left", [[], [".lock"], [".lock", ".run.json.0a1b2c3d.tmp"]])
def test_killed_before_the_first_file_of_the_run(left: list[str], tmp_path: Path) -> None:
    """The same command goes on without --force; a file of somebody else's is still respected."""
    (tmp_path / "out" / "run").mkdir(parents=True)
    for name in left:
        (tmp_path / "out" / "run" / name).touch()
    output_folder(tmp_path / "out", force=False)
    (tmp_path / "out" / "run" / "thesis.tex").touch()
    with pytest.raises(UsageError, match="is a folder that is not empty"):
        output_folder(tmp_path / "out", force=False)


def test_groups_are_cut_saved_and_counted(tmp_path: Path) -> None:
    subject = writer("llama", num_key_value_heads=2)
    place = output_folder(tmp_path / "out", force=False)
    done = prune_run(
        subject, tasks.lm(ENGLISH), place=place, by="gradient", drop_share=0.5, export="zeros"
    )
    assert set(done.saved) == {"model", "zeros"}
    assert len(done.going) == 4
    before, after = done.costs
    assert after.kv_bytes < before.kv_bytes
    assert after.parameters < before.parameters
    whole = hc.load(str(place.folder / "zeros"), device="cpu")
    assert len(whole.heads) == len(subject.heads)
    assert hc.load(str(place.model), device="cpu").heads == [
        head for head in subject.heads if head not in done.going
    ]


def test_healing_learns_from_the_other_half(tmp_path: Path) -> None:
    subject = classifier()
    done = prune_run(subject, CLASSES, heads="enc.0.1-2", heal=TrainingOptions(steps=4, lr=1e-3))
    assert done.plan is not None
    assert done.plan.curve["healed"].tolist() == [False, False, True]
    assert done.plan.curve["n"].tolist() == [5, 5, 5]
    assert done.small is not None
    whole, cut, healed = done.plan.curve["value"]
    judged = CLASSES.split(0.5, 0)[1]
    assert judged.evaluate(done.small).value == pytest.approx(healed, rel=1e-5)
    assert judged.evaluate(subject).value == pytest.approx(whole, rel=1e-5)
    assert judged.evaluate(hc.prune(subject, "enc.0.1-2")).value == pytest.approx(cut, rel=1e-4)
    assert healed != pytest.approx(cut, rel=1e-6)


# --- Roles before and after ----------------------------------------------------------------------


def surveys(
    monkeypatch: pytest.MonkeyPatch, role_of: Callable[[hc.Subject, Head], str | None] | None = None
) -> list[str]:
    """The names of the models that are surveyed, as they are; roles are made where asked for."""
    seen: list[str] = []
    real = anew.survey

    def survey(subject: hc.Subject, *args: Any, **kwargs: Any) -> hc.HeadTable:
        seen.append(subject.name)
        table = real(subject, *args, **kwargs)
        if role_of is not None:
            roles = {head: role_of(subject, head) for head in subject.heads}
            verdicts = [Verdict(head, role, "", 1.0) for head, role in roles.items() if role]
            table.details["roles"] = verdict_frame(verdicts)
        return table

    monkeypatch.setattr(anew, "survey", survey)
    return seen


def survival_of(done: Pruned) -> pd.DataFrame:
    assert done.survey is not None
    return done.survey.details["role_survival"]


def test_a_survey_tells_roles_before_and_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the whole model the first heads have a role; what is left has one head that gained it."""
    subject = classifier()

    def role(one: hc.Subject, head: Head) -> str | None:
        if len(one.heads) == len(subject.heads):
            return "rare" if head.index < 2 else None
        return "rare" if head.index in (0, 3) else None

    seen = surveys(monkeypatch, role)
    place = output_folder(tmp_path / "out", force=False)
    done = prune_run(subject, None, heads="enc.0.0,enc.1.2", place=place, survey=ENGLISH)
    assert sorted(seen) == [subject.name, f"{subject.name} without 2 heads"]
    assert done.before is not None
    survival = survival_of(done)
    told = {f"enc.{row.layer}.{row.head}": row.change for row in survival.itertuples()}
    assert told == {
        "enc.0.0": "removed", "enc.0.1": "lost", "enc.0.3": "gained",
        "enc.1.0": "kept", "enc.1.1": "lost", "enc.1.3": "gained",
    }  # fmt: skip
    whole, left = (Run.open(one, create=False) for one in (place.before, place.survey))
    assert [len(run.read_table().heads) for run in (whole, left)] == [8, 6]
    assert len(whole.read_frame("roles")) == 4
    assert left.read_frame("role_survival")["change"].tolist() == survival["change"].tolist()
    assert not place.training.exists()
    assert done.function is not None
    row = done.function[done.function["role"] == "rare"].iloc[0]
    assert (row["score"], row["heads"], row["others"]) == ("removal_step", 4, 4)
    assert row["delta"] == pytest.approx(0.0)  # one with a role went, and one without
    dry = prune_run(subject, None, heads="enc.0.0,enc.1.2", survey=ENGLISH)
    assert survival_of(dry).equals(survival)


def test_roles_that_the_given_run_has_are_not_measured_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    subject = classifier()
    table = hc.survey(subject, ENGLISH, roles=True)
    other = hc.survey(subject, ENGLISH[:4], roles=True)
    control = hc.survey(subject, ENGLISH, roles=hc.RoleOptions(roles=True, control="random-init"))
    counts = hc.survey(
        subject, ENGLISH, roles=hc.RoleOptions(roles=True, frequencies={"the": 3.0, "cat": 1.0})
    )
    seen = surveys(monkeypatch)
    how: dict[str, Any] = {"by": "confidence", "keep": 6, "step": 50, "survey": ENGLISH}
    done = prune_run(subject, CLASSES, table=table, **how)
    assert done.before is table
    assert seen == [f"{subject.name} without 2 heads"]
    assert any("those that the run of --scores has" in note for note in done.notes)
    for given in (other, control, counts):
        seen.clear()
        again = prune_run(subject, CLASSES, table=given, **how)
        assert len(seen) == 2
        assert again.before is not given
        assert survival_of(again).equals(survival_of(done))


def test_killed_between_two_surveys_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = classifier()
    how: dict[str, Any] = {"by": "random", "keep": 6, "step": 50, "survey": ENGLISH}
    prune_run(subject, CLASSES, place=output_folder(tmp_path / "whole", force=False), **how)
    folder = tmp_path / "killed"
    real = anew.survey
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            anew,
            "survey",
            lambda one, *rest, **how: killed() if one is subject else real(one, *rest, **how),
        )
        with pytest.raises(Killed):
            prune_run(subject, CLASSES, place=output_folder(folder, force=False), **how)
    place = output_folder(folder, force=False)  # no --force is needed
    assert place.is_under_way
    assert len((place.training / "survey").names()) == 1
    read: list[int] = []
    write = _Kept.write

    def counted(kept: _Kept, number: int, state: Any) -> None:
        read.append(number)
        write(kept, number, state)

    monkeypatch.setattr(_Kept, "write", counted)
    prune_run(subject, CLASSES, place=place, **how)
    assert read == [0]  # the whole model's; that of the model which is left was there
    for name in ("survey", "survey-before"):
        one, other = (Run.open(at / name, create=False) for at in (tmp_path / "whole", folder))
        assert one.frames == other.frames
        assert one.read_table().frame.equals(other.read_table().frame)
    files = [
        sorted(str(path.relative_to(at)) for path in at.rglob("*"))
        for at in (tmp_path / "whole", folder)
    ]
    assert files[0] == files[1]


def test_a_bad_text_is_told_before_the_work(tmp_path: Path) -> None:
    place = output_folder(tmp_path / "out", force=False)
    with pytest.raises(hc.HeadcountError, match=r"missing\.txt"):
        prune_run(classifier(), CLASSES, place=place, keep=6, survey=str(tmp_path / "missing.txt"))
    assert not place.folder.exists()
