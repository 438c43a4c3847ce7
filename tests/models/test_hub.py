"""Hub ids, against a hub on this machine: found, not found, and found again without a network."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub.constants as hub
import pytest
import torch
from hub_server import COMMIT, serving
from huggingface_hub import hf_api
from tiny import TINY

from headcount.errors import ModelError, UsageError
from headcount.models.loading import load
from headcount.models.subject import Subject


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT, a Llama in shards, a pickle and an adapter on the Llama."""
    peft = pytest.importorskip("peft")
    root = tmp_path_factory.mktemp("hub")
    TINY["bert"]().save_pretrained(root / "org/bert")
    TINY["llama"]().save_pretrained(root / "org/llama", max_shard_size="30KB")
    shutil.copytree(root / "org/bert", root / "org/pickle")
    (root / "org/pickle/model.safetensors").unlink()
    torch.save(TINY["bert"]().state_dict(), root / "org/pickle/pytorch_model.bin")
    settings = peft.LoraConfig(
        target_modules=["q_proj"], task_type="CAUSAL_LM", base_model_name_or_path="org/llama"
    )
    wrapped = peft.PeftModelForCausalLM(TINY["llama"](), settings)
    wrapped.save_pretrained(root / "org/lora", save_embedding_layers=False)
    return root


def use(monkeypatch: pytest.MonkeyPatch, address: str, cache: Path) -> None:
    """Make the library ask this address and keep what it gets in this folder."""
    monkeypatch.setattr(hub, "ENDPOINT", address)
    template = f"{address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr(hub, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(hub, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(hf_api.api, "endpoint", address)
    # transformers keeps a client of its own, with the address of its first call.
    monkeypatch.setattr("transformers.utils.hub._hf_api", None, raising=False)


def go_offline(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    """From here on nobody answers: the port is one that is never open."""
    use(monkeypatch, "http://127.0.0.1:9", cache)


@pytest.fixture(scope="module")
def address(root: Path) -> Iterator[str]:
    """The address of a hub that answers; one for all tests, for the library remembers it."""
    with serving(root) as address:
        yield address


@pytest.fixture
def cache(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of downloads, with a hub that answers."""
    use(monkeypatch, address, tmp_path / "cache")
    return tmp_path / "cache"


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_a_hub_id_is_loaded_with_its_commit(family: str, cache: Path) -> None:
    subject = load(f"org/{family}", device="cpu")
    assert (subject.name, subject.source, subject.revision) == (f"org/{family}",) * 2 + (COMMIT,)
    assert subject.weights_hash == Subject(TINY[family]()).weights_hash


@pytest.mark.parametrize("revision", ["main", COMMIT])
def test_a_revision_may_be_named(revision: str, cache: Path) -> None:
    assert load("org/bert", device="cpu", revision=revision).revision == COMMIT


def test_what_was_downloaded_is_found_without_a_network(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("org/bert", "org/lora"):
        before = load(name, device="cpu")
        with monkeypatch.context() as later:
            go_offline(later, cache)
            start = time.monotonic()
            after = load(name, device="cpu")
            assert time.monotonic() - start < 10, "nobody retries for half a minute"
        assert after.weights_hash == before.weights_hash
        assert after.revision == COMMIT


def test_an_adapter_of_the_hub_names_its_base(cache: Path) -> None:
    subject = load("org/lora", device="cpu")
    assert type(subject.model).__name__ == "PeftModelForCausalLM"
    assert subject.notes[0] == "an adapter on org/llama"


def test_a_pickle_of_the_hub_is_refused_before_it_is_downloaded(cache: Path) -> None:
    with pytest.raises(ModelError, match=r"'org/pickle' are only in pytorch_model\.bin, a pickle"):
        load("org/pickle", device="cpu")
    assert not list(cache.rglob("*.bin"))
    load("org/pickle", device="cpu", allow_bin=True)


def test_a_name_that_nobody_has(cache: Path) -> None:
    with pytest.raises(
        ModelError,
        match=r"^There is no model 'minlm': no folder, installed package or bundled model is "
        r"called that, and the hub has none of that name that you may read\. Closest: minilm\.$",
    ) as caught:
        load("minlm", device="cpu")
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_revision_that_is_not_there(cache: Path) -> None:
    with pytest.raises(UsageError, match="'org/bert' has no revision 'v9' on the hub"):
        load("org/bert", device="cpu", revision="v9")


def test_without_a_network_one_sentence_comes_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    go_offline(monkeypatch, tmp_path)
    start = time.monotonic()
    with pytest.raises(ModelError, match=r"'org/bert': no folder, .* the hub could not be reached"):
        load("org/bert", device="cpu")
    assert time.monotonic() - start < 10
    assert capfd.readouterr() == ("", "")
