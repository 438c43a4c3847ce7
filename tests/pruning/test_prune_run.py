"""A whole pruning into a folder: what it leaves there, and how another one takes its place."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny_subjects import classifier, writer
from tiny_tokenizers import ENGLISH, PAIRS

import headcount as hc
from headcount import tasks
from headcount.pruning.goal import output_folder
from headcount.pruning.prune_run import prune_run
from headcount.records.run import Run

CLASSES = tasks.classification(
    [(source, number % 2) for number, (source, _) in enumerate(PAIRS)], metric="loss"
)


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
    again = prune_run(second, CLASSES, place=place, force=True, **options)
    run = Run.open(place.run, create=False)
    assert run.provenance["weights"] == second.weights_hash
    assert run.stages["prune"]["settings"]["going"] == [str(h) for h in again.plan.going]  # type: ignore[union-attr]
    assert not place.is_under_way


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
    whole = hc.load(str(place.export("zeros")), device="cpu")
    assert len(whole.heads) == len(subject.heads)
    assert hc.load(str(place.model), device="cpu").heads == [
        head for head in subject.heads if head not in done.going
    ]


def test_healing_learns_from_the_other_half(tmp_path: Path) -> None:
    from headcount.pruning.prune_run import TrainingOptions

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
