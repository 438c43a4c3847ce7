"""The parts of a forward: attention's projections, its maps, the feed-forward layers, the ends."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from torch import nn
from transformers.pytorch_utils import Conv1D

from headcount.errors import HeadcountError
from headcount.models.anatomy import sites_of
from headcount.models.projections import row_of
from headcount.models.site import Site
from headcount.subject import Subject

__all__ = ["MATRICES", "PARTS", "Part", "Parts", "parts_of"]

Part = Literal["projections", "maps", "feed-forward", "ends"]
PARTS: tuple[Part, ...] = ("projections", "maps", "feed-forward", "ends")

#: Modules that multiply matrices.
MATRICES = (nn.Linear, Conv1D, nn.Conv1d, nn.Conv2d)


@dataclass(frozen=True)
class Parts:
    """Which module belongs to which part of a model.

    `attention` has the module of every site, those included whose last head is dead; `inner` the
    projections that such a module calls itself, `keys` and `output` those by whose rows the size
    of a map shows.
    """

    matrices: dict[nn.Module, Part]
    attention: dict[nn.Module, Site]
    inner: frozenset[nn.Module]
    keys: dict[nn.Module, nn.Module]
    output: dict[nn.Module, nn.Module]


def parts_of(subject: Subject) -> Parts:
    """Sort the matrices of a model: by what its attention is made of, and where its layers lie.

    >>> from transformers import BertConfig, BertModel
    >>> config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=4,
    ...                     intermediate_size=16, vocab_size=32)
    >>> list(parts_of(Subject(BertModel(config))).matrices.values())
    ['projections', 'projections', 'projections', 'projections', 'feed-forward', 'feed-forward',
     'ends']
    """
    model, sites = subject.model, sites_of(subject.model)
    projections: dict[nn.Module, nn.Module] = {}
    keys: dict[nn.Module, nn.Module] = {}
    output: dict[nn.Module, nn.Module] = {}
    attention = {model.get_submodule(site.module): site for site in sites}
    for module, site in attention.items():
        own = dict(_projections(model, site))
        projections |= dict.fromkeys(own.values(), module)
        keys |= {own[name]: module for name in own if name == "keys"}
        output |= {own[name]: module for name in own if name == "output"}
    blocks = {_block(site.module) for site in sites}
    matrices: dict[nn.Module, Part] = {
        module: "projections" if module in projections else _outside(name, blocks)
        for name, module in model.named_modules()
        if isinstance(module, MATRICES)
    }
    inner = frozenset(one for one, owner in projections.items() if one in set(owner.modules()))
    return Parts(matrices, attention, inner, keys, output)


def _projections(model: nn.Module, site: Site) -> Iterator[tuple[str, nn.Module]]:
    """The projections of a site; one of them gives the keys, one takes the heads' outputs."""
    try:
        row = row_of(model, site)
    except HeadcountError:  # heads that cannot be removed still cost something
        for name, module in model.get_submodule(site.module).named_modules():
            if isinstance(module, MATRICES):
                yield name, module
        return
    for number, (path, letters) in enumerate(row.parts):
        yield "keys" if "k" in letters else f"part {number}", _at(model, site, path)
    yield "output", _at(model, site, row.output)


def _at(model: nn.Module, site: Site, path: str) -> nn.Module:
    if path.startswith(".."):
        return model.get_submodule(f"{site.module.rpartition('.')[0]}.{path[2:]}")
    return model.get_submodule(f"{site.module}.{path}")


def _block(path: str) -> str:
    """The layer that a module is in: its name up to the first number."""
    found = re.match(r"(?:.*?\.)?\d+(?=\.)", path)
    return f"{found.group()}." if found else path


def _outside(name: str, blocks: set[str]) -> Part:
    return "feed-forward" if any(name.startswith(block) for block in blocks) else "ends"
