"""Write the golden copies: what the public side of headcount is and answers, as small JSON files.

OMP_NUM_THREADS=1 python scripts/golden.py [FOLDER]

tests/test_golden.py measures the same again and compares. Only the façade, the command line and
the files of a run are looked at, so the inside may be rebuilt freely. On one machine two runs write
the same bytes: after a change that should change nothing, `git diff tests/golden` is empty.
"""

from __future__ import annotations

import base64
import hashlib
import inspect
import json
import math
import re
import sys
import tempfile
import types
import typing
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import typer
from typer.testing import CliRunner

import headcount as hc
from headcount.cli.main import app

FOLDER = Path(__file__).parents[1] / "tests" / "golden"

#: Their own, so that nothing here depends on what the package bundles.
PAIRS = [
    ("The old dog slept near the warm stove.", "Der alte Hund schlief neben dem warmen Ofen."),
    ("Nobody answered the letter, so she wrote again.", "Niemand antwortete, also schrieb sie."),
    ("Two crows argued about bread.", "Zwei Krähen stritten um Brot."),
    ("We will meet you at the station.", "Wir treffen dich am Bahnhof."),
]
REMOVED = ["enc.0.3", "enc.4.1", "dec.1.6", "cross.0.7"]

STORY = ["report", "--limit", "5", "--device", "cpu"]
#: Enough sentences for some verdicts.
JUDGED = [
    *("survey", "translator", "--treebank", "sample", "--stacks", "enc", "--limit", "48"),
    *("--device", "cpu"),
]

#: Mistakes of a user: each ends with its exit code. No hub is asked for a model that is a path.
MISTAKES = [
    ["no-such-verb"],
    ["score", "translator", "--no-such-option"],
    ["report", "--maps", "loud"],
    ["report", "--task", "nonsense:x"],
    ["survey", "translator"],
    ["survey", "./no-such-model", "--text", "sample"],
    ["score", "translator", "--task", "translation:no-such-file.tsv"],
    ["score", "translator", "--task", "lm:no-such-file.txt", "--by", "nonsense"],
    ["prune", "translator"],
    ["show", "translator", "A word.", "--head", "enc.9.9"],
    ["show", "translator", "A word.", "--head", "nonsense"],
    ["compare", "translator"],
    ["ls", "./no-such-model"],
]

# --- the façade -----------------------------------------------------------------------------------

#: What Python calls by itself on an object of ours, and users rely on.
SPECIAL = {
    *("__call__", "__contains__", "__enter__", "__exit__", "__eq__", "__fspath__", "__getitem__"),
    *("__iter__", "__len__", "__lt__", "__repr__", "__str__", "_repr_html_"),
}
ADDRESS = re.compile(r" at 0x[0-9a-f]+")
#: How a parameter is given, in a letter or two: p(lace), w(ord), or either.
KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "p",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "pw",
    inspect.Parameter.KEYWORD_ONLY: "w",
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}


def facade() -> dict[str, Any]:
    """Every name of `headcount`, with its signature and, for a class, its members."""
    return {name: thing(getattr(hc, name)) for name in hc.__all__}


def thing(one: Any) -> dict[str, Any]:
    """A public thing: a room with its names, a class with its members, a function, or a value."""
    if inspect.ismodule(one):
        names = getattr(one, "__all__", ())
        return {"is": "module", "names": {name: thing(getattr(one, name)) for name in names}}
    if inspect.isclass(one):
        return {"is": "class", "signature": signature(one), "members": members(one)}
    if callable(one):
        return {"is": "function", "signature": signature(one)}
    if isinstance(one, Mapping):
        return {"is": "dict", "keys": {str(key): None for key in one}}
    return {"is": type(one).__name__, "keys": {}}


def members(owner: type) -> dict[str, Any]:
    """The public members that a class has of this project, not of Python."""
    own = [base for base in owner.__mro__ if base.__module__.split(".")[0] == "headcount"]
    names = sorted({name for base in own for name in vars(base)})
    wanted = [name for name in names if not name.startswith("_") or name in SPECIAL]
    return {name: member(owner, name) for name in wanted}


def member(owner: type, name: str) -> dict[str, Any]:
    """A member of a class: how it is reached, and its signature if it is called."""
    found = inspect.getattr_static(owner, name)
    if isinstance(found, staticmethod | classmethod):
        return {"is": type(found).__name__, "signature": signature(getattr(owner, name))}
    if inspect.isfunction(found) and name not in SPECIAL:
        return {"is": "method", "signature": signature(found)}
    return {"is": "method" if callable(found) else "attribute"}


def signature(function: Callable[..., Any]) -> list[list[str | None]] | None:
    """Parameters as `KINDS` has them, each with its default as text, None where there is none."""
    try:
        given = inspect.signature(function).parameters.values()
    except ValueError:  # made in C
        return None
    names = [[KINDS[p.kind], p.name, default(p)] for p in given]
    old = getattr(function, "old_keywords", {})  # still taken, with a warning
    names += [["w", name, repr(value)] for name, value in old.items()]
    return names + [["w", name, UNSAID] for p in given for name in typed_keywords(function, p)]


#: The default of a keyword that stands in a `TypedDict`.
UNSAID = "unsaid"


def typed_keywords(function: Callable[..., Any], parameter: inspect.Parameter) -> list[str]:
    """The keywords that ``**how: Unpack[How]`` stands for."""
    typed = re.fullmatch(r"Unpack\[(\w+)\]", str(parameter.annotation))
    return (
        list(getattr(sys.modules[function.__module__], typed[1]).__annotations__) if typed else []
    )


def default(parameter: inspect.Parameter) -> str | None:
    """The default as text, the same in every process."""
    value = parameter.default
    if value is parameter.empty:
        return None
    if isinstance(value, set | frozenset):
        return f"set of {sorted(value)!r}"
    if inspect.isfunction(value):
        return "a function"
    return ADDRESS.sub("", getattr(value, "__qualname__", repr(value)))


# --- the command line -----------------------------------------------------------------------------


def commands() -> dict[str, Any]:
    """Every verb with its arguments and options."""
    return command(typer.main.get_command(app))


def command(one: Any) -> dict[str, Any]:
    """A verb, or a group with its verbs; help is asked for everywhere in the same way."""
    hints = typing.get_type_hints(inspect.unwrap(one.callback), include_extras=True)
    given = [(parameter, parameter_facts(parameter, hints)) for parameter in one.params]
    listed = one.list_commands(None) if hasattr(one, "list_commands") else []
    options = [(p, facts) for p, facts in given if p.param_type_name == "option"]
    return {
        "arguments": [facts for p, facts in given if p.param_type_name == "argument"],
        "options": {
            flag_of(p): facts | {"flags": [*p.opts, *p.secondary_opts]} for p, facts in options
        },
        "commands": {name: command(one.get_command(None, name)) for name in listed},
    }


def flag_of(option: Any) -> str:
    """The name of an option: its first long flag."""
    return next((flag for flag in option.opts if flag.startswith("--")), option.opts[0])


def parameter_facts(parameter: Any, hints: dict[str, Any]) -> dict[str, Any]:
    """What a parameter takes, how often, and what it is when not given."""
    kept, takes = parameter.default, type_text(hints[parameter.name])
    if parameter.nargs != 1 or getattr(parameter, "multiple", False):
        takes += f", nargs {parameter.nargs}, multiple {parameter.multiple}"
    default_text = None if kept is None else str(kept)
    return {"takes": takes, "default": default_text, "required": parameter.required}


def type_text(hint: Any) -> str:
    """The type that is read from the line: Annotated and None fall away, choices are spelled out.

    >>> type_text(typing.Annotated[str | None, "about it"]), type_text(typing.Literal["a", "b"])
    ('str', 'a|b')
    """
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return type_text(inner[0])
    if origin in (typing.Union, types.UnionType):
        return " or ".join(type_text(one) for one in inner if one is not type(None))
    if origin is typing.Literal:
        return "|".join(map(str, inner))
    if origin is not None:
        return f"{origin.__name__} of {', '.join(map(type_text, inner))}"
    choices = getattr(hint, "__members__", None)
    return "|".join(str(one.value) for one in choices.values()) if choices else hint.__name__


def call(words: Sequence[object]) -> Any:
    """The verb's result, in this process; what no user should see is raised."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def answer(words: Sequence[object]) -> Any:
    """What a verb prints with --json."""
    done = call([*words, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def answers() -> dict[str, Any]:
    """What quick verbs say to a machine, and with which code mistakes end."""
    shown = ["show", "translator", PAIRS[0][0], "--target", PAIRS[0][1], "--head", "cross.2.6"]
    return {
        "models": {one["name"]: None for one in answer(["ls"])["models"]},
        "translator": told(answer(["ls", "translator"]), ["device"]),
        "one head": answer([*shown, "--device", "cpu"]),
        "mistakes": {" ".join(words): call(words).exit_code for words in MISTAKES},
    }


# --- numbers in few letters -----------------------------------------------------------------------

FIRST = 5
LETTERS = 24


def short(value: Any) -> Any:
    """A number for JSON, in seven digits; NaN is None."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        number = float(f"{value:.7g}")
        return number if math.isfinite(number) else None if math.isnan(number) else str(number)
    return value if value is None else str(value)[:LETTERS]


def digest(values: Iterable[Any]) -> dict[str, Any]:
    """A column in few letters; its moment tells also the order of the rows."""
    column = pd.Series(list(values), dtype=object)
    there = column[column.notna()]
    told: dict[str, Any] = {"n": len(column)}
    told |= {"missing": len(column) - len(there)} if len(there) < len(column) else {}
    if not len(there):
        return told | {"begins": []}
    told["begins"] = [None if pd.isna(one) else short(one) for one in column[:FIRST]]
    if any(isinstance(one, str) for one in there):
        return told | text_digest(there)
    whole = all(isinstance(one, bool | int | np.integer | np.bool_) for one in there)
    return told | number_digest(there, whole)


def number_digest(there: pd.Series[Any], whole: bool) -> dict[str, Any]:
    """Sum, moment, ends; with the size that differences are measured by, unless all are whole."""
    exact = there.astype("int64" if whole else "float64").to_numpy()
    places = np.asarray(there.index) + 1
    told = {"sum": exact.sum(), "moment": (exact * places).sum()}
    if not whole:
        told |= {"moment": told["moment"] / len(there), "size": np.abs(exact).sum()}
    told |= {"min": exact.min(), "max": exact.max()}
    return {name: short(value) for name, value in told.items()}


def text_digest(there: pd.Series[Any]) -> dict[str, Any]:
    """How many different texts, and a hash of all in their order."""
    joined = "\n".join(f"{place} {text}" for place, text in there.items())
    return {"distinct": there.nunique(), "hash": hashlib.sha256(joined.encode()).hexdigest()[:16]}


# --- JSON as it is found --------------------------------------------------------------------------

#: Of one machine, one moment or one release.
PROVENANCE = {
    *("bytes", "command", "commands", "created", "finished", "headcount", "platform", "report"),
    *("run", "seconds", "signature", "time", "transformers", "transformers_version", "updated"),
    *("versions", "provenance_time", "here", "how"),
}
#: For people: may be said better.
WORDING = {
    *("about", "evidence", "facts", "group", "headline", "label", "meaning", "missing", "more"),
    *("note", "notes", "paper", "remarks", "silent", "title", "why"),
}
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
LONG = 12


def told(value: Any, without: Iterable[str] = ()) -> Any:
    """JSON without provenance and wording, its long lists as digests."""
    if isinstance(value, dict):
        left_out = PROVENANCE | WORDING | set(without)
        kept = {key: part for key, part in value.items() if key not in left_out}
        return {key: told(part, without) for key, part in kept.items() if not is_moment(part)}
    if isinstance(value, list):
        return told_list(value, without)
    return value if isinstance(value, str) else short(value)


def is_moment(value: Any) -> bool:
    """Whether it is a time, as a stage's settings may hold of the stages before it."""
    return isinstance(value, str) and MOMENT.fullmatch(value) is not None


def told_list(values: list[Any], without: Iterable[str]) -> Any:
    """Things with a name by their name; long lists by place or key; short lists as they are."""
    for key in ("id", "name"):
        names = [one.get(key) for one in values if isinstance(one, dict)]
        if values and len(set(names)) == len(values) and None not in names:
            return {one[key]: told(one, [*without, key]) for one in values}
    if len(values) < LONG:
        return [told(one, without) for one in values]
    if all(isinstance(one, dict) for one in values):
        keys = dict.fromkeys(key for one in values for key in one)
        return told({key: [one.get(key) for one in values] for key in keys}, without)
    if any(isinstance(one, list | dict) for one in values):
        return {"n": len(values), "flat": digest(flat(values))}
    return digest(values)


def flat(value: Any) -> list[Any]:
    """Every leaf, in order; the wording of things among them left out."""
    if isinstance(value, dict):
        left_out = PROVENANCE | WORDING
        return [leaf for key in value if key not in left_out for leaf in flat(value[key])]
    if isinstance(value, list):
        return [leaf for one in value for leaf in flat(one)]
    return [value]


# --- a run directory and its page -----------------------------------------------------------------

#: Columns that measure rounding itself or the clock: another CPU, another value.
NOISE = {"worst_loss", "seconds", "gain", "gain_low", "gain_high"}
#: Columns of the longer survey that are kept.
COLUMNS = ("confidence", "previous", "best_offset", "rare", "to_verb")


def run_facts(folder: Path) -> dict[str, Any]:
    """The files of a run, its tables, its arrays and its record."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    named = {path.relative_to(folder).as_posix(): path for path in files}
    return {
        "files": dict.fromkeys(named),
        "tables": {name: table(path) for name, path in named.items() if path.suffix == ".parquet"},
        "arrays": {name: arrays(path) for name, path in named.items() if path.suffix == ".npz"},
        "texts": {
            name: told(json.loads(path.read_text(encoding="utf8")), ["provenance"])
            for name, path in named.items()
            if name == "exhibits/index.json"
        },
        "record": record(json.loads((folder / "run.json").read_text(encoding="utf8"))),
    }


def table(path: Path) -> dict[str, Any]:
    """The columns of a Parquet file: type and digest."""
    frame, schema = pd.read_parquet(path), pq.read_schema(path)
    types = {field.name: str(field.type).removeprefix("large_") for field in schema}
    values = {name: [] if name in NOISE else frame[name].tolist() for name in frame.columns}
    return {name: {"type": types[name]} | digest(column) for name, column in values.items()}


def arrays(path: Path) -> dict[str, Any]:
    """The arrays of a .npz: type, shape and digest."""
    with np.load(path, allow_pickle=False) as found:
        return {name: array(found[name]) for name in sorted(found.files)}


def array(found: np.ndarray) -> dict[str, Any]:
    """An array: type, shape and digest."""
    kind = "text" if found.dtype.kind == "U" else str(found.dtype)
    return {"type": kind, "shape": list(found.shape)} | digest(found.ravel().tolist())


def record(run: dict[str, Any]) -> dict[str, Any]:
    """The record of a run; what each column says of itself, without what the run says once."""
    origins = run.pop("origins", {})
    run["column_notes"] = dict.fromkeys(run.get("column_notes", {}))
    for stage in run.get("stages", {}).values():
        stage["provenance"] = stage["provenance"].get("task")
    kept = ("convention", "seed", "settings", "counts", "data")
    each = {name: {key: one.get(key) for key in kept} for name, one in origins.items()}
    return told(run) | {"origins": told(each)}


BLOCK = re.compile(r'<script type="(?:application/json|text/plain)" id="([^"]+)">(.*?)</script>')


def page(path: Path) -> dict[str, Any]:
    """The data of a page: what is readable in it, its packed numbers, the sizes of its maps."""
    blocks = dict(BLOCK.findall(path.read_text(encoding="utf8")))
    words = json.loads(blocks.pop("headcount-data"))
    numbers = json.loads(inflated(blocks.pop("numbers")))
    if words.get("times"):
        words["times"] = words["times"]["how"]
    ids = [column["id"] for column in words["columns"]]
    numbers["columns"] = dict(zip(ids, map(unpacked, numbers["columns"]), strict=True))
    return {
        "words": told(words, ["provenance"]),
        "numbers": told(numbers),
        "maps": {name: map_facts(inflated(block)) for name, block in blocks.items()},
    }


def inflated(block: str) -> bytes:
    """The bytes of a packed block, as a browser inflates it."""
    return zlib.decompress(base64.b64decode(block))


def map_facts(data: bytes) -> dict[str, Any]:
    """A packed map: its length, and its mean weight; before the weights stand the rows' maxima."""
    weights = data[len(data) // 2 :]
    return {"length": len(data), "mean": round(sum(weights) / len(weights), 2)}


def unpacked(column: dict[str, Any]) -> dict[str, Any]:
    """A column in its own unit, as a browser reads it; bounds are distances from the value."""
    unit = column.pop("u", None)
    if unit is None:
        return column
    given = {key: column[key] for key in ("values", "lo", "hi") if key in column}
    scaled = {k: [None if v is None else v * unit for v in part] for k, part in given.items()}
    return column | scaled


def story(folder: Path) -> dict[str, Any]:
    """The whole story of the bundled translator on a few sentences."""
    run, html = folder / "run", folder / "story.html"
    said = answer([*STORY, "--run", run, "-o", html])
    return {"said": told(said), **run_facts(run), "page": page(html)}


def judged(folder: Path) -> dict[str, Any]:
    """A survey with a treebank, long enough for verdicts, and its page."""
    run, html = folder / "run", folder / "judged.html"
    done = call([*JUDGED, "-o", run])
    assert done.exit_code == 0, done.output
    hc.report(run, html)
    facts, drawn = run_facts(run), page(html)
    heads = facts["tables"]["heads.parquet"]  # the story has the others
    facts["tables"]["heads.parquet"] = {name: heads[name] for name in COLUMNS}
    return {
        "files": facts["files"],
        "tables": facts["tables"],
        "verdicts": frame_values(pd.read_parquet(run / "roles.parquet")),
        "page": {part: drawn["words"][part] for part in ("relations", "opening")}
        | {"roles": drawn["numbers"]["roles"]},
    }


# --- a smaller model ------------------------------------------------------------------------------


def pruned(folder: Path) -> dict[str, Any]:
    """The translator without a few heads, as it lies on the disk, and as it is loaded again."""
    from safetensors.numpy import load_file

    small = hc.prune(translator(), REMOVED)
    small.save(folder)
    tensors = load_file(folder / "model.safetensors")
    return {
        "files": dict.fromkeys(sorted(path.name for path in folder.iterdir())),
        "heads": [str(head) for head in small.heads],
        "heads loaded": [str(head) for head in hc.load(folder, device="cpu").heads],
        "tensors": {name: tensor(tensors[name]) for name in sorted(tensors)},
        "config": config(folder / "config.json"),
        "map": config(folder / "headcount.json"),
    }


def tensor(found: np.ndarray) -> dict[str, Any]:
    """A tensor: type, shape, sum, and the sum of its sizes."""
    exact = found.astype("float64")
    sums = [short(exact.sum()), short(np.abs(exact).sum())]
    return {"type": str(found.dtype), "shape": list(found.shape), "sums": sums}


def config(path: Path) -> dict[str, Any]:
    """A settings file as it is, without releases and wording."""
    found = json.loads(path.read_text(encoding="utf8"))
    left_out = {"transformers", "transformers_version", "why"}
    return {key: part for key, part in found.items() if key not in left_out}


# --- the verbs of Python --------------------------------------------------------------------------


def translator() -> Any:
    """The bundled translator, on the CPU."""
    return hc.load("translator", device="cpu")


def measures(folder: Path) -> dict[str, Any]:
    """A survey and scores through the façade, whole; and what the verbs give back."""
    subject = translator()
    task = hc.tasks.translation(PAIRS, metric="loss")
    survey = hc.survey(subject, PAIRS)
    names = ("gradient", "ablation", "contribution", "relevance")
    scores = {by: hc.score(subject, task, by=by) for by in names}
    outcome = task.evaluate(subject)
    return {
        "survey": frame_values(survey.frame),
        "survey, low": frame_digest(survey.low),
        "survey, high": frame_digest(survey.high),
        "gradient": frame_values(scores["gradient"].frame),
        "ablation": frame_values(scores["ablation"].frame),
        "contribution": frame_digest(scores["contribution"].frame),
        "relevance": frame_digest(scores["relevance"].frame),
        "rank": [str(head) for head in scores["gradient"].rank("gradient")[:10]],
        "loss": outcome.value,
        "without": closed(subject, task),
        "paper": frame_digest(
            hc.survey(subject, PAIRS, reading=hc.ReadingOptions(convention="paper")).frame
        ),
        "objects": {
            "HeadTable": names_of(survey),
            "Outcome": names_of(outcome),
            "Subject": names_of(subject),
            "Task": names_of(task),
            "View": names_of(hc.show(subject, PAIRS[0][0], "enc.0.7")),
            "Report": names_of(hc.report(survey, folder / "small.html")),
        },
    }


def closed(subject: Any, task: Any) -> float:
    """The loss with one head shut."""
    with hc.valve(subject, {"enc.0.7": 0.0}):
        return float(task.evaluate(subject).value)


def frame_values(frame: pd.DataFrame) -> dict[str, Any]:
    """All values of a frame, column by column."""
    values = {str(name): [short(v) for v in frame[name].tolist()] for name in frame.columns}
    return {"index": index_digest(frame), "columns": values}


def frame_digest(frame: pd.DataFrame) -> dict[str, Any]:
    """The same in few letters."""
    columns = {str(name): digest(frame[name].tolist()) for name in frame.columns}
    return {"index": index_digest(frame), "columns": columns}


def index_digest(frame: pd.DataFrame) -> dict[str, Any]:
    """The names of the index, and its values in few letters."""
    names = [name for name in frame.index.names if name is not None]
    return {name: digest(frame.index.get_level_values(name)) for name in names}


def names_of(one: Any) -> dict[str, None]:
    """The public names of an object."""
    return dict.fromkeys(name for name in dir(one) if not name.startswith("_"))


# --- writing --------------------------------------------------------------------------------------

#: What there is, by the name of its file; those that write files of their own are given a folder.
PLAIN = {"facade": facade, "commands": commands, "answers": answers}
WRITING = {"measures": measures, "pruned": pruned, "story": story, "judged": judged}


def text_of(value: Any, deep: int = 0) -> str:
    """JSON with one line for each innermost thing, so that a difference is a line."""
    inner = value.values() if isinstance(value, dict) else ()
    if not any(isinstance(part, dict) for part in inner):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    pad = "\n" + " " * (deep + 1)
    lines = [f"{json.dumps(key)}: {text_of(part, deep + 1)}" for key, part in value.items()]
    return "{" + pad + f",{pad}".join(lines) + "\n" + " " * deep + "}"


def main(place: Path = FOLDER) -> None:
    """Write all golden copies."""
    place.mkdir(parents=True, exist_ok=True)
    made = {name: make() for name, make in PLAIN.items()}
    for name, make in WRITING.items():
        with tempfile.TemporaryDirectory() as folder:
            made[name] = make(Path(folder))
    for name, value in made.items():
        (place / f"{name}.json").write_text(text_of(value) + "\n", encoding="utf8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
