"""The texts of the experiment as tensors, cut once and shared by all runs."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path

import safetensors.torch
import torch
from torch import Tensor

from headcount.models.finding import find
from headcount.records.files import write_bytes
from research.translator.config import Config as Recipe
from research.translator.corpus import Corpus
from research.translator.pairs import Pair, Split, read_pairs, read_splits
from research.translator.prepare import pair_corpus, prepare

from .config import Config

__all__ = ["Texts", "prepared"]


@dataclass(frozen=True)
class Texts:
    """Training pairs on the device and on the host, and the parts a run is judged on."""

    host: Corpus
    train: Corpus
    direct: Tensor
    versions: int
    parts: dict[str, list[Pair]]
    corpora: dict[str, Corpus]

    def chosen(self, epoch: int) -> Tensor:
        """The pairs of the recipe's end, all or direct, in the segmentation of this epoch."""
        pairs = torch.arange(len(self.direct))
        return pairs[self.direct] + epoch % (self.versions + 1) * len(pairs)


def prepared(config: Config, data: Path | None, out: Path, parts: list[str], device: str) -> Texts:
    """Cut the texts with the bundled vocabulary, or read what an earlier call cut."""
    recipe = replace(
        config.recipe, pieces=replace(config.recipe.pieces, versions=config.schedule.versions)
    )
    splits = read_splits(recipe.data, data)
    held = _cut(config, recipe, data, out)
    direct = held.pop("direct").bool() | recipe.train.phases[-1].indirect
    host = Corpus(**{field.name: held[field.name] for field in fields(Corpus)})
    judged = {part: _part(part, splits, data) for part in parts}
    return Texts(
        host=host,
        train=host.to(device),
        direct=direct,
        versions=config.schedule.versions,
        parts=judged,
        corpora={part: pair_corpus(pairs, _tokenizer(config)) for part, pairs in judged.items()},
    )


def _part(name: str, splits: Split, data: Path | None) -> list[Pair]:
    """A part of the corpus, or a test of another one: lohelp, or PUD's parallel sentences."""
    if name in ("dev", "test"):
        return list(getattr(splits, name))
    return read_pairs(Path(data or ".") / f"{name}.en-de.test.tsv")


def _tokenizer(config: Config) -> Path:
    return Path(find(config.start).location)


def _cut(config: Config, recipe: Recipe, data: Path | None, out: Path) -> dict[str, Tensor]:
    path = out / "cut.safetensors"
    if not path.exists():
        folder = out / "tokenizer"
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("source.spm", "target.spm", "vocab.json", "tokenizer_config.json"):
            write_bytes(folder / name, (_tokenizer(config) / name).read_bytes())
        made = prepare(recipe, data, out)
        tensors = {field.name: getattr(made.train, field.name) for field in fields(Corpus)}
        tensors["direct"] = made.direct.to(torch.uint8)
        write_bytes(path, safetensors.torch.save(tensors))
    return safetensors.torch.load_file(path)
