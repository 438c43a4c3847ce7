"""Shares of the five patterns among a head's maps, one map a text.

Kovaleva et al., EMNLP 2019, section 4.1 and figure 2. There is no author code, so the convention
`code` does not exist.

The small network that looks at pictures of maps: 8 convolutional layers with ReLU.

Kovaleva et al., EMNLP 2019, section 4.1, give the number of layers and no more; sizes are ours.

Patterns among the stages of a story.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
import pandas as pd
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from headcount import stats
from headcount.errors import InputError, ModelError, UsageError, check_convention
from headcount.models import Site
from headcount.records import Column, HeadTable
from headcount.reports import StageMaker, StoryContext, StoryStage, forward_steps
from headcount.surveys import REACH, Reading, SumsTally, TallyPlan
from headcount.wiring import Needs, Sighting

# --- The five patterns of attention maps, in the order of their numbers -------------------------

#: Kovaleva et al., EMNLP 2019, section 4.1, in the words of `docs/decisions/0006-patterns.md`.
PATTERNS = ("vertical", "diagonal", "vertical_diagonal", "block", "heterogeneous")

_MEANING = {
    "vertical": "a few columns through most rows",
    "diagonal": "a line along the diagonal",
    "vertical_diagonal": "columns and a diagonal line",
    "block": "squares of the two texts of a pair",
    "heterogeneous": "none of the four other patterns",
}

#: The share of a head's maps that show each pattern.
PATTERN_COLUMNS: tuple[Column, ...] = tuple(
    Column(
        f"pattern_{name}",
        meaning=f"Share of maps with the pattern {name.replace('_', ' and ')}: {_MEANING[name]}.",
        paper="Kovaleva et al. 2019, section 4.1",
        range=(0, 1),
        group="What its maps look like",
    )
    for name in PATTERNS
)

#: The pattern that most of a head's maps show, in a word.
PATTERN = Column(
    "pattern",
    meaning="The pattern that most of the head's maps show.",
    paper="Kovaleva et al. 2019, section 4.1",
    group="What its maps look like",
)


# --- Maps of any size as pictures of one size ---------------------------------------------------

#: Pixels of a side.
SIDE = 32
#: Ink, weight against even attention, the same beyond the columns' means, columns of specials, own
#: text of a pair, distance from the diagonal.
CHANNELS = 6

#: The weight that is drawn as full ink: this quantile of the picture, as a viewer would scale it.
_FULL = 0.99
#: The lift of a map that puts all its weight on a column as wide as a pixel.
_MOST = float(torch.log1p(torch.tensor(float(SIDE))))


def pictures(maps: Tensor, special: Tensor, segment: Tensor | None) -> Tensor:
    """Maps `[head, query, key]` of one text as `[head, channel, pixel, pixel]`.

    Areas are averaged, so a line or a column stays where it was, whatever the size. `special` and
    `segment` are `[key]`: places the tokenizer added, and the number of the text that a token
    belongs to, where that is known.

    >>> eye = torch.eye(64)[None]
    >>> drawn = pictures(eye, torch.zeros(64, dtype=torch.bool), torch.zeros(64, dtype=torch.long))
    >>> drawn.shape, drawn[0, 0].diagonal().min().item()
    (torch.Size([1, 6, 32, 32]), 1.0)
    """
    area = shrink(maps.shape[-1], maps.device)
    return drawn(area @ maps.float() @ area.T, area, special, segment)


def drawn(seen: Tensor, area: Tensor, special: Tensor, segment: Tensor | None) -> Tensor:
    """The pictures of maps whose pixels `[head, pixel, pixel]` are known: means of weights."""
    full = seen.flatten(1).quantile(_FULL, dim=1).clamp_min(1e-9)[:, None, None]
    ink = (seen / full).clamp(0, 1).sqrt()
    lift = (area.shape[1] * seen).clamp_min(0).log1p() / _MOST
    beyond = lift - lift.mean(1, keepdim=True)
    marks = _marks(area, special, segment).expand(len(seen), -1, -1, -1)
    return torch.cat([torch.stack([ink, lift, beyond], dim=1), marks], dim=1)


def shrink(size: int, device: torch.device | str = "cpu") -> Tensor:
    """The shares `[pixel, token]` that tokens have in pixels; rows add up to 1.

    >>> shrink(64)[0, :3].tolist()
    [0.5, 0.5, 0.0]
    """
    edges = torch.arange(SIDE + 1, dtype=torch.float64) * size / SIDE
    places = torch.arange(size, dtype=torch.float64)
    start = torch.maximum(edges[:-1, None], places)
    stop = torch.minimum(edges[1:, None], places + 1)
    shares = (stop - start).clamp_min(0) * SIDE / size
    return shares.float().to(device)


def _marks(area: Tensor, special: Tensor, segment: Tensor | None) -> Tensor:
    """Where specials stand, which cells belong to one text of a pair, how far the diagonal is."""
    columns = (area @ special.float()).expand(SIDE, SIDE)
    same = torch.zeros_like(columns)
    if segment is not None and bool((segment != segment[0]).any()):
        texts = area @ nn.functional.one_hot(segment.unique(return_inverse=True)[1]).float()
        same = texts @ texts.T
    pixels = torch.arange(SIDE, device=area.device)
    away = (pixels[:, None] - pixels).abs() / SIDE
    return torch.stack([columns, same, away])


# --- The small network that looks at pictures of maps -------------------------------------------

#: Weights in float16; the card beside them says how they were trained.
WEIGHTS = Path(__file__).parent / "weights" / "patterns.safetensors"

#: What each layer gives, and by how much it shrinks the picture.
_LAYERS = ((16, 1), (24, 2), (24, 1), (32, 2), (32, 1), (48, 2), (48, 1), (48, 1))


class Network(nn.Module):
    """Pictures `[map, channel, pixel, pixel]` to scores `[map, pattern]`."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        before = CHANNELS
        for width, stride in _LAYERS:
            layers += [nn.Conv2d(before, width, 3, stride, padding=1), nn.ReLU()]
            before = width
        self.layers = nn.Sequential(*layers)
        self.last = nn.Linear(2 * before, len(PATTERNS))

    def forward(self, pictures: Tensor) -> Tensor:
        """Scores of what was pooled."""
        scores: Tensor = self.last(self.pooled(pictures))
        return scores

    def pooled(self, pictures: Tensor) -> Tensor:
        """What the layers give, pooled over the whole picture by mean and by maximum."""
        seen = self.layers(pictures).flatten(2)
        return torch.cat([seen.mean(-1), seen.amax(-1)], dim=-1)


@cache
def network(device: str = "cpu") -> Network:
    """The trained network, in float32 on a device."""
    try:
        weights = load_file(WEIGHTS)
    except (SafetensorError, OSError) as error:
        raise ModelError(
            f"{WEIGHTS} cannot be read: it is cut off or damaged; install headcount again."
        ) from error
    model = Network()
    model.load_state_dict({name: tensor.float() for name, tensor in weights.items()})
    return model.eval().requires_grad_(False).to(device)


# --- Where the texts of a map meet, when nobody says --------------------------------------------

#: A map is cut into two, three or four parts.
MOST_PARTS = 4
#: The fewest tokens of a part: fewer are a piece of the diagonal.
_LEAST = 3


def segments_of(gain: Tensor) -> Tensor:
    """The number `[head, token]` of the part of each token: squares along the diagonal.

    `gain` `[head, query, key]` is what a cell counts for when it is inside a square. One more part
    is taken only where it gains a twentieth of the rows' weight, so noise is not cut to pieces.

    >>> own = torch.block_diag(torch.ones(4, 4), torch.ones(6, 6)) - 0.5
    >>> segments_of(own[None])[0].tolist()
    [0, 0, 0, 0, 1, 1, 1, 1, 1, 1]
    """
    heads, size, _ = gain.shape
    inside = _squares(gain)
    best, came = inside[:, 0], []
    totals = []
    for _ in range(MOST_PARTS - 1):
        best, start = (best[:, :, None] + inside).max(1)
        came.append(start)
        totals.append(best[:, -1] - 0.05 * size * len(came))
    parts = torch.stack(totals, 1).argmax(1) + 2
    segments = torch.zeros(heads, size, dtype=torch.long, device=gain.device)
    for head in range(heads):
        end = size
        for turn in range(int(parts[head]) - 2, -1, -1):
            end = int(came[turn][head, end])
            segments[head, end:] += 1
    return segments


def _squares(gain: Tensor) -> Tensor:
    """The gain `[head, start, end]` of the square of each run of tokens; short runs have none."""
    heads, size, _ = gain.shape
    summed = gain.new_zeros(heads, size + 1, size + 1)
    summed[:, 1:, 1:] = gain.cumsum(1).cumsum(2)
    corner = summed.diagonal(dim1=1, dim2=2)
    inside = corner[:, None] - summed - summed.transpose(1, 2) + corner[:, :, None]
    places = torch.arange(size + 1, device=gain.device)
    short = places - places[:, None] < min(_LEAST, size // 2)
    return inside.masked_fill(short, -torch.inf)


# --- What a rule measures of a map --------------------------------------------------------------


class Traits(NamedTuple):
    """One number a map, `[head]`."""

    #: Weight in columns that go through most rows.
    columns: Tensor
    #: Weight along a line beyond what columns and blocks put there, of what columns leave.
    diagonal: Tensor
    #: The same within the own text, were it all as dense as off the diagonal; 0 for one text.
    block: Tensor


def traits_of(
    maps: Tensor,
    special: Tensor,
    segment: Tensor | None,
    *,
    lift: float = 1.5,
    rows: float = 0.6,
    reach: float = 0.06,
) -> Traits:
    """Measure maps `[head, query, key]` of one text; where texts meet is looked for if not known.

    A column stands out where it has `lift` times its even share in the share `rows` of the rows.
    A line is one token wide to either side, or the share `reach` of a long map, and lies up to two
    tokens off the diagonal.

    >>> nothing = torch.zeros(8, dtype=torch.long)
    >>> line = 0.9 * torch.eye(8) + 0.1 / 8
    >>> found = traits_of(line[None], nothing.bool(), nothing)
    >>> found.columns.item(), round(found.diagonal.item(), 2)
    (0.0, 0.59)
    """
    maps = maps.double()
    size = maps.shape[-1]
    # Under a causal mask a column is judged by the rows that can see it.
    seen = _seen(maps)
    # The weight `[head, key]` that a column has in most of its rows; 0 where few rows see it.
    usual = maps.masked_fill(~seen, torch.nan).nanquantile(1 - rows, dim=1)
    rare = seen.sum(0) < seen.shape[0] / 2
    usual = usual.masked_fill(rare, 0.0)
    standing = usual * size >= lift
    columns = (maps * standing[:, None]).sum(-1).mean(-1)
    beyond = maps - _even(maps, seen)
    left = (1 - columns).clamp_min(1e-6)
    line = _best_line(beyond, seen, max(1, round(reach * size)))
    # A triangle has no squares.
    texts = segment if bool(seen.all()) else torch.zeros_like(special, dtype=torch.long)
    block, dense = _block(beyond, line, special, texts)
    diagonal = ((beyond - dense) * line).sum((1, 2)) / size / left
    return Traits(columns, diagonal.clamp(0, 1), (block / left).clamp(0, 1))


def _seen(maps: Tensor) -> Tensor:
    """Cells `[query, key]` that some head may look at: all, or a triangle."""
    above = torch.triu(torch.ones_like(maps[0], dtype=torch.bool), diagonal=1)
    causal = bool((maps[:, above] < 1e-9).all())
    return ~above if causal else torch.ones_like(above)


def _even(maps: Tensor, seen: Tensor) -> Tensor:
    """What each cell would have if all rows liked the same columns, among those that they see."""
    liked = ((maps * seen).sum(1) / seen.sum(0).clamp_min(1))[:, None] * seen
    return liked / liked.sum(-1, keepdim=True).clamp_min(1e-12)


def _best_line(beyond: Tensor, seen: Tensor, wide: int) -> Tensor:
    """The cells `[head, query, key]` of the line near the diagonal that holds most weight."""
    size = beyond.shape[-1]
    far = min(2, size // 10)
    places = torch.arange(size, device=beyond.device)
    away = places - places[:, None]
    lines = torch.stack([(away - offset).abs() <= wide for offset in range(-far, far + 1)]) & seen
    weight = torch.einsum("hqk,oqk->ho", beyond, lines.to(beyond.dtype))
    return lines[weight.argmax(1)]


def _block(
    beyond: Tensor, line: Tensor, special: Tensor, segment: Tensor | None
) -> tuple[Tensor, Tensor]:
    """How much more, or less, than even stays in the own text, and what a cell there has of it.

    Tokens alone are measured, no specials, and not where the line is, nor the token itself.
    """
    nothing = beyond.new_zeros(len(beyond))
    tokens = ~special.bool()
    cells = tokens[:, None] & tokens
    near = line | torch.eye(len(tokens), dtype=torch.bool, device=line.device)
    if segment is None:
        number = segments_of(beyond * (cells & ~near))
    elif bool((segment != segment[0]).any()):
        number = segment[None]
    else:
        return nothing, nothing[:, None, None]
    same = (number[:, :, None] == number[:, None]) & cells
    off = same & ~near
    cell = (beyond * off).sum((1, 2)) / off.sum((1, 2)).clamp_min(1)
    gained = cell * same.sum((1, 2)) / tokens.sum().clamp_min(1)
    return gained.abs(), cell.clamp_min(0)[:, None, None] * same


# --- A documented rule for the five patterns ----------------------------------------------------

_VERTICAL, _DIAGONAL, _BOTH, _BLOCK, _REST = range(len(PATTERNS))


@dataclass(frozen=True)
class PatternRule:
    """Say which pattern a map shows by its weight in columns, along the diagonal, in own texts.

    The thresholds were tuned on 364 maps that were looked at, of heads that no test uses. A plain
    block of two texts has 0.5 beyond what columns would put there, so 0.22 is not quite half.

    >>> nothing = torch.zeros(8, dtype=torch.long)
    >>> PATTERNS[PatternRule()(torch.eye(8)[None], nothing.bool(), nothing)]
    'diagonal'
    """

    #: The least weight in standing columns, along the diagonal, and within own texts.
    columns: float = 0.15
    diagonal: float = 0.25
    block: float = 0.22
    #: When a column stands out, and what is near the diagonal; see `traits_of`.
    lift: float = 1.5
    rows: float = 0.6
    reach: float = 0.06

    def __call__(self, maps: Tensor, special: Tensor, segment: Tensor | None) -> Tensor:
        """The number of the pattern of each map `[head, query, key]` of one text."""
        settings = {"lift": self.lift, "rows": self.rows, "reach": self.reach}
        traits = traits_of(maps, special, segment, **settings)
        vertical, diagonal = traits.columns >= self.columns, traits.diagonal >= self.diagonal
        answer = torch.full_like(vertical, _REST, dtype=torch.long)
        answer[vertical] = _VERTICAL
        answer[diagonal] = _DIAGONAL
        answer[vertical & diagonal] = _BOTH
        answer[(traits.block >= self.block) & (traits.block > traits.diagonal)] = _BLOCK
        return answer


# --- Which of the five patterns a map shows -----------------------------------------------------

#: Who tells the pattern.
Judge = Literal["network", "rule"]
#: A map of fewer tokens shows no pattern: a column, a line and a block are the same cells there.
LEAST = 4


def classify(
    maps: Any, special: Any = None, segment: Any = None, by: Judge = "network"
) -> list[str]:
    """The pattern of each map: `[query, key]`, or `[head, query, key]` of one text.

    `special` marks the places that the tokenizer added; left out, there are none. `segment` numbers
    the texts that tokens belong to: all 0 is a single text, which has no blocks; left out, they are
    not known, and the look alone shows a block. Rows of padding must be cut off.

    >>> classify(torch.eye(12))
    ['diagonal']
    """
    maps = torch.as_tensor(maps)
    maps = maps[None] if maps.dim() == 2 else maps
    _check(maps)
    none = torch.zeros(maps.shape[-1], dtype=torch.bool, device=maps.device)
    marks = none if special is None else torch.as_tensor(special, device=maps.device).bool()
    texts = None if segment is None else torch.as_tensor(segment, device=maps.device).long()
    return [PATTERNS[number] for number in numbers_of(maps, marks, texts, by).tolist()]


def numbers_of(
    maps: Tensor, special: Tensor, segment: Tensor | None, by: Judge = "network"
) -> Tensor:
    """The places in PATTERNS `[head]`; nothing is checked."""
    if by == "rule":
        return PatternRule()(maps, special, segment)
    return _told(pictures(maps, special, segment), segment)


def _told(shown: Tensor, segment: Tensor | None) -> Tensor:
    """What the network says of pictures."""
    scores: Tensor = network(str(shown.device))(shown)
    if segment is not None and not bool((segment != segment[0]).any()):
        # A single text has no blocks, by definition.
        scores[:, PATTERNS.index("block")] = -torch.inf
    return scores.argmax(-1)


def check_judge(by: Any) -> Judge:
    """The judge, if there is one of that name.

    >>> check_judge("eye")
    Traceback (most recent call last):
    headcount.errors.UsageError: Patterns are named by 'network' or 'rule', not by 'eye'.
    """
    if by not in get_args(Judge):
        raise UsageError(f"Patterns are named by 'network' or 'rule', not by {by!r}.")
    return by


def _check(maps: Tensor) -> None:
    shape = " x ".join(map(str, maps.shape[-2:]))
    if maps.dim() != 3 or maps.shape[-1] != maps.shape[-2]:
        raise InputError(
            f"The map is {shape}; patterns are of square maps [query, key], where a text "
            "looks at itself."
        )
    if maps.shape[-1] < LEAST:
        raise InputError(f"The map is {shape}; a pattern needs {LEAST} tokens or more to show.")
    if not bool(torch.isfinite(maps).all()):
        raise InputError("The map holds a weight that is not a number; check the model.")


# --- Shares of patterns read off a table --------------------------------------------------------

_NAMES = [column.name for column in PATTERN_COLUMNS]


def with_pattern(table: HeadTable) -> HeadTable:
    """The table with the column `pattern`: the most frequent one, the first of equals, or NA."""
    shares = table.frame[_NAMES]
    known = shares.notna().all(axis=1)
    most = [
        PATTERNS[int(row.argmax())] if there else None
        for row, there in zip(shares.to_numpy(), known, strict=True)
    ]
    about = {"notes": {"pattern": table.notes[_NAMES[0]]} if _NAMES[0] in table.notes else {}}
    return table.join(HeadTable.of(table.heads, {"pattern": most}, [PATTERN], **about))


def layer_shares(table: HeadTable) -> pd.DataFrame:
    """The mean share of each pattern over the heads of a layer: index (stack, layer).

    >>> from headcount.records.heads import Head
    >>> shares = {name: [float(name == "pattern_block")] for name in _NAMES}
    >>> layer_shares(HeadTable.of([Head("enc", 0, 0)], shares))["block"].tolist()
    [1.0]
    """
    shares = table.frame[_NAMES].groupby(level=["stack", "layer"], sort=False).mean()
    shares.columns = list(PATTERNS)
    return shares.dropna(how="all")


# --- Shares of the five patterns among a head's maps, one map a text ----------------------------

_CROSS = "queries and keys are different texts"
_SMALL = f"no text has {LEAST} tokens or more"


@dataclass
class Patterns(SumsTally):
    """Tell the pattern of every map, by the bundled network or by the rule, and count.

    >>> [column.name for column in Patterns().columns][:2]
    ['pattern_vertical', 'pattern_diagonal']
    """

    by: Judge = "network"
    convention: str = "headcount"
    columns = PATTERN_COLUMNS
    derives: ClassVar[tuple[Column, ...]] = (PATTERN,)

    def __post_init__(self) -> None:
        """Check who tells."""
        check_judge(self.by)
        check_convention(self.convention, "Patterns do")

    def finish(self, table: HeadTable) -> HeadTable:
        """The most frequent pattern is made of the shares."""
        return with_pattern(table)

    @property
    def needs(self) -> Needs:
        """The maps themselves; the network looks at small pictures of them, made in tiles."""
        return Needs(maps=True) if self.by == "rule" else Needs(tiles=True)

    def update(self, sighting: Sighting) -> None:
        """Count the patterns of one batch."""
        site = sighting.site
        counts = torch.zeros(len(PATTERNS) + 1, site.heads, dtype=torch.float64)
        for number, known in _by_rule(sighting) if self.by == "rule" else _by_network(sighting):
            shown = torch.nn.functional.one_hot(number, len(PATTERNS)).double()
            shown[~known] = torch.nan
            counts[-1] += 1
            counts[:-1] += shown.T.cpu()
        self.sums.add(site, {"counts": counts})

    def compute(self) -> list[Reading]:
        """The share of each pattern with Wilson's interval: one map a text, so texts are trials."""
        return [reading for site in self.sums for reading in self._of_site(site)]

    def details(self) -> dict[str, pd.DataFrame]:
        """`patterns`: a row for each head and pattern, with the number of maps."""
        rows = [row for site in self.sums for row in self._rows(site)]
        names = ["stack", "layer", "head", "pattern", "n", "share", "low", "high"]
        return {"patterns": pd.DataFrame(rows, columns=names)}

    def _of_site(self, site: Site) -> list[Reading]:
        *hits, maps = self.sums.of(site, "counts").numpy()
        names = [column.name for column in PATTERN_COLUMNS]
        if not maps.any():
            why = _CROSS if site.stack == "cross" else _SMALL
            return [Reading.missing(name, site, why) for name in names]
        return [
            Reading.broken(name, site)
            if np.isnan(shown).any()
            else Reading(name, site, *stats.wilson_interval(shown, maps))
            for name, shown in zip(names, hits, strict=True)
        ]

    def _rows(self, site: Site) -> Iterator[tuple[object, ...]]:
        readings = self._of_site(site)
        maps = self.sums.of(site, "counts")[-1]
        for place, head in enumerate(site.names if maps.any() else ()):
            for pattern, one in zip(PATTERNS, readings, strict=True):
                share = one.value[place], one.low[place], one.high[place]
                yield (*head, pattern, int(maps[place]), *map(float, share))


def _by_rule(sighting: Sighting) -> Iterator[tuple[Tensor, Tensor]]:
    """The number of each head's pattern, text by text, and whether its map has numbers only."""
    assert sighting.maps is not None  # needs asks for them
    for row, places, special, segment in _texts(sighting):
        maps = sighting.maps[row][:, places][:, :, places]
        yield PatternRule()(maps, special, segment), torch.isfinite(maps).all(-1).all(-1)


def _by_network(sighting: Sighting) -> Iterator[tuple[Tensor, Tensor]]:
    """The same; pixels are means of weights, so that tiles of a long text's map add up to them."""
    texts = [(*text, shrink(len(text[1]), text[1].device)) for text in _texts(sighting)]
    seen = [torch.zeros(())] * len(texts)
    for own in sighting.tiles() if texts else ():
        rows = sighting.rows_at(own)
        for at, (row, places, _, _, area) in enumerate(texts):
            there = torch.isin(places, own)
            own_rows = rows[row][:, places[there] - own[0]][:, :, places].float()
            seen[at] = seen[at].to(area) + area[:, there] @ own_rows @ area.T
    for pixels, (_, _, special, segment, area) in zip(seen, texts, strict=True):
        known = torch.isfinite(pixels).flatten(1).all(1)
        yield _told(drawn(pixels, area, special, segment), segment), known


def _texts(sighting: Sighting) -> Iterator[tuple[int, Tensor, Tensor, Tensor]]:
    """Each text's row, where its tokens are, its specials and segments; small ones are left out."""
    side = sighting.queries
    for row, real in enumerate(side.real if sighting.site.stack != "cross" else ()):
        places = real.nonzero().squeeze(-1)
        if len(places) >= LEAST:
            ends = side.separator[row, places].long()
            yield row, places, side.special[row, places], ends.cumsum(0) - ends


def _named(convention: str, way: str) -> Patterns:
    by: Any = way or "network"  # another word is refused there
    return Patterns(by, convention)


#: It among the tallies of the registry; the most frequent pattern is made of the shares.
PLAN = TallyPlan(
    lambda subject, corpus, options: Patterns(convention=options.convention),
    columns=(PATTERN, *Patterns.columns),
    named=_named,
)


# --- The whole distribution of a head's mass by offset ------------------------------------------


@dataclass
class OffsetMass(SumsTally):
    """Mean mass at every offset, over all real tokens; a detail table, not a column."""

    needs = Needs(tiles=True)
    columns: tuple[Column, ...] = ()

    def update(self, sighting: Sighting) -> None:
        """Add the diagonals of one batch."""
        if sighting.site.stack == "cross":
            return
        rows, heads = sighting.queries.real, sighting.site.heads
        mass = torch.zeros(heads, 2 * REACH + 1, dtype=torch.float64, device=rows.device)
        keys = torch.arange(sighting.keys.real.shape[1], device=rows.device)
        for own in sighting.tiles():
            maps = (sighting.rows_at(own) * rows[:, None, own, None]).sum(0).double()
            bins = (keys - own[:, None]).clamp(-REACH, REACH) + REACH
            mass.scatter_add_(1, bins.flatten().expand(heads, -1), maps.flatten(1))
        self.sums.add(sighting.site, {"mass": mass, "tokens": rows.sum()})

    def compute(self) -> list[Reading]:
        """No column: see `details`."""
        return []

    def details(self) -> dict[str, pd.DataFrame]:
        """`offset_mass`: one row a head and offset, with the mean mass there."""
        frames = []
        for site in self.sums:
            mass = self.sums.of(site, "mass") / self.sums.of(site, "tokens")
            heads, places = mass.nonzero(as_tuple=True)
            frames.append(
                pd.DataFrame(
                    {
                        "stack": site.stack,
                        "layer": site.layer,
                        "head": np.array(site.indices)[heads.numpy()],
                        "offset": places.numpy() - REACH,
                        "mass": mass[heads, places].numpy(),
                    }
                )
            )
        return {"offset_mass": pd.concat(frames, ignore_index=True)} if frames else {}


#: It among the tallies of the registry, for those who ask for it by name.
OFFSET_MASS_PLAN = TallyPlan(lambda *_: None, named=lambda convention, way: OffsetMass())


#: Texts that settle a head's shares of patterns.
_TEXTS = 96


def patterns_stage(context: StoryContext) -> StoryStage:
    """Each head's shares of the five patterns among its maps."""
    texts = context.some_texts(_TEXTS)

    def work() -> list[str]:
        names = [column.name for column in PATTERN_COLUMNS]
        context.keep_survey("patterns", texts, columns=names, roles=False)
        return []

    settings = {"texts": texts.hash, "seed": context.seed, "convention": "headcount"}
    title = "What its maps look like"
    return StoryStage(
        "patterns", title, settings, work, runs=forward_steps(context, 10.0 * len(texts))
    )


STAGE = StageMaker(patterns_stage, after="families")
