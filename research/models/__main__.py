"""`python -m research.models --data DIR`: train the models that pages were measured on, in int8.

Fine-tuned MiniLM classifiers, the Russian translator and the translator of software help, each from
its recipe and seed. A finished model is a folder that `hc.load` opens; one that is there is left as
it is. How long the missing ones take on this machine is said before the first step.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

from headcount.errors import InputError, UsageError
from research.settings import told

HERE = Path(__file__).parent
#: Files of a trained folder that stay beside the packed weights.
_BESIDE = ("*.json", "*.spm", "vocab.txt")


def main(arguments: list[str] | None = None) -> int:
    """Train what is missing; a mistake is told in a sentence."""
    given = _parser().parse_args(arguments)
    return told(lambda: _all(given))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="research.models", description=__doc__)
    add = parser.add_argument
    add("names", nargs="*", help="which models; all when none is named")
    add("--data", type=Path, default=os.environ.get("HEADCOUNT_DATA"), help="folder of corpora")
    add("--out", type=Path, help="folder of the models; else trained/ in the cache of headcount")
    add("--device", default="auto")
    add("--time", action="store_true", help="say how long it takes and stop")
    return parser


def _all(given: argparse.Namespace) -> None:
    from headcount.models.finding import cache_dir
    from headcount.models.loading import pick_device

    recipes = tomllib.loads((HERE / "recipes.toml").read_text())
    for name in given.names:
        if name not in recipes:
            raise UsageError(f"There is no recipe '{name}'; there are {', '.join(recipes)}.")
    out = given.out or cache_dir() / "trained"
    missing = [n for n in given.names or recipes if not (out / n / "packed.safetensors").exists()]
    device = str(pick_device(given.device))
    print(forecast({name: recipes[name] for name in missing}, device, out), flush=True)
    if given.time or not missing:
        return
    if given.data is None or not Path(given.data).is_dir():
        raise InputError(
            f"The corpora are needed, and {given.data} is no folder: pass --data DIR, or set "
            "HEADCOUNT_DATA."
        )
    for name in missing:
        work = out / f"{name}.work"
        trained = _trained(name, recipes[name], Path(given.data), work, device)
        pack_folder(trained, out / name)
        shutil.rmtree(work)
        print(f"{name}: {out / name}", flush=True)


def forecast(
    recipes: dict[str, dict[str, Any]], device: str, out: Path, cores: int | None = None
) -> str:
    """What will be trained and how long it takes here.

    >>> one = {"steps": 120, "gpu_seconds": 60, "core_seconds": 2.0}
    >>> print(forecast({"a": one}, "cpu", Path("models"), cores=1))
    1 model to train into models, about 4 minutes on this CPU (1 minute on an H200):
      a: 120 steps, 4 minutes
    """
    if not recipes:
        return f"Every model is in {out}."

    import torch

    cores = cores or torch.get_num_threads()

    def seconds(one: dict[str, Any], where: str) -> float:
        if where != "cpu":
            return float(one["gpu_seconds"])
        return float(one["steps"] * one["core_seconds"] / cores)

    def total(where: str) -> str:
        return _duration(sum(seconds(one, where) for one in recipes.values()))

    models = f"{len(recipes)} model{'s' if len(recipes) > 1 else ''}"
    here = f"{total('cpu')} on this CPU ({total('cuda')} on an H200)"
    first = here if device == "cpu" else f"{total('cuda')} on an H200 (this is {device})"
    lines = [
        f"  {name}: {one['steps']:,} steps, {_duration(seconds(one, device))}"
        for name, one in recipes.items()
    ]
    return "\n".join([f"{models} to train into {out}, about {first}:", *lines])


def _duration(seconds: float) -> str:
    """Minutes up to three hours, then hours."""
    count, unit = (seconds / 60, "minute") if seconds < 3 * 3600 else (seconds / 3600, "hour")
    rounded = max(1, round(count))
    return f"{rounded:,} {unit}{'s' if rounded > 1 else ''}"


def _trained(name: str, recipe: dict[str, Any], data: Path, work: Path, device: str) -> Path:
    """The folder of the trained model in float32; a broken-off training goes on."""
    work.mkdir(parents=True, exist_ok=True)
    if "translator" in recipe:
        from research.translator.config import read_config
        from research.translator.counts import write_counts
        from research.translator.train import train

        config = read_config(HERE.parent / "translator" / recipe["translator"])
        inner = data / "parallel"
        texts = inner if inner.is_dir() else data
        train(config, texts, work, device)
        write_counts(config.data, texts, work / "final")
        return work / "final"
    from research.glue.config import read_config as read_glue
    from research.glue.sweep import Sweep

    task, seed = recipe["glue"]
    inner = data / "glue"
    sweep = Sweep(
        read_glue(HERE.parent / "glue" / "config.toml"),
        inner if inner.is_dir() else data,
        device,
        save=work,
    )
    sweep.run("minilm", task, seed)
    return work / name


def pack_folder(trained: Path, out: Path) -> None:
    """Write a folder whose weights are int8 rows; `hc.load` opens it like any other."""
    import safetensors.torch

    from headcount.bundle.packed import PACKED
    from headcount.records.files import write_bytes
    from research.packing import pack_weights

    weights = safetensors.torch.load_file(trained / "model.safetensors")
    learned = {name: w for name, w in weights.items() if "embed_positions" not in name}
    out.mkdir(parents=True, exist_ok=True)
    for pattern in _BESIDE:
        for path in trained.glob(pattern):
            write_bytes(out / path.name, path.read_bytes())
    write_bytes(out / PACKED, safetensors.torch.save(pack_weights(learned)))


if __name__ == "__main__":
    sys.exit(main())
