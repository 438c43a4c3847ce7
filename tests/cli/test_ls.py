"""`headcount ls`: the models at hand, the anatomy of one, what a run holds."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from report_runs import made_run
from safetensors.torch import load_file

Saved = Callable[[str], Path]


def test_models_at_hand(
    headcount: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, saved: Saved
) -> None:
    monkeypatch.setenv("HEADCOUNT_CACHE", str(tmp_path))
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "minilm").symlink_to(saved("bert"))
    ended = headcount("ls")
    assert (ended.code, ended.err) == (0, "")
    assert "minilm all-MiniLM-L6-v2: BERT, 6 layers x 12 heads" in " ".join(ended.out.split())
    assert "Note: Not here yet; fetch it: headcount fetch smollm2" in ended.out
    assert "fetch minilm" not in ended.out
    told = {row["name"]: row["here"] for row in json.loads(headcount("ls", "--json").out)["models"]}
    assert (told["minilm"], told["smollm2"]) == (True, False)


def test_the_anatomy_of_a_model(headcount: Callable, saved: Saved) -> None:
    ended = headcount("ls", saved("chatty"))
    lines = [line.split() for line in ended.out.splitlines()]
    assert lines[1] == ["dec", "0", "4", "2", "8", "model.layers.0.self_attn"]
    assert lines[-1][:2] == ["Subject(chatty:", "LlamaForCausalLM,"]
    told = json.loads(headcount("ls", saved("chatty"), "--json").out)
    assert told["model"]["class"] == "LlamaForCausalLM"
    assert [site["layer"] for site in told["sites"]] == [0, 1]
    assert {site["kv_heads"] for site in told["sites"]} == {2}


def test_pickled_weights_are_listed_when_allowed(
    headcount: Callable, saved: Saved, tmp_path: Path
) -> None:
    folder = shutil.copytree(saved("bert"), tmp_path / "old")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    ended = headcount("ls", "old")
    assert ended.code == 1
    assert "--load allow-bin" in ended.err
    assert headcount("ls", "old", "--allow-bin").code == 0


def test_what_a_run_holds(headcount: Callable, saved: Saved) -> None:
    line = ["survey", saved("gpt2"), "--text", "-", "-o", "run", "--columns", "self,next"]
    headcount(*line, stdin="Rain fell.\n")
    ended = headcount("ls", "run/")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("run/: HeadTable(8 heads: dec 8; 2 columns: self, next); stages: s")
    assert "self    Mean weight of a token on itself. [Clark et al. 2019, section 3.1]" in ended.out
    assert "NA: dec: a causal head cannot look ahead." in " ".join(ended.out.split())
    told = json.loads(headcount("ls", "run", "--json").out)
    assert list(told["columns"]) == ["self", "next"]
    assert list(told["stages"]) == ["survey"]
    assert told["provenance"]["corpus"] == "standard input"


def test_a_run_without_a_table(headcount: Callable, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text('{"schema": 1}')
    assert headcount("ls", "run").out == "run/: no table; stages: none\n"


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("{mamba}", "MambaModel (model type 'mamba') has no attention heads"),
        ("{nan-gptj}", "of nan-gptj holds 1 values of 1024 that are NaN or infinite"),
        ("{nan-llama}", "of nan-llama holds 1 values of 1024 that are NaN or infinite"),
        ("no/such/thing", "There is no folder or file 'no/such/thing'."),
        ("nothing", "The folder 'nothing' is empty; pass a folder that save_pretrained wrote"),
        ("newer", "newer/ was written with schema 99; this headcount"),
    ],
)
def test_what_cannot_be_listed(
    headcount: Callable, saved: Saved, tmp_path: Path, what: str, message: str
) -> None:
    (tmp_path / "nothing").mkdir()
    (tmp_path / "newer").mkdir()
    (tmp_path / "newer" / "run.json").write_text('{"schema": 99}')
    ended = headcount("ls", saved(what[1:-1]) if what.startswith("{") else what)
    assert ended.code == 1
    assert ended.err.startswith("Error: ")
    assert message in ended.err
    assert ended.err.count("\n") == 1
    assert not ended.out


def test_tables_for_papers(headcount: Callable, tmp_path: Path) -> None:
    made_run(tmp_path / "run", {"enc": (2, 3)})
    told = headcount("ls", "run", "--table", "curve").out.splitlines()
    assert told[0] == "| order | heads left | metric | value | change | p | n |"
    assert told[2].startswith("| ablation | 6 | bleu | 30 [29, 31] | 0 [-1, 1] | 0.700 |")
    latex = headcount("ls", "run", "--table", "agreement", "--format", "latex").out
    assert latex.startswith("\\begin{tabular}{llllll}\n\\toprule\nmeasure & and & stack &")
    assert headcount("ls", "run", "--table", "roles").code == 0
    told = headcount("ls", "run", "--table", "relations").out.splitlines()
    assert told[0].startswith("| relation | head | direction | accuracy | best offset | offset |")
    assert (
        "There is no table of 'heads'; choose roles"
        in headcount("ls", "run", "--table", "heads").err
    )
    wrong = headcount("ls", "run", "--table", "curve", "--format", "word")
    assert (wrong.code, "The format is 'word'; choose markdown, latex, typst." in wrong.err) == (
        2,
        True,
    )
    assert "--table is of a run" in headcount("ls", "--table", "curve").err
