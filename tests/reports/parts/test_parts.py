"""The parts of the page's data: what a run holds comes out, and nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from report_runs import (
    ENCODER,
    THREE,
    made_curve,
    made_pairs,
    made_relations,
    made_roles,
    made_run,
    made_sizes,
    made_table,
)

import headcount as hc
from headcount.pruning import freed
from headcount.records.table import HeadTable
from headcount.reports.page import page_data
from headcount.reports.parts import numbers
from headcount.reports.parts.argument import titles
from headcount.reports.parts.curve import could_go, curve_part, run_tolerance
from headcount.reports.parts.numbers import (
    Source,
    column_part,
    pack_column,
    read_source,
    unpack_column,
)
from headcount.reports.parts.verdicts import role_part
from headcount.rooms.bench.sizes import strip_part, trained_part
from headcount.rooms.compare.runs import compare_part
from headcount.rooms.families.grouping import pair_part
from headcount.rooms.gates.page import freed_sentences
from headcount.rooms.relations.page import relation_part
from headcount.surveys.roles.role import with_roles


def test_columns_come_back_as_they_were() -> None:
    table = made_table(THREE)
    found = {one["id"]: unpack_column(one) for one in column_part(Source(table))}
    for name in ("confidence", "entropy", "gradient", "ablation"):
        values = table.numbers(name)
        assert np.allclose(found[name]["values"], values, rtol=1e-3, atol=1e-3 * values.max())
    assert np.allclose(found["ablation"]["lo"], table.low["ablation"], atol=1e-4)
    assert np.allclose(found["ablation"]["hi"], table.high["ablation"], atol=1e-4)


def test_p_values_stand_beside_their_column() -> None:
    found = {one["id"]: one for one in column_part(Source(made_table()))}
    assert "ablation_p_adjusted" not in found
    assert set(found["ablation"]["p"]) == {0.001, 0.6}


def test_what_was_not_measured_is_none_and_never_zero() -> None:
    found = {one["id"]: one for one in column_part(Source(made_table(THREE)))}
    assert found["next"]["values"][12:] == [None] * 24
    assert 0 not in found["next"]["values"]
    assert "cannot look ahead" in found["next"]["note"]


@pytest.mark.parametrize("scale", [1e-7, 1e-3, 1.0, 40.0, 1e6])
def test_packed_numbers_keep_three_digits(scale: float) -> None:
    values = np.random.default_rng(0).uniform(0.2, 1, 50) * scale
    back = unpack_column(pack_column(values, values * 0.9, values * 1.1))
    assert np.allclose(back["values"], values, rtol=3e-3)
    assert np.allclose(back["lo"], values * 0.9, rtol=5e-3)


def test_an_interval_beside_its_value_stays_there() -> None:
    """A bootstrap interval of a biased statistic need not hold the value itself."""
    back = unpack_column(pack_column([0.5, 0.5], [0.52, 0.3], [0.6, 0.48]))
    assert back["lo"] == pytest.approx([0.52, 0.3])
    assert back["hi"] == pytest.approx([0.6, 0.48])


def test_numbers_that_span_far_are_not_lost() -> None:
    values = [1e-9, 2e-8, 3e-7, 5.0]
    assert unpack_column(pack_column(values))["values"] == pytest.approx(values, rel=1e-3)


def test_heads_that_went_leave_gaps() -> None:
    table = made_table({"enc": (2, 3)})
    source = Source(table.select([head for head in table.heads if head.index != 1]))
    data = page_data(source)
    assert (data["count"], data["absent"]) == (4, [1, 4])
    assert [value is None for value in data["columns"][0]["values"]] == [0, 1, 0, 0, 1, 0]


# --- the curve -----------------------------------------------------------------------------------


def curve_of(**changes: object) -> Source:
    frame = made_curve(ENCODER).assign(**changes)
    return Source(made_table(), frames={"curve": frame})


def gone(source: Source, tolerance: str | None = None) -> dict[str, object]:
    found = could_go(replace(source, tolerance=tolerance)) or {}
    return {name: found[name] for name in ("order", "step", "gone", "metric", "n")}


def test_the_bound_of_the_loss_decides_what_can_go() -> None:
    # The interval of the two steps that lose nothing reaches to a loss of 1 BLEU.
    assert gone(curve_of())["gone"] == 0
    found = could_go(replace(curve_of(), tolerance="1"))
    assert found is not None
    assert (found["order"], found["step"], found["gone"], found["n"]) == (0, 2, 24, 50)
    assert (found["tolerance"], found["bound"], found["visible"]) == (1, 1, 1)
    assert found["sentence"] == (
        "24 heads can be pruned within 1 BLEU: at most 1 BLEU is lost (95% bound, n = 50; smallest "
        "detectable loss 1 BLEU)."
    )
    assert gone(curve_of(), "20%")["gone"] == 36  # of 30 BLEU


def test_a_bound_that_was_measured_counts_before_the_interval() -> None:
    frame = made_curve(ENCODER)
    bounds = frame["step"].map({0: 0.0, 1: 0.1, 2: 0.2, 3: 0.3, 4: 0.6, 5: 0.2})
    source = Source(made_table(), frames={"curve": frame.assign(bound=bounds)})
    assert gone(source)["step"] == 3  # the fourth fails, and ends it
    assert [point["bound"] for point in (curve_part(source) or [])[0]["points"]][:2] == [0, 0.1]


def test_a_loss_falls_upwards() -> None:
    frame = made_curve(ENCODER)
    turned = frame.assign(delta=-frame["delta"], more="worse", metric="loss")
    turned = turned.assign(delta_low=turned["delta"] - 1, delta_high=turned["delta"] + 1)
    assert gone(Source(made_table(), frames={"curve": turned}), "1")["step"] == 2


def test_the_strictest_metric_of_an_order_decides() -> None:
    bleu = made_curve(ENCODER, ["ablation"])
    loss = bleu.assign(metric="loss", more="worse", delta=0.0, delta_high=0.1, p=0.9)
    source = Source(made_table(), frames={"curve": pd.concat([loss, bleu])})
    found = could_go(replace(source, tolerance="1"))
    assert found is not None
    assert [(one["metric"], one["gone"]) for one in found["by"]] == [("BLEU", 24), ("loss", 60)]
    assert (found["metric"], found["order"]) == ("BLEU", 1)
    said = [one["sentence"] for one in page_data(replace(source, tolerance="1"))["go"]["by"]]
    assert said[0].startswith("24 heads can be pruned within 1 BLEU")
    assert said[1].startswith("60 heads can be pruned within 1 nats")


def test_fewer_examples_never_look_better_by_accuracy() -> None:
    same = {"metric": "accuracy", "value": 0.9, "delta": 0.0, "delta_low": 0.0, "delta_high": 0.0}
    assert gone(curve_of(n=436, **same), "0.6")["gone"] == 60
    assert gone(curve_of(n=436, **same), "0.5")["gone"] == 0
    found = could_go(curve_of(n=100, **same))
    assert found is not None
    assert "smallest detectable loss 2.3 points of accuracy" in found["sentence"]


def test_what_was_not_tested_promises_nothing() -> None:
    untested = curve_of(delta=-0.1, p=np.nan, delta_low=np.nan, delta_high=np.nan)
    assert "too few for a test" in (could_go(untested) or {})["sentence"]
    undefined = curve_of(delta=np.nan, delta_low=np.nan, delta_high=np.nan, p=np.nan)
    assert gone(undefined)["gone"] == 0


def test_the_tolerance_of_a_run_is_that_it_was_told_or_pruned_with() -> None:
    asked = {"prune": {"max_loss": 2.0}, "can-go": {"tolerance": "1%"}}
    for (stage, settings), said in zip(asked.items(), ("2.0", "1%"), strict=True):
        record = {"stages": {stage: {"settings": settings}}}
        assert run_tolerance(Source(made_table(), record=record)) == said
    assert run_tolerance(Source(made_table())) is None


def test_held_out_examples_are_preferred() -> None:
    frame = made_curve(ENCODER)
    both = pd.concat([frame.assign(part="choose", value=99.0), frame])
    found = curve_part(Source(made_table(), frames={"curve": both})) or []
    assert {point["value"] for point in found[0]["points"]} == {30, 26, 22, 18}


def test_random_orders_alone_promise_nothing() -> None:
    frame = made_curve(ENCODER, ["random 0", "random 1"])
    assert could_go(Source(made_table(), frames={"curve": frame})) is None


# --- relations, roles, pairs ---------------------------------------------------------------------


def test_the_direction_too_is_chosen_on_the_other_half() -> None:
    """The better of two directions on the judged half would flatter."""
    row = made_relations({"enc": (1, 1)}, ["obj"]).iloc[0].to_dict() | {"selected": True}
    rows = [
        row | {"direction": direction, "split": split, "accuracy": accuracy}
        for direction, select, report in (("dep->head", 0.8, 0.6), ("head->dep", 0.7, 0.9))
        for split, accuracy in (("select", select), ("report", report))
    ]
    frame = pd.DataFrame(rows)
    found = relation_part(Source(made_table({"enc": (1, 1)}), frames={"relations": frame})) or {}
    (best,) = found["best"]
    assert found["questions"][best[1]]["direction"] == "dep->head"
    assert best[2] == 0.6


def test_the_held_out_half_is_shown() -> None:
    frame = made_relations(ENCODER)
    chosen = frame.assign(split="select", accuracy=0.99)
    source = Source(
        made_table(), frames={"relations": pd.concat([chosen, frame.assign(split="report")])}
    )
    found = relation_part(source)
    assert found is not None
    assert "chosen on one half" in found["note"]
    best = frame.loc[frame["accuracy"].idxmax()]
    place = source.places[source.table.heads[int(best["layer"]) * 12 + int(best["head"])]]
    assert place in [row[0] for row in found["best"]]
    assert max(row[2] for row in found["best"]) == pytest.approx(best["accuracy"], abs=1e-3)


def test_roles_that_were_not_judged_are_not_roles_that_were_not_found() -> None:
    assert role_part(Source(made_table())) is None
    empty = Source(made_table(), frames={"roles": pd.DataFrame(columns=["stack", "layer", "head"])})
    assert role_part(empty) == [[] for _ in range(72)]


def test_a_role_of_ones_own_is_other_with_its_label() -> None:
    row = {
        "stack": "enc",
        "layer": 0,
        "head": 1,
        "role": "poetic",
        "label": "rhymes",
        "evidence": "",
    }
    source = Source(made_table(), frames={"roles": pd.DataFrame([row])})
    assert (role_part(source) or [])[1] == [
        {"role": "other", "detail": "rhymes: rhymes", "label": "rhymes", "value": None}
    ]


def test_nearest_heads_have_their_distance() -> None:
    pairs = made_pairs(ENCODER)
    found = pair_part(Source(made_table(), pairs=pairs)) or {}
    first = int(pairs["nearest"][5, 0])
    assert found["near"][5][0] == [first, pytest.approx(float(pairs["js"][5, first]), rel=1e-2)]


def test_a_frame_of_changes_is_a_comparison() -> None:
    table = made_table({"enc": (1, 2)})
    changes = pd.DataFrame(
        {
            "stack": "enc",
            "layer": 0,
            "head": [0, 1],
            "cosine": [1.0, 0.5],
            "cosine_low": [1.0, 0.4],
            "cosine_high": [1.0, 0.6],
            "entropy": [0.1, -0.2],
            "entropy_low": [0.0, -0.3],
            "entropy_high": [0.2, -0.1],
            "entropy_before": [1.0, 2.0],
            "entropy_after": [1.1, 1.8],
        }
    )
    lost = pd.DataFrame(
        [("enc", 0, 1, "rare", "rarest", "lost")],
        columns=["stack", "layer", "head", "role", "label", "change"],
    )
    record = {"stages": {"compare": {"settings": {"before": "made", "after": "tuned"}}}}
    source = Source(table, frames={"changes": changes, "role_changes": lost}, record=record)
    found = compare_part(source) or {}
    assert found["name"] == "tuned"
    assert found["columns"] == {
        "entropy": {"values": [1.1, 1.8], "lo": [0, -0.3], "hi": [0.2, -0.1]}
    }
    assert found["changes"][0]["values"] == [1, 0.5]
    assert found["roles"] == [[1, "rare", "rarest", "lost"]]


def test_a_pruned_run_is_compared_by_the_heads_it_kept() -> None:
    table = made_table({"enc": (2, 3)})
    small = table.select([head for head in table.heads if head.layer == 0])
    found = compare_part(Source(table, other=Source(small))) or {}
    assert found["columns"]["entropy"]["values"][3:] == [None] * 3


def test_without_roles_the_title_tells_how_sure_heads_are() -> None:
    table = made_table()
    sharp = int((table.numbers("confidence") > 0.5).sum())
    bare = table.without(["ablation", "ablation_p_adjusted"])
    assert page_data(Source(bare))["headline"] == (
        f"The 72 attention heads of made: {sharp} give over half of their attention to one token."
    )


def test_without_a_test_nobody_says_which_heads_matter_alone() -> None:
    table = made_table()
    assert (
        page_data(Source(table))["costly"]
        == np.flatnonzero(table.numbers("ablation") > 0.03).tolist()
    )
    table.frame["ablation_p_adjusted"] = np.nan  # too few examples for a test
    assert page_data(Source(table))["costly"] is None


def test_everything_missing_is_told_with_its_command(tmp_path: Path) -> None:
    bare = page_data(Source(made_table().without(["ablation", "ablation_p_adjusted"])))
    told = [row[0] for row in bare["missing"]]
    assert {"roles", "relations", "ablation", "curve", "pairs", "exhibits"} <= set(told)
    whole = page_data(read_source(made_run(tmp_path / "run", THREE)))
    unasked = {"pattern", "probe_weight", "gates", "healed", "refitted"}
    assert {row[0] for row in whole["missing"]} == unasked


# --- what the page argues ------------------------------------------------------------------------


def test_a_head_is_counted_by_what_it_does_before_where_it_rests() -> None:
    frame = made_roles({"enc": (1, 1)}).assign(role="sink")
    both = pd.concat([frame, frame.assign(role="rare"), frame.assign(role="separator")])
    source = Source(made_table({"enc": (1, 2)}), frames={"roles": both})
    assert [one["role"] for one in (role_part(source) or [])[0]] == ["rare", "separator", "sink"]
    table = HeadTable.of(source.table.heads, {}, details={"roles": both})
    assert with_roles(table).frame["role"].tolist()[0] == "rare"
    data = page_data(source)
    assert data["headline"].startswith("Head enc.0.0 of made points to the rarest token")
    assert data["opening"] == {"head": 0, "col": "ablation", "paint": "role"}


def test_a_head_without_a_role_is_told_its_nearest_miss() -> None:
    heads = made_table({"enc": (1, 2)})
    table = HeadTable.of(heads.heads, {"best_offset_share": [0.59, 0.2], "separator": [0.1, 0.55]})
    source = Source(table, frames={"roles": made_roles({"enc": (1, 2)}).iloc[:0]})
    assert page_data(source)["misses"] == [
        "the same offset for a share of 0.59; the rule asks 0.90",
        "mass on separators 0.55; the rule asks 0.60",
    ]


@pytest.mark.parametrize(("arcs", "few"), [(99, True), (120, False)])
def test_a_head_of_a_treebank_with_too_few_arcs_was_not_judged(arcs: int, few: bool) -> None:
    """It reads as such, not as a head that no rule names."""
    size = {"enc": (1, 2)}
    table = made_table(size)
    table.frame["ablation"], table.frame["ablation_p_adjusted"] = [0.5, 0.1], [0.001, 0.9]
    frames = {"roles": made_roles(size).iloc[:0], "relations": made_relations(size).assign(n=arcs)}
    data = page_data(Source(table, frames=frames))
    told = "relations not judged: too few arcs"
    assert [miss.endswith(told) for miss in data["misses"]] == [few, few]
    (text,) = [one["text"] for one in data["path"] if one["to"] == {"head": 0}]
    assert text.endswith(f"; {told}." if few else "and no rule names what it does.")


def test_every_verdict_has_its_row_among_the_relations() -> None:
    """The same relation in two directions, one of them confirmed: that one is bold and shown."""
    row = made_relations({"enc": (1, 1)}, ["obj"]).iloc[0].to_dict()
    rows = [
        row | {"direction": direction, "split": "report", "accuracy": accuracy, "n": 80}
        for direction, accuracy in (("dep->head", 0.95), ("head->dep", 0.6))
    ]
    said = made_roles({"enc": (1, 1)}).assign(role="syntactic", label="obj head->dep")
    frames = {"relations": pd.DataFrame(rows), "roles": said}
    found = relation_part(Source(made_table({"enc": (1, 1)}), frames=frames)) or {}
    told = {
        found["questions"][one[0]]["direction"]: found["status"][one[-1]]
        for one in found["heads"][0]
    }
    assert told["head->dep"] == "confirmed"
    assert [found["questions"][one[1]]["direction"] for one in found["best"]] == ["head->dep"]
    assert found["questions"][0]["meaning"] == "object"


def test_only_the_bundled_translator_has_the_projects_gates() -> None:
    assert trained_part(Source(made_table()), None) is None
    sizes = {"enc": (6, 8), "dec": (6, 8), "cross": (6, 8)}
    table = made_table(sizes)
    table.provenance["weights"] = known_heads_weights()
    found = strip_part(Source(table, frames={"curve": made_curve(sizes, ["gradient"])}))
    assert found["columns"] == ["BLEU as is", "BLEU healed"]
    shown = [stop for stop in found["stops"] if stop["shown"]]
    assert [stop["left"] for stop in shown] == [144, 113, 48, 28]
    # one baseline: what was healed is beside the whole model of the same sentences
    assert [stop["cells"][1][0] for stop in shown] == [48.3, 48, 47, 45.5]
    assert [stop["cells"][0][0] for stop in shown] == [48.1, 39, 22.5, 4.73]
    assert {stop["cells"][0][0] for stop in found["stops"] if stop not in shown} == {None}
    assert "is not of this run" in found["note"]


def test_the_sizes_that_were_timed_say_so() -> None:
    frames = {"curve": made_curve(ENCODER, ["gradient"])}
    source = Source(made_table(), frames=frames)
    assert strip_part(source)["times"]["how"] == ""
    stop = next(stop for stop in strip_part(source)["stops"] if stop["shown"] and stop["step"])
    names = [str(head) for head in source.places]
    row = {"seconds": 0.04, "gain": 0.25, "gain_low": 0.1, "gain_high": 0.4, "megabytes": 80.0}
    whole = row | {"removed": "", "seconds": 0.05, "gain": 0.0, "megabytes": 100.0}
    small = row | {"removed": ",".join(names[at] for at in reversed(stop["gone"]))}
    about = {"texts": 1, "tokens": 64, "device": "cpu"}
    frames["bench"] = pd.DataFrame([whole, small]).assign(**about)
    found = strip_part(source)
    assert found["times"]["how"] == "1 text of 64 tokens, CPU"
    pairs = zip(found["stops"], found["times"]["of"], strict=True)
    times = {stop["left"]: time[:3] for stop, time in pairs if time}
    assert times == {72: [50, 100, 0], stop["left"]: [40, 80, 0.25]}


def known_heads_weights() -> str:
    place = Path(numbers.__file__).parents[2] / "bundle" / "translator" / "known.json"
    return str(json.loads(place.read_text())["weights"])


def test_what_is_known_of_the_translator_is_of_its_weights() -> None:
    assert known_heads_weights() == hc.load("translator", device="cpu").weights_hash


def test_healed_curves_of_the_run_come_first() -> None:
    frame = made_curve(ENCODER, ["gates"]).query("step == 1").assign(healed=True, value=29.5)
    whole = made_curve(ENCODER, ["gates"]).query("step == 0")
    source = Source(made_table(), frames={"curve": pd.concat([whole, frame])})
    found = page_data(source)["strip"]
    place = found["columns"].index("BLEU healed")
    cells = [(stop["left"], stop["cells"][place][0]) for stop in found["stops"] if stop["shown"]]
    # the baseline is the whole model's, which did not learn
    assert cells == [(72, 30), (60, 29.5)]
    said = [title.sentence for title in titles(page_data(source))]
    assert said[0].startswith("60 of made’s 72 heads are left, and BLEU is no worse")


def test_gates_and_healing_of_the_run_stand_in_one_table_and_come_first() -> None:
    frames = {"gates": made_sizes(ENCODER), "healed": made_sizes(ENCODER, healed=True)}
    steps = {"gates": {"steps": 500, "by": "gates"}, "healed": {"steps": 200, "by": "gates"}}
    record = {"stages": {name: {"settings": about} for name, about in steps.items()}}
    source = Source(made_table(), frames=frames, record=record)
    found = trained_part(source, None)
    assert found["columns"] == ["BLEU as is", "BLEU healed", "loss as is", "loss healed"]
    assert [row["left"] for row in found["rows"]] == [68, 64, 60]
    for place, (name, metric) in enumerate(
        [("gates", "bleu"), ("healed", "bleu"), ("gates", "loss"), ("healed", "loss")]
    ):
        rows = frames[name][(frames[name]["metric"] == metric) & (frames[name]["step"] > 0)]
        shown = [row["cells"][place][0] for row in found["rows"]]
        assert shown == pytest.approx(rows["value"].tolist(), rel=1e-3)
    said = found["said"]
    assert said == freed_sentences(source)
    chosen = (
        "Heads that can be pruned, chosen by gates that learned for 500 steps with frozen weights: "
    )
    assert said[0].startswith(chosen)
    # 1% of loss is 0.015: 0.017 may be lost at the first step; healed, 0.008 at the second
    assert "none within 1% of loss (the first step may lose 0.017 nats, n = 60)" in said[0]
    assert said[1].startswith("Chosen by learned gates, the rest healed for 200 steps: ")
    assert "8 within 1% of loss (at most 0.008 nats lost, n = 60)" in said[1]
    assert "n = 60" in found["note"]
    assert "n = 50" in found["note"]
    assert [row[1] for row in page_data(source)["provenance"] if row[0] == "Stage healed"] == [
        "steps 200"
    ]


def test_freed_names_the_heads_of_one_step_only() -> None:
    one = freed(made_sizes(ENCODER, healed=True), "loss=1%,bleu=1%")[0]
    frame = made_sizes(ENCODER, healed=True)
    (row,) = frame.query("metric == @one.metric and step == @one.step").to_dict("records")
    assert ",".join(one.names) == row["removed"]
    assert one.heads == len(one.names) == 8
    assert freed(made_sizes(ENCODER), "0.0001")[0].names == ()
