"""How good a model is on a task, whole or with heads shut: run, compared, told."""

from __future__ import annotations

import difflib
import shlex
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headcount.cli.output import bar, output, print_json, print_notes
from headcount.errors import InputError, StatsError, UsageError
from headcount.records import provenance

if TYPE_CHECKING:
    from headcount.models import Subject
    from headcount.records import Head
    from headcount.tasks import Comparison, Outcome, Task
    from headcount.tasks import Task as AnyTask
    from headcount.text import Corpus


# --- The corpus that `--text` or `--pairs` names ------------------------------------------------

#: The word that stands for the bundled sentences and pairs.
SAMPLE = "sample"


def named_corpus(
    text: str | None,
    pairs: str | None,
    format: str | None = None,
    limit: int | None = None,
    seed: int | None = None,
) -> Corpus:
    """Read the one corpus that was named: `--pairs` is two columns whatever the file is called.

    They stand between tabs, in a .csv between commas.
    """
    if (text is None) == (pairs is None):
        which = "Both --text and --pairs were" if text is not None else "No --text or --pairs was"
        raise UsageError(
            f"{which} given; name one corpus, e.g. --text sentences.txt or --text sample."
        )
    if SAMPLE in (text, pairs):
        return _sample(pairs is not None, limit, seed)
    from headcount.text import read_corpus

    if pairs is not None:
        usual = "csv" if ".csv" in Path(pairs).suffixes else "tsv"
        return read_corpus(pairs, format=format or usual, limit=limit, seed=seed)
    return read_corpus(str(text), format=format, limit=limit, seed=seed)


def _sample(paired: bool, limit: int | None, seed: int | None) -> Corpus:
    from headcount.bundle import sample
    from headcount.text import read_corpus

    file = sample.path("sample.en-de.tsv" if paired else "sample.conllu")
    corpus = read_corpus(file, limit=limit, seed=seed)
    corpus.name = file.name  # where headcount is installed tells nothing
    return corpus


# --- The annotated corpora that a command names -------------------------------------------------


@dataclass(frozen=True)
class Annotation:
    """Corpora with words; the bundled sample is read once it is known what the model is."""

    treebank: Corpus | str | None = None
    coref: Corpus | str | None = None
    arguments: Corpus | str | None = None

    @property
    def any(self) -> bool:
        """Whether one of them was given."""
        return any((self.treebank, self.coref, self.arguments))

    def with_treebank(self, treebank: Corpus | None) -> Annotation:
        """The same with another treebank."""
        return replace(self, treebank=treebank)

    def for_model(self, subject: Subject, limit: int | None, seed: int | None) -> Annotation:
        """The same with the sample as this model reads it: a translator takes its translations."""
        treebank, coref = self.treebank, self.coref
        if treebank == SAMPLE:
            translation = "text_de" if "cross" in subject.anatomy.stacks else None
            treebank = _annotation_sample("sample.conllu", limit, seed, translation)
        if coref == SAMPLE:
            coref = _annotation_sample("coref.jsonl", limit, seed)
        return replace(self, treebank=treebank, coref=coref)


def read_annotated(
    treebank: str | None,
    coref: str | None,
    arguments: str | None,
    limit: int | None,
    seed: int | None,
) -> Annotation:
    """Read the files that were named, and refuse those that lack what they are named for."""
    from headcount.survey import read_corpora

    given = {"treebank": treebank, "coref": coref, "arguments": arguments}
    files = {name: file for name, file in given.items() if file not in (None, SAMPLE)}
    if not files:
        return Annotation(**given)
    found = read_corpora(None, limit=limit, seed=seed, **files)
    return Annotation(**{name: getattr(found, name) or file for name, file in given.items()})


def _annotation_sample(
    name: str, limit: int | None, seed: int | None, translation: str | None = None
) -> Corpus:
    from headcount.bundle import sample
    from headcount.text import read_corpus

    corpus = read_corpus(sample.path(name), limit=limit, seed=seed, translation=translation)
    corpus.name = name  # where headcount is installed tells nothing
    return corpus


# --- `--task KIND -------------------------------------------------------------------------------
# Read without loading anything heavy, so that a mistake shows before a model is loaded.

TaskOption = Annotated[
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


# --- How good a model is on a task, whole or with heads shut ------------------------------------


def evaluate(
    subject: Subject,
    task: Task,
    heads: list[Head],
    *,
    batch_size: int,
    limit: int | None,
    seed: int | None,
    json: bool,
) -> None:
    """Score the model whole and, where heads are to be shut, without them; print both."""
    whole = _evaluated(subject, task, batch_size, [])
    without = _evaluated(subject, task, batch_size, heads) if heads else None
    loss, why = _compared(whole, without, seed)
    about = provenance.collect(
        **whole.provenance, subject=subject.describe(), limit=limit, seed=seed
    )
    if json:
        print_json(_told(whole, without, loss, heads, seed) | {"provenance": about})
        return
    _print(whole, without, loss, heads, seed)
    output().print(f"{about['task']['data']}; {subject!r}", style="dim")
    print_notes([*subject.notes, *whole.notes, *why])


def _compared(
    whole: Outcome, without: Outcome | None, seed: int | None
) -> tuple[Comparison | None, list[str]]:
    """The difference, tested; where too few examples allow no test, why there is none."""
    if without is None:
        return None, []
    try:
        return without.against(whole, seed=seed or 0), []
    except StatsError as error:
        return None, [f"The difference is not tested. {error}"]


def _evaluated(subject: Subject, task: Any, batch_size: int, heads: list[Head]) -> Outcome:
    from headcount.wiring import valve

    what = f"Scoring without {_names(heads)}" if heads else "Scoring"
    with bar(what, "examples") as progress, valve(subject, dict.fromkeys(heads, 0.0)):
        outcome: Outcome = task.evaluate(subject, batch_size=batch_size, progress=progress)
    return outcome


def _print(
    whole: Outcome,
    without: Outcome | None,
    loss: Comparison | None,
    heads: list[Head],
    seed: int | None,
) -> None:
    console = output()
    value, low, high = whole.interval(seed=seed or 0)
    console.print(f"{whole.name} {value:.4g} [{low:.4g}, {high:.4g}] over {len(whole):,} examples")
    if without is not None:
        change = f"{without.value - whole.value:+.3g}"
        if loss is not None:
            change += f" [{loss.low:+.3g}, {loss.high:+.3g}], p = {loss.p:.3g} ({loss.test})"
        console.print(f"{without.name} {without.value:.4g} without {_names(heads)}: {change}")
    if whole.signature:
        console.print(f"sacreBLEU {whole.signature}", style="dim")


def _told(
    whole: Outcome,
    without: Outcome | None,
    loss: Comparison | None,
    heads: list[Head],
    seed: int | None,
) -> dict[str, Any]:
    """The same for machines."""
    value, low, high = whole.interval(seed=seed or 0)
    told: dict[str, Any] = {
        "metric": whole.name,
        "value": value,
        "low": low,
        "high": high,
        "examples": len(whole),
        "signature": whole.signature,
        "notes": list(whole.notes),
    }
    if without is not None:
        change = {"value": without.value - whole.value} if loss is None else loss._asdict()
        shut = [str(head) for head in heads]
        told["without"] = {"shut": shut, "value": without.value, "difference": change}
    return told


def _names(heads: list[Head]) -> str:
    return ", ".join(str(head) for head in heads)
