"""Read heads: run batches through the model and see what the tallies need, site by site."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from headcount import plugins
from headcount.errors import ModelError
from headcount.models import (
    Site,
    SiteGroup,
    Subject,
    full_rows,
    members_of,
    on_exit,
    quiet_arguments,
)
from headcount.records import STACKS
from headcount.text import Batch, Side
from headcount.wiring.rows import Call, Scores, agrees, attended, eager_tiles, merged, tiled
from headcount.wiring.seam import PREFIX, Attended, Turns, alone, attached
from headcount.wiring.sighting import (
    TILE,
    Asked,
    Needs,
    RowReader,
    RowSample,
    Sighting,
    check_ids,
    in_float32,
    of_map,
    unknown_side,
    visible_keys,
)

Receiver = Callable[[Sighting], None]

#: Rows that wait to be shown together, of short texts, whose forward leaves a GPU time between two
#: operations; and of longer ones, which keep it busy and need the memory themselves. A CPU gains
#: nothing by more than a few batches.
_WAITING, _WAITING_LONG, _LONG, _WAITING_ON_CPU = 2**22, 2**20, 2048, 2**18

#: Bytes of queries and keys that wait for one launch of the kernel, where launches cost more than
#: to put them side by side: neither in long texts nor in a pass that is recorded.
_HELD = 2**27

#: Up to so many cells, a CPU reduces the map of the family's own function faster than it would
#: compute scores a second time.
_SMALL_MAP = 2**23

#: Attention modules for which `agrees` was asked, and its answer.
_AGREES: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()


@contextmanager
def tap(
    subject: Subject,
    needs: Needs | None = None,
    *,
    stacks: Collection[str] | None = None,
    rows: int | None = None,
    seed: int = 0,
) -> Iterator[Watch]:
    """Watch heads within the block; the model is exactly as before on any exit.

    `watch(batch)` runs the batch and returns a `Sighting` for each site, holding what `needs`
    asks for (the maps, by default). With `receive` each sighting is handed over as soon as
    it is made and not kept, so that one layer's map lives at a time. `stacks` looks at some
    of the stacks only; `rows` at a sample of so many rows of longer texts. What is shown
    `together` may wait for batches to come, at the longest until the block ends or `watch.flush()`.
    """
    if (kernel := _kernel()) is not None:
        kernel.prepare(subject.device)
    watch = Watch(subject, needs or Needs(maps=True), stacks or STACKS, rows, seed)
    training: list[nn.Module] = []

    def restore() -> None:
        if watch.recordings is not None:
            watch.recordings.forget()
        for module in training:
            module.training = True

    with attached(subject, turns=watch.turns, runner=watch.run), on_exit(restore):
        training += [module for module in subject.model.modules() if module.training]
        for module in training:
            module.training = False
        yield watch
        watch.flush()


class Watch:
    """A running tap."""

    def __init__(
        self,
        subject: Subject,
        needs: Needs,
        stacks: Collection[str],
        rows: int | None = None,
        seed: int = 0,
    ) -> None:
        self.subject = subject
        self.needs = needs
        self.stacks = stacks
        self.turns = Turns(subject)
        #: By which path the rows of how many calls were read (see `wiring/rows.py`).
        self.paths: Counter[str] = Counter()
        #: Rows of batches of which some queries stood for all.
        self.sampled = 0
        self._rows, self._seed = rows, seed
        #: The last map that was made from scores; its memory serves the next layer.
        self._room: Tensor | None = None
        self._quiet = quiet_arguments(subject.model)
        self._now: _Now | None = None
        self._watched = [site for site in subject.anatomy.sites if site.stack in stacks]
        kernel = _kernel()
        self.recordings = kernel and kernel.recordings(subject, self._forward)
        #: Whether a module attends by its family's own function, by its id.
        self._eager: dict[int, bool] = {}
        #: Batches whose rows wait to be shown as those of one, and what they have in common.
        self._kept: list[tuple[Batch, list[_Waiting]]] = []
        self._alike: tuple[Any, ...] = ()
        self._together: Receiver | None = None

    def __call__(
        self, batch: Batch, receive: Receiver | None = None, together: Receiver | None = None
    ) -> list[Sighting]:
        """Run a batch; return its sightings, or hand each to `receive` and return none.

        `together` is shown the sites of a stack at once, as one sighting without maps, and several
        batches as one where they are alike.
        """
        kept: list[Sighting] = []
        if receive is None and together is None:
            receive = kept.append
        check_ids(self.subject, batch.inputs)
        asked = self._asked(batch)
        masks = [mask for name, mask in batch.inputs.items() if name.endswith("attention_mask")]
        full = self.subject.device.type == "cuda" and all(bool(mask.all()) for mask in masks)
        key = None
        if self.recordings and receive is None and alone(self.run) and self._few(batch):
            key = self.recordings.key(batch, asked, full)
        batch = batch.to(self.subject.device)
        drawn = next((one.weights for one in asked.values() if one.weights is not None), None)
        if drawn is not None:
            self.sampled += int((drawn.amax(-1) > 1).sum())
        rows = None if key is None else self.recordings.replayed(key, batch, asked)
        if rows is not None:
            self.paths["recorded"] += len(self._watched)
        else:
            before = self.paths["fused"]
            rows = self._forward(batch, asked, receive, together, full, apart=key is not None)
            if key is not None and self.paths["fused"] - before == len(self._watched):
                self.recordings.offer(key, batch, asked, rows)
        self._keep(batch, rows, together)
        return kept

    def _forward(
        self,
        batch: Batch,
        asked: Mapping[str, Asked],
        receive: Receiver | None,
        together: Receiver | None,
        full: bool,
        apart: bool = True,
    ) -> list[_Waiting]:
        """Run a batch as it comes; what waits to be shown together."""
        now = self._now = _Now(batch, asked, receive, together, apart)
        try:
            with torch.no_grad(), full_rows(full):
                for site, maps, mask in recorded_maps(self.subject, batch, self._quiet):
                    if site.stack in self.stacks:
                        self._reduce(now, site, maps, mask)
            self._check_all_seen(now.seen)
            return now.left()
        finally:
            self._now = None

    def _few(self, batch: Batch) -> bool:
        """Whether a batch has so few rows that all of them may wait."""
        length = max((side.real.shape[1] for side in batch.sides.values()), default=0)
        rows = len(batch) * length * sum(site.heads for site in self._watched)
        return rows <= _most(length, self.subject.device)

    def run(
        self,
        function: Callable[..., tuple[Tensor, Tensor | None]],
        module: nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Any,
        **arguments: Any,
    ) -> tuple[Tensor, Tensor | None]:
        """The runner on the seam: attention as it would be, and the rows beside it."""
        site, now = self.turns.next(module), self._now
        as_it_comes = partial(function, module, query, key, value, mask, **arguments)
        if now is None or site.stack not in self.stacks:
            return as_it_comes()
        call = Call(module, query, key, value, mask, arguments)
        shape = (*query.shape[:3], key.shape[2])
        _check_shape(self.subject, site, shape, now.batch)
        asked = now.asked_of(site, shape, query.device, self.needs)
        cells, eager = math.prod(shape), self._eager.get(id(module))
        if eager is None:
            eager = self._eager[id(module)] = _is_eager(module)
        small = cells <= (_SMALL_MAP if query.device.type == "cpu" else TILE["cuda"])
        # On a CPU the weights are at hand, and give the output faster than sdpa would.
        own = query.device.type == "cpu" and _all_float32(query, key, value)
        # One text decides, so that its numbers do not depend on the others of its batch.
        large = self.needs.tiles and cells // len(query) > TILE["kept"] // 8
        whole = self.needs.maps or (self.needs.tiles and not large)
        scores = None if whole or eager or not _agrees(call) else call.scores
        reader = (
            None if whole or not large else partial(_rows_at, call if scores is None else scores)
        )
        if scores is not None:
            if (kernel := _kernel()) is not None and kernel.serves(scores, asked):
                self._note(now, site, "fused")
                now.hold(_Waiting(site, asked, now.visible(site, asked, mask), scores, reader))
                return as_it_comes()
            if own and small and reader is None:
                made, maps, entropies = attended(scores, value, self.needs.entropy, self._room)
                self._room = maps
                self._reduce(now, site, maps, mask, "scores", entropies)
                return made, None
            wanted = value if own and asked.places is None else None
            outputs, found = tiled(scores, asked, wanted)
            self._show(now, site, asked, found, mask, "tiled", reader=reader)
            return as_it_comes() if outputs is None else (outputs, None)
        if whole or (small and reader is None):
            output, weights = as_it_comes() if eager else call.eager()
            self._reduce(now, site, Attended(output, weights).map_of(site), mask)
            return output, weights
        output, found = eager_tiles(call, asked)
        self._show(now, site, asked, found, mask, "map in tiles", reader=reader)
        return output, None

    def flush(self) -> None:
        """Show what waits."""
        kept, self._kept = self._kept, []
        if not kept or self._together is None:
            return
        batch, side = kept[0][0], _Joined()
        if len(kept) > 1:
            sides = {name: side([own.sides[name] for own, _ in kept]) for name in batch.sides}
            index, window = (
                [one for own, _ in kept for one in getattr(own, name)]
                for name in ("index", "window")
            )
            batch = Batch({}, sides, index, window)
        for several in zip(*(groups for _, groups in kept), strict=True):
            self._together(_sighting(batch, *several, side=side))

    def _keep(self, batch: Batch, groups: list[_Waiting], together: Receiver | None) -> None:
        """Let the rows of a batch wait for others that are alike, up to so many."""
        if together is None or not groups:
            return
        alike = (together, *(one.alike for one in groups))
        if alike != self._alike:
            self.flush()
        self._alike, self._together = alike, together
        self._kept.append((batch, groups))
        most = min(_most(one.visible.shape[1], one.visible.device) for one in groups)
        annotated = any(side.words is not None for side in batch.sides.values())
        if annotated or sum(one.rows for _, own in self._kept for one in own) >= most:
            self.flush()

    def _asked(self, batch: Batch) -> dict[str, Asked]:
        """What is asked of each stack's rows, made before the batch moves to the device."""
        made: dict[tuple[int, int], Asked] = {}
        found = {}
        for stack in {site.stack for site in self.subject.anatomy.sites} & set(self.stacks):
            queries, keys = batch.query(stack), batch.key(stack)
            if queries is None or keys is None:
                continue
            place = id(queries), id(keys)
            if place not in made:
                windows = batch.window or [0] * len(batch)
                texts = tuple(zip(batch.index, windows, strict=True))
                sample = None if self._rows is None else RowSample(self._rows, self._seed, texts)
                made[place] = Asked.of(self.needs, queries, keys, sample)
            found[stack] = made[place]
        return found

    def _reduce(
        self,
        now: _Now,
        site: Site,
        maps: Tensor,
        mask: Tensor | None,
        path: str = "map",
        entropies: Tensor | None = None,
    ) -> None:
        """Show what is asked of a whole map; where rows are sampled, of those."""
        asked = now.asked_of(site, tuple(maps.shape), maps.device, self.needs)
        shown, places = in_float32(maps), asked.places
        if places is not None:
            chosen = places[:, None, :, None].expand(-1, shown.shape[1], -1, shown.shape[3])
            shown = shown.gather(2, chosen)
            entropies = None if entropies is None else entropies.gather(2, chosen[..., 0])
        found = of_map(shown, asked, places, entropies)
        kept = shown if self.needs.maps or self.needs.tiles else None
        self._show(now, site, asked, found, mask, path, kept)

    def _show(
        self,
        now: _Now,
        site: Site,
        asked: Asked,
        found: dict[str, Any],
        mask: Any,
        path: str,
        maps: Tensor | None = None,
        reader: RowReader | None = None,
    ) -> None:
        self._note(now, site, path)
        now.show(_Waiting(site, asked, now.visible(site, asked, mask), found, reader), maps)

    def _note(self, now: _Now, site: Site, path: str) -> None:
        self.paths[path] += 1
        now.seen.add(site)

    def _check_all_seen(self, seen: set[Site]) -> None:
        """Raise for a site that the forward went past: its heads would be missing silently."""
        for site in self._watched:
            if site not in seen:
                raise ModelError(
                    f"{self.subject.name} ran without its attention at {site.stack}.{site.layer} "
                    f"({site.module}) being seen; run it whole, uncompiled and in this process."
                )


class _Now:
    """The batch that is being run: what is asked of it, who is shown, and what waits."""

    def __init__(
        self,
        batch: Batch,
        asked: Mapping[str, Asked],
        receive: Receiver | None,
        together: Receiver | None,
        apart: bool,
    ) -> None:
        self.batch, self.receive, self.together = batch, receive, together
        #: Whether each layer has a launch of the kernel to itself.
        self.apart = apart
        self.seen: set[Site] = set()
        self._asked: dict[tuple[str, torch.device], Asked] = {}
        self._given = asked
        self._visible: dict[tuple[str, int], tuple[Any, Tensor]] = {}
        #: Rows that wait to be shown, and scores that wait for the kernel, by what they see.
        self._waiting: dict[int, list[_Waiting]] = {}
        self._held: dict[tuple[Any, ...], list[_Waiting]] = {}

    def asked_of(
        self, site: Site, shape: tuple[int, ...], device: torch.device, needs: Needs
    ) -> Asked:
        """What is asked of a site's rows, on its device."""
        place = site.stack, device
        if place not in self._asked:
            given = self._given.get(site.stack)
            if given is None:  # tokens that only the model knows
                sides = self.batch.query(site.stack), self.batch.key(site.stack)
                counts = shape[2], shape[3]
                queries, keys = (
                    unknown_side(shape[0], count, device) if side is None else side.to(device)
                    for side, count in zip(sides, counts, strict=True)
                )
                given = Asked.of(needs, queries, keys)
            asking, answering = self.batch.query(site.stack), self.batch.key(site.stack)
            if asking is None or answering is None or answering.real.device != device:
                self._asked[place] = given.to(device)
            else:
                self._asked[place] = given.on(asking, answering)
        return self._asked[place]

    def visible(self, site: Site, asked: Asked, mask: Any) -> Tensor:
        """How many keys each row sees; layers with the same mask share the answer."""
        place = site.stack, id(mask)
        if place not in self._visible:
            queries = asked.queries.real.shape[1]
            found = visible_keys(mask, queries, asked.keys.real, site.causal)
            found = found if asked.places is None else found.gather(1, asked.places)
            self._visible[place] = mask, found  # the mask is held, so that its id stays its own
        return self._visible[place][1]

    def show(self, one: _Waiting, maps: Tensor | None = None) -> None:
        """Show a site, or several, to who takes them apart, and keep it for who does not."""
        if self.receive is not None:
            for sighting in _sighting(self.batch, one, maps=maps).by_site():
                self.receive(sighting)
        if self.together is not None:
            waiting = self._waiting.setdefault(id(one.visible), [])
            waiting.append(one._replace(reader=None))
            most = _most(one.visible.shape[1], one.visible.device)
            if sum(each.rows for each in waiting) > most:
                self.together(_sighting(self.batch, self._joined(id(one.visible))))

    def hold(self, one: _Waiting) -> None:
        """Keep a site's scores, so that one launch of the kernel serves several layers."""
        scores, visible = one.what, one.visible
        heads, keys, dim = scores.query.shape[1], scores.key.shape[1], scores.query.shape[3]
        alike = id(visible), scores.scaling, scores.causal, dim, heads // keys, scores.bias is None
        held = self._held.setdefault(alike, [])
        held.append(one)
        size = scores.query.nbytes + scores.key.nbytes  # of layers that are alike
        alone = self.apart or scores.bias is not None or visible.shape[1] > _LONG or one.reader
        texts = scores.query.shape[0] * heads
        if alone or size * len(held) >= _HELD or texts * (len(held) + 1) > _kernel().MOST_TEXTS:
            self._launch(alike)

    def left(self) -> list[_Waiting]:
        """What waits at the end of the batch: those that see the same, as one."""
        for alike in list(self._held):
            self._launch(alike)
        return [self._joined(number) for number in list(self._waiting)]

    def _launch(self, alike: tuple[Any, ...]) -> None:
        held = self._held.pop(alike)
        found = _kernel().row_quantities(Scores.together([one.what for one in held]), held[0].asked)
        self.show(_together(held, found))

    def _joined(self, number: int) -> _Waiting:
        waiting = self._waiting.pop(number)
        return _together(waiting, merged([one.what for one in waiting], dim=1))


class _Waiting(NamedTuple):
    """A site, or several, that see the same: its quantities, or the scores they are made of."""

    site: Site
    asked: Asked
    visible: Tensor
    what: Any
    reader: RowReader | None = None

    @property
    def rows(self) -> int:
        """How many rows wait, of all heads."""
        return self.visible.numel() * self.site.heads

    @property
    def alike(self) -> tuple[Any, ...]:
        """What the rows of two batches must have in common to be shown as those of one."""
        asked, queries, keys = self.asked, self.asked.queries, self.asked.keys
        shapes = self.visible.shape[1], queries.real.shape[1], keys.real.shape[1]
        known = queries.annotated, keys.annotated, asked.places is None
        return (self.site, *shapes, *known, self.visible.device)


class _Joined:
    """Sides of several batches as one; each is made once."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, ...], Side] = {}

    def __call__(self, sides: Sequence[Side]) -> Side:
        key = tuple(map(id, sides))
        if key not in self._made:
            self._made[key] = Side.together(sides)
        return self._made[key]


def _sighting(
    batch: Batch, *several: _Waiting, side: _Joined | None = None, maps: Tensor | None = None
) -> Sighting:
    """What is shown of a site, or several, on one batch or on several that are alike."""
    asked, found = several[0].asked, several[0].what
    queries, keys, visible = asked.asking, asked.keys, several[0].visible
    drawn: list[Tensor | None] = [asked.places, asked.weights]
    if len(several) > 1:
        assert side is not None
        queries = side([one.asked.asking for one in several])
        keys = side([one.asked.keys for one in several])
        visible = torch.cat([one.visible for one in several])
        found = merged([one.what for one in several], dim=0)
        if asked.places is not None:
            names = ("places", "weights")
            drawn = [torch.cat([getattr(one.asked, name) for one in several]) for name in names]
    return Sighting(
        several[0].site,
        batch,
        queries,
        keys,
        visible,
        maps,
        places=drawn[0],
        weights=drawn[1],
        reader=several[0].reader,
        **found,
    )


def _most(queries: int, device: torch.device) -> int:
    """How many rows may wait, of texts of so many queries."""
    if device.type == "cpu":
        return _WAITING_ON_CPU
    return _WAITING if queries <= _LONG else _WAITING_LONG


def _together(several: Sequence[_Waiting], found: dict[str, Any]) -> _Waiting:
    """Quantities of several sites that see the same."""
    sites = [site for one in several for site in members_of(one.site)]
    return several[0]._replace(site=SiteGroup.of(sites), what=found)


def _rows_at(source: Scores | Call, places: Tensor) -> Tensor:
    """The rows of a map at some places, in float32, from scores or by the family's function."""
    with torch.no_grad():
        if isinstance(source, Scores):
            return source.of_rows(places.expand(len(source.query), -1)).softmax(-1)
        return in_float32(source.eager(places)[1])


@cache
def _kernel() -> Any:
    """The kernel of a room, where there is one."""
    return plugins.part("kernel")


def _is_eager(module: nn.Module) -> bool:
    """Whether the model itself attends by the family's own function."""
    config: Any = module.config
    return config._attn_implementation.removeprefix(PREFIX) == "eager"


def _all_float32(*parts: Tensor) -> bool:
    """Whether attention is computed in float32: by its tensors, and without autocast."""
    autocast = torch.is_autocast_enabled(parts[0].device.type)
    return not autocast and all(part.dtype == torch.float32 for part in parts)


def _agrees(call: Call) -> bool:
    """Whether scores give what the family's own function gives; asked once for each module."""
    if call.module not in _AGREES:
        found = agrees(call)
        if found is None:
            return False
        _AGREES[call.module] = found
    return _AGREES[call.module]


# --- Maps from the model's own `output_attentions` ----------------------------------------------


def recorded_maps(
    subject: Subject, batch: Batch, arguments: dict[str, Any]
) -> Iterator[tuple[Site, Tensor, Tensor | None]]:
    """Run the batch; yield the maps `[batch, head, query, key]` that the seam cannot see.

    With each map comes the attention mask, where it is more than padding and causality.
    The maps of all layers are held until the forward ends, since these families hand them
    over together; each is freed as soon as the next one is asked for.
    """
    sites = [site for site in subject.anatomy.sites if site.route == "projection"]
    if not sites:
        subject.model(**batch.inputs, **arguments)
        return
    maps_of = plugins.get("parts", "outside").maps_of
    for site, maps, window in maps_of(subject, sites, batch.inputs | arguments):
        _check_shape(subject, site, maps.shape, batch)
        yield site, maps, window


def _check_shape(subject: Subject, site: Site, shape: Sequence[int], batch: Batch) -> None:
    """Raise where rows and columns of `[batch, head, query, key]` are not the batch's tokens."""
    query, key = batch.query(site.stack), batch.key(site.stack)
    wanted = [shape[0], site.heads, *shape[2:]]
    if query is not None:
        wanted[0], wanted[2] = query.real.shape
    if key is not None:
        wanted[3] = key.real.shape[1]
    name, place = type(subject.model).__name__, f"{site.stack}.{site.layer}"
    if shape[3] > wanted[3]:
        raise ModelError(
            f"{name} attends to {shape[3]} keys at {place} where the batch has {wanted[3]} tokens: "
            "keys of prefix or prompt tuning, or of a cache, are no tokens, and only tokens can be "
            "read; take the model without them (model.get_base_model()), or tune it with LoRA."
        )
    if list(shape) != wanted:
        raise ModelError(
            f"{name} gave an attention map of shape {list(shape)} at {place}, not {wanted} as "
            "[batch, head, query, key]."
        )
