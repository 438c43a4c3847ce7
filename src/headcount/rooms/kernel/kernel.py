"""The kernel of `rooms/kernel/fused.py`: Triton, imported where it can run only."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from headcount.wiring import Asked, Scores

#: Strides of what is not there.
_NONE: tuple[int, ...] = (0, 0, 0, 0)

#: Of a score, so that exp2 serves.
_LOG2E = 1.4426950408889634


@triton.jit
def _scores(
    query, key, bias, mask, places, columns, in_row, count, scaled,
    stride_key, stride_bias_row, stride_mask_row, stride_mask_key,
    DIM: tl.constexpr, DIMS: tl.constexpr, EDGE: tl.constexpr, CAUSAL: tl.constexpr,
    BIAS: tl.constexpr, MASK: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """Scores of a tile of rows with a tile of keys, LOWEST where not seen.

    Where nothing is added to them they stay unscaled: scaling is part of the exponent then.
    """
    dims = tl.arange(0, DIMS)
    place64 = places[:, None].to(tl.int64)
    within = dims[:, None] < DIM
    if EDGE:
        within = within & (columns[None, :] < count)
    tile = tl.load(key + columns[None, :] * stride_key + dims[:, None], mask=within, other=0.0)
    if EXACT:
        found = tl.dot(query, tile, input_precision="tf32x3")
    else:
        found = tl.dot(query, tile)
    if BIAS or MASK == 2:
        found *= scaled
    if BIAS:
        seen = in_row[:, None] & (columns[None, :] < count)
        added = tl.load(
            bias + place64 * stride_bias_row + columns[None, :],
            mask=seen, other=0.0,
        )  # fmt: skip
        found += added.to(tl.float32) * 1.4426950408889634
    if MASK == 1:
        seen = in_row[:, None] & (columns[None, :] < count)
        shown = tl.load(
            mask + place64 * stride_mask_row + columns[None, :] * stride_mask_key,
            mask=seen, other=0,
        )  # fmt: skip
        found = tl.where(shown != 0, found, -1.0e30)
    if MASK == 2:
        seen = in_row[:, None] & (columns[None, :] < count)
        added = tl.load(
            mask + place64 * stride_mask_row + columns[None, :] * stride_mask_key,
            mask=seen, other=-1.0e30,
        )  # fmt: skip
        found = tl.maximum(found + added.to(tl.float32) * 1.4426950408889634, -1.0e30)
    if EDGE:
        seen = columns[None, :] < count
        if CAUSAL:
            seen = seen & (places[:, None] >= columns[None, :])
        found = tl.where(seen, found, -1.0e30)
    return found


@triton.jit
def _packed(scores, allowed, columns, count, LEFT_OUT: tl.constexpr, TILE_KEYS: tl.constexpr):
    """The largest score of each row of a tile, with its place in the low bits."""
    bits = scores.to(tl.int32, bitcast=True)
    # Of equal scores the first key wins where they are positive: its place is written backwards.
    bits = (bits & (-TILE_KEYS)) | (TILE_KEYS - 1 - tl.arange(0, TILE_KEYS))[None, :]
    packed = bits.to(tl.float32, bitcast=True)
    if LEFT_OUT:
        kept = tl.load(allowed + columns, mask=columns < count, other=0) != 0
        packed = tl.where(kept[None, :], packed, -2.0e30)
    return tl.max(packed, 1)


@triton.jit
def _further(best, where, found, start, TILE_KEYS: tl.constexpr):
    """The better of what was best and a tile's, and its key."""
    place = found.to(tl.int32, bitcast=True) & (TILE_KEYS - 1)
    where = tl.where(found > best, start + (TILE_KEYS - 1 - place), where)
    return tl.maximum(best, found), where


@triton.jit
def _weight_at(
    query, key, bias, mask, places, keys, in_row, count, scaled, z,
    stride_key, stride_bias_row, stride_mask_row, stride_mask_key,
    DIM: tl.constexpr, DIMS: tl.constexpr, CAUSAL: tl.constexpr,
    BIAS: tl.constexpr, MASK: tl.constexpr,
):  # fmt: skip
    """Each row's weight on one key, from one dot product; 0 where it does not see that key."""
    dims = tl.arange(0, DIMS)
    there = in_row & (keys >= 0) & (keys < count)
    if CAUSAL:
        there = there & (keys <= places)
    own = tl.load(
        key + keys[:, None] * stride_key + dims[None, :],
        mask=there[:, None] & (dims[None, :] < DIM), other=0.0,
    )  # fmt: skip
    found = tl.sum(query.to(tl.float32) * own.to(tl.float32), 1) * scaled
    if BIAS:
        added = tl.load(bias + places.to(tl.int64) * stride_bias_row + keys, mask=there, other=0.0)
        found += added.to(tl.float32) * 1.4426950408889634
    if MASK == 1:
        there = there & (
            tl.load(
                mask + places.to(tl.int64) * stride_mask_row + keys * stride_mask_key,
                mask=there,
                other=0,
            )
            != 0
        )
    if MASK == 2:
        added = tl.load(
            mask + places.to(tl.int64) * stride_mask_row + keys * stride_mask_key,
            mask=there,
            other=0.0,
        )
        found = tl.maximum(found + added.to(tl.float32) * 1.4426950408889634, -1.0e30)
    return tl.where(there, tl.exp2(found - z), 0.0)


#: Numbers that change from batch to batch, or from mask to mask: were the kernel made anew wherever
#: one of them is 1 or a multiple of 16, a first survey would wait for up to seven kernels. Strides
#: of queries and keys are those of the model, and tell that loads may be wide.
_CHANGING = ["rows", "count", "heads", "texts", "b0", "b1", "b2", "m0", "m1", "m2", "place0"]


@triton.jit(do_not_specialize=_CHANGING)
def _row_statistics(
    query, key, bias, mask, place, classes, allowed, out_entropy, out_top, out_key, out_mass,
    out_offset, offsets, scaled, rows, count, heads, groups, texts,
    q0, q1, q2, k0, k1, k2, b0, b1, b2, m0, m1, m2, m3, place0,
    DIM: tl.constexpr, DIMS: tl.constexpr, CLASSES: tl.constexpr, TOPS: tl.constexpr,
    COLUMNS: tl.constexpr, LEFT_OUT: tl.constexpr, OFFSETS: tl.constexpr,
    ENTROPY: tl.constexpr, CAUSAL: tl.constexpr, BIAS: tl.constexpr, MASK: tl.constexpr,
    EXACT: tl.constexpr, TILE_ROWS: tl.constexpr, TILE_KEYS: tl.constexpr,
):  # fmt: skip
    """One tile of rows of one head of one text, over all the keys that they may see."""
    block = tl.program_id(0)
    if CAUSAL:  # rows that see most begin, so that none of them is left to run alone at the end
        block = tl.num_programs(0) - 1 - block
    text = (tl.program_id(1) // heads).to(tl.int64)
    head = (tl.program_id(1) % heads).to(tl.int64)
    row = block * TILE_ROWS + tl.arange(0, TILE_ROWS)
    in_row = row < rows
    places = tl.load(place + text * place0 + row, mask=in_row, other=0)
    dims = tl.arange(0, DIMS)
    query += text * q0 + head * q1
    asked = tl.load(
        query + row[:, None] * q2 + dims[None, :],
        mask=in_row[:, None] & (dims[None, :] < DIM), other=0.0,
    )  # fmt: skip
    key += text * k0 + (head // groups) * k1
    bias += text * b0 + head * b1
    mask += text * m0 + head * m1
    classes += text * count * CLASSES
    best0 = tl.full([TILE_ROWS], -3.0e30, tl.float32)
    best1, best2 = best0, best0
    where0 = tl.zeros([TILE_ROWS], tl.int32)
    where1, where2 = where0, where0
    highest = tl.full([TILE_ROWS], -1.0e30, tl.float32)
    product = tl.zeros([TILE_ROWS], tl.float32)
    total = tl.zeros([TILE_ROWS], tl.float32)
    column = tl.arange(0, 16)
    mass = tl.zeros([TILE_ROWS, 16], tl.float32)
    end = count
    whole = (count // TILE_KEYS) * TILE_KEYS
    unit = scaled
    if BIAS or MASK == 2:
        unit = scaled * 0 + 1.0
    if CAUSAL:
        end = tl.max(tl.where(in_row, places, 0)) + 1
        whole = (tl.min(tl.where(in_row, places, 2147483647)) // TILE_KEYS) * TILE_KEYS
    for part in tl.static_range(2):
        first = 0 if part == 0 else whole
        last = whole if part == 0 else end
        for start in range(first, last, TILE_KEYS):
            columns = start + tl.arange(0, TILE_KEYS)
            scores = _scores(
                asked, key, bias, mask, places, columns, in_row, count, scaled,
                k2, b2, m2, m3, DIM, DIMS, part == 1, CAUSAL, BIAS, MASK, EXACT,
            )  # fmt: skip
            if TOPS >= 1:
                found = _packed(
                    scores, allowed + text * count, columns, count, LEFT_OUT & 1, TILE_KEYS
                )
                best0, where0 = _further(best0, where0, found, start, TILE_KEYS)
            if TOPS >= 2:
                found = _packed(
                    scores, allowed + (texts + text) * count, columns, count,
                    (LEFT_OUT >> 1) & 1, TILE_KEYS,
                )  # fmt: skip
                best1, where1 = _further(best1, where1, found, start, TILE_KEYS)
            if TOPS >= 3:
                found = _packed(
                    scores, allowed + (2 * texts + text) * count, columns, count,
                    (LEFT_OUT >> 2) & 1, TILE_KEYS,
                )  # fmt: skip
                best2, where2 = _further(best2, where2, found, start, TILE_KEYS)
            if TOPS >= 1 and (LEFT_OUT & 1) == 0:
                # Any number near the highest score serves, so that of the largest weight does.
                higher = tl.maximum(best0, -1.0e30)
            else:
                higher = tl.maximum(highest, tl.max(scores, 1))
            shrink = tl.exp2((highest - higher) * unit)
            weights = tl.exp2(scores * unit - (higher * unit)[:, None])
            if (part == 1) or (MASK > 0):
                weights = tl.where(scores > -1.0e29, weights, 0.0)
            total = total * shrink + tl.sum(weights, 1)
            if ENTROPY:
                product = product * shrink + tl.sum(weights * scores, 1)
            if CLASSES > 0:
                if part == 0:
                    kind = tl.load(classes + columns[:, None] * CLASSES + column[None, :])
                else:
                    kind = tl.load(
                        classes + columns[:, None] * CLASSES + column[None, :],
                        mask=columns[:, None] < count, other=0.0,
                    )  # fmt: skip
                if EXACT:
                    more = tl.dot(weights, kind.to(tl.float32), input_precision="tf32x3")
                else:
                    more = tl.dot(weights.to(tl.float16), kind)
                mass = mass * shrink[:, None] + more
            highest = higher
    safe = tl.where(total == 0, 1.0, total)
    z = tl.where(total == 0, 1.0e30, highest * unit + tl.log2(safe))
    base = tl.program_id(1).to(tl.int64) * rows + row
    if ENTROPY:
        entropy = 0.6931471805599453 * (z - unit * product / safe)
        tl.store(out_entropy + base, tl.where(total == 0, 0.0, entropy), mask=in_row)
    stride = tl.num_programs(1).to(tl.int64) * rows
    if CLASSES > 0:
        tl.store(
            out_mass + column[None, :] * stride + base[:, None], mass / safe[:, None],
            mask=in_row[:, None] & (column[None, :] < COLUMNS),
        )  # fmt: skip
    for number in tl.static_range(TOPS):
        where = where0 if number == 0 else (where1 if number == 1 else where2)
        best = best0 if number == 0 else (best1 if number == 1 else best2)
        # Nothing that may be chosen is seen: no weight, and the first key, as in a map of zeros.
        lowest = best <= -0.9e30
        where = tl.where(lowest, 0, where)
        weight = _weight_at(
            asked, key, bias, mask, places, where, in_row, count, scaled, z,
            k2, b2, m2, m3, DIM, DIMS, CAUSAL, BIAS, MASK,
        )  # fmt: skip
        weight = tl.where(lowest & (total == total), 0.0, weight)
        tl.store(out_key + number * stride + base, where.to(tl.int64), mask=in_row)
        tl.store(out_top + number * stride + base, weight, mask=in_row)
    for number in tl.static_range(OFFSETS):
        offset = tl.load(offsets + number)
        weight = _weight_at(
            asked, key, bias, mask, places, places + offset, in_row, count, scaled, z,
            k2, b2, m2, m3, DIM, DIMS, CAUSAL, BIAS, MASK,
        )  # fmt: skip
        tl.store(out_offset + number * stride + base, weight, mask=in_row)


#: Rows and keys of a tile, warps and stages, by the size of a head; measured on an H200.
_TILES = {64: (64, 64, 4, 3), 128: (64, 64, 4, 3), 256: (64, 64, 8, 2)}
#: The same for heads of 64 or less over many keys.
_LONG, _MANY = (64, 128, 4, 3), 4096
_EXACT_TILES = {64: (64, 32, 4, 3), 128: (64, 32, 4, 2), 256: (32, 32, 4, 1)}


def launched(scores: Scores, asked: Asked) -> dict[str, Any]:
    """Launch the kernel and give its answers their names."""
    query, key, needs = scores.query, scores.key, asked.needs
    if query.stride(-1) != 1:
        query = query.contiguous()
    if key.stride(-1) != 1:
        key = key.contiguous()
    batch, heads, _, dim = query.shape
    count, device = key.shape[2], query.device
    places = asked.places
    if places is not None:
        chosen = places[:, None, :, None].expand(-1, heads, -1, dim)
        query = query.gather(2, chosen)
        place, place_stride = places.to(torch.int32), places.shape[1]
    else:
        place, place_stride = asked.every_place, 0
    rows = query.shape[2]

    def room(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.empty(*shape, device=device, dtype=dtype)

    tops, offsets = list(asked.allowed), sorted(needs.offsets)
    entropy = room(batch, heads, rows)
    weights = room(len(tops), batch, heads, rows)
    keys = room(len(tops), batch, heads, rows, dtype=torch.int64)
    masses = room(len(asked.classes), batch, heads, rows) if asked.classes else entropy
    at = room(len(offsets), batch, heads, rows)
    left_out = sum(1 << n for n, name in enumerate(tops) if asked.allowed[name] is not None)
    exact = query.dtype == torch.float32
    dims = max(16, triton.next_power_of_2(dim))
    tiles = (_EXACT_TILES if exact else _TILES)[max(64, dims)]
    if not exact and dims <= 64 and count >= _MANY:
        tiles = _LONG
    mask_kind = 0
    mask, mask_strides = query, _NONE
    if scores.mask is not None:
        mask = scores.mask
        mask_kind = 1 if mask.dtype == torch.bool else 2
        mask = mask.view(torch.uint8) if mask_kind == 1 else mask
        mask_strides = _broadcast_strides(mask)
        if count == 1:  # as in every other batch, or the kernel would be made anew
            mask_strides = (*mask_strides[:3], 1)
    bias, bias_strides = query, _NONE
    if scores.bias is not None:
        bias = scores.bias if scores.bias.stride(-1) == 1 else scores.bias.contiguous()
        bias_strides = _broadcast_strides(bias)
    columns = asked.class_columns if asked.classes else entropy
    grid = (triton.cdiv(rows, tiles[0]), batch * heads)
    _row_statistics[grid](
        query, key, bias, mask, place, columns, asked.kept_columns, entropy, weights,
        keys, masses, at, asked.offset_numbers, scores.scaling * _LOG2E, rows, count, heads,
        heads // key.shape[1], batch, *query.stride()[:3], *key.stride()[:3], *bias_strides[:3],
        *mask_strides, place_stride, DIM=dim, DIMS=dims, CLASSES=16 if asked.classes else 0,
        TOPS=len(tops),
        COLUMNS=len(asked.classes), LEFT_OUT=left_out, OFFSETS=len(offsets), ENTROPY=needs.entropy,
        CAUSAL=scores.causal, BIAS=scores.bias is not None, MASK=mask_kind, EXACT=exact,
        TILE_ROWS=tiles[0], TILE_KEYS=tiles[1], num_warps=tiles[2], num_stages=tiles[3],
    )  # fmt: skip
    return {
        "entropy": entropy if needs.entropy else None,
        "smoothed_entropy": None,
        "tops": {n: (weights[i], keys[i]) for i, n in enumerate(tops) if n in needs.tops},
        "largest": {n: weights[i] for i, n in enumerate(tops) if n in needs.largest},
        "masses": {name: masses[n] for n, name in enumerate(asked.classes)},
        "offsets": {offset: at[n] for n, offset in enumerate(offsets)},
    }


def _broadcast_strides(part: Tensor) -> tuple[int, ...]:
    """Strides of a mask or bias `[batch, head, query, key]`, 0 where it has but one."""
    return tuple(
        0 if size == 1 else stride for size, stride in zip(part.shape, part.stride(), strict=True)
    )
