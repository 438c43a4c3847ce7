"""A saved model loads again, in another process and without us, and says the same."""

from __future__ import annotations

import errno
import inspect
import json
import logging
import re
import sys
from pathlib import Path
from unittest import mock

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from subjects import save
from surgery import answer
from tiny import GROUPED, TINY, row, tiny_inputs
from tiny_subjects import encoder

import headcount.models.modeling_headcount as modeling_headcount
from headcount.errors import ModelError, UsageError
from headcount.models.anatomy import MAP
from headcount.models.loading import load
from headcount.models.saving import save as saving
from headcount.models.saving.fresh_process import LoadCheck, check_fresh
from headcount.models.saving.routes import routes_for
from headcount.models.saving.save import draft_of, written
from headcount.models.subject import Subject
from headcount.pruning.remove import prune
from headcount.records import files, replace_folder

MAMBA = {"mamba_d_ssm": 64, "mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 8}
BUILDERS = {
    **TINY,
    "phi3": row("Phi3ForCausalLM", "Phi3Config", GROUPED),
    "olmo2": row("Olmo2ForCausalLM", "Olmo2Config", GROUPED),
    # Its model makes a buffer of each layer that no file keeps.
    "falcon_h1": row(
        *("FalconH1ForCausalLM", "FalconH1Config", GROUPED | MAMBA),
        **{"mamba_n_groups": 1, "mamba_chunk_size": 8},
    ),
}
WIDE = {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 4}


def cut(family: str, heads: str, **settings: object) -> Subject:
    return prune(Subject(BUILDERS[family](**settings), name=family), heads)


#: Family, heads that go, settings, and the ways that can save it.
CASES = [
    ("bert", "enc.0.1,enc.1.0-2", {}, ["code"]),
    ("albert", "enc.0-2.1", {}, ["code"]),
    ("modernbert", "enc.1.0", {}, ["code"]),
    ("vit", "enc.0.1,enc.1.2-3", {}, ["code"]),
    ("vit", "enc.0.1,enc.1.2", {}, ["native", "code"]),
    ("gpt2", "dec.0.1", {}, ["code"]),
    ("gpt_neox", "dec.0.1-2", {}, ["code"]),
    ("gptj", "dec.1.3", {}, ["code"]),
    ("bloom", "dec.0.1,dec.1.0-2", {}, ["code"]),
    ("falcon", "dec.0.1", {}, ["code"]),
    ("mpnet", "enc.0.1,enc.1.0", {}, ["code"]),
    ("deberta_v2", "enc.0.0-1", {}, ["code"]),
    ("llama", "dec.0.0-1", {}, ["code"]),
    ("llama", "dec.0-1.0-1", {}, ["native", "mistral", "code"]),
    ("llama", "dec.0-1.0-1", WIDE, ["mistral", "code"]),
    ("qwen3", "dec.0.0-1,dec.1.2-3", {}, ["native", "code"]),
    ("phi3", "dec.0.1-2", {}, ["code"]),
    ("olmo2", "dec.0-1.0-1", {}, ["code"]),
    ("falcon_h1", "dec.0.0-1", {}, ["code"]),
    ("phi3", "dec.0-1.1-2", {}, ["native", "code"]),
    ("marian", "enc.0,dec.1.2,cross.2.1-3", {}, ["code"]),
    ("whisper", "enc.1.1,cross.0.0", {}, ["code"]),
    ("t5", "enc.0.1,dec.2.0-2,cross.0", {}, ["code"]),
    ("t5", "enc.0-1.1,dec.0-2.3,cross.0-2.0", {}, ["native", "code"]),
]


def test_every_way_of_saving_loads_in_another_process(tmp_path: Path) -> None:
    jobs = []
    for number, (family, heads, settings, ways) in enumerate(CASES):
        small = cut(family, heads, **settings)
        found = list(routes_for(small.inner))
        assert [route.name for route in found] == ways, (family, heads)
        folder = tmp_path / f"{number}-{found[0].name}"
        written(small, folder, found[0])
        jobs.append(LoadCheck(folder, small, found[0]))
    assert max(check_fresh(jobs)) <= 1e-5


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Subject, Path, saving.Saved]:
    small = prune(encoder(), "enc.0.1,enc.1.0-2")
    folder = tmp_path_factory.mktemp("models") / "small"
    return small, folder, small.save(folder)


def test_what_was_done_is_said(saved: tuple[Subject, Path, saving.Saved]) -> None:
    _, folder, said = saved
    assert said.route == "code"
    assert f"Saved in {folder} (code: no config of 'bert' says how many heads" in str(said)
    assert f"AutoModel.from_pretrained('{folder}', trust_remote_code=True)" in said.loads_with
    assert said.apart <= 1e-5
    assert [child.name for child in folder.parent.iterdir()] == ["small"]


def test_our_own_loader_needs_no_trust(saved: tuple[Subject, Path, saving.Saved]) -> None:
    small, folder, _ = saved
    again = load(folder, device="cpu")
    assert again.heads == small.heads
    assert isinstance(again.model, transformers.BertModel)
    assert again.tokenizer is not None
    inputs = tiny_inputs(small.model, pad=2)
    with torch.no_grad():
        assert torch.equal(answer(again.model(**inputs)), answer(small.model(**inputs)))
    assert len(prune(again, "enc.0.0").heads) == 3


def test_the_map_lies_in_the_folder(saved: tuple[Subject, Path, saving.Saved]) -> None:
    _, folder, _ = saved
    kept = json.loads((folder / MAP).read_text())
    assert kept["heads"] == {"enc.0": [0, 2, 3], "enc.1": [3]}
    assert kept["per_layer_config"]["1"] == {"num_attention_heads": 1, "num_key_value_heads": 1}


def test_the_code_names_nothing_of_ours(saved: tuple[Subject, Path, saving.Saved]) -> None:
    _, folder, _ = saved
    code = (folder / "modeling_headcount.py").read_text()
    assert code == inspect.getsource(modeling_headcount)
    assert not re.search(r"^\s*(import|from) headcount", code, re.MULTILINE)


def test_without_trust_transformers_refuses_rather_than_guesses(
    saved: tuple[Subject, Path, saving.Saved],
) -> None:
    """And the report that it prints says what to do, before all the sizes that do not fit."""
    _, folder, _ = saved
    log = logging.getLogger("transformers.modeling_utils")
    told: list[str] = []
    with (
        mock.patch.object(log, "warning", told.append),
        pytest.raises(RuntimeError, match="mismatch"),
    ):
        transformers.AutoModel.from_pretrained(folder)
    report = "".join(told)
    assert 0 < report.index("load_it_with_trust_remote_code_True") < report.index("MISMATCH")
    model = transformers.AutoModel.from_pretrained(folder, trust_remote_code=True)
    assert not [name for name in model.state_dict() if "trust" in name]


def test_a_card_says_how_it_loads_and_what_is_left(
    saved: tuple[Subject, Path, saving.Saved],
) -> None:
    _, folder, _ = saved
    card = (folder / "README.md").read_text(encoding="utf8")
    assert "AutoModel.from_pretrained('FOLDER', trust_remote_code=True)" in card
    assert "headcount.load('FOLDER')" in card
    assert "stops at weights of another size (size mismatch, and `PRUNED_MODEL" in card
    assert "- enc.0: 0, 2, 3\n- enc.1: 3\n" in card


def test_weights_are_saved_in_the_dtype_in_which_they_came(tmp_path: Path) -> None:
    whole = encoder()
    whole.model.to(torch.bfloat16).save_pretrained(tmp_path / "whole")
    subject = load(tmp_path / "whole", device="cpu")
    assert (subject.dtype, subject.stored) == (torch.float32, "bfloat16")
    small = prune(subject, "enc.0.1")
    assert small.save(tmp_path / "small").apart == 0  # nothing was lost

    def stored(name: str) -> set[torch.dtype]:
        kept = load_file(tmp_path / name / "model.safetensors")
        return {one.dtype for one in kept.values() if one.is_floating_point()}

    assert stored("small") == {torch.bfloat16}
    small.save(tmp_path / "wide", dtype="float32")
    assert stored("wide") == {torch.float32}
    with torch.no_grad():
        small.inner.embeddings.word_embeddings.weight += 1e-4  # it learned something
    small.save(tmp_path / "learned")
    assert stored("learned") == {torch.float32}
    with pytest.raises(UsageError, match="There is no dtype 'int8' to save in; allowed: float32"):
        small.save(tmp_path / "none", dtype="int8")


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("heads", ["dec.0.0-1", "dec.0-1.0-1"], ids=["code", "native"])
def test_tied_weights_are_saved_once_in_any_dtype(heads: str, tmp_path: Path) -> None:
    whole = TINY["llama"](tie_word_embeddings=True).to(torch.bfloat16)
    whole.save_pretrained(tmp_path / "whole")
    small = prune(load(tmp_path / "whole", device="cpu"), heads)
    parameters = small.inner.num_parameters()  # tied ones count once
    for name, dtype, size in (("own", None, 2), ("half", "float16", 2), ("wide", "float32", 4)):
        small.save(tmp_path / name, dtype=dtype)
        kept = load_file(tmp_path / name / "model.safetensors")
        assert "lm_head.weight" not in kept
        hint = 1 if heads == "dec.0.0-1" else 0
        assert sum(one.nbytes for one in kept.values()) == size * (parameters + hint)
        again = load(tmp_path / name, device="cpu").inner
        assert again.lm_head.weight is again.model.embed_tokens.weight


def test_what_save_pretrained_writes_loads_with_us_too(tmp_path: Path) -> None:
    small = cut("marian", "enc.0.1,cross.1.0-1")
    small.model.save_pretrained(tmp_path)
    assert load(tmp_path, device="cpu").heads == small.heads


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process takes seconds to start; a test of something else can do without."""
    monkeypatch.setattr(saving, "check_fresh", lambda jobs: [0.0])


@pytest.mark.usefixtures("unchecked")
def test_names_come_from_the_map_when_the_config_lost_them(tmp_path: Path) -> None:
    small = cut("llama", "dec.0-1.0-1")
    small.save(tmp_path / "small")
    config = json.loads((tmp_path / "small" / "config.json").read_text())
    del config["headcount"]
    (tmp_path / "small" / "config.json").write_text(json.dumps(config))
    assert load(tmp_path / "small", device="cpu").heads == small.heads
    (tmp_path / "small" / MAP).unlink()
    assert str(load(tmp_path / "small", device="cpu").heads[0]) == "dec.0.0"


def test_a_folder_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"is a folder that is not empty; .* --force"):
        cut("bert", "enc.0.1").save(tmp_path)
    assert (tmp_path / "note.txt").read_text() == "mine"


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("in_one_step", [True, False])
def test_force_replaces_what_was_saved_and_nothing_else(
    in_one_step: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not in_one_step:
        monkeypatch.setattr(files, "_exchanged", lambda *_: False)
    place = tmp_path / "out"
    cut("bert", "enc.0.1").save(place)
    cut("bert", "enc.0.2").save(place, force=True)
    assert load(place, device="cpu").heads == cut("bert", "enc.0.2").heads
    assert [child.name for child in tmp_path.iterdir()] == ["out"]
    (place / "notes.txt").write_text("mine")
    (place / "data").mkdir()
    (place / "data" / "corpus.tsv").write_text("mine")
    (place / "linked").symlink_to(tmp_path)
    with pytest.raises(UsageError, match=r"holds data/corpus\.tsv, linked, notes\.txt, which"):
        cut("bert", "enc.0.1").save(place, force=True)
    assert (place / "notes.txt").read_text() == "mine"
    assert (place / "data" / "corpus.tsv").read_text() == "mine"


@pytest.mark.parametrize("told", ["{", "[]", "{}", '{"files": 7}', '{"files": null}'])
def test_a_list_that_lists_nothing_lets_nothing_go(told: str, tmp_path: Path) -> None:
    (tmp_path / MAP).write_text(told)
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(UsageError, match=r"holds headcount\.json, thesis\.tex, which"):
        cut("bert", "enc.0.1").save(tmp_path, force=True)


class _Killed(BaseException):
    """As SIGKILL: nothing is done afterwards."""


def test_killed_between_two_names_the_old_model_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the system cannot let two folders change names in one step."""
    monkeypatch.setattr(files, "_exchanged", lambda *_: False)
    place, draft = tmp_path / "model", tmp_path / ".model.0a1b2c3d.tmp"
    for folder in (place, draft):
        folder.mkdir()
        (folder / "name").write_text(folder.name)
    rename = Path.rename

    def dying(path: Path, to: Path) -> Path:
        if path == draft:
            raise _Killed
        return rename(path, to)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", dying)
        with pytest.raises(_Killed):  # Ctrl-C: the old one is back at once
            replace_folder(draft, place)
        assert (place / "name").read_text() == "model"
        patch.setattr(files, "recover", lambda _: None)
        with pytest.raises(_Killed):
            replace_folder(draft, place)
    assert not place.exists()
    with pytest.raises(UsageError, match="is a folder that is not empty"):
        cut("bert", "enc.0.1").save(place)
    assert (place / "name").read_text() == "model"


@pytest.mark.skipif(sys.platform != "linux", reason="one step is Linux's")
def test_on_linux_two_folders_change_names_in_one_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, draft = tmp_path / "model", tmp_path / ".model.0a1b2c3d.tmp"
    for folder in (place, draft):
        folder.mkdir()
        (folder / "name").write_text(folder.name)

    def no(*_: object) -> None:
        raise AssertionError("two steps")

    monkeypatch.setattr(Path, "rename", no)
    replace_folder(draft, place)
    assert (place / "name").read_text() == draft.name
    assert [child.name for child in tmp_path.iterdir()] == ["model"]


def test_a_full_disk_leaves_nothing_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "out"
    place.mkdir()
    (place / "note.txt").write_text("old")
    (place / MAP).write_text(json.dumps({"files": [MAP, "note.txt"]}))

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(saving, "copy_companions", full)
    with pytest.raises(ModelError, match="could not be written: the disk is full"):
        cut("bert", "enc.0.1").save(place, force=True)
    assert [child.name for child in tmp_path.iterdir()] == ["out"]
    assert (place / "note.txt").read_text() == "old"


def test_a_draft_goes_whatever_happens(tmp_path: Path) -> None:
    def interrupted() -> None:
        with draft_of(tmp_path / "out") as draft:
            draft.mkdir()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not list(tmp_path.iterdir())


def test_a_model_that_loads_as_another_is_not_called_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoilt(subject: Subject, draft: Path, route: object, dtype: object) -> None:
        written(subject, draft, route)  # type: ignore[arg-type]
        weights = load_file(draft / "model.safetensors")
        weights["embeddings.word_embeddings.weight"] *= 2
        save_file(weights, draft / "model.safetensors", metadata={"format": "pt"})

    monkeypatch.setattr(saving, "written", spoilt)
    with pytest.raises(ModelError, match="gives other outputs when it is loaded again"):
        cut("bert", "enc.0.1").save(tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_a_whole_model_is_saved_plainly(tmp_path: Path) -> None:
    assert Subject(TINY["gpt2"]()).save(tmp_path / "out").route == "plain"


def test_an_adapter_is_to_be_merged_first(tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    wrapped = peft.get_peft_model(TINY["bert"](), peft.LoraConfig(target_modules=["query"], r=2))
    with pytest.raises(UsageError, match="merge it first"):
        Subject(wrapped).save(tmp_path / "out")


@pytest.mark.real
def test_sentence_transformers_files_come_along(minilm: Subject, tmp_path: Path) -> None:
    small = prune(minilm, [head for head in minilm.heads if (head.layer + head.index) % 2])
    said = small.save(tmp_path / "small")
    assert said.route == "code"
    assert (tmp_path / "small" / "modules.json").is_file()
    assert (tmp_path / "small" / "1_Pooling" / "config.json").is_file()
    assert (tmp_path / "small" / "2_Normalize").is_dir()
    card = (tmp_path / "small" / "README.md").read_text(encoding="utf8")
    assert "SentenceTransformer('FOLDER', trust_remote_code=True)" in card
    theirs = pytest.importorskip("sentence_transformers")
    model = theirs.SentenceTransformer(str(tmp_path / "small"), trust_remote_code=True)
    assert [type(part).__name__ for part in model] == ["Transformer", "Pooling", "Normalize"]
    texts = ["The cat sat on the mat.", "Stock markets fell on Monday."]
    assert small.tokenizer is not None
    given = small.tokenizer(texts, padding=True, return_tensors="pt")
    real = given["attention_mask"][..., None]
    with torch.no_grad():
        means = (answer(small.model(**given)) * real).sum(1) / real.sum(1)
    wanted = torch.nn.functional.normalize(means, dim=-1)
    torch.testing.assert_close(torch.tensor(model.encode(texts)), wanted)


@pytest.mark.usefixtures("unchecked")
def test_folders_that_modules_json_names_are_those_beside_it(tmp_path: Path) -> None:
    source, away = tmp_path / "source", tmp_path / "away"
    save(source, "bert", "wordpiece")
    away.mkdir()
    (away / "secret").write_text("mine")
    (source / "4_Dense").mkdir()
    (source / "4_Dense" / "config.json").write_text("{}")
    paths = ["", "4_Dense", "5_Normalize", "../away", str(away), ".", ".."]
    listed = [{"idx": number, "path": path} for number, path in enumerate(paths)]
    (source / "modules.json").write_text(json.dumps(listed))
    prune(load(source, device="cpu"), "enc.0.1").save(tmp_path / "small")
    folders = {one.name for one in (tmp_path / "small").rglob("*") if one.is_dir()}
    assert folders == {"4_Dense", "5_Normalize"}
    assert not list((tmp_path / "small").rglob("secret"))


@pytest.mark.usefixtures("unchecked")
def test_what_a_link_out_of_the_folder_points_to_does_not_come_along(tmp_path: Path) -> None:
    """But what lies in a cache of the hub does, where every file is a link to one beside it."""
    source, away = tmp_path / "hub" / "snapshots" / "1a", tmp_path / "away"
    save(source, "bert", "wordpiece")
    for folder in (away, tmp_path / "hub" / "blobs", source / "4_Dense"):
        folder.mkdir()
    (away / "secret").write_text("mine")
    (tmp_path / "hub" / "blobs" / "77").write_text("{}")
    (source / "processor_config.json").symlink_to("../../blobs/77")
    (source / "4_Dense" / "config.json").symlink_to("../../../blobs/77")
    (source / "4_Dense" / "inner").symlink_to(away / "secret")
    (source / "5_Pooling").symlink_to(away)
    (source / "preprocessor_config.json").symlink_to(away / "secret")
    listed = [{"path": "4_Dense"}, {"path": "5_Pooling"}]
    (source / "modules.json").write_text(json.dumps(listed))
    with pytest.warns(UserWarning, match=r"preprocessor_config\.json, 4_Dense/inner, 5_Pooling"):
        prune(load(source, device="cpu"), "enc.0.1").save(tmp_path / "small")
    small = tmp_path / "small"
    assert (small / "processor_config.json").read_text() == "{}"
    assert [path.name for path in (small / "4_Dense").iterdir()] == ["config.json"]
    assert "mine" not in {path.read_text() for path in small.rglob("*.json")}
    assert not (small / "preprocessor_config.json").exists()


@pytest.mark.real
def test_a_real_llama_loads_in_plain_transformers(smollm2: Subject, tmp_path: Path) -> None:
    small = prune(smollm2, [head for head in smollm2.heads if head.index < 3])
    said = small.save(tmp_path / "small")
    assert said.route == "native"
    assert said.apart <= 1e-5


def test_a_full_disk_while_the_tokenizer_is_saved_is_an_error_of_the_disk(tmp_path: Path) -> None:
    """The library of tokenizers raises a bare Exception; it must not pass for a fault of ours."""
    tokenizer = mock.Mock()
    tokenizer.save_pretrained.side_effect = Exception("No space left on device (os error 28)")
    with pytest.raises(OSError, match="No space left") as caught:
        saving.save_tokenizer(tokenizer, tmp_path)
    assert caught.value.errno == errno.ENOSPC
    tokenizer.save_pretrained.side_effect = Exception("something else")
    with pytest.raises(Exception, match="something else"):
        saving.save_tokenizer(tokenizer, tmp_path)
