"""Small files that a stranger's folder may hold: each is refused in one sentence that names it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fuzz.targets import _adapter, _lost_numbers, _model
from fuzz.trial import complaint

import headcount as hc
from headcount.errors import HeadcountError
from headcount.text import read_corpus


def refused(read: Callable[[], Any], named: str) -> None:
    with pytest.raises(HeadcountError) as caught:
        read()
    assert complaint(str(caught.value), named) == ""


@pytest.mark.parametrize(
    "told",
    ["{", "[]", "{}", "7", '{"heads": 7}', '{"heads": {"enc.0": ["a"]}}', '{"heads": ["enc.0"]}'],
)
def test_a_map_that_names_no_heads(told: str, tmp_path: Path) -> None:
    _lost_numbers(tmp_path)
    (tmp_path / "model" / "headcount.json").write_text(told)
    refused(lambda: hc.load(tmp_path / "model", device="cpu").heads, "headcount.json")


@pytest.mark.parametrize(
    "heads", [7, "words", ["enc.0"], {"enc.0": "0"}, {"enc.0": [0, 0]}, {"enc.0": [-1]}, {"x": [1]}]
)
def test_a_config_with_other_words_for_heads(heads: Any, tmp_path: Path) -> None:
    _model(tmp_path)
    file = tmp_path / "model" / "config.json"
    config = json.loads(file.read_text())
    config["headcount"]["heads"] = heads
    file.write_text(json.dumps(config))
    refused(lambda: hc.load(tmp_path / "model", device="cpu").heads, "config")


@pytest.mark.parametrize("base", ["../adapter", "../other"])
def test_an_adapter_on_itself(base: str, tmp_path: Path) -> None:
    _adapter(tmp_path)
    file = tmp_path / "adapter" / "adapter_config.json"
    settings = json.loads(file.read_text()) | {"base_model_name_or_path": base}
    for folder in ("adapter", "other"):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "adapter_config.json").write_text(json.dumps(settings))
    refused(lambda: hc.load(tmp_path / "adapter", device="cpu"), "adapter")


@pytest.mark.parametrize("mark", ["[]", "7", "null", "{", '{"of": 1}'])
def test_a_mark_that_says_nothing(
    mark: str, tmp_path: Path, headcount: Callable[..., Any], saved: Callable[[str], Path]
) -> None:
    (tmp_path / "small" / "model").mkdir(parents=True)
    (tmp_path / "small" / ".unfinished.json").write_text(mark)
    ended = headcount("prune", saved("bert"), "--heads", "enc.0.1", "-o", "small")
    assert ended.code == 2
    assert ended.err.count("\n") == 1
    assert "holds a pruned model already" in ended.err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes on this system")
def test_a_mark_that_is_a_pipe_is_not_waited_for(
    tmp_path: Path, headcount: Callable[..., Any], saved: Callable[[str], Path]
) -> None:
    (tmp_path / "small").mkdir()
    os.mkfifo(tmp_path / "small" / ".unfinished.json")
    ended = headcount("prune", saved("bert"), "--heads", "enc.0.1", "-o", "small", "--force")
    assert ended.code == 1
    assert ".unfinished.json is not a plain file; remove it" in ended.err


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('m = {pruned_from = "x", drop_share = "a"}', "drop_share of m is 'a'"),
        ('m = {pruned_from = "x", drop_share = 1.5}', "drop_share of m is 1.5"),
        ('m = {twin_of = "x", seed = 9223372036854775808}', "seed of m is 9223372036854775808"),
        ('m = {twin_of = "x", seed = "a"}', "seed of m is 'a'"),
        ('m = "x"\n[corpora]\nc = {text = "gone.txt"}', "and there is no such file"),
    ],
)
def test_an_atlas_of_odd_values(
    line: str, told: str, tmp_path: Path, headcount: Callable[..., Any]
) -> None:
    corpora = "" if "[corpora]" in line else '\n[corpora]\nc = "sample"'
    (tmp_path / "a.toml").write_text(f"[models]\n{line}{corpora}\n")
    ended = headcount("atlas", "a.toml")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert told in ended.err


def test_an_atlas_of_a_model_without_heads(
    tmp_path: Path, headcount: Callable[..., Any], saved: Callable[[str], Path]
) -> None:
    """Nothing could be measured: the page says why, and the command ends well."""
    models = f'm = {{pruned_from = "{saved("gpt2")}", drop_share = 0.9999}}'
    (tmp_path / "t.txt").write_text("Rain fell.\nShe left.\nTwo crows.\nIt swam.\n")
    (tmp_path / "a.toml").write_text(
        f'[models]\n{models}\n[corpora]\nc = {{text = "t.txt"}}\n[tasks]\nt = "lm:t.txt"\n'
    )
    ended = headcount("atlas", "a.toml", "--limit", "4")
    assert ended.code == 0
    assert "drop_share of m is 0.9999, which leaves none of" in Path("atlas/atlas.html").read_text()


def test_a_limit_beyond_counting(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Rain fell.\nShe left.\n")
    assert len(read_corpus(tmp_path / "a.txt", limit=10**30)) == 2
    assert len(read_corpus(tmp_path / "a.txt").limit(2**63)) == 2
