"""`headcount atlas`: many models on many corpora and tasks, measured alike, on one page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import headcount as hc
from headcount import cli
from headcount.errors import UsageError
from headcount.models import LoadOptions
from headcount.records import EngineOptions, WorkOptions, option

if TYPE_CHECKING:
    from headcount.rooms.atlas.atlas import AtlasModel, AtlasPlan

Config = Annotated[
    Path, cli.argument("CONFIG", "A .toml with the tables models, corpora and tasks.")
]


@dataclass(frozen=True)
class AtlasArguments:
    """Where the atlas is written, and how thorough it is."""

    out: Path = option(Path("atlas"), "DIR", "Folder to write, or to continue.", "--out", "-o")
    control: bool = option(
        False, None, "Judge roles against a random twin of every model.", key_of="measuring"
    )
    step: float = option(10.0, "PERCENT", "Steps of the pruning curve.", key_of="measuring")


def atlas_command(
    config: Config,
    asked: AtlasArguments,
    work: Annotated[WorkOptions, cli.without("convention", "seed")],
    engine: EngineOptions,
    load: Annotated[LoadOptions, cli.without("revision", "tokenizer")],
    json: cli.Json = False,
) -> None:
    """Measure the models of CONFIG on its corpora and tasks; one page.

    A model is a name, or {twin_of = NAME, seed = 0} or {pruned_from = NAME, drop_share = 0.5}; a
    corpus {text = FILE} and {treebank = FILE}, or `sample`; a task as --task has it.
    A command that was broken off goes on when it is run again.

    [dim]headcount atlas models.toml -o atlas/[/dim]
    [dim]headcount atlas models.toml -o atlas/ --engine ray,workers=4[/dim]
    """
    where = engine.made()
    rows = replace(read_plan(config, asked, work, load), engine=where).run(asked.out)
    if json:
        cli.print_json({"rows": rows.to_dict("records")})
        return
    console = cli.output()
    groups: Any = [] if rows.empty else rows.groupby(["model", "corpus"], sort=False)
    for (model, corpus), part in groups:
        first = part.iloc[0]
        named = 1 - float((part["unnamed"] * part["heads_here"]).sum() / first["heads"])
        console.print(f"{model} on {corpus}: {int(first['heads'])} heads, {named:.0%} with a role")
    console.print(f"Wrote {asked.out}/atlas.html, atlas.json and atlas.csv.")
    if rows.empty:
        cli.print_notes(["No model could be measured; the page says why."])


def read_plan(
    config: Path, asked: AtlasArguments, work: WorkOptions, load: LoadOptions
) -> AtlasPlan:
    """What the file asks for; nothing is loaded, and a bad line is refused before any work."""
    given = _read(config)
    from headcount.rooms.atlas.atlas import AtlasPlan

    return AtlasPlan(
        models=[_model(config, name, one) for name, one in given["models"].items()],
        corpora={
            name: partial(_corpus, _of(config, one, ("text", "pairs", "treebank", "coref")), work)
            for name, one in given["corpora"].items()
        },
        tasks={name: _task(config, text) for name, text in given["tasks"].items()},
        control=asked.control,
        step=asked.step,
        limit=work.limit,
        batch_size=work.examples,
        loading={key: value for key, value in vars(load).items() if value is not None},
    )


def _read(config: Path) -> dict[str, dict[str, Any]]:
    """The tables of the file; each must be there and hold something, but for the tasks."""
    given = cli.read_toml(config, "file")
    for name in given:
        if name not in ("models", "corpora", "tasks"):
            raise UsageError(f"{config} has a table '{name}'; it has models, corpora and tasks.")
    for name in ("models", "corpora"):
        if not isinstance(given.get(name), dict) or not given[name]:
            raise UsageError(f"{config} names no {name}; add a table [{name}].")
    return {"tasks": {}, **given}


def _of(config: Path, given: Any, keys: tuple[str, ...]) -> dict[str, Any]:
    """A table of the file with no other keys than these."""
    if given == cli.SAMPLE:
        return {"treebank": cli.SAMPLE}
    if not isinstance(given, dict) or not given or {*given} - set(keys):
        raise UsageError(f"{config} has {given!r}; give a table with {', '.join(keys)}.")
    files = {key: str(value) for key, value in given.items()}
    places = {
        key: value if value == cli.SAMPLE else str(config.parent / value)
        for key, value in files.items()
    }
    for file in places.values():
        if file != cli.SAMPLE and not _is_file(file):
            raise UsageError(f"{config} names {file}, and there is no such file; correct the name.")
    return places


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):  # too long, or with a null byte
        return False


def _model(config: Path, name: str, given: Any) -> AtlasModel:
    from headcount.rooms.atlas.atlas import AtlasModel

    if isinstance(given, str):
        return AtlasModel(name, given)
    if isinstance(given, dict) and "twin_of" in given:
        seed = given.get("seed", 0)
        if type(seed) is not int or not 0 <= seed < 2**63:
            raise UsageError(
                f"{config}: seed of {name} is {seed!r}; give a number from 0 to 2^63-1."
            )
        return AtlasModel(name, str(given["twin_of"]), twin=seed)
    if isinstance(given, dict) and "pruned_from" in given:
        share = given.get("drop_share", 0.5)
        if type(share) is not float or not 0 < share < 1:
            raise UsageError(f"{config}: drop_share of {name} is {share!r}; give 0.5 for half.")
        return AtlasModel(name, str(given["pruned_from"]), drop_share=share)
    raise UsageError(
        f"{config}: the model {name} is {given!r}; give a name, or a table with twin_of or "
        "pruned_from."
    )


def _task(config: Path, text: Any) -> Callable[[], Any]:
    """A task as --task has it; its file is looked for beside the config."""
    spec = cli.parse_task(str(text))
    if spec.place != cli.SAMPLE:
        spec = replace(spec, place=str(config.parent / spec.place))
    spec.check_file()
    return spec.build


def _corpus(files: dict[str, str], work: WorkOptions, subject: hc.Subject) -> dict[str, Any]:
    """The arguments of a survey."""
    from headcount.surveys import sample_for
    from headcount.text import read_corpus

    corpora: dict[str, Any] = {}
    for key, file in files.items():
        name = "corpus" if key in ("text", "pairs") else key
        if file == cli.SAMPLE:
            what = key if key in ("pairs", "coref") else "treebank"
            corpora[name] = sample_for(subject, file, what, limit=work.limit, seed=work.seed)
        else:
            corpora[name] = read_corpus(file, limit=work.limit)
    return corpora
