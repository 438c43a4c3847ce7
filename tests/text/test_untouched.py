from __future__ import annotations

import pytest
from tiny_tokenizers import BUILDERS, ENGLISH, wordpiece

from headcount.text.spans import EncodeReport, untouched
from headcount.text.tokenize import Scribe


def state(tokenizer: object) -> object:
    backend = tokenizer.backend_tokenizer  # type: ignore[attr-defined]
    return backend.truncation, backend.padding, backend.encode_special_tokens, backend.to_str()


@pytest.fixture
def set_up() -> object:
    """A tokenizer whose file asks for truncation and padding, as sentence models' do."""
    tokenizer = wordpiece()
    backend = tokenizer.backend_tokenizer
    backend.enable_truncation(max_length=4)
    backend.enable_padding(length=4, pad_id=0, pad_token="[PAD]")
    yield tokenizer
    backend.no_truncation()
    backend.no_padding()


def test_settings_of_the_backend_come_back(set_up: object) -> None:
    before = state(set_up)
    rows = Scribe(set_up, EncodeReport()).rows(ENGLISH)  # type: ignore[arg-type]
    assert max(len(row.ids) for row in rows) > 4, "its truncation is not ours"
    assert state(set_up) == before


def test_settings_come_back_after_an_error(set_up: object) -> None:
    before = state(set_up)
    with pytest.raises(TypeError):
        Scribe(set_up, EncodeReport()).rows([None])  # type: ignore[arg-type, list-item]
    with pytest.raises(KeyboardInterrupt):
        _interrupted(set_up)
    assert state(set_up) == before


def direction(tokenizer: object) -> object:
    """What turns with the side that a translator's tokenizer writes."""
    names = ("prefix_tokens", "suffix_tokens", "current_spm", "cur_lang_code")
    return [getattr(tokenizer, name, None) for name in names]


@pytest.mark.parametrize("kind", ["mbart", "m2m100", "marian"])
def test_a_translators_tokenizer_is_left_on_its_source_side(kind: str) -> None:
    tokenizer = BUILDERS[kind]()
    before = direction(tokenizer)
    Scribe(tokenizer, EncodeReport()).rows(ENGLISH, target=True)
    assert direction(tokenizer) == before


@pytest.mark.parametrize("kind", ["mbart", "m2m100", "marian"])
def test_also_after_an_error_on_the_target_side(kind: str) -> None:
    tokenizer = BUILDERS[kind]()
    tokenizer("Rain.")
    before = direction(tokenizer)
    with pytest.raises(KeyboardInterrupt):
        _interrupted(tokenizer)
    assert direction(tokenizer) == before


def _interrupted(tokenizer: object) -> None:
    """Change what a call may change, then fail in the middle of it."""
    with untouched(tokenizer):  # type: ignore[arg-type]
        if hasattr(tokenizer, "_switch_to_target_mode"):
            tokenizer._switch_to_target_mode()
        if tokenizer.is_fast:  # type: ignore[attr-defined]
            tokenizer.backend_tokenizer.no_padding()  # type: ignore[attr-defined]
        raise KeyboardInterrupt
