"""Labels of a data set as classes of a model: by its names, its ids, or the task's names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headcount.errors import InputError
from headcount.subject import Subject
from headcount.tasks.example import Label

__all__ = ["Classes", "classes_of"]


@dataclass(frozen=True)
class Classes:
    """The classes of a model, and the names a task has for them.

    >>> classes = Classes("mine", ("LABEL_0", "LABEL_1"), ("bad", "good"))
    >>> classes.number("good", "Example 1"), classes.number("0", "Example 2")
    (1, 0)
    """

    model: str
    #: The model's own names, by id.
    names: tuple[str, ...]
    #: The task's names, in the order of the ids it takes them for.
    told: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    def number(self, label: Label, where: str) -> int:
        """The class that a label means; the model's own names come first, then ids."""
        name = str(label).strip()
        for known in (self.names, tuple(map(str.lower, self.names))):
            if name in known or name.lower() in known:
                return known.index(name if name in known else name.lower())
        for found in (_id(label), self.told.index(name) if name in self.told else None):
            if found is not None and found < len(self.names):
                return found
        raise InputError(
            f"{where} has the label '{label}', which is not a class of {self.model}: its classes "
            f"are {self._listed()}; use these names or ids, or say labels= in the order of the ids."
        )

    def _listed(self) -> str:
        shown = [f"{name} ({number})" for number, name in enumerate(self.names)]
        return ", ".join(shown if len(shown) <= 12 else [*shown[:12], "..."])


def classes_of(subject: Subject, told: Sequence[str]) -> Classes:
    """The classes of a model with a classifier head."""
    config = subject.inner.config
    names = tuple(str(config.id2label.get(n, f"LABEL_{n}")) for n in range(config.num_labels))
    return Classes(subject.name, names, tuple(told))


def _id(label: Label) -> int | None:
    """A label that is a whole number of 0 or more, however it is written."""
    try:
        number = float(label)
    except ValueError:
        return None
    return int(number) if number.is_integer() and number >= 0 else None
