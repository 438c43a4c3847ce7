"""`--task KIND:FILE[,key=value...]` and `--task-file task.toml`: a task in one word, or in a file.

Read without loading anything heavy, so that a mistake shows before a model is loaded.

>>> parse_task("classification:dev.tsv,text=sentence,metric=f1")
TaskSpec(kind='classification', place='dev.tsv', options={'text': 'sentence', 'metric': 'f1'})
"""

from __future__ import annotations

import difflib
import shlex
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headcount.errors import InputError, UsageError

if TYPE_CHECKING:
    from headcount.tasks.task import Task as AnyTask

__all__ = ["KEYS", "Task", "TaskFile", "TaskSpec", "parse_task", "read_task", "read_task_file"]

Task = Annotated[
    str | None,
    typer.Option(
        "--task",
        help="What good means: KIND:FILE[,key=value...], e.g. translation:test.tsv,metric=bleu, "
        "classification:dev.tsv,text=sentence,label=label, regression:..., similarity:..., "
        "lm:FILE, mlm:FILE, glue:sst2:DIR.",
        show_default=False,
    ),
]
TaskFile = Annotated[
    Path | None,
    typer.Option(
        "--task-file", help="The same in a .toml: kind, file and the keys.", show_default=False
    ),
]

Reader = Callable[[Any], Any]


# --- values -------------------------------------------------------------------------------------


def _word(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError("a word")
    return str(value)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not str(value).isdecimal():
        raise ValueError("a whole number")
    return int(value)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError("a number") from None


def _yes(value: Any) -> bool:
    known = {"yes": True, "true": True, "no": False, "false": False}
    if str(value).lower() not in known:
        raise ValueError("yes or no")
    return known[str(value).lower()]


def _words(value: Any) -> tuple[str, ...]:
    return tuple(_word(one) for one in _listed(value))


def _span(value: Any) -> tuple[float, float]:
    ends = [_number(one) for one in _listed(value)]
    if len(ends) != 2:
        raise ValueError("two numbers such as 0|5")
    return ends[0], ends[1]


def _listed(value: Any) -> list[Any]:
    """``a|b``, or a list in a TOML file."""
    return value if isinstance(value, list) else str(value).split("|")


_COLUMNS: dict[str, Reader] = {"text": _word, "text2": _word, "label": _word, "header": _yes}
_METRIC: dict[str, Reader] = {"metric": _word}
_TEXTS: dict[str, Reader] = {**_METRIC, "text": _word, "header": _yes, "long": _word}

#: The keys of each kind, and how their values are read.
KEYS: dict[str, dict[str, Reader]] = {
    "translation": {
        **_METRIC,
        "beams": _whole,
        "max_new_tokens": _whole,
        "length_penalty": _number,
        "tokenize": _word,
        "source": _word,
        "target": _word,
        "header": _yes,
    },
    "classification": {**_METRIC, **_COLUMNS, "labels": _words, "positive": _whole},
    "regression": {**_METRIC, **_COLUMNS},
    "similarity": {**_METRIC, **_COLUMNS, "span": _span, "prefix": _word},
    "lm": _TEXTS,
    "mlm": {**_TEXTS, "share": _number, "hiding": _word, "seed": _whole},
    "glue": {**_METRIC, "set": _word, "split": _word, "similarity": _yes},
}


#: What `sample` stands for, as in other verbs.
_BUNDLED = {"translation": "pairs", "lm": "sentences", "mlm": "sentences"}


# --- the task -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class TaskSpec:
    """A task as it was asked for: its kind, its file or folder, and its keys."""

    kind: str
    place: str
    options: dict[str, Any] = field(default_factory=dict)

    def looked_up(self) -> TaskSpec:
        """Itself, if its file or folder is there: told before anything heavy is loaded."""
        path = Path(self.place)
        if self.place == "-" or (self.place == "sample" and self.kind in _BUNDLED):
            return self
        if not path.exists():
            beside = [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
            what = "folder" if self.kind == "glue" else "file"
            raise InputError(
                f"There is no {what} {path}{_nearest(path.name, beside)}, which the task "
                f"{self.kind} is to be read from."
            )
        return self

    def build(self) -> AnyTask:
        """The task itself, its examples read."""
        self.looked_up()
        from headcount import tasks

        if self.kind == "glue":
            options = dict(self.options)
            return tasks.glue(options.pop("set"), self.place, **options)
        make: Callable[..., AnyTask] = getattr(tasks, self.kind)
        if self.place == "sample" and self.kind in _BUNDLED:
            from headcount.bundle import sample

            bundled = getattr(sample, _BUNDLED[self.kind])()
            return replace(make(bundled, **self.options), name="the bundled sample")
        return make(Path(self.place), **self.options)


def read_task(task: str | None, task_file: Path | None) -> TaskSpec:
    """The task that was asked for: exactly one of the two options."""
    if (task is None) == (task_file is None):
        which = "Both --task and --task-file were" if task else "Neither --task nor --task-file was"
        raise UsageError(
            f"{which} given; name one task, e.g. --task translation:test.tsv,metric=bleu."
        )
    return parse_task(task) if task is not None else read_task_file(Path(str(task_file)))


def parse_task(text: str) -> TaskSpec:
    """Read ``KIND:FILE[,key=value...]``; a path with a comma stands in quotes.

    >>> parse_task("glue:sst2:data/glue").options
    {'set': 'sst2'}
    """
    first, *rest = _cut(text) or [""]
    kind, colon, place = first.partition(":")
    _check_kind(kind, f"The task '{text}'")
    given: dict[str, Any] = {}
    if kind == "glue":
        name, colon, place = place.partition(":")
        given["set"] = name
    if not colon or not place:
        usual = "glue:sst2:DIR" if kind == "glue" else f"{kind}:FILE"
        raise UsageError(f"The task '{text}' names no file; write {usual}[,key=value...].")
    for part in rest:
        key, equals, value = part.partition("=")
        if not equals:
            raise UsageError(
                f"'{part}' in the task '{text}' is no key=value; put a path with a comma in quotes "
                f"('{kind}:\"a,b.tsv\"'), or the whole task in a --task-file."
            )
        if key in given:
            raise UsageError(f"The task '{text}' gives {key} twice; give it once.")
        given[key] = value
    return TaskSpec(kind, place, _read_keys(kind, given))


def read_task_file(path: Path) -> TaskSpec:
    """Read a task from a TOML file; its `file` is looked for beside it."""
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"There is no task file {path}.") from None
    except OSError as error:
        raise InputError(f"The task file {path} cannot be read: {error.strerror}.") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"The task file {path} is not TOML: {error}.") from error
    kind = str(given.pop("kind", ""))
    _check_kind(kind, f"The task file {path}")
    wanted = "folder" if kind == "glue" else "file"
    place = given.pop(wanted, None)
    if not isinstance(place, str) or not place:
        raise UsageError(f"The task file {path} names no {wanted}; add {wanted} = '...'.")
    if kind == "glue" and "set" not in given:
        raise UsageError(f"The task file {path} names no set of GLUE; add set = 'sst2'.")
    return TaskSpec(kind, str(path.parent / place), _read_keys(kind, given))


def _cut(text: str) -> list[str]:
    """The parts between commas; what stands in quotes is not cut."""
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace, lexer.whitespace_split = ",", True
    lexer.escape = lexer.commenters = ""  # backslashes and # belong to paths
    try:
        return list(lexer)
    except ValueError:
        raise UsageError(
            f"The task {text} has a quote that is not closed; close it, or put the task in a "
            "--task-file."
        ) from None


def _check_kind(kind: str, text: str) -> None:
    if kind not in KEYS:
        raise UsageError(
            f"{text} has the kind '{kind}'{_nearest(kind, KEYS)}; choose one of {', '.join(KEYS)}."
        )


def _read_keys(kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a kind's keys, each read as what it should be."""
    return {key: _read_key(kind, key, value) for key, value in given.items()}


def _read_key(kind: str, key: str, value: Any) -> Any:
    known = KEYS[kind]
    if key not in known:
        raise UsageError(
            f"Tasks of the kind {kind} have no key '{key}'{_nearest(key, known)}; they have "
            f"{', '.join(known)}."
        )
    try:
        return known[key](value)
    except ValueError as error:
        raise UsageError(f"{key} of the task {kind} is '{value}'; it must be {error}.") from None


def _nearest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f" (closest: {near[0]})" if near else ""
