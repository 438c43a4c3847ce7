"""ONNX: the file gives what the model gives, on other shapes than it was written with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from gguf_files import write_llama
from small_tasks import PAIRS
from surgery import answer
from tiny import GROUPED, TINY, row, tiny_inputs
from tiny_subjects import classifier, encoder, translator
from tiny_tokenizers import BUILDERS as BUILDERS_OF_TOKENIZERS

from headcount import tasks
from headcount.errors import ModelError, UsageError
from headcount.models.finding import find
from headcount.models.loading import load
from headcount.models.saving import save as saving
from headcount.models.subject import Subject
from headcount.pruning import Goal, ResultOptions, output_folder, prune_run
from headcount.pruning.remove import prune
from headcount.rooms.bench.speed import even_heads
from headcount.rooms.exports.exports import filled_with_zeros, write_onnx
from headcount.rooms.exports.llama_cpp import write_gguf
from headcount.rooms.exports.onnx_files import judged_int8


def test_a_cut_model_in_another_runtime(tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    small = prune(encoder(), "enc.0.1,enc.1.0-2")
    said = small.save(tmp_path / "out", export="onnx")
    assert said.route == "onnx"
    assert said.apart <= 1e-4
    assert (tmp_path / "out" / "headcount.json").is_file()
    session = runtime.InferenceSession(str(tmp_path / "out" / "model.onnx"))
    inputs = tiny_inputs(small.model, batch=4, length=11, pad=3)
    inputs["token_type_ids"] = torch.zeros_like(inputs["input_ids"])
    assert [one.name for one in session.get_outputs()] == ["last_hidden_state"]
    got = session.run(None, {name: value.numpy() for name, value in inputs.items()})[0]
    with torch.no_grad():
        wanted = answer(small.model(**inputs)).numpy()
    np.testing.assert_allclose(got, wanted, atol=1e-4)


def test_inputs_outputs_and_axes_have_the_names_of_transformers(tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    small = prune(classifier(), "enc.0.1")
    small.save(tmp_path / "out", export="onnx")
    session = runtime.InferenceSession(str(tmp_path / "out" / "model.onnx"))
    texts = ["batch_size", "sequence_length"]
    assert {one.name: one.shape for one in session.get_inputs()} == {
        "input_ids": texts,
        "attention_mask": texts,
        "token_type_ids": texts,
    }
    assert [(one.name, one.shape) for one in session.get_outputs()] == [
        ("logits", ["batch_size", 2])
    ]
    assert small.tokenizer is not None
    pairs = small.tokenizer(
        ["a dog ran", "it"], ["the cat slept on it", "no"], padding=True, return_tensors="pt"
    )
    assert pairs["token_type_ids"].any()
    got = session.run(None, {name: value.numpy() for name, value in pairs.items()})[0]
    with torch.no_grad():
        wanted = small.model(**pairs).logits.numpy()
        alone = small.model(**pairs | {"token_type_ids": pairs["token_type_ids"] * 0})
    np.testing.assert_allclose(got, wanted, atol=1e-4)
    assert np.abs(alone.logits.numpy() - wanted).max() > 1e-3  # types of tokens count


def sessions_of(folder: Path) -> dict[str, Any]:
    runtime = pytest.importorskip("onnxruntime")
    return {file.stem: runtime.InferenceSession(str(file)) for file in folder.glob("*.onnx")}


@pytest.mark.parametrize(
    ("family", "heads"),
    [("t5", "enc.0.1,dec.1,cross.0.3"), ("whisper", "enc.1.1,cross.0.0")],
)
def test_an_encoder_decoder_is_three_graphs_with_optimums_names(
    family: str, heads: str, tmp_path: Path
) -> None:
    pytest.importorskip("onnxscript")
    small = prune(Subject(TINY[family]()), heads)
    assert write_onnx(small, tmp_path) <= 1e-4  # on other batches and lengths than it was made of
    graphs = sessions_of(tmp_path)
    assert sorted(graphs) == ["decoder_model", "decoder_with_past_model", "encoder_model"]
    takes = {one.name: one.shape for one in graphs["decoder_with_past_model"].get_inputs()}
    gives = [one.name for one in graphs["decoder_model"].get_outputs()]
    assert takes["past_key_values.0.decoder.key"][2] == "past_decoder_sequence_length"
    assert takes["past_key_values.0.encoder.value"][2] == "encoder_sequence_length"
    assert "encoder_hidden_states" not in takes
    assert gives[0] == "logits"
    assert {name.replace("present", "past_key_values") for name in gives[1:]} <= {*takes}


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_a_decoder_takes_and_gives_keys_and_values(family: str, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    whole = Subject(TINY[family]())
    small = prune(whole, "dec.0.0-1" if family != "gpt2" else "dec.0.0,dec.1")
    assert write_onnx(small, tmp_path) <= 1e-4
    graph = sessions_of(tmp_path)["model"]
    takes = {one.name: one.shape for one in graph.get_inputs()}
    both = "past_sequence_length + sequence_length"
    assert takes["input_ids"] == takes["position_ids"] == ["batch_size", "sequence_length"]
    assert takes["attention_mask"] == ["batch_size", both]
    heads = {site.layer: site.kv_heads for site in small.anatomy.sites}
    for layer, count in heads.items():
        for what in ("key", "value"):
            shape = takes[f"past_key_values.{layer}.{what}"]
            assert shape[:3] == ["batch_size", count, "past_sequence_length"]
    # Two steps with the cache give what one without it gives.
    ids = np.array([[5, 6, 7, 8, 9, 10, 11]])
    past = {
        name: np.zeros((1, shape[1], 0, shape[3]), np.float32)
        for name, shape in takes.items()
        if name.startswith("past")
    }
    assert [one.shape[2] for one in graph.get_outputs()[1:]] == [both] * len(past)
    for part in (slice(0, 4), slice(4, 7)):
        given = {"input_ids": ids[:, part], "position_ids": np.arange(7)[None, part]}
        seen = {"attention_mask": np.ones((1, part.stop), np.int64)}
        logits, *present = graph.run(None, {**given, **seen, **past})
        past = dict(zip(past, present, strict=True))
    with torch.no_grad():
        wanted = small.model(torch.tensor(ids)).logits[:, 4:].numpy()
    np.testing.assert_allclose(logits, wanted, atol=1e-4)


def test_int8_is_judged_by_the_rule_of_heads(tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    whole, task = translator(), tasks.translation(PAIRS * 8, metric="loss")
    place = output_folder(tmp_path / "kept", force=False)
    how: dict[str, Any] = {"keep": len(whole.heads) - 1, "result": ResultOptions("onnx-int8")}
    done = prune_run(whole, task, place=place, **how)
    (said,) = (note for note in done.notes if note.startswith("As int8 in onnxruntime"))
    assert "at most" in said
    assert "95% bound, n =" in said
    packed = tmp_path / "kept" / "onnx-int8"
    assert packed.is_dir()
    assert done.plan is not None
    assert done.small is not None
    none = replace(done.plan, goal=Goal(max_loss=0.0))
    (said,) = judged_int8(whole, none, done.small, done.saved)
    assert said.endswith("and 0 is allowed: onnx-int8/ was not kept.")
    assert "onnx-int8" not in done.saved
    assert not packed.exists()


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def without(name: str) -> Any:
        raise ImportError(f"No module named '{name}'", name=name)

    monkeypatch.setattr("headcount.rooms.exports.exports.importlib.import_module", without)
    hint = r"needs the package onnxruntime.*headcount\[onnx\].*in a clone: .pip install '\.\[onnx"
    with pytest.raises(ModelError, match=hint):
        write_onnx(Subject(TINY["bert"]()), tmp_path)


BUILDERS = {
    **TINY,
    "phi3": row("Phi3ForCausalLM", "Phi3Config", GROUPED),
    "qwen2": row("Qwen2ForCausalLM", "Qwen2Config", GROUPED),
}


# --- GGUF ---------------------------------------------------------------------------------------


def test_a_gguf_is_written_back_without_the_heads_that_went(
    tmp_path: Path, smollm2: Subject
) -> None:
    whole = smollm2
    assert whole.stored == "quantised"
    small = prune(whole, even_heads(whole, 0.34))
    saved = small.save(tmp_path / "out", export="gguf")
    assert saved.apart <= 1e-5  # packed weights stay as they were
    again = load(saved.folder / "model.gguf", device="cpu")
    assert (len(again.heads), again.inner.config.head_dim) == (len(small.heads), 64)
    del again  # half a gigabyte each
    source = find("smollm2")
    came = (source.folder / str(source.gguf)).stat().st_size
    assert 0.9 * came < (saved.folder / "model.gguf").stat().st_size < came
    with torch.no_grad():
        small.inner.model.norm.weight *= 2
    learned = small.save(tmp_path / "learned", export="gguf")
    assert "weights are F16" in learned.why  # those that learned cannot be copied


def test_a_model_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    small = prune(Subject(TINY["llama"](), name="tiny"), "dec.0.0-1")
    with pytest.raises(UsageError, match="has no tokenizer, and a GGUF file holds it"):
        small.save(tmp_path / "none", export="gguf")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("family", "heads", "kind"),
    [
        ("llama", "dec.0.0-1", "deci"),
        ("llama", "dec.0", "deci"),
        ("qwen2", "dec.0-1.0-1", "qwen2"),
        ("qwen3", "dec.0-1.2-3", "qwen3"),
        ("gemma3", "dec.0-1.0-1", "gemma3"),
    ],
)
@pytest.mark.parametrize("packing", ["gguf", "gguf-q8_0"])
def test_a_model_of_safetensors_is_written_as_gguf(
    family: str, heads: str, kind: str, packing: str, tmp_path: Path
) -> None:
    gguf = pytest.importorskip("gguf")
    tokenizer = BUILDERS_OF_TOKENIZERS["gpt2"]()
    sizes = {"vocab_size": len(tokenizer) + 3, "hidden_size": 32, "intermediate_size": 32}
    if family == "gemma3":
        sizes |= {"layer_types": ["sliding_attention"] * 2, "head_dim": 256}
    if family == "qwen3":
        sizes |= {"head_dim": 128}  # transformers reads no other from such a file
    small = prune(Subject(BUILDERS[family](**sizes), tokenizer, name="tiny"), heads)
    saved = small.save(tmp_path / "out", export=packing)
    reader = gguf.GGUFReader(str(tmp_path / "out" / "model.gguf"))
    assert reader.fields["general.architecture"].contents() == kind
    assert reader.fields["tokenizer.ggml.tokens"].contents()[-1] == f"[PAD{len(tokenizer) + 2}]"
    stored = {one.name: one.tensor_type.name for one in reader.tensors}
    assert stored["blk.1.attn_q.weight"] == ("F16" if packing == "gguf" else "Q8_0")
    assert stored["blk.1.ffn_norm.weight"] == "F32"
    assert saved.apart <= (2e-2 if packing == "gguf" else 0.5)
    again = load(tmp_path / "out" / "model.gguf", device="cpu")
    assert again.heads == small.heads
    if packing == "gguf":
        inputs = tiny_inputs(small.model)
        with torch.no_grad():
            one, two = answer(small.model(**inputs)), answer(again.model(**inputs))
        torch.testing.assert_close(one, two, atol=2e-2, rtol=2e-2)


def test_families_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    tokenizer = BUILDERS_OF_TOKENIZERS["gpt2"]()
    scaled = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 2.0}
    for family, sizes, what in (
        ("gpt2", {}, "of a model of type 'gpt2'"),
        ("llama", {"rope_parameters": scaled}, "of rope_parameters"),
        ("mistral", {"sliding_window": 4}, "of a sliding window of 4"),
        ("qwen3", {}, "different numbers of heads"),
    ):
        subject = Subject(TINY[family](**sizes), tokenizer, name="tiny")
        with pytest.raises(UsageError, match=what):
            prune(subject, "dec.0.0-1").save(tmp_path / "none", export="gguf")


WIDE = {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 4}


@pytest.mark.parametrize(
    ("sizes", "first", "second"),
    [
        (WIDE, "dec.0-1.0,dec.0-1.2,dec.0-1.4,dec.0-1.6", "dec.0-1.3,dec.0-1.5"),
        (WIDE, "dec.0-1.2-5", "dec.0-1.1,dec.0-1.7"),
        ({}, "dec.0-1.0,dec.0-1.2", "dec.0-1.1"),
    ],
)
def test_a_gguf_that_was_written_is_pruned_and_written_again(
    sizes: dict[str, int], first: str, second: str, tmp_path: Path
) -> None:
    """One query head of every group, or a whole group: the file's places are not the numbers."""
    pytest.importorskip("gguf")
    write_llama(tmp_path / "tiny.gguf", TINY["llama"](**sizes))
    whole = load(tmp_path / "tiny.gguf", device="cpu")
    small = prune(whole, first)
    small.save(tmp_path / "one", export="gguf")
    loaded = load(tmp_path / "one" / "model.gguf", device="cpu")
    assert loaded.heads == small.heads
    twice, once = prune(loaded, second), prune(small, second)
    twice.save(tmp_path / "two", export="gguf")
    again = load(tmp_path / "two", device="cpu")
    assert again.heads == twice.heads == once.heads
    inputs = tiny_inputs(again.model)
    with torch.no_grad():
        wanted = answer(once.model(**inputs))
        torch.testing.assert_close(answer(twice.model(**inputs)), wanted)
        torch.testing.assert_close(answer(again.model(**inputs)), wanted)


def test_layers_with_numbers_of_their_own_are_llamas_kind_deci(tmp_path: Path) -> None:
    """A group gone, a query of every group gone, and a layer without attention."""
    gguf = pytest.importorskip("gguf")
    whole = TINY["llama"](num_hidden_layers=4)
    write_llama(tmp_path / "tiny.gguf", whole)
    loaded = load(tmp_path / "tiny.gguf", device="cpu")
    small = prune(loaded, "dec.0.0-1,dec.1.0,dec.1.2,dec.2")
    saved = small.save(tmp_path / "out", export="gguf")
    assert saved.apart <= 1e-6
    reader = gguf.GGUFReader(str(tmp_path / "out" / "model.gguf"))
    said = {name: field.contents() for name, field in reader.fields.items()}
    assert said["general.architecture"] == "deci"
    assert said["deci.attention.head_count"] == [2, 2, 0, 4]
    assert said["deci.attention.head_count_kv"] == [1, 2, 0, 2]
    assert said["deci.attention.key_length"] == 8
    assert not [name for name in said if name.startswith("llama.")]
    names = {tensor.name for tensor in reader.tensors}
    assert "blk.2.ffn_norm.weight" in names
    assert not [name for name in names if name.startswith("blk.2.attn")]
    again = load(tmp_path / "out" / "model.gguf", device="cpu")
    assert again.heads == small.heads
    inputs = tiny_inputs(small.model)
    with torch.no_grad():
        torch.testing.assert_close(answer(again.model(**inputs)), answer(small.model(**inputs)))
    written = (tmp_path / "out" / "model.gguf").read_bytes()
    foreign = tmp_path / "foreign.gguf"
    foreign.write_bytes(written.replace(b"headcount.heads", b"elsewhere.heads"))
    with pytest.raises(ModelError, match="does not say which heads its layers have"):
        load(foreign, device="cpu")


def test_uneven_layers_of_another_kind_are_refused_by_name(tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    writer = gguf.GGUFWriter(str(tmp_path / "other.gguf"), "qwen2")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    small = prune(Subject(TINY["llama"](), name="tiny"), "dec.0.0-1")
    with pytest.raises(UsageError, match="of Llama's kind only, not of 'qwen2'; take as many"):
        write_gguf(small, tmp_path / "other.gguf", tmp_path / "out.gguf")


# --- At the old size, with zeros ----------------------------------------------------------------


CASES = [
    ("bert", "enc.0.1,enc.1"),
    ("gpt2", "dec.0.1-2"),
    ("gpt_neox", "dec.0.1"),
    ("llama", "dec.0.0-1,dec.1.1-2"),
    ("phi3", "dec.0.1-2"),
    ("gpt_oss", "dec.1.2-3"),
    ("marian", "enc.0.1,cross.1.0-2"),
    ("t5", "enc.0.1,enc.1.2,dec.0,cross.2.1"),
]


@pytest.mark.parametrize(("family", "heads"), CASES)
def test_the_filled_model_says_the_same(family: str, heads: str) -> None:
    small = prune(Subject(BUILDERS[family]()), heads).model
    whole = filled_with_zeros(small)
    assert not hasattr(whole.config, "headcount")
    assert whole.num_parameters() > small.num_parameters()
    inputs = tiny_inputs(small, pad=2)
    with torch.no_grad():
        torch.testing.assert_close(answer(whole(**inputs)), answer(small(**inputs)))


def test_a_whole_model_has_nothing_to_fill() -> None:
    with pytest.raises(UsageError, match="No head was removed"):
        filled_with_zeros(TINY["bert"]())


def test_tables_of_t5_that_were_trained_apart_are_refused() -> None:
    small = prune(Subject(TINY["t5"]()), "enc.0.1,enc.1.2").model
    with torch.no_grad():
        small.encoder.block[1].layer[0].SelfAttention.relative_attention_bias.weight += 1
    with pytest.raises(UsageError, match="'enc' were trained apart"):
        filled_with_zeros(small)


def test_it_is_saved_as_a_plain_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saving, "check_fresh", lambda jobs: [0.0])
    small = prune(Subject(TINY["bert"]()), "enc.0.1,enc.1.0-2")
    saved = small.save(tmp_path / "out", export="zeros")
    assert (saved.route, saved.why[:19]) == ("plain", "it has its old size")
    plain = transformers.AutoModel.from_pretrained(tmp_path / "out").eval()
    inputs = tiny_inputs(small.model, pad=2)
    with torch.no_grad():
        torch.testing.assert_close(answer(plain(**inputs)), answer(small.model(**inputs)))


def test_an_export_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There is no export 'exe'; it is one of zeros"):
        prune(Subject(TINY["bert"]()), "enc.0.1").save(tmp_path / "out", export="exe")
