"""Pictures of maps: areas, and nothing that depends on the size."""

from __future__ import annotations

import torch

from headcount.rooms.patterns.tally import SIDE, pictures, shrink


def test_areas_share_out_every_token() -> None:
    for size in (1, 5, 32, 50, 128):
        shares = shrink(size)
        assert torch.allclose(shares.sum(1), torch.ones(SIDE))
        assert torch.allclose(shares.sum(0), torch.full((size,), SIDE / size), atol=1e-5)


def test_a_map_of_doubled_tokens_is_the_same_picture() -> None:
    maps = torch.rand(2, 20, 20, generator=torch.Generator().manual_seed(0)).softmax(-1)
    special, segment = torch.arange(20) == 0, (torch.arange(20) > 8).long()
    twice = maps.repeat_interleave(2, 1).repeat_interleave(2, 2) / 2
    again = pictures(twice, special.repeat_interleave(2), segment.repeat_interleave(2))
    assert torch.allclose(pictures(maps, special, segment), again, atol=1e-5)


def test_a_single_text_has_no_mark_of_texts() -> None:
    maps = torch.full((1, 8, 8), 1 / 8)
    drawn = pictures(maps, torch.zeros(8, dtype=torch.bool), torch.zeros(8, dtype=torch.long))
    assert not drawn[:, 4].any()
