"""Two models beside each other: definitions, pruning, refusals, and what is written."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import torch
from sightings import read_in_tiles
from subjects import save, subject_of
from tiny_subjects import encoder, translator, writer
from typer.testing import CliRunner

import headcount as hc
from headcount.cli.main import app
from headcount.errors import InputError, ModelError, UsageError
from headcount.models.subject import Subject
from headcount.rooms.compare.comparing import batches_of_both, cosine_sums, divergence_sums
from headcount.rooms.compare.runs import Changes
from headcount.text import encode, intake_of
from headcount.text.corpus import read_corpus
from headcount.text.sentence import Sentence
from headcount.wiring import TILE, tap

TEXTS = [
    "The cat sat on the mat.", "A dog barked.", "Nobody saw them, I think.", "It rained.",
    "The old house is on fire now.", "We went home.",
]  # fmt: skip


def changed(subject: Subject, layer: int = 1) -> Subject:
    """The same model with the queries of one layer drawn anew."""
    model = copy.deepcopy(subject.model)
    weight = model.encoder.layer[layer].attention.self.query.weight
    with torch.no_grad():
        weight.copy_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(3)))
    return Subject(model, subject.tokenizer, name="changed")


@pytest.fixture(scope="module")
def before() -> Subject:
    return encoder()


@pytest.fixture(scope="module")
def after(before: Subject) -> Subject:
    return changed(before)


@pytest.fixture(scope="module")
def found(before: Subject, after: Subject) -> Changes:
    return hc.compare(before, after, TEXTS)


def slow_cosine(before: Subject, after: Subject, text: str) -> np.ndarray:
    """By hand: one text, no padding, head by head."""
    maps = []
    for one in (before, after):
        intake = intake_of(one.model, one.tokenizer)
        (batch,) = encode([text], one.tokenizer, stacks={"enc"}, intake=intake)
        with tap(one) as watch:
            maps.append(torch.cat([seen.maps[0] for seen in watch(batch)]).numpy())
    return np.array(
        [
            float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()))
            for a, b in zip(*maps, strict=True)
        ]
    )


# --- figures ------------------------------------------------------------------------------------


def test_a_model_is_as_it_is(before: Subject) -> None:
    same = hc.compare(before, before, TEXTS[:3])
    np.testing.assert_allclose(same.heads["cosine"], 1, atol=1e-6)
    assert (same.heads["js"] == 0).all()
    assert (same.heads[same.columns].abs().max() == 0).all()


def test_cosines_are_the_definition(before: Subject, after: Subject, found: Changes) -> None:
    theirs = np.mean([slow_cosine(before, after, text) for text in TEXTS], axis=0)
    np.testing.assert_allclose(found.heads["cosine"], theirs, atol=1e-5)


def test_only_what_was_touched_changed(found: Changes) -> None:
    first, second = (found.heads.xs(layer, level="layer") for layer in (0, 1))
    np.testing.assert_allclose(first["cosine"], 1, atol=1e-6)
    assert (second["cosine"] < 0.999).all()
    assert (second["js"] > 0).all()
    assert found.layers["more"].iloc[1] > 0 > found.layers["more"].iloc[0]
    assert found.largest(1).index[0][1] == 1


def test_columns_are_the_difference_of_two_surveys(
    before: Subject,
    after: Subject,
    found: Changes,
) -> None:
    ours, theirs = (hc.survey(one, TEXTS).frame for one in (before, after))
    for name in ("entropy", "first", "separator", "previous", "confidence"):
        expected = theirs[name] - ours[name]
        np.testing.assert_allclose(found.heads[name], expected, atol=1e-6, err_msg=name)
        np.testing.assert_allclose(found.heads[f"{name}_before"], ours[name], atol=1e-6)
    low, high = found.heads["entropy_low"], found.heads["entropy_high"]
    assert (low <= found.heads["entropy"]).all()
    assert (high >= found.heads["entropy"]).all()
    assert (high - low).xs(1, level="layer").gt(0).all()


def test_batches_change_nothing(before: Subject, after: Subject, found: Changes) -> None:
    one = hc.compare(before, after, TEXTS, batch_size=1)
    pd.testing.assert_frame_equal(one.heads, found.heads, atol=1e-5)


def same(one: Changes, other: Changes) -> None:
    """Their numbers differ by no more than rounding."""
    pd.testing.assert_frame_equal(one.heads, other.heads, atol=1e-5, rtol=0)
    pd.testing.assert_frame_equal(one.layers, other.layers, atol=1e-5, rtol=0)


@pytest.mark.parametrize("cells", [1, 300])
@pytest.mark.parametrize("match", ["name", "depth", "maps"])
def test_tiles_change_nothing(before: Subject, after: Subject, match: str, cells: int) -> None:
    whole = hc.compare(before, after, TEXTS, match=match)
    with read_in_tiles(cells) as read:
        tiled = hc.compare(before, after, TEXTS, match=match)
    assert read
    same(tiled, whole)
    pd.testing.assert_frame_equal(tiled.table.frame, whole.table.frame, atol=2e-6, rtol=0)


def test_tiles_change_nothing_in_three_stacks() -> None:
    one = translator()
    other = Subject(copy.deepcopy(one.model), one.tokenizer, name="changed")
    with torch.no_grad():
        for layer in other.model.model.decoder.layers:
            layer.encoder_attn.q_proj.weight.mul_(3)
            layer.self_attn.q_proj.weight.mul_(3)
    pairs = [("A cat sat.", "Eine Katze sitzt da und schaut."), ("Rain.", "Regen.")]
    whole = hc.compare(one, other, pairs)
    assert whole.heads["cosine"].xs("cross", level="stack").max() < 1 - 1e-4
    with read_in_tiles(60) as read:
        same(hc.compare(one, other, pairs), whole)
    assert read


def test_a_map_and_tiles_are_compared(before: Subject) -> None:
    """A layer that was pruned has a map where the whole one is too large for it."""
    small = hc.prune(before, ["enc.0.0", "enc.1.2"])
    whole = hc.compare(before, small, TEXTS[:3])
    intake = intake_of(before.model, before.tokenizer)
    batches = encode(TEXTS[:3], before.tokenizer, stacks={"enc"}, intake=intake)
    longest = max(batch.inputs["input_ids"].shape[1] for batch in batches)
    heads = len(before.heads) // 2
    with read_in_tiles(50, kept=8 * (heads - 1) * longest**2) as read:
        same(hc.compare(before, small, TEXTS[:3]), whole)
    assert read


def test_padded_maps_in_tiles_give_the_cosine_of_whole_maps(
    before: Subject, after: Subject
) -> None:
    settings: dict[str, Any] = {"convention": "code", "pad_to": 40}
    whole = hc.compare(before, after, TEXTS, **settings)
    with read_in_tiles(300) as read:
        same(hc.compare(before, after, TEXTS, **settings), whole)
    assert read


def test_batches_have_as_many_texts_as_memory_takes(before: Subject, after: Subject) -> None:
    heads = len(before.heads) + len(after.heads)
    with mock.patch.dict(TILE, {"kept": heads * 30**2 // 4}):
        made = [*batches_of_both(before, after, TEXTS, stacks=("enc",))]
    sizes = [ours.inputs["input_ids"].shape for ours, _ in made]
    assert len(sizes) > 1
    assert all(rows == 1 or rows * longest**2 <= 30**2 for rows, longest in sizes)
    with mock.patch.dict(TILE, {"kept": heads * 40**2 // 2}):  # two texts of 40 tokens
        wide = [*batches_of_both(before, after, TEXTS, stacks=("enc",), pad_to=40)]
    assert [len(ours.index) for ours, _ in wide] == [2, 2, 2]


def test_windows_of_a_long_text_are_one_text(before: Subject, after: Subject) -> None:
    """Its windows are flattened one after another, and no interval counts them as texts."""
    long = " ".join(TEXTS)
    found = hc.compare(before, after, [long, TEXTS[0]], max_length=12, batch_size=2)
    alone = hc.compare(before, after, [long], max_length=12)
    assert found.layers["texts"].tolist() == [2, 2]
    assert alone.heads[["cosine_low", "js_low"]].isna().all(axis=None)
    maps = windows(before, long, 12), windows(after, long, 12)
    assert len(maps[0]) > 2
    product, one, other = (
        sum((a * b).sum((1, 2)) for a, b in zip(*pair, strict=True))
        for pair in (maps, (maps[0], maps[0]), (maps[1], maps[1]))
    )
    np.testing.assert_allclose(alone.heads["cosine"], product / np.sqrt(one * other), atol=1e-6)
    short = hc.compare(before, after, TEXTS[:1]).heads
    for name in ("cosine", "js"):
        mean = (alone.heads[name] + short[name]) / 2
        np.testing.assert_allclose(found.heads[name], mean, atol=1e-6)


def windows(subject: Subject, text: str, longest: int) -> list[np.ndarray]:
    """The maps `[head, query, key]` of each window of a text."""
    intake = intake_of(subject.model, subject.tokenizer)
    options = {"stacks": {"enc"}, "intake": intake, "max_length": longest, "batch_size": 1}
    with tap(subject) as watch:
        return [
            torch.cat([seen.maps[0] for seen in watch(batch)]).double().numpy()
            for batch in encode([text], subject.tokenizer, **options)
        ]


def test_divergence_leaves_padding_out() -> None:
    maps = torch.softmax(torch.randn(2, 1, 1, 4, 4), -1)
    whole = torch.ones(1, 4, dtype=torch.bool)
    wide = torch.nn.functional.pad(maps, (0, 2, 0, 2))
    real = torch.tensor([[True] * 4 + [False] * 2])
    plain = divergence_sums(maps[0], maps[1], whole, whole)
    torch.testing.assert_close(divergence_sums(wide[0], wide[1], real, real), plain)
    torch.testing.assert_close(cosine_sums(wide[0], wide[1]), cosine_sums(maps[0], maps[1]))


def test_padding_counts_under_code(before: Subject, after: Subject) -> None:
    narrow, wide = (
        hc.compare(before, after, TEXTS, convention="code", pad_to=width) for width in (24, 32)
    )
    cropped = hc.compare(before, after, TEXTS)
    assert not np.allclose(narrow.heads["cosine"], wide.heads["cosine"], atol=1e-5)
    np.testing.assert_allclose(narrow.heads["js"], cropped.heads["js"], atol=1e-6)


def test_padded_cosines_are_those_of_the_library_s_own_maps(
    before: Subject, after: Subject
) -> None:
    """As the notebook has it: the whole padded map of plain eager attention, example by example."""
    each = [[], []]
    for subject, kept in zip((before, after), each, strict=True):
        model = copy.deepcopy(subject.model)
        model.set_attn_implementation("eager")
        for text in TEXTS:
            inputs = subject.tokenizer(text, padding="max_length", max_length=24)
            given = {name: torch.tensor([row]) for name, row in inputs.items()}
            with torch.no_grad():
                maps = model(**given, output_attentions=True).attentions
            kept.append(torch.cat(maps, dim=1)[0].flatten(1))
    expected = torch.cosine_similarity(torch.stack(each[0]), torch.stack(each[1]), dim=-1).mean(0)
    found = hc.compare(before, after, TEXTS, convention="code", pad_to=24)
    np.testing.assert_allclose(found.heads["cosine"], expected, atol=1e-5)


def test_the_paper_has_no_cosine_for_heads_or_layers(before: Subject, after: Subject) -> None:
    found = hc.compare(before, after, TEXTS, convention="paper")
    for frame in (found.heads, found.layers):
        assert frame["cosine"].isna().all()
        assert frame["js"].notna().all()
    assert found.layers["p"].isna().all()  # it is of the cosine
    assert "the paper's text does not say" in found.notes[0]


def test_a_text_of_one_token_is_no_change(before: Subject, after: Subject) -> None:
    """[CLS], one piece and [SEP] at most; nothing divides by nothing."""
    one = hc.compare(before, after, ["a"])
    assert one.heads["cosine"].notna().all()
    assert one.heads["entropy_low"].isna().all()  # one text has no interval
    assert one.layers["p"].isna().all()


# --- other shapes -------------------------------------------------------------------------------


def test_a_pruned_model_is_matched_by_name(before: Subject) -> None:
    small = hc.prune(before, ["enc.0.0", "enc.1.2"])
    found = hc.compare(before, small, TEXTS[:3])
    names = {str(head) for head in found.names}
    assert len(names) == len(before.heads) - 2
    assert "enc.0.0" not in names
    first = found.heads.xs(0, level="layer")
    np.testing.assert_allclose(first["cosine"], 1, atol=1e-5)  # layer 0 sees the same input
    assert found.notes == ["2 heads are in one model only and were left out."]


def test_a_translator_has_three_stacks() -> None:
    subject = translator()
    found = hc.compare(subject, subject, [("A cat.", "Eine Katze."), ("Rain.", "Regen.")])
    assert list(found.layers["stack"].unique()) == ["enc", "dec", "cross"]
    np.testing.assert_allclose(found.heads["cosine"], 1, atol=1e-6)


@pytest.mark.parametrize("match", ["maps", "depth"])
def test_stacks_that_were_not_asked_for_need_not_be_there(match: str) -> None:
    """An encoder beside the encoder of a model that also decodes."""
    one, other = subject_of("roberta", "roberta", num_hidden_layers=3), translator("bart")
    with pytest.raises(
        UsageError, match=r"same kind, or name the stacks that both .*--reading stacks="
    ):
        hc.compare(one, other, TEXTS, match=match)
    with pytest.raises(UsageError, match="has the stacks enc and tiny bart has enc, dec, cross"):
        hc.compare(one, other, TEXTS, match=match, stacks=["enc", "dec"])
    found = hc.compare(one, other, TEXTS, match=match, stacks=["enc"])
    back = hc.compare(other, one, TEXTS, match=match, stacks=["enc"])
    for frame in (found.heads, back.heads):
        assert {name.split(".")[0] for name in frame["partner"]} == {"enc"}
        assert set(frame.index.get_level_values("stack")) == {"enc"}
    assert len(back.heads) == len([head for head in other.heads if head.stack == "enc"])


def test_the_command_takes_sources_alone_where_one_model_reads_no_pairs(tmp_path: Path) -> None:
    places = [save(tmp_path / name, name, "roberta") for name in ("bart", "roberta")]
    words = ["compare", *map(str, places), "--limit", "4", "--match", "maps", "--json"]
    refused = CliRunner().invoke(app, words)
    assert (refused.exit_code, "--reading stacks=" in refused.stderr) == (2, True)
    done = CliRunner().invoke(app, [*words, "--reading", "stacks=enc"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["notes"][-1] == "No corpus was named, so the bundled sample.conllu was read."
    assert {row["stack"] for row in told["heads"]} == {"enc"}


def test_other_shapes_are_refused(before: Subject) -> None:
    deeper = encoder(num_hidden_layers=3)
    with pytest.raises(
        UsageError, match=r"has 2 layers in enc and .* has 3, so .* \(--match depth\)"
    ):
        hc.compare(before, deeper, TEXTS)
    wider = encoder(num_attention_heads=2)
    with pytest.raises(UsageError, match=r"enc\.0 has 4 heads in .* and 2 in"):
        hc.compare(before, wider, TEXTS)
    with pytest.raises(UsageError, match="compare models of the same kind"):
        hc.compare(before, writer(), TEXTS)


def doubled(subject: Subject) -> Subject:
    """The same model with every layer twice, the second time without a word to say.

    The heads of each layer are turned round, so that their numbers tell nothing.
    """
    model = copy.deepcopy(subject.model)
    layers = torch.nn.ModuleList()
    heads, size = model.config.num_attention_heads, model.config.hidden_size
    turned = torch.arange(size).view(heads, -1).flip(0).reshape(-1)
    for layer in model.encoder.layer:
        own = layer.attention.self
        with torch.no_grad():
            for part in (own.query, own.key, own.value):
                part.weight.copy_(part.weight[turned].clone())
                part.bias.copy_(part.bias[turned].clone())
            output = layer.attention.output.dense
            output.weight.copy_(output.weight[:, turned].clone())
        idle = copy.deepcopy(layer)
        with torch.no_grad():
            for part in (idle.attention.output.dense, idle.output.dense):
                part.weight.zero_()
                part.bias.zero_()
            for part in (idle.attention.self.query, idle.attention.self.key):
                part.weight.normal_(generator=torch.Generator().manual_seed(len(layers)))
        layers.extend([layer, idle])
    model.encoder.layer = layers
    model.config.num_hidden_layers = len(layers)
    for place, layer in enumerate(layers):
        layer.attention.self.layer_idx = place
    return Subject(model, subject.tokenizer, name="doubled")


def test_heads_of_a_deeper_model_are_matched_by_their_maps(before: Subject) -> None:
    deeper = doubled(before)
    found = hc.compare(before, deeper, TEXTS, match="maps")
    for head, partner in zip(found.names, found.heads["partner"], strict=True):
        assert partner == f"enc.{2 * head.layer}.{3 - head.index}"
    np.testing.assert_allclose(found.heads.xs(0, level="layer")["cosine"], 1, atol=1e-5)
    np.testing.assert_allclose(found.heads.xs(0, level="layer")["entropy"], 0, atol=1e-4)
    assert (found.heads["cosine"] > 0.98).all()  # an idle layer still norms a second time
    assert found.provenance["match"] == "maps"
    assert found.notes[0].startswith("Heads were matched one to one by their maps, within a stack")
    assert "on 3 of the texts" in found.notes[0]
    assert found.notes[2] == f"Heads without a partner: 0 of {before.name}, 8 of doubled."
    assert found.layers["texts"].tolist() == [3, 3]
    back = hc.compare(deeper, before, TEXTS, match="maps")
    assert {str(head) for head in back.names} == {*found.heads["partner"]}


def test_depth_keeps_to_the_layers_it_names(before: Subject) -> None:
    found = hc.compare(before, doubled(before), TEXTS, match="depth")
    layers = [[int(name.split(".")[1]) for name in part["partner"]]
              for _, part in found.heads.groupby("layer")]  # fmt: skip
    assert layers == [[0] * 4, [3] * 4]  # the first and the last of both
    assert found.heads["partner"].is_unique
    np.testing.assert_allclose(found.heads.xs(0, level="layer")["cosine"], 1, atol=1e-4)
    assert "within layers of the same relative depth" in found.notes[0]
    back = hc.compare(doubled(before), before, TEXTS, match="depth")
    assert len(back.heads) == 16  # each of our layers serves two of theirs
    assert back.heads["partner"].nunique() == 8
    assert json.dumps(back.to_dict(), allow_nan=False)


def test_roles_follow_the_pairs(before: Subject) -> None:
    from headcount.records import parse_head
    from headcount.rooms.compare.runs import role_changes

    columns = ["stack", "layer", "head", "role", "label", "value"]
    ours = pd.DataFrame([("enc", 0, 1, "rare", "", 0.5), ("enc", 1, 0, "sink", "", 1)])
    theirs = pd.DataFrame([("enc", 2, 3, "rare", "", 0.7), ("enc", 9, 9, "sink", "", 1)])
    ours.columns = theirs.columns = columns
    pairs = {
        parse_head("enc.0.1"): parse_head("enc.2.3"),
        parse_head("enc.0.2"): parse_head("enc.2.3"),
    }
    found = role_changes(ours, theirs, pairs)
    told = found[["layer", "head", "role", "change"]].values.tolist()
    assert told == [[0, 1, "rare", "kept"], [0, 2, "rare", "won"]]


def test_what_cannot_be_matched_is_refused(before: Subject, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There is no match 'luck'; choose name, depth, maps"):
        hc.compare(before, before, TEXTS, match="luck")
    with pytest.raises(UsageError, match="There is one text, and matching heads by their maps"):
        hc.compare(before, before, TEXTS[:1], match="maps")
    for name, subject in (("a", before), ("b", doubled(before))):
        hc.survey(subject, TEXTS[:2]).save(tmp_path / name)
    words = ["compare", str(tmp_path / "a"), str(tmp_path / "b")]
    wrong = CliRunner().invoke(app, words)
    assert wrong.exit_code == 2
    assert "has 2 layers in enc" in " ".join(wrong.stderr.split())
    assert "--match depth or --match maps" in " ".join(wrong.stderr.split())
    wrong = CliRunner().invoke(app, [*words, "--match", "maps"])
    assert wrong.exit_code == 2
    assert "which keep no maps to match heads by" in " ".join(wrong.stderr.split())


def test_runs_of_a_model_and_of_what_is_left_of_it(before: Subject, tmp_path: Path) -> None:
    small = hc.prune(before, ["enc.0.0", "enc.1.0", "enc.1.2"])
    for name, subject in (("a", before), ("b", small)):
        hc.survey(subject, TEXTS[:2]).save(tmp_path / name)
    done = CliRunner().invoke(app, ["compare", str(tmp_path / "a"), str(tmp_path / "b")])
    assert done.exit_code == 0, done.output


def test_other_tokens_are_refused(before: Subject) -> None:
    from subjects import subject_of

    other = Subject(before.model, subject_of("roberta", "roberta").tokenizer, name="other")
    with pytest.raises(InputError, match=r"cut the texts into different tokens .* one tokenizer"):
        hc.compare(before, other, TEXTS)


def test_slips_are_told(before: Subject, after: Subject) -> None:
    with pytest.raises(UsageError, match="compare takes a Subject, not the text 'minilm'"):
        hc.compare("minilm", after, TEXTS)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="Neither a corpus nor a treebank was given"):
        hc.compare(before, after)
    with pytest.raises(InputError, match="is empty"):
        hc.compare(before, after, [])
    with pytest.raises(UsageError, match="Stack 'dec' cannot be compared here"):
        hc.compare(before, after, TEXTS, stacks=["dec"])
    with pytest.raises(UsageError, match="Maps shall be padded to 5000 tokens"):
        hc.compare(before, after, TEXTS, convention="code", pad_to=5000)
    with pytest.raises(UsageError, match="pad to more"):
        hc.compare(before, after, TEXTS, convention="code", pad_to=4)
    with pytest.raises(UsageError, match="pads the maps of an encoder"):
        hc.compare(writer(), writer(), TEXTS, convention="code")


def test_broken_weights_are_named(before: Subject) -> None:
    broken = changed(before)
    broken.model.encoder.layer[1].attention.self.query.weight.data.fill_(torch.nan)
    with pytest.raises(ModelError, match=r"query\.weight of changed"):
        hc.compare(before, broken, TEXTS)


# --- roles, runs, the command -------------------------------------------------------------------


def test_a_treebank_tells_links_and_roles(before: Subject, after: Subject) -> None:
    from headcount.bundle import sample

    corpus = read_corpus(sample.path("sample.conllu"), limit=12)
    assert isinstance(next(iter(corpus)), Sentence)
    found = hc.compare(before, after, treebank=corpus)
    assert {"to_noun", "subject_to_verb"} <= set(found.columns)
    assert found.roles is not None
    assert set(found.roles["change"]) <= {"kept", "lost", "won"}


def test_it_is_a_run_of_the_first_model(found: Changes, tmp_path: Path) -> None:
    found.save(tmp_path / "run")
    with hc.Run.open(tmp_path / "run", create=False) as run:
        frame = run.read_frame("changes")
        assert run.stage("compare").done
        assert run.read_table().heads == found.names
    assert list(frame.columns[:9]) == [
        "stack", "layer", "head", "cosine", "cosine_low", "cosine_high", "js", "js_low", "js_high",
    ]  # fmt: skip
    assert json.dumps(found.to_dict(), allow_nan=False)


def test_two_run_directories(before: Subject, after: Subject, tmp_path: Path) -> None:
    for name, subject in (("a", before), ("b", after)):
        hc.survey(subject, TEXTS).save(tmp_path / name)
    words = ["compare", str(tmp_path / "a"), str(tmp_path / "b")]
    done = CliRunner().invoke(app, [*words, "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)["heads"]
    ours, theirs = (hc.HeadTable.load(tmp_path / name).frame["entropy"] for name in "ab")
    np.testing.assert_allclose([row["entropy"] for row in told], theirs - ours, atol=1e-9)
    plain = CliRunner().invoke(app, words)
    assert "entropy" in plain.output
    wrong = CliRunner().invoke(app, [*words, "--text", "sample"])
    assert wrong.exit_code == 2
    assert "leave out --text" in wrong.output + wrong.stderr


def test_a_run_is_not_compared_with_a_model(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    for words in ([str(tmp_path), "minilm"], ["minilm", str(tmp_path)]):
        wrong = CliRunner().invoke(app, ["compare", *words, "--text", "sample"])
        assert wrong.exit_code == 2
        assert "is a run directory and minilm is not; compare two run" in " ".join(
            wrong.stderr.split()
        )


def test_the_command_with_two_models_alone(before: Subject, after: Subject, tmp_path: Path) -> None:
    """It reads the bundled sample, and a run directory of another model is refused at once."""
    for subject in (before, after):
        subject.model.save_pretrained(tmp_path / subject.name)
        subject.tokenizer.save_pretrained(tmp_path / subject.name)  # type: ignore[union-attr]
    words = ["compare", *(str(tmp_path / one.name) for one in (before, after)), "--limit", "3"]
    done = CliRunner().invoke(app, [*words, "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["notes"][-1] == "No corpus was named, so the bundled sample.conllu was read."
    assert told["layers"][0]["texts"] == 3
    hc.survey(writer(), TEXTS[:1]).save(tmp_path / "other")
    wrong = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "other")])
    assert wrong.exit_code == 1
    assert "other" in wrong.stderr
    assert "Comparing" not in wrong.stderr


@pytest.mark.real
def test_the_command_on_models(minilm: Subject, tmp_path: Path) -> None:
    minilm.model.save_pretrained(tmp_path / "copy")
    minilm.tokenizer.save_pretrained(tmp_path / "copy")  # type: ignore[union-attr]
    words = ["compare", "minilm", str(tmp_path / "copy"), "--text", "sample", "--limit", "4"]
    done = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "run")])
    assert done.exit_code == 0, done.output
    assert "enc.5" in done.output
    assert "1.000" in done.output
    assert (tmp_path / "run" / "changes.parquet").is_file()
