"""The gates' experiment: head scales do what the valve does, and gates learn from scratch."""

from __future__ import annotations

import json
import math
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

import headcount as hc
from headcount.errors import InputError, UsageError
from headcount.rooms.rarity.rarity import training_frequencies
from headcount.stats import bleu
from research import ROOT
from research.gates.config import Config, Plan, Schedule, read_settings
from research.gates.counts import packed_counts, unpacked_counts
from research.gates.learn import Run
from research.gates.prepare import Texts, prepared
from research.gates.scaled import Scaled
from research.gates.start import starting_point
from research.gates.summary import compared, recorded, seeded, summary
from research.translator.config import Phase, read_config
from research.translator.counts import write_counts
from research.translator.train import train
from tests.tiny import PAIRS


def test_scales_inside_the_modules_equal_the_valve() -> None:
    plain = hc.Subject(PAIRS["marian"]())
    own = hc.Subject(deepcopy(plain.model))
    scaled, count = Scaled(own), len(plain.heads)
    scales = torch.linspace(0, 1, count).requires_grad_(True)
    ids = torch.tensor([[5, 6, 7, 0], [8, 9, 4, 0]])
    given: dict[str, Any] = {"input_ids": ids, "decoder_input_ids": ids.flip(1)}
    with hc.valve(plain, scales):
        logits = plain.model(**given).logits
    logits.square().sum().backward()
    scaled.set(scales.detach())
    found = own.model(**given).logits
    found.square().sum().backward()
    torch.testing.assert_close(found, logits, atol=1e-5, rtol=1e-5)
    assert scales.grad is not None
    torch.testing.assert_close(scaled.gradient(), scales.grad, atol=1e-4, rtol=1e-4)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Config, Texts]:
    """A translator of a few thousand weights and its made-up texts."""
    out = tmp_path_factory.mktemp("small")
    smoke = read_config(ROOT / "research" / "translator" / "config.smoke.toml")
    recipe = replace(
        smoke,
        data=replace(smoke.data, toy=60),
        model=replace(smoke.model, layers=2, heads=2, width=16, inner=16),
        train=replace(smoke.train, steps=4, rows=4, dev_sentences=2, snapshots=1, agreement=0.0),
    )
    train(recipe, None, out, "cpu")
    schedule = Schedule(
        steps=410, gate_steps=405, price_from=200, ramp=100, rows=2, warmup=5, versions=1,
        compile=False,
    )  # fmt: skip
    config = Config(recipe, schedule, start=str(out / "final"))
    return config, prepared(config, None, out / "gates", ["dev"], "cpu")


def test_gates_from_random_weights(small: tuple[Config, Texts], tmp_path: Path) -> None:
    config, texts = small
    plan = Plan("gates", stacks=("enc", "dec", "cross"), keep=5, scratch="all")
    run = Run(config, plan, texts, tmp_path, "cpu")
    trained = dict(starting_point(config, "cpu").model.named_parameters())
    first = next(name for name in run.names if "q_proj.weight" in name)
    assert not torch.equal(dict(run.judge.model.named_parameters())[first], trained[first])
    told = run.go()
    counts = unpacked_counts(told["scores"]["dev"]["counts"])
    assert float(bleu(counts.sum(axis=0))) == pytest.approx(told["scores"]["dev"]["bleu"], abs=1e-3)
    assert len(told["kept"]) == 5  # the most open ones, not all heads of the start
    assert "untouched" not in told  # random weights with heads shut say nothing
    before, after = told["log"][:2]
    assert abs(before["price"]) < 0.1  # 200 steps at less than all heads would have moved it
    assert before["expected"] > 11 > 8 > after["expected"]


def test_the_heads_of_another_run_from_random_weights(
    small: tuple[Config, Texts], tmp_path: Path
) -> None:
    config, texts = small
    config = replace(config, schedule=replace(config.schedule, steps=2))
    (tmp_path / "other.json").write_text('{"kept": ["enc.0.1", "cross.1.0"]}')
    told = Run(config, Plan("same", scratch="other"), texts, tmp_path, "cpu").go()
    assert told["kept"] == ["enc.0.1", "cross.1.0"]


def test_gates_need_all_heads_at_the_start(tmp_path: Path) -> None:
    smoke = ROOT / "research" / "translator" / "config.smoke.toml"
    path = tmp_path / "runs.toml"
    run = 'name = "x"\nscratch = "all-48"\nstacks = ["enc"]\nkeep = 2\n'
    path.write_text(f"recipe = {str(smoke)!r}\n[[runs]]\n{run}")
    with pytest.raises(InputError, match="'x' has gates and starts with the heads of 'all-48'"):
        read_settings(path)


def test_pairs_are_those_of_the_recipes_end(small: tuple[Config, Texts], tmp_path: Path) -> None:
    """Direct pairs alone where the recipe ends with them, else all."""
    config, _ = small
    (tmp_path / "pairs.tsv").write_text("a b.\tb a.\tD\nb a.\ta b.\tI\nb b.\ta a.\tD\n")
    names = dict.fromkeys(("train", "dev", "test"), "pairs.tsv")
    for indirect, wanted in ((True, 3), (False, 2)):
        recipe = replace(
            config.recipe,
            data=replace(config.recipe.data, toy=0, **names),
            train=replace(config.recipe.train, phases=(Phase(1.0, indirect=indirect),)),
        )
        out = tmp_path / str(indirect)
        texts = prepared(replace(config, recipe=recipe), tmp_path, out, [], "cpu")
        assert len(texts.chosen(0)) == wanted


def test_runs_are_held_against_one_of_them(tmp_path: Path) -> None:
    right = {"dev": ["a b c d e", "f g h i j"] * 4, "test": ["k l m n o", "p q r s t"] * 4}
    told: dict[str, Any] = {"stacks": [], "train_seconds": 1, "steps": 3, "kept": ["enc.0.1"]}
    for name, scratch in (("pruned", ""), ("fresh", "pruned")):
        scores = {}
        for part, texts in right.items():
            said = texts if name == "pruned" else [text[:-2] for text in texts]
            scores[part] = {"counts": packed_counts(said, texts)}
        run = told | {"scratch": scratch, "scores": scores}
        (tmp_path / f"{name}.json").write_text(json.dumps(run))
    found = compared(tmp_path, ["pruned"])
    assert found["sentences"] == {"dev": 8, "test": 8}
    runs = found["runs"]
    assert runs["pruned"]["against"] == {}
    assert runs["fresh"]["kept"] == ["enc.0.1"]
    found = runs["fresh"]["against"]["pruned"]["test"]
    assert found["baseline"] == 100
    # every word is right; only the brevity penalty of 4 words for 5 is left
    assert found["bleu"] == pytest.approx(100 * math.exp(1 - 5 / 4), abs=1e-3)
    assert found["difference"]["delta"] == pytest.approx(found["bleu"] - 100, abs=1e-3)
    with pytest.raises(UsageError, match="no run 'gone' to hold the others against; has fresh, pr"):
        compared(tmp_path, ["gone"])
    del run["scores"]["test"]["counts"]
    (tmp_path / "fresh.json").write_text(json.dumps(run))
    with pytest.raises(InputError, match="'fresh' keeps no counts of test; run it again with"):
        compared(tmp_path, ["pruned"])


ALONE = {"delta": -0.5, "delta_low": -1.0, "delta_high": 0.0, "p": 0.05}


def test_seeds_that_agree_leave_the_interval_of_sentences() -> None:
    found = seeded(ALONE, [40.0] * 3, [40.5] * 3)
    assert found["delta_low"] == pytest.approx(-1.0, abs=1e-3)
    assert found["delta_high"] == pytest.approx(0.0, abs=1e-3)
    assert found["p"] == pytest.approx(0.05, abs=1e-3)
    assert found["error_of_seeds"] == 0


def test_seeds_that_differ_widen_it_as_welch_has_it() -> None:
    """Where sentences add nothing, it is Welch's interval of the two sides' seeds."""
    mine, theirs = [40.0, 41.0, 43.0], [41.0, 41.5, 43.5]
    welch = stats.ttest_ind(mine, theirs, equal_var=False)
    delta = float(np.mean(mine) - np.mean(theirs))
    found = seeded(dict.fromkeys(("delta", "delta_low", "delta_high"), delta), mine, theirs)
    low, high = welch.confidence_interval()
    assert (found["delta_low"], found["delta_high"]) == pytest.approx((low, high), abs=1e-3)
    assert found["p"] == pytest.approx(float(welch.pvalue), abs=1e-3)
    pairs = stats.ttest_rel(mine, theirs).confidence_interval()
    assert found["in_pairs"]["delta_high"] == pytest.approx(pairs[1], abs=1e-3)
    wide, narrow = seeded(ALONE, mine, theirs), seeded(ALONE, [40.0] * 3, [40.5] * 3)
    assert wide["delta_low"] < narrow["delta_low"]
    assert wide["detectable"] > narrow["detectable"]


def test_the_headline_again_from_what_is_recorded(tmp_path: Path) -> None:
    """The file's own intervals are those of its record, and doing it twice changes nothing."""
    told = json.loads((ROOT / "research" / "results" / "pruning-gates.json").read_text())
    assert recorded(told) == told
    other = json.loads(json.dumps(told))
    other["headline"]["runs"]["enc-10-s0"]["test"]["bleu"] -= 3
    before, after = (one["headline"]["mean"]["test"]["difference"] for one in (told, other))
    assert recorded(other)["headline"]["mean"]["test"]["difference"] != before
    assert after == before  # what was given is left alone
    right = ["a b c d e", "f g h i j", "k l m n o", "p q r s t"] * 3
    for folder, names in (("main", ["base-s0", "base-s1", "enc-10-s0", "enc-10-s1"]),
                          ("curve", ["base", "enc-10"])):  # fmt: skip
        (tmp_path / folder).mkdir()
        for place, name in enumerate(names):
            wrong = 2 * place  # so many sentences are cut short
            said = [*(text[:-2] for text in right[:wrong]), *right[wrong:]]
            counts = {part: {"counts": packed_counts(said, right)} for part in ("dev", "test")}
            run = {"stacks": [], "scratch": "", "train_seconds": 1, "steps": 3, "kept": ["enc.0.1"]}
            (tmp_path / folder / f"{name}.json").write_text(json.dumps(run | {"scores": counts}))
    made = summary(tmp_path)
    assert recorded(made) == made
    assert made["headline"]["seeds"] == 2


def test_pieces_of_the_training_text_are_counted(small: tuple[Config, Texts]) -> None:
    config, texts = small
    folder = Path(config.start)
    write_counts(config.recipe.data, None, folder)
    counts = json.loads((folder / "token_counts.json").read_text())
    own = texts.host.source[: int(texts.host.source_length[:60].sum())]  # cut the one best way
    assert counts["source"] == torch.bincount(own.int(), minlength=len(counts["source"])).tolist()
    frequencies = training_frequencies(hc.load(str(folder), device="cpu").tokenizer)
    assert set(frequencies) == {"source", "target"}
