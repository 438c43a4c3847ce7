"""What a pruning should reach, and where it is written: steps, goals, the output folder.

No model library is loaded here, so that a mistake shows before the long work.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from headcount.errors import UsageError
from headcount.records import InnerPath, WorkOptions, is_leftover, option, recover, stack_names

#: What the journal of a pruning is called within its run.
JOURNAL = "prune"

#: Training steps of gates and of healing where no other number is given.
GATE_STEPS, HEAL_STEPS = 500, 200

# --- How a model learns --------------------------------------------------------------------------


@dataclass(frozen=True)
class TrainingOptions:
    """How a model learns: number of steps, learning rate, examples."""

    steps: int
    lr: float = 5e-5
    #: The examples to learn from; None for those that heads are chosen on.
    task: Any = None
    #: Where a training that was killed goes on.
    checkpoint: str | os.PathLike[str] | None = None
    batch_size: int = 16
    seed: int = 0

    def options(self) -> dict[str, Any]:
        """What `heal` and `learn_gates` take by name."""
        return {name: value for name, value in vars(self).items() if name != "task"}


# --- How many heads are gone after each step ----------------------------------------------------


#: Where a curve begins that has to find out whether a single head can be pruned.
_FIRST = (1, 2, 4, 7, 10)


def removed_counts(
    total: int,
    step: float = 10.0,
    *,
    convention: str = "headcount",
    encoder_decoder: bool = False,
    spared: int = 0,
    also: int | None = None,
    fine: bool = False,
) -> list[int]:
    """How many of `total` heads are gone after each step of N percent, rounded down.

    By default the last head stays. The convention "paper" goes on to no heads at all. "code" is
    the authors' programs: the one for BERT ends at no heads too, the one for translation rounds
    up and stops before. `spared` heads may never go: steps end at the first that would need them.
    `also` is one more number that must be among them; `fine` adds a few before the first step.

    >>> removed_counts(72, 25), removed_counts(72, 25, also=30)
    ([18, 36, 54], [18, 30, 36, 54])
    >>> removed_counts(4, 1e-300)
    [1, 2, 3]
    >>> removed_counts(72, 25, fine=True)
    [1, 2, 4, 7, 10, 18, 36, 54]
    >>> removed_counts(96, 10, convention="code", encoder_decoder=True)[:3]
    [10, 20, 29]
    """
    if not 0 < step <= 100:
        raise UsageError(f"The step is {step:g}; it must be above 0 and at most 100 percent.")
    translates = convention == "code" and encoder_decoder
    rounded = math.ceil if translates else int
    if total * step <= 100:  # no step is more than a head, however many steps that makes
        found = set(range(total + 1))
    else:
        steps = range(1, int(100 / step + 1e-9) + 1)
        found = {rounded(round(total * step * number / 100, 6)) for number in steps}
    found |= {count for count in _FIRST if fine and count < min(found)}
    found |= set() if also is None else {also}
    most = total if convention != "headcount" and not translates else total - 1
    most = min(most, total - spared)
    return sorted(count for count in found if 0 < count <= most or count == also)


# --- What a pruning is to reach -----------------------------------------------------------------


@dataclass(frozen=True)
class Goal:
    """One aim; the others are None.

    >>> Goal(drop_share=0.5).removed(144), Goal(keep=10).removed(48)
    (72, 38)
    """

    max_loss: float | None = None
    keep: int | None = None
    drop_share: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether nothing says how far to go."""
        return self.max_loss is None and self.keep is None and self.drop_share is None

    def removed(self, total: int) -> int | None:
        """How many of the heads that may go are to go; None where the loss decides."""
        if self.keep is not None:
            if self.keep >= total:
                raise UsageError(
                    f"{self.keep} heads are to be kept, and there are {total} to choose from; keep "
                    "fewer."
                )
            return total - self.keep
        if self.drop_share:
            return int(round(total * self.drop_share, 6))
        return None

    def __str__(self) -> str:
        if self.max_loss is not None:
            return f"at most {self.max_loss:g} points lost"
        if self.keep is not None:
            return f"{self.keep} heads kept"
        return "the curve alone" if not self.drop_share else f"{self.drop_share:g} of all gone"


def read_goal(max_loss: float | None, keep: int | None, drop_share: float | None) -> Goal:
    """The goal, if it makes sense; without any, only the curve is wanted."""
    given = [value for value in (max_loss, keep, drop_share) if value is not None]
    if len(given) > 1:
        raise UsageError(
            "More than one goal was given; choose one of max_loss, keep and drop_share."
        )
    if isinstance(max_loss, str):
        raise UsageError(
            f"The loss allowed is '{max_loss}'; give a number of points: 0.5 is half a point of "
            "BLEU, or 0.005 of accuracy."
        )
    if max_loss is not None and not 0 <= max_loss < float("inf"):
        raise UsageError(f"The loss allowed is {max_loss:g} points; it must be 0 or more.")
    if keep is not None and keep < 1:
        raise UsageError(f"{keep} heads are to be kept; keep 1 or more.")
    if drop_share is not None and not 0 <= drop_share < 1:
        percent = f"{drop_share / 100:g} for {drop_share:g}%" if 1 < drop_share < 100 else "0.5"
        raise UsageError(
            f"The share to drop is {drop_share:g}; it must be above 0 and below 1, e.g. {percent}."
        )
    return Goal(max_loss, keep, drop_share)


# --- How heads are ordered ----------------------------------------------------------------------

_result = partial(option, panel="The result")
_ranking = partial(option, panel="Which heads go first", key_of="ranking")


@dataclass(frozen=True)
class RankingOptions(WorkOptions):
    """How heads are ordered, and in which steps they go.

    >>> RankingOptions(step=25, even=True).seed is None
    True
    """

    even: bool = _ranking(
        False,
        None,
        "As many heads from every layer: then a config can say it (Llama, Mistral, Qwen, T5, ViT "
        "...), and other programs load the model without code.",
    )
    step: float = _ranking(10.0, "PERCENT", "Heads that go at each step of the curve.")
    exact: bool = _ranking(
        False, None, "Score again before every step, without the heads that are gone."
    )
    at_least: int = _ranking(0, "N", "Leave so many heads in every layer of every stack.", least=0)
    stacks: Sequence[str] | None = _ranking(
        None, "NAMES", "Take heads from these stacks only: enc, dec, cross.", reads=stack_names
    )
    by_stack: bool = _ranking(False, None, "Also draw the curve of each stack by itself.")
    normalize: str | None = _ranking(
        None,
        "HOW",
        "gradient: over the l2 norm of its layer (layer; the convention paper does), or as it is "
        "(none).",
        choices=("layer", "none"),
    )
    restrict: str | None = _ranking(
        None,
        "FIRST+LAST",
        "Remove nothing: key groups see the first and the last tokens only, e.g. 16+240; with "
        "16+240:layers whole layers of a Llama slide natively.",
    )
    #: What is left is refitted at every point of the curve.
    refit: bool = False
    #: Random orders beside the others.
    randoms: int = 3
    #: Random orders in other steps, in percent; fewer are enough for a band.
    random_step: float | None = None
    #: Also after the first few heads: 1, 2, 4, 7, 10.
    fine: bool = False


@dataclass(frozen=True)
class ResultOptions:
    """What is written of a pruning, and what of it is looked at.

    >>> ResultOptions(export="zeros").force
    False
    """

    export: str | None = _result(
        None,
        "WHAT",
        "Write also DIR/onnx (onnx-int8: packed); DIR/zeros: the old size, with zeros for heads; "
        "or DIR/gguf, for llama.cpp (gguf-q8_0: packed).",
        choices=("onnx", "onnx-int8", "zeros", "gguf", "gguf-q8_0"),
    )
    verify: str | None = _result(None, "ENGINE", "Try the result in llama.cpp, vllm or onnx.")
    #: A text or a treebank, also as a value.
    survey: Any = _result(  # noqa: RUF009
        None,
        "FILE",
        "Survey the whole model and the one that is left, on a text, a treebank (.conllu) or the "
        "bundled sample: which roles were there and are left; into DIR/survey, DIR/survey-before.",
        key_of="export",
        reads=str,
    )
    save_dtype: str | None = _result(
        None,
        "TYPE",
        "The dtype of the saved weights; by default that in which they came.",
        choices=("float32", "bfloat16", "float16"),
        key_of="export",
    )
    force: bool = _result(False, None, "Replace a model that is there.")


# --- Where a pruning is written: a folder of its own, in which nothing is replaced without --force


class OutputFolder:
    """The parts of an output folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        #: Scores, curve and journal.
        self.run = folder / "run"
        #: The smaller model.
        self.model = folder / "model"
        #: The run of a survey of the smaller model, and that of the same survey of the whole one.
        self.survey, self.before = folder / "survey", folder / "survey-before"
        #: The curve, drawn.
        self.picture = folder / "curve.svg"
        #: Checkpoints of gates, of healing and of surveys, until the model is saved.
        self.training = InnerPath(folder) / "training"
        #: What is being written, from the first file of the model to the last record of the run.
        self.mark = folder / ".unfinished.json"

    @property
    def is_under_way(self) -> bool:
        """Whether a pruning was begun there and has not ended."""
        journal = self.run / f"{JOURNAL}.jsonl"
        return journal.is_file() or self.mark.is_file() or self.training.is_folder()

    @property
    def leftovers(self) -> list[Path]:
        """Drafts of a process that was killed, and a model that it had moved aside."""
        found = self.folder.glob(".*")
        return [path for path in found if is_leftover(re.sub(r"\.old$", ".tmp", path.name))]

    @property
    def why_not_replaced(self) -> str:
        """Why a model that is there stays."""
        return (
            f"'{self.folder}' holds a pruned model already; choose another folder, or pass "
            "--force to replace it."
        )


def _is_bare(run: Path) -> bool:
    """Whether a process was killed before the first file of a run: only its lock is left."""
    inside = InnerPath(run).names() if run.is_dir() else ["nothing is there"]
    return all(name == ".lock" or is_leftover(name) for name in inside)


def output_folder(folder: Path, *, force: bool) -> OutputFolder:
    """The output folder, if it may be written; a pruning that was interrupted is gone on with."""
    place = OutputFolder(folder)
    recover(place.model)
    for name in InnerPath(folder).names():
        (InnerPath(folder) / name).exists()  # a link is refused
    if folder.is_file():
        raise UsageError(f"'{folder}' is a file; choose another name for the output folder.")
    for parent in folder.parents:
        if parent.is_file():
            raise UsageError(f"'{parent}' is a file, so '{folder}' cannot be a folder within it.")
    bare = [place.run] if _is_bare(place.run) else []
    if force or not folder.is_dir() or {*folder.iterdir()} <= {*place.leftovers, *bare}:
        return place
    if place.model.exists() and not place.mark.is_file():
        raise UsageError(place.why_not_replaced)
    if not (place.run / "run.json").is_file() and not place.is_under_way:
        raise UsageError(
            f"'{folder}' is a folder that is not empty; choose another name, or pass --force to "
            "write into it."
        )
    return place
