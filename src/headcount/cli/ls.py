"""`headcount ls`: what can be surveyed here, what a model consists of, what a run holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from headcount.cli import options

__all__ = ["ls"]


def ls(
    what: Annotated[
        str | None,
        typer.Argument(help="A model, or a run directory; nothing lists the models at hand."),
    ] = None,
    json: options.Json = False,
) -> None:
    """List the models at hand, the stacks and heads of a model, or what a run holds.

    [dim]headcount ls[/dim]
    [dim]headcount ls minilm[/dim]
    [dim]headcount ls run/[/dim]
    """
    if what is None:
        _models(json)
    elif Path(what, "run.json").exists():
        _run(Path(what), json)
    else:
        _anatomy(what, json)


def _models(json: bool) -> None:
    from headcount.models.at_hand import models_at_hand

    rows = models_at_hand()
    if json:
        _print_json({"models": rows})
        return
    from rich.table import Table

    table = Table("name", "what it is", "at hand", box=None, header_style="dim")
    for row in rows:
        table.add_row(row["name"], row["about"], "yes" if row["here"] else row["how"])
    _print(table)
    _print("[dim]Any folder, .gguf file, model package or hub id works too.[/dim]")


def _anatomy(model: str, json: bool) -> None:
    from headcount.cli.progress import told
    from headcount.models.load import load

    with told(f"Loading {model}"):
        subject = load(model, device="cpu")
        sites = subject.anatomy.sites
    if json:
        _print_json({"model": subject.describe(), "sites": [vars(site) for site in sites]})
        return
    from rich.table import Table

    table = Table("stack", "layer", "heads", "kv heads", "head size", "module", box=None)
    for site in sites:
        cells = (site.stack, site.layer, site.heads, site.kv_heads, site.head_dim, site.module)
        table.add_row(*map(str, cells))
    _print(table)
    _print(f"[dim]{subject!r}[/dim]")


def _run(path: Path, json: bool) -> None:
    from headcount.run import Run

    run = Run.open(path, create=False)
    table = run.read_table() if run.has_table else None
    if json:
        described = {} if table is None else table.to_dict()["columns"]
        _print_json({"stages": run.stages, "columns": described, "frames": run.frames})
        return
    from rich.table import Table

    listed = Table("column", "meaning", "why NA", box=None, header_style="dim")
    for name, column in (table.columns if table is not None else {}).items():
        listed.add_row(name, column.meaning, table.notes.get(name, "") if table is not None else "")
    _print(f"{path}/: {table!r}; stages: {', '.join(run.stages) or 'none'}")
    _print(listed)


def _print(what: Any) -> None:
    from headcount.cli.progress import out_console

    out_console().print(what)


def _print_json(what: dict[str, Any]) -> None:
    from headcount.exact_json import encode

    typer.echo(encode(what))
