from __future__ import annotations

import errno
import gc
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from headcount.errors import RunError, UsageError
from headcount.records.columns import Column
from headcount.records.files import InnerPath
from headcount.records.heads import Head
from headcount.records.provenance import version
from headcount.records.run import FRAMES, Run
from headcount.records.table import HeadTable

HEADS = [Head("enc", 0, 0), Head("enc", 0, 1)]


def table(**about: Any) -> HeadTable:
    return HeadTable.of(HEADS, {"x": [0.5, 0.25]}, [Column("x", unit="nats")], **about)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run"


@pytest.fixture
def written(path: Path) -> Path:
    """A run with a table and a stage."""
    with Run.open(path) as run:
        run.write_table(table(provenance={"model": "m", "weights": "sha256:ab"}))
        run.stage("survey").finish({"convention": "headcount"})
    return path


# --- what is in it ----------------------------------------------------------------------------


def test_the_files_are_those_that_were_promised(written: Path) -> None:
    assert files(written) == ["heads.parquet", "run.json"]
    record = json.loads((written / "run.json").read_text())
    assert record["schema"] == 1
    assert record["headcount"] == version()
    assert record["provenance"] == {"model": "m", "weights": "sha256:ab"}
    assert record["columns"][0]["unit"] == "nats"
    assert record["stages"]["survey"]["settings"] == {"convention": "headcount"}
    assert record["created"] <= record["updated"]


def test_a_table_comes_back(written: Path) -> None:
    read = Run.open(written, create=False).read_table()
    assert_frame_equal(read.frame, table().frame)
    assert read.columns == table().columns
    assert Run.open(written, create=False).provenance["model"] == "m"


def test_descriptions_in_run_json_are_enough(written: Path) -> None:
    pd.read_parquet(written / "heads.parquet").to_parquet(written / "heads.parquet")
    read = Run.open(written, create=False).read_table()
    assert read.columns["x"].unit == "nats"
    assert read.provenance["model"] == "m"


def test_the_parquet_file_alone_is_enough(written: Path) -> None:
    (written / "run.json").unlink()
    assert HeadTable.load(written / "heads.parquet").columns["x"].unit == "nats"


def test_stages_know_what_they_were_done_with(path: Path) -> None:
    with Run.open(path) as run:
        stage = run.stage("score")
        assert not stage.done
        assert stage.record == {}
        assert not stage.done_with({})
        stage.finish({"by": "gradient", "layers": (0, 1)}, {"seed": 3}, notes=["a remark"])
    again = Run.open(path, create=False).stage("score")
    assert again.done
    assert again.done_with({"by": "gradient", "layers": [0, 1]})
    assert again.done_with({"by": "gradient", "layers": (0, 1)})
    assert not again.done_with({"by": "ablation", "layers": [0, 1]})
    assert again.record["provenance"] == {"seed": 3}
    assert again.record["notes"] == ["a remark"]
    assert 0 <= again.record["seconds"] < 60
    assert again.record["finished"].endswith("Z")


def test_a_stage_of_another_version_is_not_done(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Run.open(path) as run:
        stage = run.stage("score")
        with monkeypatch.context() as older:
            older.setattr("headcount.records.run.version", lambda: "0.0.1")
            stage.finish({"by": "gradient"})
            assert stage.done_with({"by": "gradient"})
        assert stage.record["headcount"] == "0.0.1"
        assert not stage.done
        assert not stage.done_with({"by": "gradient"})
        stage.finish({"by": "gradient"})
        assert stage.done_with({"by": "gradient"})


def test_settings_may_come_in_any_order(path: Path) -> None:
    with Run.open(path) as run:
        run.stage("score").finish({"a": 1, "b": 2})
        assert run.stage("score").done_with({"b": 2, "a": 1})


def test_notes_are_kept_once(path: Path) -> None:
    with Run.open(path) as run:
        run.note("3 inputs were cut")
        run.note("3 inputs were cut")
        assert run.notes == ["3 inputs were cut"]


def test_two_runs_of_one_process_stay_in_step(path: Path) -> None:
    with Run.open(path) as one:
        table().save(path)
        one.stage("survey").finish()
        with Run.open(path) as two:
            two.stage("score").finish()
        one.note("still here")
    record = Run.open(path, create=False).record
    assert set(record["stages"]) == {"survey", "score"}
    assert record["columns"][0]["name"] == "x"
    assert record["notes"] == ["still here"]


def test_keys_of_a_later_version_are_kept(written: Path) -> None:
    record = json.loads((written / "run.json").read_text())
    (written / "run.json").write_text(json.dumps({**record, "later": [1]}))
    with Run.open(written) as run:
        run.note("x")
        assert run.record["later"] == [1]


def test_repr_names_the_stages(written: Path) -> None:
    assert repr(Run.open(written, create=False)) == f"Run('{written}', stages: survey)"


# --- frames, arrays, folders, journals ----------------------------------------------------------


def relations() -> pd.DataFrame:
    return pd.DataFrame({column: [1, 2] for column in FRAMES["relations"]})


def test_frames_come_back(path: Path) -> None:
    with Run.open(path) as run:
        run.write_frame("relations", relations().assign(more="a later column"))
        run.write_frame("curve", pd.DataFrame({"left": [2, 1]}))
        assert run.frames == ["curve", "relations"]
    reader = Run.open(path, create=False)
    assert_frame_equal(reader.read_frame("curve"), pd.DataFrame({"left": [2, 1]}))
    assert set(reader.read_frame("relations")) == {*FRAMES["relations"], "more"}
    assert "run.json" in files(path), "a folder is a run from its first file on"


def test_relations_may_come_with_heads_as_index(path: Path) -> None:
    with Run.open(path) as run:
        run.write_frame("relations", relations().set_index(["stack", "layer", "head"]))
        assert list(run.read_frame("relations")) == list(FRAMES["relations"])


def test_promised_columns_are_demanded(path: Path) -> None:
    with Run.open(path) as run:
        with pytest.raises(
            UsageError, match="Frame 'relations' lacks split, p; it must have stack,"
        ):
            run.write_frame("relations", relations().drop(columns=["split", "p"]))
        with pytest.raises(UsageError, match=r"'heads' is the head table; write it with write_tab"):
            run.write_frame("heads", relations())
    assert not path.exists(), "nothing was written, so nothing is left"


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".x", "A"])
def test_no_name_leads_out_of_the_folder(name: str, path: Path) -> None:
    with Run.open(path) as run:
        for write in (
            lambda: run.write_frame(name, relations()),
            lambda: run.write_arrays(name, {"a": np.zeros(1)}),
            lambda: run.folder(name),
            lambda: run.journal({}, name),
            lambda: run.stage(name),
        ):
            with pytest.raises(UsageError, match="cannot name a"):
                write()


def test_a_frame_that_is_not_there(written: Path) -> None:
    with pytest.raises(RunError, match=r"has no curve\.parquet \(it has no frames yet\); run the"):
        Run.open(written, create=False).read_frame("curve")


def test_arrays_come_back(path: Path) -> None:
    arrays = {"distance": np.eye(3, dtype=np.float32), "names": np.array(["a", "b"])}
    with Run.open(path) as run:
        run.write_arrays("pairs", arrays)
    read = Run.open(path, create=False).read_arrays("pairs")
    assert read.keys() == arrays.keys()
    for key, array in arrays.items():
        assert read[key].dtype == array.dtype
        assert (read[key] == array).all()
    with np.load(path / "pairs.npz", allow_pickle=False) as plain:
        assert (plain["distance"] == np.eye(3)).all()


def test_arrays_are_never_pickled(path: Path) -> None:
    with Run.open(path) as run:
        with pytest.raises(UsageError, match="Array 'a' holds Python objects"):
            run.write_arrays("pairs", {"a": np.array([{}])})
        np.savez(path / "evil.npz", a=np.array([{}]))
        with pytest.raises(RunError, match=r"evil\.npz cannot be read"):
            run.read_arrays("evil")


def test_arrays_that_are_missing_or_damaged(written: Path) -> None:
    run = Run.open(written, create=False)
    with pytest.raises(RunError, match=r"has no pairs\.npz; run the stage"):
        run.read_arrays("pairs")
    (written / "pairs.npz").write_bytes(b"")
    with pytest.raises(RunError, match=r"pairs\.npz cannot be read: it is cut off or damaged"):
        run.read_arrays("pairs")


def test_arrays_with_any_damaged_byte_come_back_or_are_one_sentence(written: Path) -> None:
    run = Run.open(written)
    refusals: list[str] = []
    run.write_arrays("pairs", {"distance": np.eye(3, dtype=np.float32)})
    whole = (written / "pairs.npz").read_bytes()
    damaged = [whole[:cut] for cut in range(0, len(whole), 7)]
    damaged += [
        whole[:place] + bytes([value]) + whole[place + 1 :]
        for place in range(len(whole))
        for value in (whole[place] ^ 1, 9, 255)
    ]
    for data in damaged:
        (written / "pairs.npz").write_bytes(data)
        try:
            run.read_arrays("pairs")
        except RunError as error:
            refusals.append(str(error))
    assert len(refusals) > len(damaged) / 3
    told = "pairs.npz cannot be read: it is cut off or damaged. Make it again, or restore it."
    assert [one for one in refusals if told not in one and " of memory, and" not in one] == []


def test_exhibits_have_a_folder(path: Path) -> None:
    with Run.open(path) as run:
        assert Path(run.folder()) == path / "exhibits"
        assert run.folder().is_folder()


def test_a_folder_that_cannot_be_made(written: Path) -> None:
    (written / "exhibits").write_text("a file in its place")
    with (
        Run.open(written) as run,
        pytest.raises(RunError, match="exhibits cannot be made: file exists"),
    ):
        run.folder()


def test_the_journal_is_the_runs(path: Path) -> None:
    with Run.open(path) as run:
        with run.journal({"seed": 0}) as journal:
            journal.append("a", 1)
        with pytest.raises(RunError, match="seed = 0, and now seed = 1"):
            run.journal({"seed": 1})
        run.drop_journal()
        run.drop_journal()
        run.journal({"seed": 1}).close()
        assert (path / "journal.jsonl").exists()


def test_a_killed_sweep_that_wrote_only_its_journal_can_be_gone_on_with(path: Path) -> None:
    with Run.open(path) as run, run.journal({"seed": 0}) as journal:
        journal.append("a", 1)
    with Run.open(path) as run, run.journal({"seed": 0}) as journal:
        assert journal.done == {"a": 1}


# --- one model a run --------------------------------------------------------------------------


def test_a_table_of_other_heads_is_refused(written: Path) -> None:
    before = contents(written)
    other = HeadTable.of([Head("dec", 0, 0)], {"x": [1]})
    with pytest.raises(RunError, match="holds a table of 2 heads, and this one has 1 that are not"):
        other.save(written)
    assert contents(written) == before
    other.save(written, replace=True)
    assert HeadTable.load(written).heads == other.heads


def test_other_heads_and_weights_can_be_refused_before_the_work(written: Path) -> None:
    run = Run.open(written, create=False)
    run.check_subject(table())
    with pytest.raises(RunError, match=r"a table of m \(weights ab\), and this one has cd; choose"):
        run.check_subject(table(provenance={"weights": "sha256:cd"}))
    Run.open(written.parent / "new").check_subject(table())  # nothing there to differ from


def test_a_table_of_other_weights_is_refused(written: Path) -> None:
    other = table(provenance={"weights": "sha256:cd"})
    with pytest.raises(RunError, match=r"a table of m \(weights ab\), and this one has cd; choose"):
        other.save(written)
    other.save(written, replace=True)
    table().save(written)  # weights that are not known contradict nothing


def test_replacing_a_model_forgets_what_was_known_about_it(written: Path) -> None:
    pd.DataFrame({"a": [1]}).to_parquet(written / "mine.parquet")
    with Run.open(written) as run:
        for name in ("curve", "changes", "layer_changes", "role_changes"):
            run.write_frame(name, pd.DataFrame({"left": [1]}))
        run.write_arrays("pairs", {"a": np.zeros(1)})
        run.journal({}, "own-metric").close()
        (run.folder("probe") / "probe.json").write(b"x")
        (run.folder("exhibits", ["one.npz"]) / "one.npz").write(b"x")
        (run.folder("exhibits") / "theirs.npz").write(b"x")
        again = table(details={"offsets": pd.DataFrame({"a": [1]})})
        run.write_table(again, replace=True)
        assert {"curve.parquet", "pairs.npz", "exhibits", "offsets.parquet"} < set(files(written))
        assert run.stage("survey").done, "the same model: replacing its table forgets nothing"
        run.write_table(HeadTable.of([Head("dec", 0, 0)], {"x": [1]}), replace=True)
        assert not run.stage("survey").done
    left = ["exhibits", "heads.parquet", "mine.parquet", "run.json"]
    assert files(written) == left, "what others put there stays"
    assert files(written / "exhibits") == ["theirs.npz"]


def test_a_run_from_before_files_were_listed_forgets_them_too(written: Path) -> None:
    with Run.open(written) as run:
        run.write_frame("changes", pd.DataFrame({"a": [1]}))
        run.folder()
    record = json.loads((written / "run.json").read_text())
    del record["files"]
    (written / "run.json").write_text(json.dumps(record))
    HeadTable.of([Head("dec", 0, 0)], {"x": [1]}).save(written, replace=True)
    assert files(written) == ["heads.parquet", "run.json"]


# --- wrong places -----------------------------------------------------------------------------


def test_a_folder_is_made_with_its_parents(tmp_path: Path) -> None:
    table().save(tmp_path / "a" / "b" / "run")
    assert files(tmp_path / "a" / "b" / "run") == ["heads.parquet", "run.json"]


def test_an_empty_folder_is_used(path: Path) -> None:
    path.mkdir()
    table().save(path)
    assert files(path) == ["heads.parquet", "run.json"]


def test_what_was_made_for_nothing_goes_again(tmp_path: Path) -> None:
    with Run.open(tmp_path / "a" / "run"):
        assert (tmp_path / "a" / "run").is_dir()
    assert files(tmp_path) == []
    (tmp_path / "mine").mkdir()
    with Run.open(tmp_path / "mine"):
        pass
    assert files(tmp_path) == ["mine"], "a folder that was there stays"


def test_a_file_in_its_place(path: Path) -> None:
    path.write_text("mine")
    for create in (True, False):
        with pytest.raises(RunError, match="run is a file, not a folder; choose another folder"):
            Run.open(path, create=create)
    assert path.read_text() == "mine"


def test_a_file_among_its_parents(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RunError, match="run/ cannot be made: not a directory"):
        Run.open(tmp_path / "file" / "run")


def test_somebody_elses_folder_is_left_alone(path: Path) -> None:
    path.mkdir()
    (path / "thesis.tex").write_text("mine")
    (path / "heads.parquet").write_text("mine too")
    before = contents(path)
    for create in (True, False):
        with pytest.raises(
            RunError,
            match=r"run/ is not a run directory: it holds heads\.parquet, thesis\.tex and no run",
        ):
            Run.open(path, create=create)
    assert contents(path) == before


def test_a_run_that_is_not_there(path: Path) -> None:
    with pytest.raises(
        RunError, match=r"There is no folder .*run; check its name, or make the run"
    ):
        HeadTable.load(path)
    path.mkdir()
    with pytest.raises(RunError, match="run/ is empty, so there is no run in it"):
        HeadTable.load(path)


def test_a_run_without_its_table(written: Path) -> None:
    (written / "heads.parquet").unlink()
    run = Run.open(written, create=False)
    assert not run.has_table
    with pytest.raises(RunError, match=r"There is no .*heads\.parquet; make it first"):
        run.read_table()


def test_a_newer_schema_is_refused_by_name_and_left_alone(written: Path) -> None:
    record = json.loads((written / "run.json").read_text())
    (written / "run.json").write_text(json.dumps({**record, "schema": 2}))
    before = contents(written)
    for create in (True, False):
        with pytest.raises(RunError) as caught:
            Run.open(written, create=create)
        assert str(caught.value) == (
            f"{written}/ was written with schema 2; this headcount {version()} reads up to 1: "
            "upgrade headcount or choose another folder."
        )
    assert contents(written) == before


def test_run_json_cut_anywhere_is_one_sentence(written: Path) -> None:
    whole = (written / "run.json").read_bytes()
    for cut in range(0, len(whole) - 2, 13):
        (written / "run.json").write_bytes(whole[:cut])
        with pytest.raises(
            RunError, match=r"run\.json is cut off or damaged \(.*heads\.parquet'\)"
        ):
            Run.open(written)
        assert (written / "run.json").read_bytes() == whole[:cut]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "it has no schema"),
        ("{}", "it has no schema"),
        ('{"schema": 1, "stages": []}', "'stages' is not a dict"),
        ('{"schema": NaN}', "NaN is not JSON"),
        ('{"schema": 1, "notes": null}', "'notes' is not a list"),
    ],
)
def test_a_damaged_run_json_says_where(text: str, why: str, written: Path) -> None:
    (written / "run.json").write_text(text)
    with pytest.raises(RunError, match=f"damaged \\({why}\\); restore it or choose another"):
        Run.open(written, create=False)


def test_run_json_that_is_a_folder(path: Path) -> None:
    (path / "run.json").mkdir(parents=True)
    with pytest.raises(RunError, match=r"run\.json is not a plain file"):
        Run.open(path)


def test_a_folder_that_may_not_be_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def refuse(name: Any, flags: int, *more: Any, **how: Any) -> int:
        if flags & os.O_CREAT:
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(name, flags, *more, **how)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        with pytest.raises(
            RunError, match=r"run/ cannot be written to: permission denied\. Choose"
        ):
            Run.open(path)
    assert not path.exists()


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere"
)
def test_a_folder_of_somebody_else(written: Path) -> None:
    written.chmod(0o555)
    try:
        assert len(Run.open(written, create=False).read_table()) == 2
        with pytest.raises(RunError, match="cannot be written to: permission denied"):
            Run.open(written)
    finally:
        written.chmod(0o755)


# --- disks that fill up, processes that die ---------------------------------------------------


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
@pytest.mark.parametrize("nth", [1, 2])
def test_a_write_that_fails_leaves_a_whole_run(
    nth: int, error: BaseException, written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first write is that of heads.parquet, the second that of run.json."""
    real, calls = os.replace, [0]

    def replace(source: Any, target: Any, **how: Any) -> None:
        calls[0] += 1
        if calls[0] == nth:
            raise error
        real(source, target, **how)

    longer = HeadTable.of(HEADS, {"x": [0.5, 0.25], "y": [1, 2]})
    with Run.open(written) as run, monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace)
        with pytest.raises((RunError, KeyboardInterrupt)):
            run.write_table(longer)
    assert files(written) == ["heads.parquet", "run.json"]
    expected = ["x"] if nth == 1 else ["x", "y"]
    assert HeadTable.load(written).names == expected
    longer.save(written)
    assert HeadTable.load(written).names == ["x", "y"]


@pytest.fixture
def no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", refuse)


@pytest.mark.usefixtures("no_room")
def test_a_full_disk_leaves_nothing_of_a_new_run(path: Path) -> None:
    with pytest.raises(RunError, match=r"run\.json could not be written: the disk is full\."):
        table().save(path)
    assert not path.exists()


KILLED = """
import os, signal, sys
from headcount.records.heads import Head
from headcount.records.table import HeadTable
real, left = os.replace, [int(sys.argv[2])]
def replace(*names, **how):
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    real(*names, **how)
os.replace = replace
HeadTable.of([Head("enc", 0, 0), Head("enc", 0, 1)], {"x": [9, 9]}).save(sys.argv[1])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize(("new", "nth"), [(True, 1), (True, 2), (True, 3), (False, 1), (False, 2)])
def test_killed_at_any_file_the_same_call_goes_on(new: bool, nth: int, path: Path) -> None:
    """A new run writes run.json, heads.parquet and run.json again; an old one the last two."""
    if not new:
        table().save(path)
    done = subprocess.run([sys.executable, "-c", KILLED, path, str(nth)])
    assert done.returncode == -signal.SIGKILL
    left = files(path)
    assert ".lock" in left
    assert any(name.endswith(".tmp") for name in left)
    if not new:
        assert HeadTable.load(path).frame["x"].tolist() == ([0.5, 0.25] if nth == 1 else [9, 9])
    table().save(path)
    assert files(path) == ["heads.parquet", "run.json"]
    assert HeadTable.load(path).frame["x"].tolist() == [0.5, 0.25]


WRITER = """
import sys, time
from headcount.records.run import Run
run = Run.open(sys.argv[1])
run.note("here first")
print("open", flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such locks")
def test_a_second_process_may_read_and_not_write(written: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(written)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == "open\n"
            reader = Run.open(written, create=False)
            assert reader.notes == ["here first"]
            assert len(reader.read_table()) == 2
            busy = f"is being written by process {other.pid}; wait until it has ended"
            with pytest.raises(RunError, match=busy):
                Run.open(written)
            with pytest.raises(RunError, match=busy):
                reader.note("me too")
        finally:
            other.kill()
    with Run.open(written) as run:
        run.note("now me")


def test_a_forgotten_run_lets_others_write(written: Path) -> None:
    run = Run.open(written)
    assert (written / ".lock").exists()
    del run
    gc.collect()
    assert not (written / ".lock").exists()


READ_WHILE = """
import sys
from headcount.records.heads import Head
from headcount.records.run import Run
from headcount.records.table import HeadTable
with Run.open(sys.argv[1]) as run:
    for number in range(100_000):
        run.write_table(HeadTable.of([Head("enc", 0, h) for h in range(2)], {"x": [number] * 2}))
"""


def test_a_reader_never_sees_a_part(written: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", READ_WHILE, str(written)]) as writer:
        try:
            seen: list[float] = []
            deadline = time.monotonic() + 60
            while len(set(seen)) < 8:
                values = HeadTable.load(written).frame["x"].tolist()
                assert values[0] == values[1] or values == [0.5, 0.25]
                seen.append(values[0])
                assert writer.poll() is None, "the writer ended by itself"
                assert time.monotonic() < deadline, "nothing changes"
        finally:
            writer.kill()


def test_a_foreign_record_removes_nothing_outside_the_run(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.parquet").write_bytes(b"mine")
    with Run.open(tmp_path / "run") as run:
        run.note("a run")
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    record["files"] = ["../other", "../other/mine.parquet", str(other), "..", ".", "", None, ["x"]]
    (tmp_path / "run" / "run.json").write_text(json.dumps(record))
    with Run.open(tmp_path / "run") as run:
        run.clear()
    assert (other / "mine.parquet").read_bytes() == b"mine"


def test_a_clearing_that_was_broken_off_is_brought_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pd.DataFrame({"a": [1]})
    with Run.open(tmp_path / "run") as run:
        for name in ("one", "two"):
            run.write_frame(name, frame)
        run.stage("survey").finish()
        removed = InnerPath.remove
        left = iter([True])

        def once(path: InnerPath) -> None:
            if path.name.endswith(".parquet") and next(left, None) is None:
                raise KeyboardInterrupt
            removed(path)

        monkeypatch.setattr(InnerPath, "remove", once)
        with pytest.raises(KeyboardInterrupt):
            run.clear()
        monkeypatch.undo()
        assert len(run.frames) == 1
    with Run.open(tmp_path / "run") as run:
        assert (run.frames, run.stages) == ([], {})
