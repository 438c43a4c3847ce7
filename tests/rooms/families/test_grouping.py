"""`hc.families` and `survey --families`, from texts to pairs.npz."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tiny_subjects import encoder, translator
from typer.testing import CliRunner

import headcount as hc
from headcount.cli.main import app
from headcount.errors import ModelError, UsageError

TEXTS = ["The cat sat on the mat.", "A dog barked.", "Nobody saw them, I think."]


def test_batch_size_changes_nothing() -> None:
    subject = encoder()
    one, three = (hc.families(subject, TEXTS, batch_size=size) for size in (1, 3))
    np.testing.assert_allclose(one.js_sum, three.js_sum, atol=1e-5)
    assert one.provenance["counts"]["sentences"] == 3
    assert (one.js >= 0).all()


def test_a_stack_that_was_left_out_is_not_a_number() -> None:
    subject = translator()
    found = hc.families(subject, [("A cat.", "Eine Katze.")], stacks=["cross"])
    kept = np.array([head.stack == "cross" for head in found.heads])
    assert found.stacks == ["cross"]
    assert np.isfinite(found.js[np.ix_(kept, kept)]).all()
    assert np.isnan(found.js[~kept]).all()
    assert (found.cluster[~kept] == -1).all()


def test_slips_are_told() -> None:
    with pytest.raises(UsageError, match="families takes a Subject"):
        hc.families("minilm", TEXTS)  # type: ignore[arg-type]
    subject = encoder()
    subject.model.encoder.layer[0].attention.self.query.weight.data.fill_(np.nan)
    with pytest.raises(ModelError, match=r"query\.weight"):
        hc.families(subject, TEXTS)


@pytest.mark.real
def test_the_command_writes_pairs(tmp_path: Path) -> None:
    words = ["survey", "minilm", "--text", "sample", "--limit", "6", "--columns", "entropy"]
    done = CliRunner().invoke(app, [*words, "--families", "-o", str(tmp_path / "run"), "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)["families"]
    with hc.Run.open(tmp_path / "run", create=False) as run:
        found = run.read_arrays("pairs")
        assert run.stage("families").done
    assert found["js"].shape == (72, 72)
    assert found["tokens"][0] == told_tokens(tmp_path / "run")
    near = told["heads"]["enc.0.0"]["nearest"]
    assert list(near) == found["heads"][found["nearest"][0]].tolist()


def told_tokens(run: Path) -> int:
    about = json.loads((run / "run.json").read_text())["stages"]["families"]["provenance"]
    return sum(about["counts"]["tokens"].values())
