"""`headcount report`: the whole story of a model's heads, as one page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from headcount.cli import options
from headcount.cli import report_options as own
from headcount.cli.output import output, print_json, print_notes
from headcount.cli.task_option import Task, TaskFile, read_task
from headcount.errors import RunError, UsageError

if TYPE_CHECKING:
    from headcount.report.report import Report
    from headcount.story import Told

__all__ = ["report"]


def report(
    what: own.What = None,
    text: own.Text = None,
    treebank: own.Treebank = None,
    task: Task = None,
    task_file: TaskFile = None,
    run: own.RunDir = None,
    out: own.Out = Path("report.html"),
    no_exhibits: own.NoExhibits = False,
    maps: own.Maps = "fine",
    compare: own.Compare = None,
    open_page: own.Open = False,
    thorough: own.Thorough = False,
    replace: own.Replace = False,
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
        from headcount.cli.report_story import Wanted, tell_story

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
    from headcount.cli.report_summary import print_summary, summary
    from headcount.report.report import report as write

    page: Report = write(run, out, exhibits=exhibits, maps=maps, compare=compare)  # type: ignore[arg-type]
    found = summary(run, page, told, exhibits and maps != "none")
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
    from headcount.run import Run

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
