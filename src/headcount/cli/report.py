"""`headcount report`: the whole story of a model's heads, as one page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headcount.cli import options
from headcount.cli.inputs import TaskFile, TaskOption, read_task
from headcount.cli.options import loaded, one_of
from headcount.cli.output import StoryDisplay, announced, bar, output, print_json, print_notes
from headcount.errors import RunError, UsageError

if TYPE_CHECKING:
    from headcount.cli.inputs import TaskSpec
    from headcount.models import Subject
    from headcount.records import Run
    from headcount.report import Report, Scene, Told
    from headcount.tasks import Task
    from headcount.text import Corpus


# --- Options of `headcount report` alone --------------------------------------------------------

_READING = "What to read"
_PAGE = "The page"

What = Annotated[
    str | None,
    typer.Argument(
        metavar="MODEL|RUN",
        help="A model as in other verbs, or a run directory, of which the page is drawn as it "
        "is. Without it: the bundled translator on the bundled sample.",
        show_default=False,
    ),
]
Text = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Sentences (.txt) or pairs (.tsv); by default the bundled sample.",
        show_default=False,
        rich_help_panel=_READING,
    ),
]
Treebank = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="A treebank (.conllu), so that syntactic roles can be told.",
        show_default=False,
        rich_help_panel=_READING,
    ),
]
RunDir = Annotated[
    Path | None,
    typer.Option(
        "--run",
        metavar="DIR",
        help="Run directory to keep everything in; by default run/, or run-MODEL/.",
        show_default=False,
    ),
]
Out = Annotated[
    Path, typer.Option("--out", "-o", metavar="FILE", help="The page.", rich_help_panel=_PAGE)
]
NoExhibits = Annotated[
    bool,
    typer.Option(
        "--no-exhibits", help="No sentence of the texts in the page.", rich_help_panel=_PAGE
    ),
]
Maps = Annotated[
    str,
    typer.Option(
        metavar="HOW",
        callback=one_of("fine", "coarse", "none"),
        help="How exact maps in the page are: fine, coarse (smaller) or none.",
        rich_help_panel=_PAGE,
    ),
]
Compare = Annotated[
    Path | None,
    typer.Option(
        metavar="RUN",
        help="A second run of the same architecture, to set beside the first.",
        show_default=False,
        rich_help_panel=_PAGE,
    ),
]
Open = Annotated[
    bool, typer.Option("--open", help="Show the page in the browser.", rich_help_panel=_PAGE)
]
Thorough = Annotated[
    bool,
    typer.Option(
        "--thorough",
        help="Take every example, the task's own metric for every head, and a random twin: hours "
        "rather than minutes.",
    ),
]
Replace = Annotated[
    bool, typer.Option("--replace", help="Start the run directory anew, whatever it holds.")
]


# --- `headcount report`: the whole story of a model's heads, as one page ------------------------


def report_command(
    what: What = None,
    text: Text = None,
    treebank: Treebank = None,
    task: TaskOption = None,
    task_file: TaskFile = None,
    run: RunDir = None,
    out: Out = Path("report.html"),
    no_exhibits: NoExhibits = False,
    maps: Maps = "fine",
    compare: Compare = None,
    open_page: Open = False,
    thorough: Thorough = False,
    replace: Replace = False,
    limit: options.Limit = None,
    seed: options.Seed = None,
    batch_size: options.BatchSize = 16,
    device: options.Device = "auto",
    dtype: options.Dtype = "auto",
    revision: options.Revision = None,
    allow_bin: options.AllowBin = False,
    trust_remote_code: options.RemoteCode = False,
    tokenizer: options.Tokenizer = None,
    json: options.Json = False,
) -> None:
    """Tell the whole story of a model's heads on one page: roles, importance, what can go.

    [dim]headcount report[/dim]
    [dim]headcount report minilm --treebank my.conllu -o minilm.html[/dim]
    [dim]headcount report ./my-translator --text pairs.tsv --task translation:test.tsv[/dim]
    [dim]headcount report run/ --compare other-run/ --open[/dim]
    """
    _check_page(out)
    _check_compare(compare)
    measuring: dict[str, Any] = {
        "text": text,
        "treebank": treebank,
        "task": task,
        "task-file": task_file,
    }
    measuring |= {"run": run, "thorough": thorough, "replace": replace}
    measuring |= {"limit": limit, "seed": seed}
    there, told = _run_named(what), []
    if there is not None:
        _check_drawing(there, measuring)
    else:
        spec = read_task(task, task_file) if task or task_file else None
        loading: dict[str, Any] = {
            "device": device,
            "dtype": dtype,
            "revision": revision,
            "tokenizer": tokenizer,
        }
        loading |= {"allow_bin": allow_bin, "trust_remote_code": trust_remote_code}
        wanted = Wanted(what, text, treebank, spec, limit, seed, batch_size, thorough, loading)
        there = run or _usual_run(what)
        told = tell_story(wanted, there, exhibits=not no_exhibits, replace=replace)
    _draw(there, out, told, not no_exhibits, maps, compare, json)
    if open_page:
        _open(out)


def _draw(
    run: Path,
    out: Path,
    told: list[Told],
    exhibits: bool,
    maps: str,
    compare: Path | None,
    json: bool,
) -> None:
    from headcount.report import report as write

    page: Report = write(run, out, exhibits=exhibits, maps=maps, compare=compare)  # type: ignore[arg-type]
    found = summarise(run, page, told, exhibits and maps != "none")
    if json:
        print_json(found)
        return
    print_summary(found)


def _check_page(out: Path) -> None:
    """Refuse, before the long work, a place where no page can be written."""
    import os

    if out.is_dir():
        raise UsageError(f"{out} is a folder; name a file, e.g. -o {out / 'report.html'}.")
    if not out.parent.is_dir():
        raise RunError(f"There is no folder {out.parent} to write {out.name} in; make it first.")
    if not os.access(out if out.exists() else out.parent, os.W_OK):
        raise RunError(f"{out} cannot be written: permission denied. Choose another place (-o).")


def _check_compare(compare: Path | None) -> None:
    """Refuse a second run that is none, before the long work."""
    if compare is None or compare.suffix == ".parquet":
        return
    from headcount.records import Run

    if not Run.open(compare, create=False).has_table:
        raise RunError(f"{compare}/ has no head table yet; measure something into it first.")


def _run_named(what: str | None) -> Path | None:
    """The run that was named in place of a model: its folder, a pruning's folder, a lone table."""
    if what is None:
        return None
    path = Path(what)
    if path.is_file() and path.name.endswith(".parquet"):
        return path
    if (path / "run.json").is_file():
        return path
    if (path / "run" / "run.json").is_file() and not (path / "config.json").exists():
        return path / "run"
    if path.is_dir() and not any(path.iterdir()):
        raise RunError(f"{path}/ is empty: it holds neither a run nor a model; name another one.")
    return None


def _check_drawing(run: Path, measuring: dict[str, Any]) -> None:
    """A run is drawn as it is: options that would measure more are refused."""
    given = [f"--{name}" for name, value in measuring.items() if value not in (None, False)]
    if given:
        raise UsageError(
            f"{given[0]} measures something, and {run} is a run, which is drawn as it is; name a "
            f"model, with --run {run} to go on in that run."
        )


def _usual_run(model: str | None) -> Path:
    """Where the story is kept, unless the user says.

    >>> _usual_run(None), _usual_run("org/My-Model")
    (PosixPath('run'), PosixPath('run-My-Model'))
    """
    return Path("run" if model is None else f"run-{Path(model).name or 'model'}")


def _open(page: Path) -> None:
    import webbrowser

    if not webbrowser.open(page.resolve().as_uri()):
        print_notes([f"No browser could be started; open {page} yourself."])
        return
    output().print(f"Opened {page}.", style="dim")


# --- The measuring behind `headcount report` ----------------------------------------------------

_TRANSLATOR = "translator"


@dataclass(frozen=True)
class Wanted:
    """What the command asked for."""

    model: str | None = None
    text: str | None = None
    treebank: str | None = None
    task: TaskSpec | None = None
    limit: int | None = None
    seed: int | None = None
    batch_size: int = 16
    thorough: bool = False
    loading: dict[str, Any] = field(default_factory=dict)

    @property
    def own_text(self) -> bool:
        """Whether the texts are the user's."""
        return any(one not in (None, "sample") for one in (self.text, self.treebank))


def tell_story(wanted: Wanted, place: Path, *, exhibits: bool, replace: bool) -> list[Told]:
    """Measure what the run does not hold yet, with a line for each chapter."""
    from headcount.records import Run

    files = _read(wanted)
    task = None if wanted.task is None else wanted.task.build()
    if task is not None and wanted.limit is not None:
        task = task.limit(wanted.limit, wanted.seed)
    with Run.open(place) as run:
        subject = loaded(wanted.model or _TRANSLATOR, **wanted.loading)
        if replace:
            run.clear()
        scene = _scene(wanted, run, subject, files, task)
        from headcount.importance import in_words
        from headcount.report import expected_seconds, run_story

        scene.begin()
        seconds = expected_seconds(scene)
        expected = f"About {in_words(seconds)} on this machine." if seconds > 5 else ""
        with StoryDisplay(f"{subject!r}", expected) as display:
            return run_story(scene, exhibits=exhibits, watch=display.watch, ended=display.ended)


def _read(wanted: Wanted) -> dict[str, Corpus]:
    """The files that were named, read before a model is loaded for them."""
    from headcount.survey import read_corpora

    given = {"corpus": wanted.text, "treebank": wanted.treebank}
    named = {name: file for name, file in given.items() if file not in (None, "sample")}
    if not named:
        return {}
    with announced("Reading the corpus"):
        found = read_corpora(
            named.get("corpus"),
            treebank=named.get("treebank"),
            limit=wanted.limit,
            seed=wanted.seed,
        )
    read = {"texts": found.text, "treebank": found.treebank}
    return {name: corpus for name, corpus in read.items() if corpus is not None}  # type: ignore[misc]


def _scene(
    wanted: Wanted, run: Run, subject: Subject, files: dict[str, Corpus], task: Task | None
) -> Scene:
    from headcount.report import Scene

    corpora = files or _sample(subject, wanted)
    corpora, translated = _spoken(subject, corpora, wanted.batch_size)
    why = ""
    if task is None:
        task, why = _natural(subject, corpora["texts"], translated)
    else:
        task.check(subject)
    return Scene(
        run,
        subject,
        corpora["texts"],
        corpora.get("treebank"),
        corpora.get("coref"),
        own_text=wanted.own_text,
        task=task,
        why_no_task=why,
        thorough=wanted.thorough,
        limit=wanted.limit,
        seed=wanted.seed,
        batch_size=wanted.batch_size,
    )


def _sample(subject: Subject, wanted: Wanted) -> dict[str, Corpus]:
    """The bundled sample as this model reads it."""
    from headcount.cli.inputs import Annotation

    asked = Annotation(treebank="sample", coref="sample")
    found = asked.for_model(subject, wanted.limit, wanted.seed)
    trees: Any = found.treebank
    coref: Any = found.coref
    return {"texts": trees, "treebank": trees, "coref": coref}


def _spoken(
    subject: Subject, corpora: dict[str, Corpus], batch_size: int
) -> tuple[dict[str, Corpus], bool]:
    """For a translator without translations, its own; whether that was so."""
    texts = corpora["texts"]
    if "cross" not in subject.anatomy.stacks or texts.paired:
        return corpora, False
    from headcount.tasks import own_output
    from headcount.text import read_corpus

    with ExitStack() as stack:
        progress = stack.enter_context(bar("Translating", unit="sentences"))
        pairs = read_corpus(own_output(subject, texts, batch_size=batch_size, progress=progress))
    pairs.name = f"{texts.name} in its own words"
    same = {name: pairs if corpus is texts else corpus for name, corpus in corpora.items()}
    return same, True


def _natural(subject: Subject, texts: Corpus, translated: bool) -> tuple[Task | None, str]:
    """What the model does with the texts by itself, or why nothing can be asked of it."""
    from headcount.tasks import natural_task

    if translated:
        return None, "its texts have no translations; give pairs, or --task translation:FILE"
    try:
        task = natural_task(subject, texts)
    except UsageError:
        task = None
    if task is None or task.kind == "similarity":
        return None, f"{subject.name} predicts no words; say what good means with --task KIND:FILE"
    return task, ""


# --- What `headcount report` says at its end: in a few lines, or as JSON ------------------------


def summarise(run: Path, page: Report, told: Sequence[Told], exhibits: bool) -> dict[str, Any]:
    """The page, the run, and what the page is about."""
    from headcount.report import read_source

    source = read_source(run, exhibits=exhibits)
    roles = source.frame("roles")
    own = sum(one.own_text for one in source.exhibits)
    return {
        "report": str(page.path),
        "bytes": page.bytes,
        "run": str(run),
        "model": source.model,
        "heads": len(source.table),
        "columns": source.table.names,
        "with_role": 0 if roles is None else _heads_with_role(roles),
        "roles": {} if roles is None else _heads_by_role(roles),
        "exhibits": len(source.exhibits),
        "own_text": bool(own),
        "stages": [one.to_dict() for one in told],
    }


def print_summary(found: dict[str, Any]) -> None:
    """For people."""
    if found["roles"]:
        told = f"{found['with_role']} of {found['heads']} heads of {found['model']} have a role:"
        counts = ", ".join(f"{n} {role}" for role, n in found["roles"].items())
        several = sum(found["roles"].values()) > found["with_role"]
        output().print(f"{told} {counts}{' (some have several)' if several else ''}.")
    output().print(f"Wrote {found['report']} ({found['bytes'] / 1e6:.2f} MB) from {found['run']}/.")
    if found["own_text"]:
        output().print(
            "The page contains sentences of your texts; --no-exhibits leaves them out.", style="dim"
        )


def _heads_with_role(roles: Any) -> int:
    return len(roles[["stack", "layer", "head"]].drop_duplicates())


def _heads_by_role(roles: Any) -> dict[str, int]:
    """How many heads have each role; a head with two verdicts of one role counts once."""
    once = roles[["stack", "layer", "head", "role"]].drop_duplicates()
    return dict(Counter(once["role"]).most_common())
