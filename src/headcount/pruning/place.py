"""Where a pruning is written: a folder of its own, which nothing is taken from unasked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headcount.errors import UsageError


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
