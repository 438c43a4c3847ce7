"""What the comparison with other tools needs none of them for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from headcount.models.subject import Subject
from research.benchmarks.peers import __main__ as peers
from research.benchmarks.peers.extract import PEERS, Batches, Work, padded, plain, timed
from tests.tiny import TINY, VOCAB
from tests.tiny_tokenizers import gpt2, wordpiece

RESULT = peers.RESULTS / "peers.json"


@pytest.mark.parametrize("family", ["bert", "llama"])
@pytest.mark.parametrize("lengths", [(12, 12), (12, 7, 4)])
def test_what_needs_no_installation_gives_the_same_entropies(
    family: str, lengths: tuple[int, ...], tmp_path: Path
) -> None:
    TINY[family]().save_pretrained(tmp_path)
    noise = torch.Generator().manual_seed(0)
    rows = [torch.randint(5, VOCAB, (count,), generator=noise).tolist() for count in lengths]
    batches = [padded(rows[:2]), *([padded(rows[2:])] if rows[2:] else [])]
    with torch.no_grad():
        found = {
            name: PEERS[name](str(tmp_path))(batches)
            for name in ("headcount", "transformers", "transformers_numpy")
        }
        states = plain(str(tmp_path))(batches)
    assert states.shape == (len(batches),)
    assert found["headcount"].shape == (2, 4)
    for numbers in found.values():
        torch.testing.assert_close(numbers.float(), found["headcount"].float())


def test_rows_are_full_and_an_encoder_gets_its_marks() -> None:
    tokenizer = wordpiece()
    rows = peers.rows_of(Subject(TINY["bert"](), tokenizer), 300, 16)
    assert {len(row) for row in rows} == {16}
    assert len(rows) == 300
    assert {(row[0], row[-1]) for row in rows} == {(tokenizer.cls_token_id, tokenizer.sep_token_id)}
    rows = peers.rows_of(Subject(TINY["llama"](), gpt2()), 3, 16)
    assert [len(row) for row in rows] == [16] * 3


def test_rounds_take_turns_and_the_first_is_not_counted() -> None:
    called: list[str] = []

    def way(name: str) -> Work:
        def work(batches: Batches) -> torch.Tensor:
            called.append(name)
            return batches[0][0] + sum(range(10_000))

        return work

    found = timed(way("peer"), way("plain"), [padded([[1]])], 4)
    assert called == ["peer", "plain", "plain", "peer"] * 2 + ["peer", "plain"]
    assert found["rounds"] == 4
    assert found["ratio"]["low"] <= found["ratio"]["median"] <= found["ratio"]["high"]


def test_one_that_does_not_install_or_run_is_left_out_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = tmp_path / "ids.json"
    ids.write_text("[[5, 6]]")
    found = peers.measured("plain", tmp_path, ids, 2)
    assert found["skipped"].startswith("does not run: ")

    def refuse(peer: str) -> str:
        raise RuntimeError("does not install: no such version")

    monkeypatch.setattr(peers, "environment", refuse)
    assert peers.measured("inseq", tmp_path, ids, 2) == {
        "skipped": "does not install: no such version"
    }


def test_numbers_become_differences() -> None:
    assert peers.compared("nnsight", {"numbers": [1.0, 2.5]}, [1.0, 2.0]) == {
        "largest_difference": 0.5
    }
    assert peers.compared("plain", {"numbers": [1.0, 2.0, 3.0]}, [1.0, 2.0]) == {}
    assert peers.compared("inseq", {"skipped": "why"}, [1.0]) == {"skipped": "why"}


def test_the_page_has_the_figures_of_the_file() -> None:
    kept = json.loads(RESULT.read_text(encoding="utf8"))
    page = (peers.ROOT / "docs" / "results" / "speed.md").read_text(encoding="utf8")
    assert list(kept["inputs"]) == list(peers.INPUTS)
    for rows in kept["inputs"].values():
        for peer, row in rows.items():
            if "ratio" in row and peer != "plain":
                assert f"| {row['ratio']['median']:.2f} [" in page, peer
            if "peak_mib" in row:
                assert f"| {row['peak_mib']:,} |" in page, peer
            assert row.get("largest_difference", 0) < 1e-4, peer
