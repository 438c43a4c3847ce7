"""`python -m research.translator train CONFIG --out DIR`: train, evaluate, score snapshots."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from research.settings import told


def main(arguments: list[str] | None = None) -> int:
    """Run one command; a mistake that has a name is told in a sentence."""
    options = _parser().parse_args(arguments)
    return told(lambda: _COMMANDS[options.command](options))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="research.translator", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in _COMMANDS:
        command = commands.add_parser(name)
        command.add_argument("config", type=Path, help="a config.*.toml")
        command.add_argument("--out", type=Path, required=True, help="the run's folder")
        command.add_argument("--data", type=Path, default=os.environ.get("HEADCOUNT_DATA"))
        command.add_argument("--device", default="")
        command.add_argument("--time-limit", type=float, help="seconds; the schedule is cut to fit")
        command.add_argument("--workers", type=int, default=1, help="processes of dynamics")
    return parser


def _device(options: argparse.Namespace) -> str:
    import torch

    return options.device or ("cuda" if torch.cuda.is_available() else "cpu")


def _data(options: argparse.Namespace) -> Path | None:
    if options.data is None:
        return None
    folder = Path(options.data)
    return folder / "parallel" if (folder / "parallel").is_dir() else folder


def _train(options: argparse.Namespace) -> None:
    from .config import read_config
    from .train import train

    options.out.mkdir(parents=True, exist_ok=True)
    config = read_config(options.config)
    train(config, _data(options), options.out, _device(options), options.time_limit)


def _evaluate(options: argparse.Namespace) -> None:
    from .config import read_config
    from .judge import judge

    judge(read_config(options.config), _data(options), options.out, _device(options))


def _dynamics(options: argparse.Namespace) -> None:
    from .config import read_config
    from .dynamics import score_snapshots

    config, device = read_config(options.config), _device(options)
    score_snapshots(config, _data(options), options.out, device, options.workers)


def _speed(options: argparse.Namespace) -> None:
    from .config import read_config
    from .speed import measure

    measure(read_config(options.config), _data(options), options.out, _device(options))


_COMMANDS = {"train": _train, "evaluate": _evaluate, "dynamics": _dynamics, "speed": _speed}

if __name__ == "__main__":
    sys.exit(main())
