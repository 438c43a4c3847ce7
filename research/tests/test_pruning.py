"""The pruning experiment on random models: points, verdicts, gates, healing, and the command."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from headcount.records.heads import Head
from headcount.wiring.valves import valve
from research import DOCS, RESULTS, ROOT
from research.pruning import saved
from research.pruning.__main__ import main
from research.pruning.classifier import read_case
from research.pruning.config import read_config
from research.pruning.gate_sets import learn_gates
from research.pruning.groups import groups_of
from research.pruning.healer import healing
from research.pruning.judge import judged
from research.pruning.page import TABLES, filled
from research.pruning.paired import readings
from research.pruning.points import along, by_score, shuffled
from research.pruning.reading import losses, row_losses
from research.pruning.rows import free, within
from research.pruning.text_rows import toy_llama

SMOKE = ROOT / "research" / "pruning" / "config.smoke.toml"


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the command writes, part after part."""
    folder = tmp_path_factory.mktemp("pruning")
    for part in ("classifiers", "groups", "draw"):
        words = [part, "--config", str(SMOKE), "--device", "cpu", "--out", str(folder)]
        assert main(words) == 0
    return folder


def test_points_go_down_the_order() -> None:
    heads = [Head("enc", 0, n) for n in range(4)]
    order = [(head,) for head in by_score(heads, [3.0, 1.0, 2.0, 1.0])]
    points = along("gradient", order, [1, 3])
    assert [point.left for point in points] == [3, 1]
    assert points[0].gone == (heads[1],)
    assert points[1].removed == (heads[2], heads[3])
    assert shuffled(heads, 0) != shuffled(heads, 1)


def row(left: int, delta: float, low: float, p: float) -> dict[str, Any]:
    row = {"units_left": left, "heads_left": left, "value": 0.9 + delta, "more": "better"}
    return row | {"delta": delta, "delta_low": low, "delta_high": 0.1, "p": p}


def test_the_walk_ends_at_the_first_significant_loss() -> None:
    rows = [row(3, -0.01, -0.02, 0.4), row(2, -0.05, -0.09, 0.01), row(1, -0.01, -0.02, 0.5)]
    assert free(rows)["units_left"] == 3
    assert within(rows, 0.02)["units_left"] == 3
    assert free([row(3, 0.05, 0.01, 0.001)])["units_left"] == 3  # a gain is no loss
    assert free([row(3, -0.05, -0.09, 0.001)]) == {}


def test_classifiers_are_told(out: Path) -> None:
    told = json.loads((out / "pruning-classifiers.json").read_text())
    case = told["cases"]["toy-sst2-0"]
    orders = {line["order"] for line in case["curve"]}
    assert {"gradient", "ablation", "gates", "random 0", "random 1", "whole"} <= orders
    for line in case["curve"]:
        kept = [word for word in line["kept"].split(",") if word]
        assert len(kept) == line["heads_left"]
        assert line["low"] <= line["value"] <= line["high"]
        assert line["n"] == 24
    whole = next(line for line in case["curve"] if line["order"] == "whole")
    assert whole["healed"]
    assert whole["fair"] == 0
    assert str(ROOT) not in json.dumps(told)
    assert (out / "pruning-classifiers.svg").stat().st_size > 1000


def test_groups_are_told(out: Path) -> None:
    told = json.loads((out / "pruning-smollm2.json").read_text())
    assert told["groups"] == 4
    for line in told["curve"]:
        assert line["heads_left"] == 2 * line["units_left"]
        assert line["perplexity"] == pytest.approx(np.exp(line["value"]))
    healed = [line["order"] for line in told["curve"] if line["healed"]]
    assert healed == ["whole", "gradient"]


def test_sets_that_are_saved(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Saving proves itself in a fresh process, and has tests of its own."""
    monkeypatch.setattr(saved, "_saved", lambda _, heads: [str(head) for head in heads])
    told = saved.check_saved(read_config(SMOKE), None, out / "pruning-smollm2.json")["saved"]
    assert told["one group of every layer"] == ["dec.0.2", "dec.0.3", "dec.1.2", "dec.1.3"]
    assert len(told["1 groups at random"]) == 2
    curve = json.loads((out / "pruning-smollm2.json").read_text())["curve"]
    first = next(row for row in curve if row["order"] == "gradient" and row["step"] == 1)
    assert ",".join(told["1 groups by gradient"]) == first["removed"]


def test_a_row_of_losses_is_the_model_with_these_heads_shut() -> None:
    subject = toy_llama()
    ids = torch.randint(3, 60, (4, 16), generator=torch.Generator().manual_seed(1))
    gone = groups_of(subject)[1]
    assert gone == (Head("dec", 0, 2), Head("dec", 0, 3))
    found = losses(subject, ids, [(), gone], batch=3)
    with torch.no_grad(), valve(subject, dict.fromkeys(gone, 0.0)):
        wanted = row_losses(subject.model, ids)
    assert found[1] == pytest.approx(wanted.numpy(), rel=1e-5)
    with torch.no_grad():
        plain = subject.model(input_ids=ids, labels=ids).loss
    assert found[0].sum() / (4 * 15) == pytest.approx(plain.item(), rel=1e-5)


def test_sets_judged_together_are_as_one_by_one() -> None:
    config = read_config(SMOKE)
    case = read_case("toy-sst2-0", config, None, None, "cpu")
    sets = [(), case.subject.heads[:3], case.subject.heads[2:7]]
    found = judged(case.subject, case.judging, sets, batch=40)
    for gone, outcome in zip(sets, found, strict=True):
        with valve(case.subject, dict.fromkeys(gone, 0.0)):
            wanted = case.held.evaluate(case.subject)
        assert outcome.scores.tolist() == wanted.scores.tolist()


def test_gates_come_near_the_numbers_asked_for() -> None:
    config = read_config(SMOKE)
    case = read_case("toy-sst2-0", config, None, None, "cpu")
    before = {name: weight.clone() for name, weight in case.subject.model.state_dict().items()}
    points, told = learn_gates(case.subject, case.rows, case.width, config.gates, 0)
    assert [8 - len(point.gone) for point in points] == config.gates.left
    assert all(abs(one["expected"] - one["asked"]) < 2 for one in told)
    after = case.subject.model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_healing_starts_anew_and_leaves_shut_heads_alone() -> None:
    subject, settings = toy_llama(), read_config(SMOKE).groups.heal
    ids = torch.randint(3, 60, (8, 16), generator=torch.Generator().manual_seed(1))
    gone = groups_of(subject)[0]
    projection = subject.model.model.layers[0].self_attn.o_proj.weight
    start = projection.detach().clone()

    def loss(rows: torch.Tensor) -> torch.Tensor:
        return row_losses(subject.model, ids[rows]).sum()

    with healing(subject, loss, settings, len(ids), record=False) as healer:
        healer.heal(gone, 0)
        once = projection.detach().clone()
        healer.heal(gone, 0)
    assert torch.equal(once, projection)
    assert torch.equal(start[:, :16], once[:, :16])
    assert not torch.equal(start[:, 16:], once[:, 16:])


def told_by(name: str) -> Any:
    return json.loads((RESULTS / f"pruning-{name}.json").read_text(encoding="utf8"))


def test_the_page_says_what_the_json_says() -> None:
    page = (DOCS / "pruning.md").read_text(encoding="utf8")
    assert set(re.findall(r"<!-- table: (\w+) -->", page)) == set(TABLES)
    assert filled(page, RESULTS) == page
    ten = told_by("gates")["headline"]["mean"]
    pairs = {part: ten[part]["difference"]["in_pairs"] for part in ("dev", "test")}
    assert (
        f"the interval on test is {span(pairs['test'])}, p .05, on dev {span(pairs['dev'])}" in page
    )
    assert f"{pairs['test']['p']:.2f}" == "0.05"
    freedom = [round(ten[part]["difference"]["degrees_of_freedom"]) for part in ("dev", "test")]
    assert f"{freedom[0]} on dev, {freedom[1]} on test" in page
    scratch = told_by("gates")["curve"]["runs"]["scratch-48"]
    assert f"0.00 {span(scratch['test'])} on test, +0.56 {span(scratch['dev'])} on dev" in page


def span(row: dict[str, float], sign: int = 1) -> str:
    """The interval of a difference, or of the loss that it is."""
    low, high = sorted(sign * row[f"delta_{end}"] for end in ("low", "high"))
    return f"[{low:.2f}, {high:.2f}]"


def test_the_results_at_a_glance_say_what_the_json_says() -> None:
    readme = (ROOT / "docs" / "results" / "README.md").read_text(encoding="utf8")
    ten = told_by("gates")["headline"]["mean"]["test"]["difference"]
    assert f"cost is {-ten['delta']:.2f} BLEU {span(ten, -1)} on test (3 seeds" in readme
    for name, words in (("russian", "had used,"), ("frozen", "is significant:")):
        row = told_by(name)["headline"]["test"]
        found = f"{-row['delta']:.2f} [{-row['high']:.2f}, {-row['low']:.2f}]"
        assert f"{words} {found}" in readme
    cases = told_by("paired")["readings"].values()
    gone = {
        order: [[72 - case[order][key] for case in cases] for key in ("within", "before_a_loss")]
        for order in ("gradient", "gates")
    }
    within = [gone[order][0] for order in gone]
    assert {heads for one in within for heads in one} == {0, 12}
    assert [one.count(12) for one in within] == [4, 3]
    assert "12 in four of six cases by gradient and in three by gates" in readme
    ends = [f"{end(gone[order][1]) / 0.72:.0f}%" for order in gone for end in (min, max)]
    assert (
        f"Before a significant loss shows, {ends[0]} to {ends[1]} of them go by gradient" in readme
    )
    assert f"{ends[2]} to {ends[3]} by gates" in readme


def test_another_figure_makes_another_table(tmp_path: Path) -> None:
    page = "a\n<!-- table: ten_heads -->\n<!-- end -->\nb\n"
    told = told_by("gates")
    told["headline"]["mean"]["test"]["difference"] |= {"delta": -7.005, "delta_low": -8.0}
    (tmp_path / "pruning-gates.json").write_text(json.dumps(told))
    (tmp_path / "pruning.md").write_text(page)
    assert main(["page", "--out", str(tmp_path)]) == 0
    made = (tmp_path / "pruning.md").read_text()
    assert "| -7.01 [-8.00, 0.07] |" in made
    assert made.startswith("a\n")
    assert made.endswith("b\n")


def test_orders_are_read_at_the_same_points() -> None:
    """A ranking that was judged more finely stops where gates could have stopped."""

    def line(order: str, left: int, low: float, p: float, healed: bool = False) -> dict[str, Any]:
        fair = {"fair": -0.01, "fair_low": low, "fair_high": 0.1, "fair_p": p} if healed else {}
        return row(left, -0.01, low, p) | {"order": order, "healed": healed} | fair

    curve = [
        line("gates", 6, -0.005, 0.5), line("gates", 3, -0.5, 0.01),
        line("gradient", 7, -0.005, 0.5), line("gradient", 6, -0.005, 0.5),
        line("gradient", 5, -0.005, 0.5), line("gradient", 3, -0.02, 0.01),
        line("ablation", 7, -0.005, 0.5), line("ablation", 6, -0.02, 0.01),
        line("gates", 6, -0.02, 0.5, True), line("gates", 3, -0.02, 0.5, True),
    ]  # fmt: skip
    found = readings({"heads": 8, "curve": curve}, margin=0.01)
    assert found["gradient"] == found["gates"] == {"before_a_loss": 6, "within": 6}
    assert found["ablation"] == {"before_a_loss": 8, "within": 8}
    assert found["gates, healed"] == {"before_a_loss": 3, "within": 8}
