from __future__ import annotations

import copy

import pytest
from tiny_tokenizers import CHAT_TEMPLATE, chatty, gpt2

from headcount.errors import InputError, UsageError
from headcount.text.encode import encode
from headcount.text.spans import EncodeReport
from headcount.text.tokenize import Frame, Scribe, chat_frame, must_have_template, render


def marked(text: str, account: EncodeReport | None = None) -> list[str]:
    """The tokens of a turn, special ones with a star."""
    tokenizer = chatty()
    (row,) = Scribe(tokenizer, account or EncodeReport()).chat_rows([text])
    tokens = tokenizer.convert_ids_to_tokens(list(row.ids))
    return [f"{t}*" if s else t for t, s in zip(tokens, row.special, strict=True)]


def test_the_frame_is_what_the_template_adds() -> None:
    frame = chat_frame(chatty())
    assert frame == Frame(
        "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\n", "<|im_end|>\n"
    )
    rendered = render(chatty(), "Be kind.")
    start, end = frame.content(rendered)
    assert rendered[start:end] == "Be kind."
    assert start > rendered.index("Be kind."), "not the system's words"


def test_a_frame_that_does_not_hold_has_no_content() -> None:
    assert Frame("<user>", "<end>").content("<system>Hi<end>") == (0, 0)
    assert Frame("ab", "bc").content("abc") == (0, 0)


def test_the_templates_marks_are_special() -> None:
    tokens = marked("Rain fell.")
    stars = [token for token in tokens if token.endswith("*")]
    assert stars == ["<|im_start|>*", "<|im_end|>*"] * 2


def test_marks_in_the_users_words_are_text_and_counted() -> None:
    account = EncodeReport()
    tokens = marked("<|im_end|> Rain <|im_start|>", account)
    assert sum(token.endswith("*") for token in tokens) == 4
    assert account.lookalikes == 2
    spelt = "".join(token for token in tokens if not token.endswith("*"))
    assert "<|im_end|>ĠRainĠ<|im_start|>" in spelt


def test_separators_are_the_ends_of_turns() -> None:
    (batch,) = encode(["Rain fell."], chatty(), stacks={"dec"}, chat=True)
    side = batch.sides["target"]
    found = [t for t, s in zip(side.tokens[0], side.separator[0].tolist(), strict=True) if s]
    assert found == ["<|im_end|>", "<|im_end|>"]


def test_no_template() -> None:
    with pytest.raises(UsageError) as caught:
        must_have_template(gpt2())
    assert str(caught.value) == (
        "GPT2Tokenizer has no chat template; leave out chat=True (--chat), or use the instruct "
        "version of the model."
    )
    with pytest.raises(UsageError, match="has no chat template"):
        encode(["Rain."], gpt2(), stacks={"dec"}, chat=True)


def test_a_template_that_refuses() -> None:
    tokenizer = copy.deepcopy(chatty())
    tokenizer.chat_template = "{{ raise_exception('a system turn is needed') }}" + CHAT_TEMPLATE
    with pytest.raises(InputError, match="refuses a single user turn: a system turn is needed"):
        render(tokenizer, "Rain.")


def test_markup_lets_the_user_write_marks() -> None:
    account = EncodeReport()
    (row,) = Scribe(chatty(), account, markup=True).chat_rows(["Rain <|im_end|>"])
    assert chatty().convert_ids_to_tokens(list(row.ids)).count("<|im_end|>") == 3
    assert sum(row.special) == 4
    assert account.lookalikes == 0


def test_places_in_the_turn_are_places_in_the_text() -> None:
    frame = Frame("<u>", "<e>")
    inside = [(0, 3), (3, 5), (5, 8), (8, 11)]
    assert frame.places("Hi all", "<u>Hi all<e>", inside) == [None, (0, 2), (2, 5), None]
    assert frame.places(" Hi", "<u>Hi<e>", [(3, 5)]) == [(1, 3)], "a template may strip"
    assert frame.places("Hi", "<u>HI<e>", [(3, 5)]) == [None], "changed text has no places"
