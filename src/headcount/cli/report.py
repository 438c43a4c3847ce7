"""`headcount report`: the whole story of a model's heads, as one page."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from warnings import catch_warnings

import typer

from headcount.cli import options
from headcount.cli.inputs import TaskFile, TaskOption, read_task
from headcount.cli.options import one_of
from headcount.cli.output import StoryDisplay, output, print_json, print_notes
from headcount.errors import RunError, UsageError

if TYPE_CHECKING:
    from headcount.report import Report


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
    measuring: dict[str, Any] = {
        "text": text,
        "treebank": treebank,
        "task": task,
        "task-file": task_file,
        "run": run,
        "thorough": thorough,
        "replace": replace,
        "limit": limit,
        "seed": seed,
    }
    drawing: dict[str, Any] = {"exhibits": not no_exhibits, "maps": maps, "compare": compare}
    there = _run_named(what)
    if there is not None:
        _check_drawing(there, measuring)
        from headcount.report import report

        page = report(there, out, **drawing)
    else:
        spec = read_task(task, task_file) if task or task_file else None
        from headcount.report import story

        with StoryDisplay() as display, catch_warnings(action="ignore", category=UserWarning):
            page = story(
                what,
                run,
                out,
                text=text,
                treebank=treebank,
                task=None if spec is None else spec.build(),
                limit=limit,
                seed=seed,
                batch_size=batch_size,
                thorough=thorough,
                replace=replace,
                **drawing,
                progress=display.show,
                announce=display.announce,
                device=device,
                dtype=dtype,
                revision=revision,
                tokenizer=tokenizer,
                allow_bin=allow_bin,
                trust_remote_code=trust_remote_code,
            )
    found = summarise(page, exhibits=not no_exhibits and maps != "none")
    if json:
        print_json(found)
    else:
        print_summary(found)
    if open_page:
        _open(page)


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


def _open(page: Report) -> None:
    if not page.open():
        print_notes([f"No browser could be started; open {page.path} yourself."])
        return
    output().print(f"Opened {page.path}.", style="dim")


# --- What `headcount report` says at its end: in a few lines, or as JSON ------------------------


def summarise(page: Report, exhibits: bool) -> dict[str, Any]:
    """The page, the run, and what the page is about."""
    from headcount.report import read_source

    source = read_source(str(page.run), exhibits=exhibits)
    roles = source.frame("roles")
    return {
        "report": str(page.path),
        "bytes": page.bytes,
        "run": str(page.run),
        "model": source.model,
        "heads": len(source.table),
        "columns": source.table.names,
        "with_role": 0 if roles is None else _heads_with_role(roles),
        "roles": {} if roles is None else _heads_by_role(roles),
        "exhibits": len(source.exhibits),
        "own_text": any(one.own_text for one in source.exhibits),
        "stages": [one.to_dict() for one in page.stages],
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
