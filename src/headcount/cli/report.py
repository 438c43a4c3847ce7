"""`headcount report`: everything about a model's heads, on one page."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from warnings import catch_warnings

import headcount as hc
from headcount import plugins
from headcount.cli.inputs import TaskArguments
from headcount.cli.options import Json, argument, without
from headcount.cli.printing import StoryDisplay, output, print_json, print_notes, print_rows
from headcount.errors import RunError, UsageError
from headcount.models import LoadOptions
from headcount.records import EngineOptions, option, progress
from headcount.reports import PageOptions, StoryOptions

if TYPE_CHECKING:
    from headcount.reports import Report


# --- Its options --------------------------------------------------------------------------------

_reading = partial(option, panel="What to read")
_page = partial(option, panel="The page")

What = Annotated[
    str | None,
    argument(
        "MODEL|RUN",
        "A model as in other verbs, or a run directory, of which the page is drawn as it is. "
        "Without it: the bundled translator on the bundled sample.",
    ),
]


@dataclass(frozen=True)
class StoryArguments:
    """What is read for the page, and where figures are kept."""

    text: str | None = _reading(
        None, "FILE", "Sentences (.txt) or pairs (.tsv); by default the bundled sample."
    )
    treebank: str | None = _reading(
        None, "FILE", "A treebank (.conllu), so that syntactic roles can be judged."
    )
    coref: str | None = _reading(
        None,
        "FILE",
        "Coreference (.jsonl with sents and clusters, .conllu with Entity=), so that heads that "
        "find antecedents can be judged.",
    )
    run: Path | None = option(
        None, "DIR", "Run directory to keep everything in; by default run/, or run-MODEL/."
    )
    replace: bool = option(False, None, "Start the run directory anew, whatever it holds.")


@dataclass(frozen=True)
class PageArguments(PageOptions):
    """The page and what is in it."""

    out: Path = _page(Path("report.html"), "FILE", "The page.", "--out", "-o")
    no_exhibits: bool = _page(False, None, "No sentence of the texts in the page.", key_of="page")
    open_page: bool = _page(False, None, "Show the page in the browser.", "--open")


# --- The verb -----------------------------------------------------------------------------------


def report_command(
    asked: StoryArguments,
    task: TaskArguments,
    page: PageArguments,
    measuring: Annotated[StoryOptions, without("convention")],
    engine: EngineOptions,
    load: LoadOptions,
    what: What = None,
    json: Json = False,
) -> None:
    """Write one page on a model's heads: roles, importance, pruning.

    [dim]headcount report[/dim]
    [dim]headcount report minilm --treebank my.conllu -o minilm.html[/dim]
    [dim]headcount report ./my-translator --text pairs.tsv --task translation:test.tsv[/dim]
    [dim]headcount report --gates --heal[/dim]
    [dim]headcount report run/ --compare other-run/ --open[/dim]
    """
    there, where = _run_named(what), engine.made()
    drawing = PageOptions(not page.no_exhibits, page.maps, page.compare)
    if there is not None:
        elsewhere = None if engine.engine == "local" else engine.engine
        names = ("limit", "seed", "thorough", "gates", "heal", "refit", "gate_steps", "heal_steps")
        more = {name: getattr(measuring, name) for name in names} | {"engine": elsewhere}
        # A run is drawn as it is: options that would measure more are refused.
        given = [
            name.replace("_", "-")
            for name, value in (vars(asked) | vars(task) | more).items()
            if value
        ]
        if given:
            raise UsageError(
                f"--{given[0]} measures something, and {there} is a run, which is drawn as it is; "
                f"name a model, with --run {there} to continue that run."
            )
        written = hc.report(there, page.out, **vars(drawing), tolerance=measuring.tolerance)
    else:
        examples = task.spec().build() if task.given else None
        quiet = catch_warnings(action="ignore", category=UserWarning)
        with StoryDisplay() as display, progress(display), quiet:
            written = hc.story(
                what,
                page=page.out,
                task=examples,
                measuring=measuring,
                drawing=drawing,
                engine=where,
                **vars(asked),
                **vars(load),
            )
    found = summarise(written, drawing, measuring.tolerance)
    found["missing"] = found["missing"] if there is not None else []  # a story tells it by stage
    if json:
        print_json(found)
    else:
        _print_summary(found)
    if page.open_page:
        _open(written)


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


def _open(page: Report) -> None:
    if not page.open():
        print_notes([f"No browser could be started; open {page.path} yourself."])
        return
    output().print(f"Opened {page.path}.", style="dim")


# --- What is printed ----------------------------------------------------------------------------


def summarise(page: Report, shown: PageOptions, tolerance: Any = None) -> dict[str, Any]:
    """The page, the run, and what the page is about."""
    from headcount.pruning import can_go
    from headcount.reports import missing_part, page_data, read_source, run_tolerance

    source = read_source(str(page.run), exhibits=shown.exhibits and shown.maps != "none")
    source = replace(source, tolerance=tolerance, maps="none")
    told, tested = page_data(source), source.frame("function")
    room, freed = plugins.part("agreement"), plugins.part("freed")
    frame: Any = source.frame("roles")
    columns = ["stack", "layer", "head", "role"]
    # A head with two verdicts of one role counts once.
    roles = [] if frame is None else frame[columns].drop_duplicates().to_numpy().tolist()
    curve: Any = source.frame("curve")
    going = [] if curve is None else can_go(curve, run_tolerance(source))
    return {
        "report": str(page.path),
        "bytes": page.bytes,
        "run": str(page.run),
        "model": source.model,
        "heads": len(source.table),
        "columns": source.table.names,
        "headline": told["headline"],
        "with_role": len({tuple(head) for *head, _ in roles}),
        "roles": dict(Counter(role for *_, role in roles).most_common()),
        "can_go": [one.to_dict() for one in going],
        "freed": [] if freed is None else freed(source),
        "function": [] if tested is None or room is None else room.role_sentences(tested),
        "exhibits": len(source.exhibits),
        "own_text": any(one.own_text for one in source.exhibits),
        "stages": [one.to_dict() for one in page.stages],
        "missing": [
            {"what": title, "command": command.replace("RUN", str(page.run))}
            for _, title, command in missing_part(source)
        ],
    }


def _print_summary(found: dict[str, Any]) -> None:
    """For people."""
    output().print(found["headline"], style="bold")
    for one in found["can_go"]:
        output().print(one["sentence"])
    for sentence in [*found["freed"], *found["function"]]:
        output().print(sentence)
    output().print(f"Wrote {found['report']} ({found['bytes'] / 1e6:.2f} MB) from {found['run']}/.")
    if found["missing"]:
        output().print("Not in this run, and how to measure it:", style="dim")
        print_rows(("", ""), [(one["what"], one["command"]) for one in found["missing"]])
        output().print("All at once: headcount report MODEL --task ... --run DIR", style="dim")
    if found["own_text"]:
        output().print(
            "The page contains sentences of your texts; --page no-exhibits leaves them out.",
            style="dim",
        )
