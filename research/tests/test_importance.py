"""The importance experiment: cases, findings and figures, on made-up tables."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import headcount as hc
from headcount.records.files import to_strict
from research import DOCS, RESULTS, ROOT
from research.importance.cases import SCORES, read_cases
from research.importance.draw import draw
from research.importance.findings import again, agreements, findings, over_training, read_dynamics
from research.importance.measure import Measured, of_json
from research.importance.over_training import settling
from research.importance.page import filled
from research.rules.rare import nearest

HEADS = [hc.Head(s, layer, i) for s in ("enc", "dec", "cross") for layer in (0, 1) for i in (0, 1)]
BEST = {"stack": "enc", "layer": 0, "head": 1, "cost": 0.1, "low": -0.1, "high": 0.3} | {
    "chosen_on": "other half", "p_adjusted": 0.5,
}  # fmt: skip
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
    best = pd.DataFrame([{**BEST, "cost": 0.123456789}, {**BEST, "chosen_on": "same examples"}])
    details = {"best_single_heads": best}
    return hc.HeadTable.of(HEADS, values, provenance=ABOUT, details=details)


def case(name: str) -> Any:
    return next(case for case in read_cases()[1] if case.name == name)


def measured(seed: int, judged: bool = True) -> Measured:
    own = table(seed)
    return Measured(own, own, own, own if judged else None, own if judged else None)


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
        {**BEST, "cost": 0.12346},
        {**BEST, "chosen_on": "same examples"},
    ]


def test_figures_are_drawn_from_the_json_alone(tmp_path: Path) -> None:
    groups = {
        "translator": {"tatoeba": measured(0), "lohelp": measured(1, judged=False)},
        "classifiers": {"sst2": measured(2), "mrpc": measured(3)},
    }
    told: dict[str, Any] = {
        "cases": {n: findings(case(n), t) for group in groups.values() for n, t in group.items()},
    }
    told |= {
        "agreement": {
            group: agreements({name: told["cases"][name] for name in names}).to_dict("records")
            for group, names in groups.items()
        },
        "over training": {
            "en-de": over_training(ROOT / "research/translator/results/en-de/dynamics.json")
        },
    }
    (tmp_path / "importance.json").write_text(json.dumps(to_strict(told)))
    draw(tmp_path, tmp_path)
    drawn = {path.stem.removeprefix("importance-") for path in tmp_path.glob("*.svg")}
    matrices = {"agreement-translator", "agreement-classifiers"}
    others = {"masked", "relevance", "two-scores", "data-sets", "training", "one-head"}
    assert drawn == matrices | others


def test_the_loss_measured_again_leaves_the_other_scores() -> None:
    known = findings(case("tatoeba"), measured(0))
    old = json.loads(json.dumps(known))
    other = table(1)
    other.frame["ablation"] *= 2
    more = replace(case("tatoeba"), without=5_000)
    found = again(more, Measured(None, other, None, None, None), known)
    assert found["scores"]["gradient"] == old["scores"]["gradient"]
    assert found["judged"] == old["judged"]
    assert found["scores"]["ablation"]["cross.1.1"] == pytest.approx(0.8)
    assert found["loss"]["range"] == [-0.2, 0.8]
    assert found["examples without heads"] == 5_000
    assert found["examples"] == old["examples"]
    assert of_json(found).numbers("ablation").max() == pytest.approx(0.8)


def test_the_page_says_what_the_json_says() -> None:
    page = (DOCS / "importance.md").read_text(encoding="utf8")
    told = json.loads((RESULTS / "importance.json").read_text(encoding="utf8"))
    assert filled(page, told) == page
    loss = told["cases"]["tatoeba"]["loss"]
    worse = sum(loss["cost something"].values())
    share = f"{100 * worse / loss['heads']:.1f}%"
    assert f"{worse} of {loss['heads']} heads ({share}) cost something" in page
    case = told["cases"]["tatoeba"]
    count = case.get("examples without heads", case["examples"])
    assert f"on {count:,} pairs of Tatoeba {worse} of" in page
    sets = [name for name in told["cases"] if not name.endswith("-again")]
    assert len(sets) == 6
    assert "four scores, six sets of examples" in page
    told["cases"]["tatoeba"]["loss"]["baseline"] = 7.777
    assert "| loss a token | 7.777 |" in filled(page, told)


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


@pytest.mark.parametrize("run", ["en-de", "en-ru"])
def test_the_translators_own_training(run: str) -> None:
    path = ROOT / "research" / "translator" / "results" / run / "dynamics.json"
    frame = read_dynamics(path)
    steps = frame["step"].unique()
    assert len(frame) == 144 * len(steps)
    told = json.loads(path.read_text())["snapshots"][0]
    first = frame[frame["step"] == told["step"]].iloc[0]
    assert first["value"] == told["gradient"]["enc.0.0"]
    found = settling(frame, draws=200)
    assert list(found["stack"].unique()) == ["all", "enc", "dec", "cross"]
    late = found[(found["step"] == steps[-2]) & (found["stack"] == "all")].iloc[0]
    assert late["low"] > 0.5  # near the end the order is nearly the last one
