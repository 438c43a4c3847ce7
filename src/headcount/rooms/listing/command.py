"""`headcount ls`: what can be surveyed here, what a model consists of, what a run holds.

`headcount plugins`: what rooms and other packages add.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import headcount as hc
from headcount import cli, plugins
from headcount.errors import UsageError
from headcount.models import LoadOptions
from headcount.records import option


@dataclass(frozen=True)
class ListArguments:
    """A table of a run, to be pasted."""

    table: str | None = option(
        None, "NAME", "Of a run, for a paper: its roles, relations, curve or agreement."
    )
    format: str = option("markdown", "HOW", "markdown, latex or typst.", key_of="table")


def ls_command(
    asked: ListArguments,
    load: Annotated[LoadOptions, cli.without("device", "dtype", "tokenizer")],
    what: Annotated[
        str | None,
        cli.argument("WHAT", "A model, or a run directory; without it, the models at hand."),
    ] = None,
    json: cli.Json = False,
) -> None:
    """List models, the heads of a model, or what a run holds.

    [dim]headcount ls[/dim]
    [dim]headcount ls minilm[/dim]
    [dim]headcount ls run/[/dim]
    [dim]headcount ls run/ --table curve,format=latex[/dim]
    """
    if asked.table is not None:
        _paper_table(what, asked.table, asked.format)
    elif what is None:
        _models(json)
    elif Path(what, "run.json").exists():
        _run(Path(what), json)
    else:
        _anatomy(cli.loaded(what, replace(load, device="cpu")), json)


def plugins_command(
    group: Annotated[
        str | None, cli.argument("GROUP", "commands, roles, scores, ...; without it, all of them.")
    ] = None,
    json: cli.Json = False,
) -> None:
    """List plug-ins and where each comes from.

    [dim]headcount plugins[/dim]
    [dim]headcount plugins roles[/dim]
    """
    if group is not None and group not in plugins.GROUPS:
        raise UsageError(f"There is no group '{group}'; choose {', '.join(plugins.GROUPS)}.")
    known = plugins.listed(group)
    with warnings.catch_warnings(action="ignore"):
        for plugin in known:  # ours are tested, and heavy to load
            if not plugin.ours:
                plugins.tried(plugin)
    if json:
        rows = [{name: getattr(one, name) for name in _SHOWN} for one in known]
        cli.print_json({"plugins": rows, "faults": plugins.faults()})
        return
    cli.print_rows(
        ("group", "name", "where from", "place"),
        [(one.group, one.name, one.origin, one.target) for one in known],
    )
    cli.print_notes(plugins.faults())


_SHOWN = ("group", "name", "origin", "target")


def _paper_table(what: str | None, name: str, format: str) -> None:
    """One frame of a run, to be pasted."""
    if what is None or not Path(what, "run.json").exists():
        raise UsageError(
            f"--table is of a run, and {what or 'none'} is no run directory; name one."
        )
    tables = plugins.get("parts", "tables")
    tables.check_frame_table(name, format)
    frame = hc.Run.open(what, create=False).read_frame(name)
    frame = hc.roles.best_heads(frame) if name == "relations" else frame
    cli.echo(tables.frame_table(name, frame, format))


def _models(json: bool) -> None:
    from headcount.models import known_models

    rows = known_models()
    if json:
        cli.print_json({"models": rows})
        return
    cli.print_rows(("name", "what it is"), [(row["name"], row["about"]) for row in rows])
    missing = [row["how"] for row in rows if not row["here"]]
    cli.print_notes([f"Not here yet; fetch it: {how}" for how in missing])
    cli.output().print("Any folder, .gguf file, model package or hub id works too.", style="dim")


def _anatomy(subject: hc.Subject, json: bool) -> None:
    sites = subject.anatomy.sites
    if json:
        cli.print_json({"model": subject.describe(), "sites": [vars(site) for site in sites]})
        return
    cli.print_rows(
        ("stack", "layer", "heads", "kv heads", "head size", "module"),
        [(s.stack, s.layer, s.heads, s.kv_heads, s.head_dim, s.module) for s in sites],
    )
    cli.output().print(repr(subject), style="dim")
    cli.print_notes(subject.notes)


def _run(path: Path, json: bool) -> None:
    run = hc.Run.open(path, create=False)
    table = run.read_table() if run.has_table else None
    if json:
        described = {} if table is None else table.to_dict()["columns"]
        cli.print_json(
            {
                "provenance": run.provenance,
                "stages": run.stages,
                "columns": described,
                "frames": run.frames,
            }
        )
        return
    held = [f"stages: {', '.join(run.stages) or 'none'}"]
    held += [f"frames: {', '.join(run.frames)}"] if run.frames else []
    shown = "no table" if table is None else repr(table)
    cli.output().print(f"{path}/: {shown}; {'; '.join(held)}")
    if table is not None:
        # Each column with its meaning, its paper and why it is NA.
        rows = []
        for name in table.names:
            column = table.column(name)
            paper = f" [{column.paper}]" if column.paper else ""
            note = f" NA: {table.notes[name]}." if name in table.notes else ""
            corpus = table.origins.get(name, table.provenance).get("corpus")
            where = f" On {corpus}." if corpus else ""
            rows.append((name, f"{column.meaning}{paper}{where}{note}"))
        cli.print_rows(("column", "meaning"), rows)
