"""The page of heads together: the table of families and the words about them are the JSON's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from research import DOCS, RESULTS
from research.together.page import filled


@pytest.fixture(scope="module")
def page() -> str:
    return (DOCS / "together.md").read_text(encoding="utf8")


def read(name: str) -> Any:
    return json.loads((RESULTS / f"together-{name}.json").read_text(encoding="utf8"))


def test_the_table_of_families_is_that_of_the_json(page: str) -> None:
    told = read("families")
    assert filled(page, told) == page
    told["models"]["minilm"]["stacks"]["enc"]["stress"] = 7.777
    assert "| 2 | 7.78 |" in filled(page, told)


def test_what_is_said_of_the_decoder_is_what_was_found(page: str) -> None:
    model = read("families")["models"]["translator"]
    roles = [one["role"] for name, one in model["heads"].items() if name.startswith("dec.")]
    held = [role for role in roles if role]
    assert f"of its {len(held)} heads with a role {held.count('sink')} are sinks" in page
    p = model["stacks"]["dec"]["silhouette_role"]["p"]
    assert f"one is positional (p {p:.2g})" in page
    assert not any(one["role"] for name, one in model["heads"].items() if name.startswith("enc."))


def test_what_is_said_of_special_tokens_is_what_was_found(page: str) -> None:
    tasks = read("features")["tasks"]

    def mass(kind: str, when: str) -> list[float]:
        return [task[when][kind]["all tokens"]["value"] for task in tasks.values()]

    after, before = mass("first", "tuned"), mass("first", "base")
    said = f"keeps {min(after):.0%} to {max(after):.0%} of all attention after fine-tuning"
    assert f"{said} ({min(before):.0%} to {max(before):.0%} before)" in page
    rest = dict(zip(tasks, mass("separator", "tuned"), strict=True))
    assert f"{rest['sst2']:.3f}, below CoLA's {rest['cola']:.3f}" in page
