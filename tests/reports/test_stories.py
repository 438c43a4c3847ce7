"""The story is told once, goes on after it was broken off, and says what it left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

import pytest
import tiny_subjects
from watching import Watch, told

import headcount as hc
from headcount.bundle import sample
from headcount.errors import RunError, UsageError
from headcount.records.run import Run
from headcount.reports.stages import (
    Step,
    StoryContext,
    affordable,
    gradient_stage,
    stages_of,
    survey_stage,
)
from headcount.reports.stories import expected_seconds, run_story, story
from headcount.rooms.agreement.agreement import agreement
from headcount.rooms.exhibits.exhibits import read_exhibits
from headcount.surveys import survey
from headcount.tasks import natural_task
from headcount.text import read_corpus, texts_of


@pytest.fixture(scope="module")
def translated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoryContext]:
    """A translator, four short pairs with trees, and the run of its story, told once."""
    subject = tiny_subjects.translator()
    whole = read_corpus(sample.path(), translation="text_de")
    pairs = read_corpus(sorted(whole, key=lambda pair: len(texts_of(pair)[0]))[:4])
    with Run.open(tmp_path_factory.mktemp("story") / "run") as run:
        task = natural_task(subject, pairs)
        context = StoryContext(
            run, subject, pairs, pairs, own_text=False, task=task, limit=4, seed=0
        )
        with patch("headcount.rooms.agreement.agreement.agreement", wraps=agreement) as compared:
            first = run_story(context)
        assert {one.state for one in first} == {"done"}
        assert compared.call_count == 1
        yield context


def test_everything_is_in_the_run(translated: StoryContext) -> None:
    run = translated.run
    table = run.read_table()
    columns = {"confidence", "gradient", "contribution", "ablation", "ablation_bleu"}
    assert columns < set(table.names)
    assert {"roles", "agreement", "curve"} < set(run.frames)
    assert {stack for stack, _ in read_exhibits(run)[0].maps} == {"enc", "dec", "cross"}
    assert not list(run.path.glob("*.jsonl"))


def test_the_curve_is_judged_on_examples_that_did_not_choose(translated: StoryContext) -> None:
    curve = translated.run.read_frame("curve")
    assert set(curve["part"]) == {"held-out"}
    assert set(curve["n"]) == {2}
    assert list(curve["metric"].unique()) == ["loss", "bleu"]
    assert set(curve.loc[curve["metric"] == "bleu", "order"]) == {"gradient"}
    assert curve.groupby(["order", "metric"])["step"].max().max() <= 14
    assert curve["order"].nunique() == 6  # the gradient's, and five random ones for a band
    record = translated.run.stages["can-go"]
    assert record["settings"]["tolerance"] is None
    assert [note.startswith("No head can be removed within") for note in record["notes"]]


def test_few_heads_are_tried_by_the_own_metric(translated: StoryContext) -> None:
    table = translated.run.read_table()
    tried = table.frame["ablation_bleu"].notna()
    assert tried.sum() == 6
    worth = table.frame["ablation"]
    assert worth[tried].min() >= worth[~tried].max()


def test_what_is_there_is_not_done_again(
    translated: StoryContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {name: stage["finished"] for name, stage in translated.run.stages.items()}
    again = run_story(translated)
    assert {one.state for one in again} == {"kept"}
    assert {name: one["finished"] for name, one in translated.run.stages.items()} == before


def test_other_settings_are_done_again(translated: StoryContext) -> None:
    made = survey_stage(translated)
    assert translated.run.stage("survey").done_with(made.settings)
    other = survey_stage(replace(translated, seed=1))
    assert not translated.run.stage("survey").done_with(other.settings)


def test_what_was_measured_otherwise_is_refused_and_stays(translated: StoryContext) -> None:
    before = {path: path.read_bytes() for path in translated.run.path.rglob("*.*")}
    with pytest.raises(RunError, match=r"holds survey made with other settings \(seed was 0, is 1"):
        run_story(replace(translated, seed=1))
    fewer = read_corpus(list(translated.texts)[:3])
    with pytest.raises(RunError, match=r"on other texts or examples; pass replace=True"):
        run_story(replace(translated, texts=fewer))
    stage = {"survey": {**translated.run.stages["survey"], "headcount": "0.0.1"}}
    with (
        patch.object(Run, "stages", stage),
        pytest.raises(RunError, match=r"made by headcount 0\.0\.1; .* name another run \(--run\)"),
    ):
        run_story(translated)
    assert {path: path.read_bytes() for path in translated.run.path.rglob("*.*")} == before


def test_a_table_that_no_report_made_is_refused(tmp_path: Path) -> None:
    subject, texts = tiny_subjects.writer(), sample.sentences()[:4]
    survey(subject, texts).save(tmp_path / "run")
    with pytest.raises(RunError, match=r"holds a table \(confidence, .*\) that no report made"):
        story(subject, tmp_path / "run", tmp_path / "page.html", text=texts)
    page = story(subject, tmp_path / "run", tmp_path / "page.html", text=texts, replace=True)
    assert page.stages[0].state == "done"


def test_a_stage_that_was_killed_before_its_last_record_is_its_own(tmp_path: Path) -> None:
    subject = tiny_subjects.writer()
    texts = read_corpus(sample.sentences()[:6])
    with Run.open(tmp_path / "run") as run:
        context = StoryContext(run, subject, texts, task=natural_task(subject, texts), limit=6)
        run_story(context, exhibits=False)
        made = gradient_stage(context)
        # The score's own record is there, the story's is not.
        run.stage(made.name).begin(made.settings)
        run.stage(made.name).finish({"convention": "headcount"})
        told = {one.name: one.state for one in run_story(context, exhibits=False)}
    assert told["score-gradient"] == "done"
    assert told["survey"] == "kept"


def test_a_run_of_another_model_is_refused(translated: StoryContext) -> None:
    other = replace(translated, subject=tiny_subjects.translator(encoder_layers=1))
    with pytest.raises(RunError, match="choose another folder"):
        run_story(other)


def test_a_model_without_a_task_still_has_a_story(tmp_path: Path) -> None:
    texts = read_corpus(sample.sentences()[:6])
    why = "it predicts no words"
    with Run.open(tmp_path / "run") as run:
        context = StoryContext(run, tiny_subjects.encoder(), texts, why_no_task=why)
        told = {one.name: one for one in run_story(context, exhibits=False)}
        assert not read_exhibits(run)
    assert told["survey"].state == "done"
    assert "exhibits" not in told
    assert told["curve"].state == told["score-gradient"].state == "left out"
    assert told["curve"].why == why


def test_ctrl_c_leaves_a_whole_run_that_goes_on(tmp_path: Path) -> None:
    subject = tiny_subjects.writer()
    texts = read_corpus(sample.sentences()[:6])
    place = tmp_path / "run"

    def stop(done: int, total: int, title: str) -> None:
        if title.startswith("Ablation"):
            raise KeyboardInterrupt

    with Run.open(place) as run:
        context = StoryContext(run, subject, texts, task=natural_task(subject, texts), limit=6)
        with pytest.raises(KeyboardInterrupt, match="the same command goes on"), told(stop):
            run_story(context)
    with Run.open(place) as run:
        assert "score-gradient" in run.stages
        assert "curve" not in run.stages
        states = {one.name: one.state for one in run_story(replace(context, run=run))}
    assert states["survey"] == states["score-gradient"] == "kept"
    assert states["score-ablation"] == states["curve"] == "done"
    assert states["own-metric"] == "left out"


def test_a_forecast_counts_what_is_left(
    translated: StoryContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many examples as are run, of every kind of step; of a half-done stage, what is left."""
    assert expected_seconds(translated) == 0  # all of it is there
    asked = list[str]()
    monkeypatch.setattr(Step, "seconds", lambda step: asked.append(step.name) or 1.0)
    monkeypatch.setattr(import_module("headcount.reports.stories"), "_NOTED", 0.0)
    with Run.open(tmp_path / "run") as run:
        context = replace(translated, run=run)
        whole = expected_seconds(context)
        assert asked == [
            "forward",
            "gradient",
            "contribution",
            "translation loss",
            "translation bleu",
        ]
        curve = next(one for one in stages_of(context) if one.name == "curve")
        forecast = {step.name: times for step, times in curve.runs}

        def stop(done: int, total: int, title: str) -> None:
            runs[title] = total
            if title == "Curve":  # the loss is done, BLEU is not
                raise KeyboardInterrupt

        runs = dict[str, int]()
        with pytest.raises(KeyboardInterrupt), told(stop):
            run_story(context)
        evaluated = forecast["translation loss"] + forecast["translation bleu"]
        assert evaluated == pytest.approx(runs["Curve"], rel=0.4)
        left, share = expected_seconds(context), runs["Curve loss"] / runs["Curve"]
        assert 0.4 < share < 0.9
        bench = next(one for one in stages_of(context) if one.name == "bench")
        after = sum(times for _, times in bench.runs)
        assert left - after == pytest.approx((1 - share) * sum(forecast.values()), rel=0.3)
        assert left < whole
        run_story(context)
        assert "share" not in run.record["begun"]
        assert expected_seconds(context) == 0


def test_large_models_get_fewer_examples_and_never_too_few() -> None:
    subject = tiny_subjects.writer()
    task = natural_task(subject, read_corpus(sample.sentences()[:40]))
    assert affordable(task, subject, 1, 1e15) == 40
    assert affordable(task, subject, 1e9, 1.0) == 16


# --- everything in one call -----------------------------------------------------------------------


def test_a_translator_without_references_translates_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    seen: list[str] = []
    watch = Watch(lambda done, total, title: seen.append(title))
    with hc.progress(watch):
        page = story(tiny_subjects.translator(), text=sample.sentences()[:3])
    assert page.path.read_text(encoding="utf8").startswith("<!doctype html>")
    assert page.run == Path("run-tiny marian")
    assert "texts have no translations" in {one.name: one for one in page.stages}["curve"].why
    assert {stack for stack, _ in read_exhibits(page.run)[0].maps} == {"enc", "dec", "cross"}
    order = ("Translating", "Surveying", "Comparing heads")
    assert [seen.index(name) for name in order] == sorted(seen.index(name) for name in order)
    assert next(one.name for one in watch.said if not isinstance(one, str)) == "survey"


def test_mistakes_show_before_the_long_work(tmp_path: Path) -> None:
    writer = tiny_subjects.writer()
    with pytest.raises(RunError, match="There is no folder"):
        story(writer, tmp_path / "run", tmp_path / "gone" / "page.html")
    with pytest.raises(UsageError, match="device is an option"):
        story(writer, tmp_path / "run", tmp_path / "page.html", device="cpu")
    assert not list(tmp_path.glob("*.html"))


def test_only_a_model_that_predicts_no_words_has_no_task(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("headcount.reports.stories")
    texts = read_corpus(sample.sentences()[:2])
    assert module._natural_task(tiny_subjects.encoder(), texts)[0] is None
    assert module._natural_task(tiny_subjects.writer(), texts)[1] == ""

    def refuse(*_: object) -> None:
        raise UsageError("These texts cannot be used.")

    monkeypatch.setattr(module, "natural_task", refuse)
    with pytest.raises(UsageError, match="cannot be used"):
        module._natural_task(tiny_subjects.writer(), texts)


# --- Gates and healing ---------------------------------------------------------------------------


def test_gates_and_healing_are_told_where_they_were_asked_for(
    translated: StoryContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between two trainings, it goes on with the second."""
    asked = replace(translated, gates=3, heal=2)
    freed = import_module("headcount.rooms.gates.freeing")
    learn, begun = freed.learn_gates, []

    def killed_at_the_second(*given: object, **how: object) -> object:
        begun.append(how["keep"])
        if len(begun) == 2:
            raise KeyboardInterrupt
        return learn(*given, **how)

    monkeypatch.setattr(freed, "learn_gates", killed_at_the_second)
    with pytest.raises(KeyboardInterrupt, match="the same command goes on"):
        run_story(asked)
    told = {one.name: one.state for one in run_story(asked)}
    assert (told["gates"], told["healed"], told["curve"]) == ("done", "done", "kept")
    assert begun == [*begun[:2], *begun[1:2], *begun[3:]]  # the first was not learned again
    assert len(begun) == len(freed.sizes(len(asked.heads))) + 1
    gates, healed = (asked.run.read_frame(name) for name in ("gates", "healed"))
    for frame in (gates, healed):
        assert set(frame["part"]) == {"held-out"}
        assert list(frame["metric"].unique()) == ["loss", "bleu"]
        assert frame.loc[frame["metric"] == "loss", "heads_left"].tolist() == [
            len(asked.heads),
            *freed.sizes(len(asked.heads)),
        ]
    assert healed["removed"].tolist() == gates["removed"].tolist()
    assert healed.loc[healed["step"] > 0, "healed"].all()
    assert not gates["healed"].any()
    assert not list(asked.run.path.glob("*.jsonl"))
    assert {one.state for one in run_story(asked)} == {"kept"}
    # Without asking they stay in the run, and a run made with other steps is refused.
    assert {one.name for one in run_story(translated)}.isdisjoint({"gates", "healed"})
    with pytest.raises(RunError, match=r"holds gates made with other settings \(steps was 3, is 4"):
        run_story(replace(asked, gates=4))


def test_healing_alone_takes_the_heads_of_the_curve(tmp_path: Path) -> None:
    subject = tiny_subjects.writer()
    texts = read_corpus(sample.sentences()[:6])
    with Run.open(tmp_path / "run") as run:
        task = natural_task(subject, texts)
        context = StoryContext(run, subject, texts, task=task, limit=6, heal=2)
        run_story(context, exhibits=False)
        curve, healed = run.read_frame("curve"), run.read_frame("healed")
    first = curve[curve["order"] == "gradient"].set_index("heads_left")["removed"]
    for row in healed[healed["step"] > 0].to_dict("records"):
        gone = ",".join(filter(None, first[first.index >= row["heads_left"]]))
        assert row["removed"] == gone
        assert row["order"] == "gradient"


def test_a_refit_is_told_by_each_metric_where_it_was_asked_for(translated: StoryContext) -> None:
    asked = replace(translated, refit=True)
    told = {one.name: one.state for one in run_story(asked)}
    assert told["refitted"] == "done"
    refitted, curve = (asked.run.read_frame(name) for name in ("refitted", "curve"))
    own = refitted[refitted["step"] > 0]
    assert list(own["metric"].unique()) == ["loss", "bleu"]
    assert not own["healed"].any()
    plain = curve[(curve["order"] == "gradient") & (curve["metric"] == "loss")]
    same = own[own["metric"] == "loss"].merge(plain, on="heads_left", suffixes=("", "_cut"))
    assert not same.empty  # gates that other tests learned in this run have sizes of their own
    assert (same["value"] != same["value_cut"]).any()  # it is another model than the cut one
    assert {one.state for one in run_story(asked)} == {"kept"}


def test_gates_without_a_task_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"Gates have nothing to learn from: .* predicts no words"):
        story(
            tiny_subjects.encoder(),
            tmp_path / "run",
            tmp_path / "page.html",
            text=sample.sentences()[:4],
            measuring=hc.StoryOptions(gates=True),
        )
