"""What a pruning is asked for: how many heads go, what may be lost, and where the result is kept.

No model library is loaded here, so that a mistake is told before the long work.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from headcount.errors import UsageError

# --- How many heads are gone after each step ----------------------------------------------------


def removed_counts(
    total: int,
    step: float = 10.0,
    *,
    convention: str = "headcount",
    encoder_decoder: bool = False,
    spared: int = 0,
    also: int | None = None,
) -> list[int]:
    """How many of `total` heads are gone after each step of so many percent, rounded down.

    By default the last head stays. The convention "paper" goes on to no heads at all. "code" is
    the authors' programs: the one for BERT ends at no heads too, the one for translation rounds
    up and stops before. `spared` heads may never go: steps end at the first that would need them.
    `also` is one more number that must be among them.

    >>> removed_counts(72, 25), removed_counts(72, 25, also=30)
    ([18, 36, 54], [18, 30, 36, 54])
    >>> removed_counts(96, 10, convention="code", encoder_decoder=True)[:3]
    [10, 20, 29]
    """
    if not 0 < step <= 100:
        raise UsageError(f"The step is {step:g}; it must be above 0 and at most 100 percent.")
    spoken = convention == "code" and encoder_decoder
    rounded = math.ceil if spoken else int
    steps = range(1, int(100 / step + 1e-9) + 1)
    found = {rounded(round(total * step * number / 100, 6)) for number in steps}
    found |= set() if also is None else {also}
    most = total if convention != "headcount" and not spoken else total - 1
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

    def removed(self, total: int) -> int | None:
        """How many of the heads that may go are to go; None where the loss decides."""
        if self.keep is not None:
            return self._of_keep(total, self.keep)
        if self.drop_share is not None:
            return int(round(total * self.drop_share, 6))
        return None

    def _of_keep(self, total: int, keep: int) -> int:
        if keep >= total:
            raise UsageError(
                f"{keep} heads are to be kept, and there are {total} to choose from; keep fewer."
            )
        return total - keep

    def __str__(self) -> str:
        if self.max_loss is not None:
            return f"at most {self.max_loss:g} points lost"
        if self.keep is not None:
            return f"{self.keep} heads kept"
        return "the curve alone" if self.drop_share is None else f"{self.drop_share:g} of all gone"


def read_goal(max_loss: float | None, keep: int | None, drop_share: float | None) -> Goal:
    """The goal, if it makes sense; without any, the curve alone is wanted."""
    given = [value for value in (max_loss, keep, drop_share) if value is not None]
    if len(given) > 1:
        raise UsageError(
            "More than one goal was given; choose one of max_loss, keep and drop_share."
        )
    if max_loss is not None and not 0 <= max_loss < float("inf"):
        raise UsageError(f"The loss allowed is {max_loss:g} points; it must be 0 or more.")
    if keep is not None and keep < 1:
        raise UsageError(f"{keep} heads are to be kept; keep 1 or more.")
    if drop_share is not None and not 0 < drop_share < 1:
        raise UsageError(
            f"The share to drop is {drop_share:g}; it must be above 0 and below 1, e.g. 0.5."
        )
    return Goal(max_loss, keep, drop_share)


# --- Where a pruning is written: a folder of its own, which nothing is taken from unasked ---------


@dataclass(frozen=True)
class OutputFolder:
    """The parts of an output folder."""

    folder: Path

    @property
    def run(self) -> Path:
        """Scores, curve and journal."""
        return self.folder / "run"

    @property
    def model(self) -> Path:
        """The smaller model."""
        return self.folder / "model"

    @property
    def picture(self) -> Path:
        """The curve, drawn."""
        return self.folder / "curve.svg"

    @property
    def is_under_way(self) -> bool:
        """Whether a pruning was begun there and has not ended."""
        return (self.run / "prune.jsonl").is_file() or self.training.is_dir()

    @property
    def training(self) -> Path:
        """Checkpoints of gates and of healing, while they learn; beside the run, not yet one."""
        return self.folder / "training"

    def export(self, what: str) -> Path:
        """The model in another format."""
        return self.folder / what


def output_folder(folder: Path, *, force: bool) -> OutputFolder:
    """The output folder, if it may be written; a pruning that was broken off is gone on with."""
    place = OutputFolder(folder)
    if folder.is_file():
        raise UsageError(f"'{folder}' is a file; choose another name for the output folder.")
    for parent in folder.parents:
        if parent.is_file():
            raise UsageError(f"'{parent}' is a file, so '{folder}' cannot be a folder within it.")
    if not folder.is_dir() or not any(folder.iterdir()):
        return place
    if not force:
        _refuse(place)
    return place


def _refuse(place: OutputFolder) -> None:
    """Refuse a folder with a model, or with anything that is no pruning."""
    if place.model.exists():
        raise UsageError(
            f"'{place.folder}' holds a pruned model already; choose another folder, or pass "
            "--force to replace it."
        )
    if not (place.run / "run.json").is_file() and not place.is_under_way:
        raise UsageError(
            f"'{place.folder}' is a folder that is not empty; choose another name, or pass "
            "--force to write into it."
        )
