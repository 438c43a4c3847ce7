from __future__ import annotations

import pytest

from headcount.errors import UsageError
from headcount.text.encode import fit_for, model_kind
from headcount.text.tokenize import Intake


def test_kinds() -> None:
    assert model_kind({"enc"}, Intake()) == "encoder"
    assert model_kind(["dec"], Intake()) == "decoder"
    assert model_kind(("enc",), Intake(shift=lambda labels: labels)) == "encoder-decoder"


@pytest.mark.parametrize(
    ("kind", "asked", "limits"),
    [
        ("encoder", None, (512, 64)),
        ("encoder", 100, (100, 64)),
        ("encoder-decoder", 512, (512, 64)),
        ("encoder-decoder", 50, (50, 50)),
        ("decoder", None, (64, 64)),
    ],
)
def test_each_side_has_its_limit(kind: str, asked: int | None, limits: tuple[int, int]) -> None:
    intake = Intake(source_limit=512, target_limit=64)
    fit = fit_for(kind, intake, asked, "window", False)  # type: ignore[arg-type]
    assert (fit.limit, fit.label_limit) == limits


def test_no_limit_at_all() -> None:
    fit = fit_for("encoder", Intake(), None, "window", False)
    assert (fit.limit, fit.label_limit) == (None, None)
    assert fit_for("encoder", Intake(), 10**6, "window", False).limit == 10**6


def test_more_than_the_model_takes() -> None:
    with pytest.raises(UsageError, match="is 65; this model takes 1 to 64 tokens"):
        fit_for("decoder", Intake(source_limit=512, target_limit=64), 65, "window", False)
