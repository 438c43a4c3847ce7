"""The importance experiment: cases, findings and figures, on made-up tables."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import headcount as hc
from headcount.records.files import to_strict

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from experiments.importance.cases import SCORES, read_cases  # noqa: E402
from experiments.importance.draw import draw  # noqa: E402
from experiments.importance.findings import agreements, findings, over_training  # noqa: E402
from experiments.importance.measure import Measured  # noqa: E402
from experiments.rules.rare import nearest  # noqa: E402

HEADS = [hc.Head(s, layer, i) for s in ("enc", "dec", "cross") for layer in (0, 1) for i in (0, 1)]
ABOUT = {
    **dict.fromkeys(("model", "revision", "weights", "data", "seed", "versions", "platform"), "x"),
    **{"time": "now", "remarks": ["Relevance was kept."]},
    "settings": {"metric": "accuracy", "baseline": 0.9},
}


def table(seed: int) -> hc.HeadTable:
    noise = np.random.default_rng(seed)
    values = {name: noise.random(12) for name in SCORES}
    values["ablation"] = np.linspace(-0.1, 0.4, 12)
    values["ablation_p_adjusted"] = np.array([0.01, *[1.0] * 8, 0.04, 0.001, 0.2])
    best = pd.DataFrame({"stack": ["enc"], "layer": [0], "head": [1], "cost": [0.123456789]})
    details = {"best_single_heads": best}
    return hc.HeadTable.of(HEADS, values, provenance=ABOUT, details=details)


def case(name: str) -> Any:
    return next(case for case in read_cases()[1] if case.name == name)


def measured(seed: int, judged: bool = True) -> Measured:
    own = table(seed)
    return Measured(own, own, own if judged else None, own if judged else None)


def test_a_trial_has_few_examples() -> None:
    _, cases = read_cases(limit=8)
    assert max(max(case.examples, case.judged) for case in cases) == 8
    assert {case.group for case in cases} == {"translator", "classifiers"}


def test_heads_beyond_chance_are_counted_by_stack_and_by_sign() -> None:
    found = findings(case("sst2"), measured(0))["judged"]
    assert found["cost something"] == {"cross": 2}
    assert found["better gone"] == {"enc": 1}
    assert found["after"]["enc.0.0"] == pytest.approx(1.0)
    assert found["range"] == [-0.1, 0.4]
    assert next(iter(found["most"])) == "cross.1.1"


def test_nothing_is_told_of_what_was_not_judged() -> None:
    found = findings(case("sst2-again"), measured(0, judged=False))
    assert "judged" not in found
    assert found["best single heads by loss"] == [
        {"stack": "enc", "layer": 0, "head": 1, "cost": 0.12346}
    ]


def test_figures_are_drawn_from_the_json_alone(tmp_path: Path) -> None:
    groups = {
        "translator": {"tatoeba": measured(0), "lohelp": measured(1, judged=False)},
        "classifiers": {"sst2": measured(2), "mrpc": measured(3)},
    }
    told: dict[str, Any] = {
        "cases": {n: findings(case(n), t) for group in groups.values() for n, t in group.items()},
        "agreement": {g: agreements(tables).to_dict("records") for g, tables in groups.items()},
        "over training": {
            "en-de": over_training(ROOT / "experiments/translator/results/en-de/dynamics.json")
        },
    }
    (tmp_path / "importance.json").write_text(json.dumps(to_strict(told)))
    draw(tmp_path, tmp_path)
    drawn = {path.stem.removeprefix("importance-") for path in tmp_path.glob("*.svg")}
    matrices = {"agreement-translator", "agreement-classifiers"}
    assert drawn == matrices | {"masked", "relevance", "two-scores", "data-sets", "training"}


def test_the_head_nearest_to_rare_words_and_where_it_stands() -> None:
    survey = {
        "index": ["enc.0.0", "enc.0.1", "enc.1.0"],
        "columns": {"confidence": [0.2, 0.8, 0.1]},
        "rarity": [
            {"head": "enc.1.0", "share": 0.9, "low": 0.8, "high": 1.0},
            {"head": "enc.0.0", "share": 0.5, "low": 0.4, "high": 0.6},
            {"head": "enc.0.1", "share": 0.3, "low": 0.2, "high": 0.4},
        ],
    }
    found = nearest(survey)
    assert (found["head"], found["share"]) == ("enc.0.0", 0.5)  # of the first layer, not enc.1.0
    assert found["confidence"] == {
        "value": 0.2, "over the next": 0.25, "place in layer": 2, "place in stack": 2,
    }  # fmt: skip
