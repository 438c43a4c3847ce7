"""Word times: the path through maps, the choice of heads, and where it is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny import TINY
from tiny_tokenizers import BUILDERS

import headcount as hc
from headcount.errors import UsageError
from headcount.models import Subject, load
from headcount.pruning import prune
from headcount.rooms.spoken.timing import RATE, Clip, errors_of, token_starts, word_times


def test_the_cheapest_path_follows_a_staircase() -> None:
    maps = np.zeros((2, 4, 20))
    wanted = [[0, 3, 9, 15], [0, 1, 2, 10]]
    for number, starts in enumerate(wanted):
        for token, (start, end) in enumerate(zip(starts, [*starts[1:], 20], strict=True)):
            maps[number, token, start:end] = 1
    assert token_starts(-maps).tolist() == wanted


def test_a_path_is_the_cheapest_of_all() -> None:
    """Against every monotone path of a small table, one by one."""
    costs = np.random.default_rng(0).normal(size=(3, 4))

    def paths(token: int, frame: int) -> list[list[tuple[int, int]]]:
        if (token, frame) == (0, 0):
            return [[(0, 0)]]
        before = [(token - 1, frame - 1), (token - 1, frame), (token, frame - 1)]
        return [[*path, (token, frame)] for at in before if min(at) >= 0 for path in paths(*at)]

    best = min(paths(2, 3), key=lambda path: sum(costs[at] for at in path))
    firsts = [min(frame for token, frame in best if token == number) for number in range(3)]
    assert token_starts(costs[None])[0].tolist() == firsts


@pytest.fixture(scope="module")
def tiny() -> Subject:
    tokenizer = BUILDERS["gpt2"]()
    sizes = {"num_mel_bins": 80, "max_source_positions": 1500, "vocab_size": len(tokenizer)}
    model = TINY["whisper"](**sizes)
    model.generation_config.no_timestamps_token_id = 3
    return Subject(model, tokenizer, name="tiny whisper")


@pytest.fixture(scope="module")
def clips() -> list[Clip]:
    dice = np.random.default_rng(0)
    return [Clip(0.1 * dice.normal(size=RATE), ("a", "dog", "ran"), (0.1, 0.4, 0.7))] * 2


def test_every_cross_head_is_tried_and_the_best_are_written(
    tiny: Subject, clips: list[Clip], tmp_path: Path
) -> None:
    found = word_times(tiny, clips)
    cross = [head for head in tiny.heads if head.stack == "cross"]
    assert len(found.heads) == len(cross)
    assert found.words == 6
    assert found.heads["error"].is_monotonic_increasing
    errors = errors_of(tiny, clips, [[found.best[0]], found.best])
    assert errors[0].mean() == pytest.approx(found.heads["error"].iloc[0])
    assert errors[1].mean() == pytest.approx(found.together["error"].min())
    written = found.write()
    assert written == sorted([head.layer, head.index] for head in found.best)
    saved = hc.Subject(tiny.model, tiny.tokenizer).save(tmp_path / "told")
    assert load(saved.folder).inner.generation_config.alignment_heads == written


def test_named_heads_move_when_others_go(tiny: Subject, tmp_path: Path) -> None:
    tiny.inner.generation_config.alignment_heads = [[0, 0], [0, 2], [1, 3]]
    small = prune(tiny, "cross.0.0-1,cross.1.2")
    assert small.inner.generation_config.alignment_heads == [[0, 0], [1, 2]]
    assert tiny.inner.generation_config.alignment_heads == [[0, 0], [0, 2], [1, 3]]
    none = prune(tiny, "cross.0,cross.1.3")
    assert none.inner.generation_config.alignment_heads is None


def test_what_is_no_whisper_or_no_clip_is_refused(tiny: Subject) -> None:
    with pytest.raises(UsageError, match="of type 'bert'; word times are those of a Whisper"):
        word_times(Subject(TINY["bert"](), name="tiny"), [])
    with pytest.raises(UsageError, match="No clip was given"):
        word_times(tiny, [])
    with pytest.raises(UsageError, match="has no tokenizer"):
        word_times(replace(tiny, tokenizer=None), [Clip(np.zeros(RATE), ("a",), (0.0,))])
    with pytest.raises(UsageError, match="2 words and 1 starts"):
        Clip(np.zeros(10), ("a", "b"), (0.0,))
    with pytest.raises(UsageError, match="A clip has 31 seconds; Whisper hears 30"):
        Clip(np.zeros(31 * RATE), ("a",), (0.0,))
