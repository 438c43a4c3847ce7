"""Tests of `rooms/atlas/command.py` and `rooms/atlas/atlas.py`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from subjects import save

import headcount as hc
from headcount.rooms.atlas import atlas as module

CONFIG = """
[models]
"one <b>" = "{one}"
"its twin" = {{ twin_of = "{one}", seed = 1 }}
"half of it" = {{ pruned_from = "{one}", drop_share = 0.5 }}
"not there" = "{gone}"
[corpora]
cats = {{ text = "cats.txt" }}
[tasks]
alike = "similarity:alike.tsv,text=a,text2=b,label=score"
next = "lm:cats.txt"
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    one = save(tmp_path / "model", "bert", "wordpiece")
    cats = [f"The {'big ' * (n % 3)}cat sat on the mat and saw it {n}." for n in range(12)]
    (tmp_path / "cats.txt").write_text("\n".join(cats))
    rows = [f"{cats[n]}\t{cats[(n * 5) % 12]}\t{n % 4}" for n in range(12)]
    (tmp_path / "alike.tsv").write_text("a\tb\tscore\n" + "\n".join(rows))
    path = tmp_path / "models.toml"
    path.write_text(CONFIG.format(one=one, gone=tmp_path / "gone"))
    return path


def test_every_model_is_measured_alike_and_once(
    config: Path, headcount: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = config.parent / "atlas"
    line = ["atlas", config, "-o", out, "--device", "cpu", "--step", "50"]
    ended = headcount(*line)  # type: ignore[operator]
    assert ended.code == 0, ended.err
    assert "one <b> on cats: 8 heads" in ended.out
    rows = {row["model"]: row for row in json.loads((out / "atlas.json").read_text())}
    assert [rows[name]["heads"] for name in ("one <b>", "its twin", "half of it")] == [8, 8, 4]
    assert "There is no folder or file" in rows["not there"]["notes"][0]
    assert rows["one <b>"]["can_go"]["alike"]["metric"] == "spearman"
    assert rows["one <b>"]["notes"][0].startswith("next: lm needs a decoder-only model")
    shares = pd.DataFrame(rows["its twin"]["depths"])
    assert shares["importance"].sum() == pytest.approx(1)
    assert (shares[["works", "rests", "unnamed"]].sum(axis=1) - 1).abs().max() < 1e-9
    page = (out / "atlas.html").read_text()
    assert "one &lt;b&gt;" in page
    assert "<b>" not in page
    assert "<script" not in page
    assert set(pd.read_csv(out / "atlas.csv")["model"]) == {"one <b>", "its twin", "half of it"}
    run = hc.Run.open(out / "runs" / f"{module._slug('one <b>')}--cats", create=False)
    assert "gradient" in run.read_table().names
    monkeypatch.setattr(module, "survey", None)
    monkeypatch.setattr(module, "prune_plan", None)
    before = (out / "atlas.json").read_bytes()
    assert headcount(*line).code == 0  # type: ignore[operator]
    assert (out / "atlas.json").read_bytes() == before, "what is there is not measured again"


def test_figures_are_of_the_model_that_bears_the_name(config: Path, headcount: object) -> None:
    """Names that differ by a sign; then other weights in the same place, and another twin."""
    one, other = config.parent / "model", save(config.parent / "other", "bert", "wordpiece", seed=9)
    out, line = config.parent / "atlas", ["atlas", config, "--device", "cpu"]

    def measured(twin: int) -> dict[str, object]:
        models = f'"A.1" = "{one}"\n"a-1" = "{other}"\n"A-1" = {{twin_of = "{one}", seed = {twin}}}'
        config.write_text(f"[models]\n{models}\n[corpora]\ncats = {{text = 'cats.txt'}}\n")
        ended = headcount(*line, "-o", out)  # type: ignore[operator]
        assert ended.code == 0, ended.err
        places = {name: f"{module._slug(name)}--cats" for name in ("A.1", "a-1", "A-1")}
        assert {path.name for path in (out / "runs").iterdir()} == set(places.values())
        runs = {name: hc.Run.open(out / "runs" / place) for name, place in places.items()}
        return {name: run.read_table().frame["confidence"].tolist() for name, run in runs.items()}

    first = measured(twin=1)
    assert len({module._slug(name).lower() for name in first}) == 3
    assert first["A.1"] != first["a-1"]
    assert first["A.1"] != first["A-1"]
    shutil.copytree(other, one, dirs_exist_ok=True)
    second = measured(twin=2)
    assert second["A.1"] == second["a-1"] == first["a-1"]
    assert second["A-1"] != first["A-1"]


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("x = ", 1, "is not TOML"),
        ("[models]\na = 'b'\n", 2, "names no corpora; add a table [corpora]"),
        ("[modells]\n", 2, "has a table 'modells'; it has models, corpora and tasks"),
        ("[models]\na = 3\n[corpora]\nb = 'sample'\n", 2, "the model a is 3; give a name"),
        ("[models]\na = 'b'\n[corpora]\nc = {txt = 'd'}\n", 2, "give a table with text, pairs"),
        (
            "[models]\na = {pruned_from = 'b', drop_share = 5}\n[corpora]\nc = 'sample'\n",
            2,
            "drop_share of a is 5; give 0.5 for half",
        ),
    ],
)
def test_bad_configs(text: str, code: int, message: str, tmp_path: Path, headcount: object) -> None:
    path = tmp_path / "c.toml"
    path.write_text(text)
    ended = headcount("atlas", path)  # type: ignore[operator]
    assert (ended.code, message in ended.err) == (code, True), ended.err
    missing = headcount("atlas", tmp_path / "none.toml")  # type: ignore[operator]
    assert (missing.code, "There is no file" in missing.err) == (1, True)
