"""Restriction to a window: masks, slopes and sums by hand, tasks of retrieval, and the walk."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tiny_subjects as made
import torch
import transformers
from small_tasks import TEXTS
from subjects import save, subject_of
from torch import Tensor
from torch.nn.functional import cross_entropy

import headcount as hc
from headcount import tasks
from headcount.errors import HeadcountError, ModelError, UsageError
from headcount.models import Subject
from headcount.pruning import Order
from headcount.records import Head
from headcount.rooms.window import (
    SHOWN,
    UNSEEN,
    Window,
    planning,
    read_window,
    restrictable,
    save_windowed,
)
from headcount.rooms.window.planning import (
    Judge,
    Recall,
    larger_rank,
    largest_share,
    lookup,
    native,
    needle,
    repeated,
    restrict_plan,
    sink_logits,
    unit_costs,
    walk,
)
from headcount.rooms.window.restricting import (
    SIMPSON,
    near_keys,
    path_slopes,
    restricted,
    restriction,
    restriction_of,
)

LONG = ["The cat sat on the mat and the old dog ran. " * 2, "Rain fell on the old town. " * 3]
NEAR = Window(2, 5)


def every(subject: Subject) -> list[Head]:
    return [head for unit in restrictable(subject) for head in unit]


def by_rule(window: Window, length: int) -> Tensor:
    """Token by token: the first ones and the last ones, of those up to here."""
    seen = torch.zeros(length, length, dtype=torch.bool)
    for row in range(length):
        for key in range(row + 1):
            seen[row, key] = key < window.first or key > row - window.last
    return seen


# --- The mask -----------------------------------------------------------------------------------


def test_the_mask_is_what_the_rule_says_also_under_padding_and_in_decoding() -> None:
    rule = by_rule(NEAR, 12)
    assert torch.equal(near_keys(NEAR, None, 12, 12, causal=True)[0, 0], rule)
    assert torch.equal(near_keys(NEAR, None, 1, 12, causal=True)[0, 0], rule[-1:])
    causal = torch.ones(15, 15).tril().bool()
    padded = (causal & (torch.arange(15) >= 3))[None, None]  # three tokens of padding on the left
    assert torch.equal(near_keys(NEAR, padded, 15, 15, causal=True)[0, 0, 3:, 3:], rule)
    added = torch.zeros(padded.shape).masked_fill(~padded, torch.finfo(torch.float32).min)
    assert torch.equal(near_keys(NEAR, added, 15, 15, causal=True)[0, 0, 3:, 3:], rule)


def test_an_encoder_keeps_both_sides_and_its_last_token() -> None:
    seen = near_keys(Window(1, 4), None, 9, 9, causal=False)[0, 0]
    assert [row.nonzero().flatten().tolist() for row in seen[[0, 4]]] == [
        [0, 1, 2, 8],
        [0, 2, 3, 4, 5, 6, 8],
    ]


@pytest.mark.parametrize(
    ("family", "attention"),
    [("llama", "eager"), ("llama", "sdpa"), ("gpt2", "sdpa"), ("gpt_oss", "eager"),
     ("gemma3", "sdpa")],
)  # fmt: skip
def test_a_window_longer_than_the_text_changes_nothing(family: str, attention: str) -> None:
    subject = subject_of(family, "llama", attn_implementation=attention)
    assert len(restrictable(subject)) == {"gpt2": 8, "llama": 4}.get(family, 2)
    task = tasks.lm(TEXTS)
    whole = task.evaluate(subject)
    with restricted(subject, every(subject), (1, 64)):
        assert np.allclose(task.evaluate(subject).statistics, whole.statistics, atol=1e-4)
    with restricted(subject, every(subject), (1, 2)):
        assert abs(task.evaluate(subject).value - whole.value) > 1e-3
    assert np.array_equal(task.evaluate(subject).statistics, whole.statistics)


def test_groups_apart_heads_mixed_eager_and_sdpa_agree() -> None:
    task = tasks.lm(LONG)
    values = []
    for attention in ("eager", "sdpa"):
        subject = made.writer("llama", attn_implementation=attention)
        near = restrictable(subject)[1]
        shares = torch.tensor([float(head not in near) for head in subject.heads])
        for given in (shares, shares[None]):  # groups apart; both attended, then mixed
            with restriction_of(subject, NEAR, given):
                values.append(task.evaluate(subject, batch_size=1).value)
        with restricted(subject, near, NEAR):
            values.append(task.evaluate(subject, batch_size=2).value)  # with padding
    assert np.allclose(values, values[0], atol=1e-5), values


# --- The score ----------------------------------------------------------------------------------


def test_slopes_are_finite_differences() -> None:
    subject = made.writer("gpt2").model.double()
    subject = hc.Subject(subject, tokenizer=made.writer("gpt2").tokenizer)
    task = tasks.lm(LONG[:1])
    batch = next(task.batches(subject))
    assert batch.labels is not None
    labels = batch.labels[0]
    with path_slopes(subject, task, NEAR) as measure:
        slopes = measure(batch)["slopes"][0]
    for place, alpha in ((0, 1.0), (1, 0.5), (2, 0.0)):
        for head in (0, 3, 6):
            ends = []
            for move in (-1e-4, 1e-4):
                shares = torch.full((1, len(subject.heads)), alpha, dtype=torch.float64)
                shares[0, head] += move
                with restriction_of(subject, NEAR, shares), torch.no_grad():
                    logits = subject.model(**batch.inputs, use_cache=False).logits[0]
                    ends.append(float(cross_entropy(logits, labels, reduction="sum")))
            by_hand = -(ends[1] - ends[0]) / 2e-4
            assert slopes[place, head] == pytest.approx(by_hand, rel=1e-5, abs=1e-5)


def test_the_column_adds_up_to_what_restricting_all_costs() -> None:
    subject, task = made.writer("gpt2"), tasks.lm(LONG * 2)
    table = hc.score(subject, task, by="restriction", restrict=NEAR, batch_size=1)
    whole = task.evaluate(subject).value
    with restricted(subject, every(subject), NEAR):
        cost = task.evaluate(subject).value - whole
    assert table.numbers("restriction").sum() == pytest.approx(cost, rel=0.15)
    assert f"takes the loss from {whole:.3f}" in table.provenance["remarks"][0]
    low = table.low["restriction"].to_numpy(dtype=float)
    assert (low < table.numbers("restriction")).all()


def test_a_path_goes_on_from_what_is_restricted_and_the_slope_is_absolute() -> None:
    subject, task = made.writer("llama"), tasks.lm(LONG)
    first, *_ = restrictable(subject)
    rest = restriction(subject, task, NEAR, gone=first)
    worth = dict(zip(rest.heads, rest.numbers("restriction"), strict=True))
    assert [worth[head] for head in first] == [0.0, 0.0]
    assert (restriction(subject, task, NEAR, per="slope").numbers("restriction") >= 0).all()
    assert SIMPSON.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s, t: hc.score(s, t, by="restriction"), "needs a window: restrict=(16, 240)"),
        (lambda s, t: hc.score(s, t, by="gradient", restrict="1+4"), "an option of restriction"),
        (lambda s, t: restriction(s, t, "1+4", per="token"), "choose path or slope"),
        (lambda s, t: restriction(s, t, "1+400"), "keeps 401 tokens and the longest text of"),
        (lambda s, t: read_window("many"), "write the first tokens and the last ones"),
        (lambda s, t: read_window((4, 0)), "keep one or more of the last tokens"),
        (lambda s, t: restrict_plan(s, t, "1+4", recall=()), "a bound on the loss alone is a fal"),
        (lambda s, t: restrict_plan(s, t.limit(2), "1+4"), "so it takes four or more"),
        (lambda s, t: restrict_plan(s, t, "1+4", pages=2, length=60), "have no room for 8 facts"),
        (lambda s, t: needle(TEXTS, part="mine"), "choose shown or unseen"),
        (lambda s, t: needle([]), "needles stand in texts, and none was given"),
        (lambda s, t: repeated(TEXTS, length=99).check(s), "takes 64; use a smaller length"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(call: Any, message: str) -> None:
    with pytest.raises(HeadcountError) as caught:
        call(made.writer("llama"), tasks.lm(LONG * 2))
    assert message in str(caught.value)


def test_families_without_full_causal_attention_are_refused_by_name() -> None:
    with pytest.raises(ModelError, match="is an encoder-decoder; only decoders and encoders"):
        restrictable(made.translator())
    with pytest.raises(ModelError, match="asks a decoder with a language-modelling head"):
        needle(TEXTS).check(made.encoder())
    with pytest.raises(ModelError, match="slides over a window already"):
        restrictable(subject_of("mistral", "llama", sliding_window=4))
    assert restrictable(subject_of("mistral", "llama", sliding_window=None))
    with pytest.raises(ModelError, match="attends outside the attention interface"):
        restrictable(subject_of("mpt", "llama"))


# --- Tasks of retrieval -------------------------------------------------------------------------


def labelled(task: Recall, subject: Subject) -> list[tuple[list[int], list[tuple[int, int]]]]:
    """The ids of each example, and its labels with the places that they stand at."""
    rows = []
    for batch in task.batches(subject, 2):
        assert batch.labels is not None
        for ids, labels in zip(batch.inputs["input_ids"].tolist(), batch.labels, strict=True):
            at = len(ids) - len(labels)
            rows.append((ids, [(at + n, int(x)) for n, x in enumerate(labels) if x >= 0]))
    return rows


@pytest.mark.parametrize("make", [needle, lookup, repeated])
def test_every_label_is_the_token_that_follows_and_was_there_before(make: Any) -> None:
    subject = made.writer("llama", max_position_embeddings=999)
    for ids, labels in labelled(make(LONG * 20, pages=3, length=900), subject):
        assert len(ids) == 900
        assert labels
        for place, label in labels:
            assert ids[place + 1] == label
            assert label in ids[: round(0.75 * 900)]


def test_templates_and_words_that_judge_are_not_those_that_order() -> None:
    words = {
        part: {word for page in needle(LONG, part=part, pages=30).examples for fact in page.facts
               for word in fact[1].split()}
        for part in (SHOWN, UNSEEN)
    }  # fmt: skip
    assert len(words[SHOWN]) == len(words[UNSEEN]) == 30
    assert not words[SHOWN] & words[UNSEEN]
    again = needle(LONG, pages=5)
    assert again.examples == needle(LONG, pages=5).examples
    assert again.hash != needle(LONG, pages=5, seed=1).hash
    assert len(str(again.describe())) < 900  # of the texts between the facts their hash alone
    assert again.describe() != needle(LONG * 2, pages=5).describe()


def test_loss_and_share_of_right_tokens_are_of_the_same_tokens() -> None:
    subject = made.writer("llama", max_position_embeddings=999)
    right = needle(LONG * 20, pages=2, asked=2, length=300).evaluate(subject)
    loss = needle(LONG * 20, pages=2, asked=2, length=300, metric="loss").evaluate(subject)
    assert np.array_equal(right.statistics[:, 1], loss.statistics[:, 1])
    assert right.metric.test == "sign-flip"
    assert loss.value > 1


# --- The walk -----------------------------------------------------------------------------------


def test_the_largest_share_of_any_task_decides() -> None:
    text, facts = np.array([1.0, 8.0, 1.0]), np.array([-5.0, 0.0, 4.0])
    assert largest_share([text, facts]).round(2).tolist() == [0.1, 0.8, 1.0]


def test_costs_of_groups_are_those_of_the_score_and_both_ranks_count() -> None:
    subject, task = made.writer("llama"), tasks.lm(LONG)
    units = restrictable(subject)
    path, slope = unit_costs(subject, task, NEAR, units)
    for costs, per in ((path, "path"), (slope, "slope")):
        table = restriction(subject, task, NEAR, per=per)
        worth = dict(zip(table.heads, table.numbers("restriction"), strict=True))
        assert np.allclose(costs, [sum(worth[head] for head in unit) for unit in units])
    assert larger_rank([np.array([[0.0, 1.0, 5.0], [9.0, 1.0, 2.0]])]).tolist() == [3, 2, 3]


def test_a_walk_ends_where_the_first_bound_does_not_hold() -> None:
    subject, task = made.writer("llama"), tasks.lm(LONG * 4)
    units = restrictable(subject)
    order = Order("mine", "all", tuple(units))
    judge = Judge(subject, task, NEAR)
    costs = judge.curve(order)[0]["bound"].to_numpy()
    least = sorted(costs[1:])[0] - 1e-6
    assert walk([judge], order, {task.name: least})[0] == 0
    assert walk([judge], order, {task.name: 99.0})[0] == len(units)
    third = walk([judge], order, {task.name: float(costs[1])})
    assert third[0] == 1 or costs[2] <= costs[1]


def test_a_model_that_finds_nothing_again_is_called_free_of_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    subject, task = made.writer("llama", max_position_embeddings=999), tasks.lm(LONG * 8)
    how: dict[str, Any] = {"pages": 8, "length": 300, "step": 50}

    def short(make: Any) -> Sequence[Any]:
        return [make(LONG * 20, asked=2, pages=6, length=300)]

    how |= {"recall": short(needle), "learn": short(needle)}
    with pytest.raises(UsageError, match="nothing can be called free"):
        restrict_plan(subject, task, NEAR, **how)
    monkeypatch.setattr(planning, "LEAST_RIGHT", -1.0)
    plan = restrict_plan(subject, task, NEAR, max_loss=99, max_points=100, run=tmp_path, **how)
    assert plan.groups == len(plan.units) == 4
    assert "4 of 4 key groups need only 2+5 tokens: at most" in plan.sentence
    assert "up to 42 tokens; nothing was measured on longer texts" in plan.sentence
    assert set(plan.curve["task"]) == {task.name, "needles, unseen templates"}
    with monkeypatch.context() as patched:  # everything is in the run: nothing is measured again
        patched.setattr(planning, "path_slopes", None)
        patched.setattr(planning, "restricted", None)
        again = restrict_plan(subject, task, NEAR, max_loss=99, max_points=100, run=tmp_path, **how)
    assert again.curve.equals(plan.curve)
    none = restrict_plan(subject, task, NEAR, max_loss=-9, max_points=1, **how)
    assert none.sentence.startswith("No key group can be restricted to 2+5 tokens")
    with plan.restricted(subject):
        assert task.evaluate(subject).value != task.evaluate(made.writer("llama")).value


# --- The cache, and the folder --------------------------------------------------------------------


def with_cache(subject: Subject, near: Sequence[Sequence[Head]], folder: Any) -> Any:
    """The model as it loads in plain transformers."""
    save_windowed(subject, [head for unit in near for head in unit], NEAR, folder)
    return transformers.AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True).eval()


@pytest.mark.parametrize(("family", "count"), [("llama", 3), ("gpt2", 5), ("gemma3", 1)])
def test_a_ring_in_the_cache_agrees_with_the_mask(family: str, count: int, tmp_path: Any) -> None:
    subject = subject_of(family, "llama")
    near = restrictable(subject)[-count:]
    heads = [head for unit in near for head in unit]
    model = with_cache(subject, near, tmp_path / "saved")
    sys.modules[type(model).__module__]._CHUNK = 8  # so that a short text has several parts
    ids = torch.randint(5, 90, (3, 40), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(ids)
    mask[1, :7] = mask[2, :13] = 0
    places = (mask.cumsum(-1) - 1).clamp_min(0)
    how = {"attention_mask": mask, "position_ids": places}
    with torch.no_grad(), restricted(subject, heads, NEAR):
        by_mask = subject.model(ids, use_cache=False, **how).logits
        alone = subject.model(ids[:1], use_cache=False).logits
    real = mask.bool()
    with torch.no_grad():
        for cached in (False, True):
            logits = model(ids, use_cache=cached, **how).logits
            assert torch.allclose(logits[real], by_mask[real], atol=1e-4)
        assert torch.allclose(model(ids[:1]).logits, alone, atol=1e-4)
        first = {name: one[:, :20] for name, one in how.items()}
        past = model(ids[:, :20], **first).past_key_values
        for at in range(20, 40):
            step = {"attention_mask": mask[:, : at + 1], "position_ids": places[:, at : at + 1]}
            out = model(ids[:, at : at + 1], past_key_values=past, **step)
            assert torch.allclose(out.logits[:, 0], by_mask[:, at], atol=1e-4)
    layer = past.layers[-1]
    assert (layer.near_keys.shape[2], layer.get_seq_length()) == (NEAR.tokens, 40)


def test_generate_says_the_same_with_the_ring_and_with_the_mask(tmp_path: Any) -> None:
    subject = made.writer("llama")
    near = restrictable(subject)[1:]
    model = with_cache(subject, near, tmp_path / "saved")
    ids = torch.randint(5, 90, (1, 30), generator=torch.Generator().manual_seed(1))
    for beams in (1, 3):
        how = {"max_new_tokens": 15, "do_sample": False, "eos_token_id": None, "num_beams": beams}
        with restricted(subject, [head for unit in near for head in unit], NEAR):
            by_mask = subject.model.generate(ids, pad_token_id=0, **how)
        assert torch.equal(model.generate(ids, pad_token_id=0, **how), by_mask)


def test_headcount_judges_such_a_folder_and_does_not_survey_it_as_if_it_were_whole(
    tmp_path: Any,
) -> None:
    subject, task = made.writer("llama"), tasks.lm(LONG)
    near = [head for unit in restrictable(subject)[1:] for head in unit]
    save_windowed(subject, near, NEAR, tmp_path)
    loaded = hc.load(str(tmp_path), trust_remote_code=True, device="cpu")
    with restricted(subject, near, NEAR), hc.valve(subject, {"dec.0.1": 0.0}):
        by_mask = task.evaluate(subject).value
    with hc.valve(loaded, {"dec.0.1": 0.0}):
        assert task.evaluate(loaded).value == pytest.approx(by_mask, abs=1e-4)
    with pytest.raises(Exception, match="which knows of none; set it back"):
        hc.survey(loaded, TEXTS)


def test_a_folder_has_the_files_of_duo_attention_and_leaves_the_model_alone(tmp_path: Any) -> None:
    subject = made.writer("llama")
    near = restrictable(subject)
    save_windowed(subject, [*near[0], *near[3]], NEAR, tmp_path)
    assert not {"window", "auto_map"} & {*subject.model.config.to_dict()}
    duo = tmp_path / "duo_attention"
    full = np.loadtxt(duo / "full_attention_heads.tsv", dtype=float, delimiter="\t")
    assert full.tolist() == [[0, 1], [1, 0]]
    assert json.loads((duo / "config.json").read_text()) == {"sink_size": 2, "recent_size": 5}
    with pytest.raises(UsageError, match="is not empty; name another folder"):
        save_windowed(subject, near[0], NEAR, tmp_path)
    with pytest.raises(UsageError, match="shares its keys with heads that see everything"):
        save_windowed(subject, near[0][:1], NEAR, tmp_path / "half")
    with pytest.raises(ModelError, match="keeps no plain causal cache"):
        save_windowed(made.encoder(), [], NEAR, tmp_path / "encoder")


# --- Whole layers, natively -----------------------------------------------------------------------


def layer_of(subject: Subject, layer: int) -> list[Head]:
    return [head for head in subject.heads if head.layer == layer]


def test_a_llama_as_granite_swa_says_the_same_and_slides_where_asked() -> None:
    subject = made.writer("llama")
    ids = torch.randint(5, 90, (2, 30), generator=torch.Generator().manual_seed(0))
    none = {layer: torch.full((4,), -1e4) for layer in (0, 1)}
    with torch.no_grad():
        whole = subject.model(ids).logits
        assert torch.allclose(native(subject, [], NEAR, none).model(ids).logits, whole, atol=1e-4)
        wide = native(subject, layer_of(subject, 0), Window(10, 30), none)
        assert torch.allclose(wide.model(ids).logits, whole, atol=1e-4)
        slid = native(subject, layer_of(subject, 0), Window(2, 5), none).model(ids).logits
        # no sink: by the mask of a window alone
        shares = torch.tensor([float(head.layer != 0) for head in subject.heads])
        with restriction_of(subject, Window(0, 7), shares):
            assert torch.allclose(slid, subject.model(ids).logits, atol=1e-4)
    with pytest.raises(ModelError, match="restrict key groups instead"):
        native(made.writer("gpt2"), [], NEAR, none)


def test_a_sink_logit_is_the_best_of_those_that_are_tried() -> None:
    subject, task = made.writer("llama"), tasks.lm(LONG)
    sinks = sink_logits(subject, task, 7)
    assert {layer: len(one) for layer, one in sinks.items()} == {0: 4, 1: 4}
    given: dict[str, Tensor] = {}

    def distance(logits: Tensor) -> float:
        """What the first layer adds, against full attention."""
        slid = native(subject, layer_of(subject, 0), Window(2, 5), {0: logits}).model
        hook = slid.model.layers[0].self_attn.o_proj.register_forward_pre_hook(
            lambda _, args: given.update(slid=args[0])
        )
        total = 0.0
        for batch in task.batches(subject, 1):
            with torch.no_grad():
                slid(**batch.inputs)
                subject.model(**batch.inputs)
            total += float((given["slid"] - given["full"])[:, 7:].square().sum())
        hook.remove()
        return total

    subject.model.model.layers[0].self_attn.o_proj.register_forward_pre_hook(
        lambda _, args: given.update(full=args[0])
    )
    least = distance(sinks[0])
    assert least < distance(torch.full((4,), -1e4))
    assert all(least < distance(sinks[0] + move) for move in (-1.0, 1.0))
    with pytest.raises(UsageError, match="longer than the window of 99 tokens"):
        sink_logits(subject, task, 99)


def test_whole_layers_are_planned_judged_and_saved_natively(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr(planning, "LEAST_RIGHT", -1.0)
    subject, task = made.writer("llama", max_position_embeddings=999), tasks.lm(LONG * 8)
    ask = [needle(LONG * 20, asked=2, pages=6, length=300)]
    plan = restrict_plan(
        subject,
        task,
        NEAR,
        recall=ask,
        learn=ask,
        max_loss=99,
        max_points=100,
        layers=True,
        step=50,
    )
    assert plan.sentence.startswith("2 of 2 layers need only 2+5 tokens: at most")
    plan.save(subject, tmp_path / "slid")
    loaded = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "slid")
    assert loaded.config.model_type == "granite_swa"
    assert set(loaded.config.layer_types) == {"sliding_attention"}
    ids = torch.randint(5, 90, (1, 30), generator=torch.Generator().manual_seed(0))
    slid = native(subject, plan.near, plan.window, plan.sinks or {})
    with torch.no_grad():
        assert torch.allclose(loaded.eval()(ids).logits, slid.model(ids).logits, atol=1e-4)


def test_the_command_walks_refuses_and_saves(
    headcount: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = save(tmp_path / "model", "llama", "llama", max_position_embeddings=999)
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(text * 20 for text in LONG * 6))
    told = ["prune", model, "--task", f"lm:{texts},long=truncate", "--max-loss", 99, "--json"]
    small = headcount(*told, "--dry-run", "--ranking", "restrict=2+5:some")
    assert (small.code, "such as 16+240 or 16+240:layers" in small.err) == (2, True), small.err
    healed = headcount(*told, "--dry-run", "--heal", "--ranking", "restrict=2+5")
    assert (healed.code, "--heal means nothing with --ranking" in healed.err) == (2, True)
    weak = headcount(*told, "--dry-run", "--ranking", "restrict=2+5")
    assert (weak.code, "finds too little again by itself" in weak.err) == (2, True), weak.err
    monkeypatch.setattr(planning, "LEAST_RIGHT", -1.0)
    out = tmp_path / "out"
    done = headcount(*told, "-o", out, "--ranking", "restrict=2+5,step=50")
    assert done.code == 0, done.err
    assert "key groups need only 2+5 tokens" in json.loads(done.out)["sentence"]
    assert (out / "model" / "modeling_window.py").exists()
    assert (out / "run" / "window.parquet").exists()


def test_a_cache_that_is_reset_begins_anew(tmp_path: Any) -> None:
    subject = made.writer("llama")
    model = with_cache(subject, restrictable(subject)[1:], tmp_path / "saved")
    ids = torch.randint(5, 90, (1, 30), generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        first = model(ids)
        first.past_key_values.reset()
        again = model(ids, past_key_values=first.past_key_values)
    assert torch.allclose(first.logits, again.logits, atol=1e-5)
    assert again.past_key_values.get_seq_length() == 30
