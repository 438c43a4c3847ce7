"""What is scored: a model, a task's examples, and how many of them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import headcount as hc
from headcount.tasks import Task

HERE = Path(__file__).parent
SCORES = ("gradient", "ablation", "contribution", "confidence")


@dataclass(frozen=True)
class Case:
    """One model on one set of examples."""

    group: str
    name: str
    model: str
    file: str
    examples: int
    judged: int
    seed: int
    batch_size: int
    #: So many examples judge the loss without each head, which is fast; 0 for as many as the rest.
    without: int = 0

    @property
    def ablated(self) -> int:
        """How many examples the loss without each head is judged on."""
        return self.without or self.examples

    def subject(self, classifiers: Path | None) -> hc.Subject:
        """The bundled translator, or a fine-tuned classifier from the folder of them."""
        if self.group == "translator":
            return hc.load(self.model)
        if classifiers is None:
            raise SystemExit("say where the classifiers are: --classifiers DIR")
        subject = hc.load(str(classifiers / self.model))
        subject.name, subject.source = self.model, self.model  # no path of a machine
        return subject

    def task(self, data: Path, count: int) -> Task:
        """So many of the examples, drawn at random."""
        if self.group == "translator":
            whole: Task = hc.tasks.translation(data / self.file, metric="bleu", beams=1)
        else:
            whole = hc.tasks.glue(self.name.removesuffix("-again"), data / self.file)
        return replace(whole.limit(count, self.seed), name=self.name)


def read_cases(limit: int | None = None) -> tuple[dict[str, Any], list[Case]]:
    """The settings as they are written, and the cases; with a limit, a trial of few examples."""
    config = tomllib.loads((HERE / "config.toml").read_text())
    common = {"seed": config["seed"], "batch_size": config["batch_size"]}
    cases = [
        Case(group, name, **settings, **common)
        for group in ("translator", "classifiers")
        for name, settings in config[group].items()
    ]
    if limit is None:
        return config, cases
    return config, [
        replace(
            case,
            examples=min(limit, case.examples),
            judged=min(limit, case.judged),
            without=min(limit, case.without),
        )
        for case in cases
    ]
