"""What a verb reads: a corpus, corpora with annotation, the bundled sample, a task.

All of it is read, or at least looked up, before a model is loaded for it.
"""

from __future__ import annotations

import difflib
import importlib
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import headcount as hc
from headcount import plugins
from headcount.cli.options import cut
from headcount.errors import InputError, UsageError
from headcount.records import WorkOptions, option
from headcount.surveys import SAMPLE

if TYPE_CHECKING:
    from headcount.tasks import Task
    from headcount.text import Corpus


# --- The corpus ---------------------------------------------------------------------------------

_read = partial(option, panel="What is read")
_input = partial(_read, key_of="input")


@dataclass(frozen=True)
class CorpusArguments:
    """The text or the pairs to read, and what of the model looks at them."""

    text: str | None = _read(
        None,
        "FILE",
        "Sentences: .txt (one a line), .conllu, .csv, .tsv, .jsonl, .parquet, also .gz, .xz, .bz2 "
        "and .zst; a folder, or a pattern in quotes; - for standard input; `sample` for the "
        "bundled sentences.",
    )
    column: str | None = _input(
        None,
        "NAME",
        "The column of a table that is the text, by name or number from 0; else the one that is "
        "called or looks like text.",
    )
    header: str | None = _input(
        None,
        "yes|no",
        "Whether the first line of cells names its columns; by default that is seen.",
        choices=("yes", "no"),
    )
    pairs: str | None = _read(
        None,
        "FILE",
        "Pairs, two columns with a tab between: source and target for a translator, two texts for "
        "an encoder; `sample` for the bundled English-German pairs.",
    )
    format: str | None = _input(
        None,
        "KIND",
        "What the input is, if its name does not say: txt, tsv, csv, conllu, conll, jsonl, parquet "
        "or arrow.",
        choices=("txt", "tsv", "csv", "conllu", "conll", "jsonl", "parquet", "arrow"),
    )

    @property
    def given(self) -> bool:
        """Whether a corpus was named."""
        return self.text is not None or self.pairs is not None

    def read(self, work: WorkOptions) -> Corpus:
        """The one corpus that was named; `--pairs` are two columns whatever the file is called."""
        if (self.text is None) == (self.pairs is None):
            which = "Both --text and --pairs were" if self.given else "No --text or --pairs was"
            raise UsageError(
                f"{which} given; name one corpus, e.g. --text sentences.txt or --text sample."
            )
        if self.pairs == SAMPLE:
            return sample_corpus("sample.en-de.tsv", work)
        if self.text == SAMPLE:
            return sample_corpus("sample.conllu", work)
        from headcount.text import read_corpus

        if self.pairs is not None and self.column is not None:
            raise UsageError("column= names the column of a --text, and --pairs has two; drop it.")
        format = self.format
        if self.pairs is not None and format is None:
            format = "csv" if ".csv" in Path(self.pairs).suffixes else "tsv"
        return read_corpus(
            str(self.pairs or self.text),
            format=format,
            column=self.column,
            columns=None if self.pairs is None else (0, 1),
            header=None if self.header is None else self.header == "yes",
            limit=work.limit,
            seed=work.seed,
        )


def sample_corpus(name: str, work: WorkOptions) -> Corpus:
    """A file of the bundled sample, cut to its limit."""
    from headcount.text import read_sample

    return read_sample(name, limit=work.limit, seed=work.seed)


# --- Corpora with annotation --------------------------------------------------------------------


def read_annotated(given: Mapping[str, str | None], work: WorkOptions) -> dict[str, Any]:
    """Read the files that were named, and refuse those that lack what they are named for.

    The sample stays a word until the model is known.
    """
    from headcount.surveys import read_corpora

    several = (given.get("treebank") or "").split(",")
    if len(several) > 1:  # each by the name of its file
        rest = read_annotated({**given, "treebank": None}, work)
        read = {Path(one).name.partition(".")[0]: one for one in several}
        each = {
            name: read_annotated({"treebank": one}, work)["treebank"] for name, one in read.items()
        }
        return {**rest, "treebank": each}
    files = {name: file for name, file in given.items() if file not in (None, SAMPLE)}
    if not files:
        return dict(given)
    found = read_corpora(None, limit=work.limit, seed=work.seed, **files)
    return {name: getattr(found, name) or file for name, file in given.items()}


# --- The task: ``--task KIND:FILE[,key=value...]`` or ``--task-file`` ---------------------------

Reader = Callable[[Any], Any]


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


def _metric(value: Any) -> Any:
    """The name of a metric, or ``module:function``: of predictions and references; or a method."""
    module, colon, name = _word(value).partition(":")
    if not colon:
        return module
    if "" not in sys.path:
        sys.path.insert(0, "")  # a file beside which the command was given
    try:
        found: Any = importlib.import_module(module)
    except Exception as error:  # whatever their module raises
        raise ValueError(f"module:function, and {module} cannot be imported: {error}") from None
    for part in name.split("."):  # metric.compute is fine too
        found = getattr(found, part, None)
    if not callable(found) and not hasattr(found, "compute"):
        raise ValueError(f"module:function, and {module} has no function '{name}'")
    return found


_COLUMNS: dict[str, Reader] = {"text": _word, "text2": _word, "label": _word, "header": _yes}
_METRIC: dict[str, Reader] = {"metric": _metric}
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
    "lm": {**_TEXTS, "chat": _yes},
    "mlm": {**_TEXTS, "share": _number, "hiding": _word, "seed": _whole},
    "glue": {**_METRIC, "set": _word, "split": _word, "similarity": _yes},
}

#: What `sample` stands for, as in other verbs.
_BUNDLED = {"translation": "pairs", "lm": "sentences", "mlm": "sentences"}


@dataclass(frozen=True)
class TaskSpec:
    """A task as the user named it: its kind, its file or folder, and its keys."""

    kind: str
    place: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def _is_sample(self) -> bool:
        return self.place == SAMPLE and self.kind in _BUNDLED

    def in_chat(self, chat: bool) -> TaskSpec:
        """The same with each text as a user's turn, if chat is on."""
        if chat and self.kind != "lm":
            raise UsageError(f"--chat is of lm tasks, and this is {self.kind}; leave it out.")
        return replace(self, options=self.options | {"chat": True}) if chat else self

    def beside(self, text: str) -> TaskSpec:
        """Another task: written out, or a file that is read as this one is.

        >>> parse_task("lm:a.txt,metric=perplexity").beside("b.txt").place
        'b.txt'
        """
        if text.partition(":")[0] in KEYS:
            return parse_task(text)
        return replace(self, place=text)

    def check_file(self) -> None:
        """Refuse a file or folder that is not there, before anything heavy is loaded."""
        path = Path(self.place)
        try:
            there = self.place == "-" or self._is_sample or path.exists()
        except OSError as error:  # a name longer than any may be
            raise InputError(
                f"The task {self.kind} is to be read from '{self.place[:60]}...', which no file "
                f"can be called ({error.strerror}); give the path of a file."
            ) from error
        if not there:
            around = [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
            what = "folder" if self.kind == "glue" else "file"
            raise InputError(
                f"There is no {what} {path}{_nearest(path.name, around)}, which the task "
                f"{self.kind} is to be read from."
            )

    def build(self) -> Task:
        """The task itself, its examples read."""
        self.check_file()
        if self.kind == "glue":
            options = dict(self.options)
            return plugins.get("tasks", "glue")(options.pop("set"), self.place, **options)
        make: Callable[..., Task] = getattr(hc.tasks, self.kind, None) or plugins.get(
            "tasks", self.kind
        )
        if self._is_sample:
            from headcount.bundle import sample

            bundled = getattr(sample, _BUNDLED[self.kind])()
            return replace(make(bundled, **self.options), name="the bundled sample")
        return make(Path(self.place), **self.options)


@dataclass(frozen=True)
class TaskArguments:
    """The task by which a model is judged."""

    task: str | None = option(
        None,
        None,
        "What good means: KIND:FILE[,key=value...], e.g. translation:test.tsv,metric=bleu, "
        "classification:dev.tsv,text=sentence,label=label, regression:..., similarity:..., "
        "lm:FILE, mlm:FILE, glue:sst2:DIR; or FILE.toml with kind, file and the keys.",
    )
    task_file: Path | None = option(None, None, "", instead="--task FILE.toml")

    @property
    def given(self) -> bool:
        """Whether a task was named."""
        return self.task is not None or self.task_file is not None

    def spec(self) -> TaskSpec:
        """The task that the user named, by exactly one of the two options."""
        if self.task_file is None and self.task is not None:
            if self.task.endswith(".toml") and ":" not in self.task:
                return read_task_file(Path(self.task))
            return parse_task(self.task)
        if self.task_file is not None and self.task is None:
            return read_task_file(self.task_file)
        which = "Both --task and --task-file were" if self.given else "No --task was"
        raise UsageError(
            f"{which} given; name one task, e.g. --task translation:test.tsv,metric=bleu."
        )

    def build(self, work: WorkOptions) -> Task:
        """The task with as many examples as are wanted."""
        return work_on(self.spec(), work)


def work_on(spec: TaskSpec, work: WorkOptions) -> Task:
    """A task with as many examples as are wanted."""
    task = spec.build()
    return task if work.limit is None else task.limit(work.limit, work.seed)


def parse_task(text: str) -> TaskSpec:
    """Read ``KIND:FILE[,key=value...]``; a path with a comma needs quotes.

    >>> parse_task("glue:sst2:data/glue").options
    {'set': 'sst2'}
    """
    first, *rest = cut(text, f"The task {text}") or [""]
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
                f"('{kind}:\"a,b.tsv\"'), or the whole task in a file: --task FILE.toml."
            )
        if key in given:
            raise UsageError(f"The task '{text}' gives {key} twice; give it once.")
        given[key] = value
    return TaskSpec(kind, place, _read_keys(kind, given))


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """What a TOML file says; `what` it is called in an error: "task file"."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"There is no {what} {path}.") from None
    except OSError as error:
        raise InputError(f"The {what} {path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:  # not TOML, or numbers of thousands of digits
        raise InputError(f"The {what} {path} is not TOML: {error}.") from error


def read_task_file(path: Path) -> TaskSpec:
    """Read a task from a TOML file; its `file` is looked for in the same folder."""
    given = read_toml(path, "task file")
    kind = str(given.pop("kind", ""))
    _check_kind(kind, f"The task file {path}")
    wanted = "folder" if kind == "glue" else "file"
    place = given.pop(wanted, None)
    if not isinstance(place, str) or not place:
        raise UsageError(f"The task file {path} names no {wanted}; add {wanted} = '...'.")
    if kind == "glue" and "set" not in given:
        raise UsageError(f"The task file {path} names no set of GLUE; add set = 'sst2'.")
    return TaskSpec(kind, str(path.parent / place), _read_keys(kind, given))


def _check_kind(kind: str, text: str) -> None:
    if kind not in KEYS:
        raise UsageError(
            f"{text} has the kind '{kind}'{_nearest(kind, KEYS)}; choose one of {', '.join(KEYS)}."
        )


def _read_keys(kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a kind's keys, each read as what it should be."""
    known, found = KEYS[kind], {}
    for key, value in given.items():
        if key not in known:
            raise UsageError(
                f"Tasks of the kind {kind} have no key '{key}'{_nearest(key, known)}; they have "
                f"{', '.join(known)}."
            )
        try:
            found[key] = known[key](value)
        except ValueError as error:
            raise UsageError(
                f"{key} of the task {kind} is '{value}'; it must be {error}."
            ) from None
    return found


def _nearest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f" (closest: {near[0]})" if near else ""
