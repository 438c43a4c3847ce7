"""Mistakes in a call of `headcount prune` that show before anything is read or loaded."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from headcount.cli.options import names
from headcount.errors import UsageError
from headcount.head_sets import check_head_set, check_once
from headcount.heads import check_stack

__all__ = ["check_call"]

_GOALS = ("max_loss", "keep", "drop_share", "heads", "price")
_ORDER = ("by", "normalize", "scores", "step", "exact", "at_least", "by_stack")


def check_call(asked: Mapping[str, Any], usual: Mapping[str, Any]) -> None:
    """Refuse what cannot be or cannot go together; `usual` is what holds where nothing was said."""
    _check_goal(asked)
    _check_values(asked)
    _check_output(asked)
    _check_learning(asked)
    given = [name for name, value in asked.items() if name in usual and value != usual[name]]
    _check_read(asked, given)


def _option(name: str) -> str:
    """What an argument is called on the command line."""
    return "--lambda" if name == "price" else f"--{name.replace('_', '-')}"


def _has_task(asked: Mapping[str, Any]) -> bool:
    return asked["task"] is not None or asked["task_file"] is not None


def _check_goal(asked: Mapping[str, Any]) -> None:
    given = [_option(name) for name in _GOALS if asked[name] is not None]
    if len(given) != 1:
        which = f"{' and '.join(given)} were both given" if given else "No goal was given"
        raise UsageError(
            f"{which}; say how far to go with one of {', '.join(map(_option, _GOALS))}."
        )
    if asked["gates"] and given[0] not in ("--lambda", "--keep"):
        raise UsageError(f"--gates goes with --lambda or --keep, not with {given[0]}.")
    if asked["heads"] is None and not _has_task(asked):
        raise UsageError(
            f"{given[0]} needs a task to choose heads by, e.g. --task translation:test.tsv; "
            "only --heads does without."
        )


def _check_values(asked: Mapping[str, Any]) -> None:
    from headcount.pruning.counts import removed_counts
    from headcount.pruning.goal import read_goal

    read_goal(asked["max_loss"], asked["keep"], asked["drop_share"])
    removed_counts(100, asked["step"])
    if asked["heads"] is not None:
        _check_heads(asked["heads"])
    for stack in names(asked["stacks"]) or ():
        check_stack(stack)
    if asked["learn"] not in ("all", "gates", "enc", "dec") and "*" not in asked["learn"]:
        raise UsageError(
            f"--learn is '{asked['learn']}'; choose all, gates, enc or dec, or write names of "
            "weights with a *."
        )
    for name, least in {"price": "0 or more", "lr": "above 0"}.items():
        value = asked[name]
        if value is not None and not (
            math.isfinite(value) and value >= 0 and (value or name != "lr")
        ):
            raise UsageError(f"{_option(name)} is {value:g}; it must be {least}.")


def _check_heads(heads: str) -> None:
    words = check_head_set(heads)
    if not words:
        raise UsageError("--heads names no head; write it as enc.5.3, or several with commas.")
    check_once(words)


def _check_output(asked: Mapping[str, Any]) -> None:
    dry_run = asked["dry_run"]
    if (asked["out"] is None) != dry_run:
        which = "Both -o and --dry-run were" if dry_run else "Neither -o nor --dry-run was"
        raise UsageError(f"{which} given; name a folder to write (-o DIR), or only look.")
    if asked["export"] is not None and dry_run:
        raise UsageError("--export writes a folder, and --dry-run writes nothing; leave one out.")


def _check_learning(asked: Mapping[str, Any]) -> None:
    """Refuse options of a training that is not asked for, or has nothing to learn from."""
    gates, heal = asked["gates"], asked["heal"]
    if asked["price"] is not None and not gates:
        raise UsageError("--lambda is the price of gates; add --gates.")
    if asked["train"] is not None and not (gates or heal):
        raise UsageError("--train is what gates or healing learn from; add --gates or --heal.")
    if heal and not _has_task(asked):
        raise UsageError(
            "--heal needs a task to learn from and to be judged by, e.g. --task translation:f.tsv."
        )


def _check_read(asked: Mapping[str, Any], given: list[str]) -> None:
    """Refuse an option that nothing would read: whoever gave it expects something of it."""
    unread: dict[str, tuple[str, ...]] = {}
    if asked["heads"] is not None:
        unread["with --heads, which names them all"] = (*_ORDER, "stacks")
    if asked["gates"]:
        unread["with --gates, which learn the order"] = _ORDER
    else:
        unread["without --gates"] = ("gate_steps", "learn")
    if not asked["heal"]:
        unread["without --heal"] = ("heal_steps",)
    if not asked["heal"] and not asked["gates"]:
        unread["without --gates or --heal"] = ("lr",)
    for when, options in unread.items():
        for name in options:
            if name in given:
                raise UsageError(f"{_option(name)} means nothing {when}; leave it out.")
    if asked["normalize"] is not None and "gradient" not in (names(asked["by"]) or ()):
        raise UsageError(
            "--normalize is of the gradient score; rank --by gradient, or leave it out."
        )
