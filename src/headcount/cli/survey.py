"""`headcount survey`: what every head looks at, over a corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import headcount as hc
from headcount import plugins
from headcount.cli.inputs import CorpusArguments, read_annotated
from headcount.cli.options import Json, Model, RunArguments, loaded
from headcount.cli.printing import output, print_json, print_notes, print_run, status
from headcount.errors import UsageError, skipped_in_words
from headcount.models import LoadOptions
from headcount.records import EngineOptions, names, option
from headcount.surveys import ReadingOptions, RoleOptions

if TYPE_CHECKING:
    from headcount.surveys.roles import Role


# --- Its options --------------------------------------------------------------------------------

_role = partial(option, panel="What heads do (roles)")


@dataclass(frozen=True)
class SurveyArguments:
    """What is measured of the text."""

    columns: list[str] | None = option(
        None, "NAMES", "Columns to measure and show, separated by commas.", reads=names
    )
    all: bool = option(
        False, None, "Print a line for every head, not for the telling ones alone.", key_of="show"
    )
    explain: bool = option(
        False,
        None,
        "Print how attention was read: as maps, in tiles, or in a fused kernel.",
        key_of="show",
    )
    offset_mass: bool = option(
        False, None, "Keep the whole distribution of mass by offset.", key_of="show"
    )
    families: bool = option(
        False,
        None,
        "Measure how unlike every two heads are: nearest heads, clusters, a map (pairs.npz). "
        "Keeps the maps of one batch of all layers in memory.",
        key_of="show",
    )
    patterns: bool = option(
        False,
        None,
        "Name the pattern of every map (vertical, diagonal, both, block, heterogeneous).",
        key_of="show",
    )


@dataclass(frozen=True)
class RoleArguments:
    """What heads are judged on, and how it is shown."""

    treebank: str | None = _role(
        None,
        "FILE",
        "Sentences with trees, .conllu or .conll: which heads follow which relation. Serves as the "
        "text where no other is given; `sample` for the bundled one.",
    )
    coref: str | None = _role(
        None,
        "FILE",
        "Coreference: .jsonl with sents and clusters, .conllu with Entity=, or GAP's .tsv; "
        "`sample` for the bundled one.",
    )
    best_heads: bool = _role(
        False,
        None,
        "Print the best head of each relation (Clark et al.'s Table 1): its accuracy on sentences "
        "that did not choose it, beside the best fixed offset.",
    )
    table_format: str = _role(
        "text",
        "HOW",
        "How --best-heads is written: text, markdown, latex or typst.",
        choices=("text", "markdown", "latex", "typst"),
        instead="headcount ls RUN --table relations,format=latex",
    )


# --- The verb -----------------------------------------------------------------------------------


def survey_command(
    model: Model,
    corpus: CorpusArguments,
    target: RunArguments,
    asked: SurveyArguments,
    judge: RoleArguments,
    judging: RoleOptions,
    reading: ReadingOptions,
    engine: EngineOptions,
    load: LoadOptions,
    json: Json = False,
) -> None:
    """Measure where every head looks over a corpus, and name its role.

    [dim]headcount survey minilm --text sample[/dim]
    [dim]headcount survey minilm --treebank sample --control random-init[/dim]
    [dim]headcount survey ./my-model --text sentences.txt -o run/[/dim]
    [dim]cat news.txt | headcount survey bert-base-uncased --text - --json[/dim]
    """
    where = engine.made()
    best = plugins.part("best heads")
    if best is not None:
        best.check_best_heads(judge, judging, json)
    with status("Reading the corpus"):
        files = {"treebank": judge.treebank, "coref": judge.coref, "arguments": judging.arguments}
        annotated = read_annotated(files, reading)
        text = corpus.read(reading) if corpus.given or not any(annotated.values()) else None
        if judging.parser is not None:  # a parser that is not there shows before the model
            from headcount.surveys import read_corpora

            text, trees = text or corpus.read(reading), annotated["treebank"]
            text = read_corpora(text, treebank=trees, parser=judging.parser).treebank
            annotated["treebank"], judging = text, replace(judging, parser=None)
        wanted: Any = judging.roles
        if judge.best_heads and target.out is None and not judging.roles:
            wanted = [hc.roles.Syntactic()]
        judging = replace(
            judging,
            roles=wanted,
            arguments=annotated.pop("arguments"),
        )
        if judging.frequencies is not None:  # a bad file shows before a model is loaded
            known = plugins.get("parts", "frequencies")(judging.frequencies)
            judging = replace(judging, frequencies=known)
        _check_columns(asked.columns, reading)
        reading = replace(reading, own_output=reading.own_output or None)
    # The run is made and locked before the work: a bad place is refused at once.
    with nullcontext() if target.out is None else hc.Run.open(target.out) as run:
        subject = loaded(model, load)
        tallies = _tallies(asked, reading.convention)
        table = hc.survey(
            subject,
            text,
            **annotated,
            columns=asked.columns,
            roles=judging,
            tallies=tallies,
            reading=reading,
            run=run,
            replace=target.replace,
            engine=where,
        )
        notes = [] if run is None else run.stages["survey"]["notes"]
    families = _families(subject, table, tallies) if asked.families else None
    if json:
        # The table, and the verdicts where heads were judged.
        from headcount.records import to_strict

        more = best.best_heads_json(table) if judge.best_heads else {}
        more |= {} if families is None else plugins.get("parts", "families").families_json(families)
        if "roles" in table.details:
            more["roles"] = to_strict(table.details["roles"].to_dict("records"))
        print_json(table.to_dict() | more)
        return
    if judge.best_heads:
        best.print_best_heads(table, judge.table_format)
        if judge.table_format == "text":  # a table for a paper is all that its file should hold
            print_run(target.out)
        return
    notes = [note for note in notes if note not in table.provenance["remarks"]]
    notes += _paths_in_words(table) if asked.explain else []
    notes += table.provenance["remarks"][-1:] if "repeats" in table.details else []
    _print_survey(table, subject, asked.columns, reading.stacks, notes, every=asked.all)
    if families is not None:
        plugins.get("parts", "families").print_families(families)
    print_run(target.out)
    if target.out is None and "roles" in table.details:
        output().print("-o DIR keeps every verdict and figure; --json prints them.", style="dim")


def _check_columns(columns: list[str] | None, reading: ReadingOptions) -> None:
    """Refuse a column that is not known before a model is loaded for it."""
    from headcount.surveys import COLUMNS, chosen_tallies, tally_columns

    if columns is not None and not columns:
        raise UsageError("--columns names no column; name some, e.g. --columns self,next.")
    ours = [column.name for column in COLUMNS]
    if columns is not None and not set(columns) <= set(ours):
        known = tally_columns()
        columns = [name for name in columns if name not in known]
    chosen_tallies(columns, reading.convention, reading.confidence_without)


def _tallies(asked: SurveyArguments, convention: str) -> list[Any]:
    """What is measured besides, by name; families are printed, so that they are made here."""
    switches = {"patterns": asked.patterns, "offset-mass": asked.offset_mass}
    found: list[Any] = [name for name, wanted in switches.items() if wanted]
    if asked.families:
        found.append(plugins.get("parts", "families").Divergence(convention))
    return found


def _families(subject: hc.Subject, table: hc.HeadTable, tallies: Sequence[Any]) -> Any:
    room, about = plugins.get("parts", "families"), table.provenance
    return room.families_of_tally(subject, tallies[-1], seed=about["seed"] or 0, about=about)


# --- What is printed ----------------------------------------------------------------------------

#: Columns that people see unless they choose, in the order in which a narrow terminal drops
#: them, the last ones first; they stand in the order of the table.
WORTH_SEEING = (
    *("confidence", "entropy", "best_offset", "best_offset_share", "previous"),
    *("next", "separator", "first", "self", "punctuation"),
)


def _print_survey(
    table: hc.HeadTable,
    subject: hc.Subject,
    columns: Sequence[str] | None,
    stacks: Sequence[str] | None,
    notes: Sequence[str],
    *,
    every: bool = False,
) -> None:
    """The roles, where heads were judged; columns of all heads where asked for, else of a few."""
    judged = "roles" in table.details
    if judged:
        _print_roles(table, subject)
    if columns is not None or every or not judged:
        shown = (
            table if stacks is None else table.select(h for h in table.heads if h.stack in stacks)
        )
        width = output().width
        chosen = list(columns) if columns is not None else _worth_seeing(shown, width)
        few = shown if every else _telling_heads(shown, chosen or shown.names)
        output().print(few.draw(chosen or None, papers=False))
        if len(few) < len(shown):
            told = f"{len(few)} of {len(shown)} heads: the highest of each column and stack"
            output().print(f"{told}. --show all lists every head.", style="dim")
    if "pattern" in table.names:
        _print_patterns(table)
    about, corpora = table.provenance, _corpora(table)
    sizes = [_sizes(name, read) for name, read in corpora.items()]
    output().print(f"{'; '.join(sizes)}; {subject!r}", style="dim")
    parts = [*corpora.values(), about.get("trials", {"remarks": []})]
    remarks = [remark for part in parts for remark in part["remarks"]]
    counts = [read["counts"]["skipped"] for read in corpora.values()]
    skipped = [line for each in counts for line in skipped_in_words(each)]
    print_notes([*subject.notes, *remarks, *skipped, *notes])


def _corpora(table: hc.HeadTable) -> dict[str, Any]:
    """What the provenance says of each corpus that was read."""
    about = table.provenance
    found: dict[str, Any] = about.get("corpora", {about["corpus"]: about})
    return found


def _paths_in_words(table: hc.HeadTable) -> list[str]:
    """How attention was read, a line for each corpus and path."""
    from headcount.wiring import PATHS

    return [
        f"Attention over {name} was read by the path '{path}': {PATHS[path]}."
        for name, read in _corpora(table).items()
        for path in read["attention"]
    ]


#: Tables of so many heads are printed whole; of larger ones the highest of each column and stack.
_SMALL = 24


def _telling_heads(table: hc.HeadTable, columns: Sequence[str]) -> hc.HeadTable:
    """The heads that have the highest value of some column in their stack; all if few."""
    if len(table) <= _SMALL:
        return table
    numeric = table.frame[list(columns)].select_dtypes("number").columns
    parts = [table.stack(stack) for stack in table.stacks]
    wanted = {head for part in parts for name in numeric for head in part.rank(str(name))[:1]}
    return table.select(head for head in table.heads if head in wanted)


def _worth_seeing(table: hc.HeadTable, width: int) -> list[str]:
    measured = [name for name in WORTH_SEEING if name in table.names]
    measured = [name for name in measured if table.frame[name].notna().any()]
    fitting = table.draw(measured).fitting(width) if measured else []
    return [name for name in table.names if name in fitting]


def _print_roles(table: hc.HeadTable, subject: hc.Subject) -> None:
    from headcount.reports import terminal_signs
    from headcount.surveys.roles import RolesText, all_roles, unread, verdicts_of

    missing = [role for role in all_roles() if unread(role, table)]
    output().print(
        RolesText(
            verdicts_of(table.details["roles"]),
            len(table),
            subject.name,
            judged=[role.name for role in all_roles() if role not in missing],
            unjudged={role.name: _why(role, table) for role in missing},
            signs=terminal_signs(),
        )
    )
    if "prevalence" in table.details:
        for line in table.details["prevalence"]["sentence"]:
            output().print(str(line), style="dim", markup=False)


def _print_patterns(table: hc.HeadTable) -> None:
    """The mean share of each pattern in every layer."""
    shares = plugins.get("parts", "patterns by layer")(table)
    output().print("Patterns, mean share over the heads of a layer:", style="bold")
    names = [str(name).replace("_diagonal", "+diagonal") for name in shares]
    output().print("layer   " + "  ".join(names), style="dim")
    for (stack, layer), row in zip(shares.index.tolist(), shares.to_numpy(), strict=True):
        cells = [f"{100 * s:>{len(n) - 1}.0f}%" for n, s in zip(names, row, strict=True)]
        output().print(f"{stack}.{layer:<4}" + "  ".join(cells))


def _why(role: Role, table: hc.HeadTable) -> str:
    """What would have to be given, or why a corpus does not show it; else nothing."""
    noted = [table.notes[name] for name in role.reads if name in table.notes]
    if noted and "trials" not in role.reads:
        return noted[0]
    kind = hc.roles.KINDS.get(role.name)
    return "" if kind is None else kind.needs


def _sizes(name: str, about: Mapping[str, Any]) -> str:
    """What was read, in words: "20 pairs of news.tsv, 310 source and 290 target tokens"."""
    counts, unit = about["counts"], about["unit"]
    sides = [f"{number:,} {side}" for side, number in counts["tokens"].items()]
    tokens = " and ".join(sides) if len(sides) > 1 else f"{sum(counts['tokens'].values()):,}"
    number = counts["sentences"]
    named = unit.removesuffix("s") if number == 1 else unit
    return f"{number:,} {named} of {name}, {tokens} tokens"
