"""The page of roles: findings from figures made up, what is kept of a survey, tables and JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tiny_subjects import encoder

import headcount as hc
from headcount.bundle import sample
from research import DOCS, RESULTS
from research.roles import measure
from research.roles.__main__ import told
from research.roles.findings import findings
from research.roles.keep import kept, plain
from research.roles.page import filled
from research.roles.reading import by_layer
from research.roles.store import read_surveys

DET = {"stack": "enc", "relation": "det", "head": "enc.0.1", "direction": "dep->head", "n": 300}


def made(accuracy: float = 0.9, p: float | None = 0.001, **more: Any) -> dict[str, Any]:
    """A survey of two layers of two heads, of which one follows determiners."""
    row = DET | {"accuracy": accuracy, "baseline": 0.6, "p_adjusted": p}
    return {
        "plan": {"model": "minilm"},
        "index": ["enc.0.0", "enc.0.1", "enc.1.0", "enc.1.1"],
        "columns": {
            "confidence": [0.9, 0.5, 0.7, 0.1],
            "separator": [0.1, 0.3, 0.6, 0.8],
            "separator_to_separator": [0.0, 0.2, 0.9, 0.7],
            "first": [0.0, 0.0, 0.0, 0.0],
        },
        "roles": [],
        "best": [row],
    } | more


def held(finding: str, survey: dict[str, Any]) -> bool:
    holds: bool = findings({"one": survey})[finding]["one"]["holds"]
    return holds


@pytest.mark.parametrize(
    ("accuracy", "p", "holds"), [(0.9, 0.001, True), (0.79, 0.001, False), (0.9, None, False)]
)
def test_far_is_twenty_points_and_no_chance(accuracy: float, p: float | None, holds: bool) -> None:
    assert held("det far above the offset", made(accuracy, p)) is holds


def test_a_finding_is_not_asked_where_it_cannot_be_answered() -> None:
    found = findings({"one": made(), "minilm-pud-de": made()})
    assert set(found["det far above the offset"]) == {"one"}
    assert found["object far above the offset"] == {}
    assert found["a head finds antecedents"] == {}


@pytest.mark.parametrize(("head", "holds"), [("enc.0.0", True), ("enc.1.0", False)])
def test_one_diffident_positional_head_is_enough_to_fail(head: str, holds: bool) -> None:
    verdict = {"head": head, "role": "positional", "label": "offset -1", "value": 0.95}
    assert held("positional heads are confident", made(roles=[verdict])) is holds


@pytest.mark.parametrize(("layer", "holds"), [(0, True), (1, False)])
def test_a_rare_word_head_must_be_in_the_first_layer(layer: int, holds: bool) -> None:
    head = f"enc.{layer}.0"
    rows = [
        {"head": head, "share": 0.7, "rarest": 0.5, "chance": 0.2},
        {"head": "enc.0.1", "share": 0.3, "rarest": 0.2, "chance": 0.2},
    ]
    survey = made(rarity=rows, roles=[{"head": head, "role": "rare"}])
    assert held("a rare-word head in the first layer", survey) is holds


def test_counts_of_the_text_under_test_judge_no_rare_word_head() -> None:
    rows = [{"head": "enc.0.0", "share": 0.7, "rarest": 0.5, "chance": 0.2}]
    for counts, holds in (("the corpus", None), ("wordfreq (en)", False)):
        survey = made(rarity=[rows[0] | {"counts": counts}])
        found = findings({"one": survey})["a rare-word head in the first layer"]["one"]
        assert found["holds"] is holds
        page = filled("<!-- table: rare -->\n<!-- end -->", {"one": survey})
        assert f"| {counts} | {'not judged' if holds is None else 'no'} |" in page


@pytest.mark.parametrize(
    ("low", "high", "holds"), [(0.5, 0.7, True), (0.4, 0.7, None), (0.3, 0.42, False)]
)
def test_antecedents_need_a_sure_lead_over_head_match(
    low: float, high: float, holds: bool | None
) -> None:
    row = {"kind": "all", "head": "enc.1.1", "accuracy": 0.6, "low": low, "high": high, "n": 90}
    rules = [("nearest", 0.2), ("head match", 0.4)]
    rows = [
        row | {"naive": 0.6, "against": name, "baseline": value, "p_adjusted": 0.01}
        for name, value in rules
    ]
    found = findings({"one": made(coreference=rows)})["a head finds antecedents"]["one"]
    assert found["holds"] is holds


@pytest.mark.parametrize(
    ("low", "high", "holds"), [(0.2, 0.4, True), (0.4, 0.6, None), (0.8, 0.9, False)]
)
def test_the_loss_minds_by_size_and_not_by_p_value(
    low: float, high: float, holds: bool | None
) -> None:
    rows = [
        {"stack": "enc", "layer": layer, "target": "separator", "p_adjusted": 0.0003}
        | {"share": (low + high) / 2, "share_low": low, "share_high": high}
        for layer in (0, 1)
    ]
    assert held("the loss does not mind separators", made(noop=rows)) is holds


def test_means_by_layer_decide_where_heads_rest() -> None:
    assert by_layer(made(), "separator") == pytest.approx([0.2, 0.7])
    assert held("upper layers rest on separators", made())
    assert held("separators look at separators", made())


@pytest.fixture(scope="module")
def survey() -> hc.HeadTable:
    return hc.survey(
        encoder(),
        treebank=sample.path("sample.conllu"),
        limit=60,
        reading=hc.ReadingOptions(seed=0),
    )


def test_what_is_kept_is_what_was_measured(survey: hc.HeadTable) -> None:
    found = kept(survey)
    relations = survey.details["relations"]
    naive = relations[(relations["split"] == "all") & (relations["relation"] == "all")]
    [row] = [row for row in found["best"] if row["relation"] == "all"]
    assert row["naive_accuracy"] == pytest.approx(naive["accuracy"].max(), abs=1e-4)
    assert found["columns"]["confidence"] == plain(survey.frame["confidence"].tolist(), 3)
    assert len(found["roles"]) == len(survey.details["roles"])
    json.dumps(found, allow_nan=False)


def test_a_role_measured_again_leaves_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "_subject", lambda model, translators: encoder())
    old = [{"role": "feature", "head": "enc.0.0"}, {"role": "sink", "head": "enc.0.1"}]
    plan = {"model": "tiny", "treebank": "sample.conllu", "limit": 40}
    data = Path(sample.path("sample.conllu")).parent
    found = measure.measured_again(["feature"], made(roles=old), plan, data, None)
    assert found["roles"] == old[1:]  # random weights look at no kind of word
    assert found["columns"] == made()["columns"]
    assert {row["feature"] for row in found["features"]} > {"noun", "verb"}
    assert found["again"]["feature"]["settings"]["limit"] == 40


def test_rare_words_measured_again_bring_their_columns_and_their_twin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(measure, "_subject", lambda model, translators: encoder())
    plan = {"model": "tiny", "treebank": "sample.conllu", "limit": 40, "control": True}
    data = Path(sample.path("sample.conllu")).parent
    twin = [{"column": "first", "max": 0.5}, {"column": "rare_two", "max": 0.9}]
    old = made(twin=twin)
    found = measure.measured_again(["rare"], old, plan | {"frequencies": "wordfreq"}, data, None)
    assert {row["counts"] for row in found["rarity"]} != {"the corpus"}
    assert found["plan"]["frequencies"] == "wordfreq"
    assert found["columns"]["first"] == old["columns"]["first"]
    assert max(found["columns"]["rare_two"]) == pytest.approx(found["rarity"][0]["share"], abs=1e-3)
    assert found["twin"][0] == twin[0]
    assert {row["column"] for row in found["twin"]} == {"first", "rare", "rare_two"}
    assert twin[1] not in found["twin"]


def test_no_word_of_a_corpus_is_kept(survey: hc.HeadTable) -> None:
    row = dict.fromkeys(survey.details["roles"].columns, 0) | {"stack": "enc", "label": "'rain'"}
    rows = survey.details["roles"].iloc[:0].copy()
    rows.loc[0] = row
    survey = hc.HeadTable(survey.frame, details={**survey.details, "roles": rows})
    assert [one["label"] for one in kept(survey)["roles"]] == ["another token"]


def test_all_is_written_and_told_again(tmp_path: Path) -> None:
    (tmp_path / "roles.md").write_text("a\n<!-- table: verdicts -->\n<!-- end -->\nb\n")
    told({"one": made()}, tmp_path)
    page = (tmp_path / "roles.md").read_text()
    assert "| det far above the offset | one | – | – |" in page
    assert page.startswith("a\n")
    assert page.endswith("b\n")
    assert filled(page, {"one": made()}) == page
    assert read_surveys(tmp_path) == {"one": made()}


def test_the_twin_of_a_kind_of_word_is_put_on_the_row_s_own_baseline() -> None:
    row = {"head": "enc.1.1", "feature": "noun", "origin": "all", "n": 90, "heads_above": 3}
    row |= {"compared": 0.5, "compared_low": 0.4, "compared_high": 0.6, "baseline": 0.3}
    verdict = {"head": "enc.0.1", "role": "feature", "label": "noun", "baseline": 0.1}
    page = "<!-- table: features -->\n<!-- end -->"
    one = made(features=[row], roles=[verdict | {"control": 0.11}])
    assert "| 0.50 [0.40, 0.60] | 0.300 | 0.330 | 3 |" in filled(page, {"minilm-ewt": one})
    # No verdict, or one beside no twin: the lead is not known.
    for roles in ([], [verdict | {"control": None}], [verdict | {"control": 0.1, "label": "verb"}]):
        one = made(features=[row], roles=roles)
        assert "| 0.300 | – | 3 |" in filled(page, {"minilm-ewt": one})


def test_the_page_says_what_the_json_says() -> None:
    page = (DOCS / "roles.md").read_text(encoding="utf8")
    found = json.loads((RESULTS / "roles.json").read_text(encoding="utf8"))
    surveys = read_surveys(RESULTS)
    assert filled(page, surveys) == page
    assert found["findings"] == json.loads(json.dumps(findings(surveys)))
    assert sum(file.stat().st_size for file in (RESULTS / "roles").iterdir()) < 1_500_000


def test_what_is_said_of_rare_words_is_what_was_found() -> None:
    page = (DOCS / "roles.md").read_text(encoding="utf8")
    told = {
        name: max(one["rarity"], key=lambda row: row["share"])
        for name, one in read_surveys(RESULTS).items()
        if one["plan"]["model"] in ("minilm", "e5-small") and "rare" in one.get("again", {})
    }
    assert {row["counts"] for row in told.values()} == {"wordfreq en"}
    shares = [100 * row["share"] for row in told.values()]
    assert f"words in {min(shares):.1f}% to {max(shares):.1f}% of cases" in page
    times = [row["share"] / row["chance"] for row in told.values()]
    assert f"{min(times):.1f} to {max(times):.1f} times chance" in page
    assert all(row["high"] < row["uncommon"] for row in told.values())
    assert len(told) == 6
    assert "in all six surveys judged so" in page
