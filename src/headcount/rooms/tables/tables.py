"""A run in brief: one table for a paper, tables of its frames, and one head in words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from headcount.errors import UsageError
from headcount.pruning import can_go
from headcount.records import Brief, Head, HeadTable, Run, parse_head, plain_figure
from headcount.reports import read_source
from headcount.surveys.roles import KINDS, verdicts_of

FORMATS = ("markdown", "latex", "typst")

# --- What the heads that matter do, what they are worth, and whether they can be pruned ----------


class PaperTable(Brief, str):
    """The text of a table; a notebook shows its rows."""

    frame: pd.DataFrame

    __repr__ = str.__str__

    def in_brief(self) -> tuple[str, pd.DataFrame]:
        """What a notebook shows."""
        return "The heads that matter", self.frame


def paper_table(
    run: Run | HeadTable | str | Path, format: str = "markdown", *, most: int = 12
) -> PaperTable:
    """The heads that matter: role with evidence, importance with interval, and pruning.

    Heads with a job come first, then those of the highest importance, `most` in all. The columns
    fit a page: what the run did not measure is left out.

    >>> from headcount.records import Column, Head
    >>> ablation = Column("ablation", group="How much it matters", direction="higher")
    >>> heads = [Head("enc", 0, 0), Head("enc", 0, 1)]
    >>> print(paper_table(HeadTable.of(heads, {"ablation": [0.25, 1.5]}, [ablation])))
    | head | ablation |
    |---|---|
    | enc.0.1 | 1.500 |
    | enc.0.0 | 0.250 |
    """
    if format not in FORMATS:
        raise UsageError(f"The format is '{format}'; choose {', '.join(FORMATS)}.")
    source = read_source(run, exhibits=False)
    table = source.table
    roles, curve = source.frames.get("roles"), source.frame("curve")
    verdicts: dict[str, Any] = {}
    for one in [] if roles is None else verdicts_of(roles):
        kept = verdicts.setdefault(str(one.head), one)
        if KINDS[kept.role].says != "job" and KINDS[one.role].says == "job":
            verdicts[str(one.head)] = one
    measures = [name for name in _MEASURES if name in table.names]
    if roles is None and not measures:
        raise UsageError("There are no roles and no importance in this run; survey or score first.")
    jobs = [name for name, one in verdicts.items() if KINDS[one.role].says == "job"]
    ranked = [str(head) for head in table.rank(measures[0])] if measures else list(verdicts)
    jobs.sort(key=lambda name: ranked.index(name) if name in ranked else len(ranked))
    wanted = list(dict.fromkeys([*jobs, *ranked]))[:most]
    judged = [] if curve is None else can_go(curve)[:1]
    rows = []
    for name in wanted:
        said, head = verdicts.get(name), table.head(name)
        row = {"head": name}
        if roles is not None:
            row["role"] = "" if said is None else f"{said.role}: {said.label}".removesuffix(": ")
            row["value (chance)"] = "" if said is None else _evidence(said)
        for measure in measures[:2]:
            ends = (measure, f"{measure}_low", f"{measure}_high")
            row[measure] = _cell(head, ends if ends[1] in head else measure)
        if judged:
            row[f"pruned {judged[0].within}"] = "yes" if name in judged[0].names else "no"
        rows.append(row)
    frame = pd.DataFrame(rows)
    text = PaperTable(_laid_out([str(name) for name in frame], frame.to_numpy().tolist(), format))
    text.frame = frame.set_index("head")
    return text


def _evidence(one: Any) -> str:
    return f"{one.value:.2f}" + ("" if one.baseline != one.baseline else f" ({one.baseline:.2f})")


def _laid_out(titles: Sequence[str], rows: Sequence[Sequence[str]], format: str) -> str:
    """Titles and cells in one of the formats."""
    if format == "markdown":
        lines = [f"| {' | '.join(c.replace('|', '/') for c in row)} |" for row in [titles, *rows]]
        return "\n".join([lines[0], "|" + "---|" * len(titles), *lines[1:]])
    if format == "typst":
        lines = ["  " + ", ".join(f"[{_typst(c)}]" for c in row) + "," for row in [titles, *rows]]
        return "\n".join([f"#table(columns: {len(titles)},", *lines, ")"])
    head, *body = [" & ".join(map(_latex, row)) + r" \\" for row in [titles, *rows]]
    opening = [rf"\begin{{tabular}}{{{'l' * len(titles)}}}", r"\toprule", head, r"\midrule"]
    return "\n".join([*opening, *body, r"\bottomrule", r"\end{tabular}"])


# --- One frame of a run -------------------------------------------------------------------------

#: What a paper shows of each frame: a title, and a column or a value with the ends of its interval.
_SHOWN: dict[str, dict[str, str | list[str]]] = json.loads(
    Path(__file__).with_name("frames.json").read_text("utf8")
)


def check_frame_table(name: str, format: str) -> None:
    """Refuse a table that there is not, or a format."""
    if name not in _SHOWN:
        raise UsageError(f"There is no table of '{name}'; choose {', '.join(_SHOWN)}.")
    if format not in FORMATS:
        raise UsageError(f"The format is '{format}'; choose {', '.join(FORMATS)}.")


def frame_table(name: str, frame: pd.DataFrame, format: str = "markdown") -> str:
    """A frame of a run (roles, relations, curve, agreement) as Markdown, LaTeX or Typst.

    Of relations give the best head of each (`hc.roles.best_heads`).

    >>> frame = pd.DataFrame({"first": ["gradient"], "second": ["ablation"], "stack": ["enc"],
    ...     "kind": ["spearman"], "value": [0.5], "low": [0.3], "high": [0.7], "heads": [48]})
    >>> print(frame_table("agreement", frame))
    | measure | and | stack | correlation | value | heads |
    |---|---|---|---|---|---|
    | gradient | ablation | enc | spearman | 0.500 [0.300, 0.700] | 48 |
    """
    check_frame_table(name, format)
    if "head" in frame and "layer" in frame:
        named = [f"{r.stack}.{r.layer}.{r.head}" for r in frame.itertuples()]
        frame = frame.assign(head=named)
    there = {t: c for t, c in _SHOWN[name].items() if (c if isinstance(c, str) else c[0]) in frame}
    rows = [[_cell(row, columns) for columns in there.values()] for row in frame.to_dict("records")]
    return _laid_out(list(there), rows, format)


def _cell(row: Mapping[Any, Any], columns: str | Sequence[str]) -> str:
    if isinstance(columns, str):
        return plain_figure(row.get(columns))
    value, low, high = (plain_figure(row.get(name)) for name in columns)
    return f"{value} [{low}, {high}]" if low and high else value


_LATEX = str.maketrans({c: "\\" + c for c in "&%$#_{}"} | {"~": r"\textasciitilde{}", "^": r"\^{}"})


def _latex(text: str) -> str:
    plain = text.replace("\\", r"\textbackslash{}").translate(_LATEX)
    return plain.replace("->", r"$\to$").replace("<-", r"$\gets$")


def _typst(text: str) -> str:
    return "".join(f"\\{sign}" if sign in "\\#$*_`<>@[]~" else sign for sign in text)


# --- All that a run knows of one head -------------------------------------------------------------

_MEASURES = ("ablation", "gradient", "contribution", "relevance")


@dataclass(frozen=True, repr=False)
class Explained(Brief):
    """What a run says of a head: a sentence for each question."""

    head: Head
    says: tuple[str, ...]
    #: Every value of the head.
    values: pd.DataFrame

    def in_brief(self) -> tuple[str, None]:
        """The sentences."""
        return "\n  ".join((str(self.head), *self.says)), None

    def to_dict(self) -> dict[str, Any]:
        """Everything, for machines."""
        values = self.values["value"].to_dict()
        return {"head": str(self.head), "says": self.says, "values": values}


def explain(run: Run | HeadTable | str | Path, head: str | Head) -> Explained:
    """What a head does, how much it matters and whether it can be pruned, from a run.

    >>> from headcount.records import Column
    >>> ablation = Column("ablation", group="How much it matters", direction="higher")
    >>> heads = [Head("enc", 0, 0), Head("enc", 0, 1)]
    >>> explain(HeadTable.of(heads, {"ablation": [0.25, 1.5]}, [ablation]), "enc.0.1")
    enc.0.1
      Role: not measured; headcount survey MODEL --treebank FILE -o RUN.
      Importance: ablation 1.500, rank 1 of 2.
      Pruning: not measured; headcount prune MODEL --task ... -o DIR.
    """
    source = read_source(run, exhibits=False)
    wanted, table = parse_head(head), source.table
    row = table.head(wanted)
    roles, curve = source.frames.get("roles"), source.frame("curve")
    says = [*_roles(roles, wanted), *_importance(table, wanted, row), _removal(curve, wanted)]
    return Explained(wanted, tuple(says), row.in_brief()[1])


def _roles(roles: pd.DataFrame | None, head: Head) -> Iterator[str]:
    if roles is None:
        yield "Role: not measured; headcount survey MODEL --treebank FILE -o RUN."
        return
    verdicts = verdicts_of(roles, head)
    for one in sorted(verdicts, key=lambda one: KINDS[one.role].says != "job"):
        yield f"Role: {one.role}, {KINDS[one.role].says}: {one.in_words}."
    if not verdicts:
        yield "Role: none of the rules names a job, a place or a kind of word."


def _importance(table: HeadTable, head: Head, row: dict[str, Any]) -> Iterator[str]:
    there = [name for name in _MEASURES if row.get(name) is not None]
    if not there:
        yield "Importance: not measured; headcount score MODEL --task ... -o RUN."
    for name in there:
        low, high, p = (row.get(f"{name}_{end}") for end in ("low", "high", "p_adjusted"))
        interval = f" [{plain_figure(low)}, {plain_figure(high)}]" if low is not None else ""
        unit = f" {table.column(name).unit}".rstrip()
        tested = f", corrected p {p:.2g}" if p is not None else ""
        ranked = table.rank(name)
        place = f"rank {ranked.index(head) + 1} of {len(ranked)}"
        yield f"Importance: {name} {plain_figure(row[name])}{interval}{unit}, {place}{tested}."


def _removal(curve: pd.DataFrame | None, head: Head) -> str:
    judged = [] if curve is None else can_go(curve)[:1]
    if not judged:
        return "Pruning: not measured; headcount prune MODEL --task ... -o DIR."
    among = "among" if str(head) in judged[0].names else "not among"
    return f"Pruning: {among} the heads that can be pruned. {judged[0].sentence}"
