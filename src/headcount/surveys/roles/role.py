"""A role: a rule that reads what was measured of every head and returns verdicts.

Voita et al., ACL 2019, section 5, were the first to give heads functions by such rules.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

import pandas as pd
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from headcount import plugins
from headcount.errors import UsageError
from headcount.records import Brief, Column, Drawn, Head, HeadTable, parse_head

# --- What a role says of itself -----------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """A role's name with what such a head does, in a few words, and how it looks.

    `glyph` is an SVG path in a box of 16, filled where `solid`, else drawn as a line; the glyph
    keeps roles apart without any colour, `light` and `dark` are its colours on such paper, and
    `sign` is the glyph as a letter, for terminals.
    """

    name: str
    meaning: str
    paper: str = ""
    #: A job; or no more than at which place a head looks (the first token, a separator, the end of
    #: the source); or an observation, from which no job follows. Whether such heads matter less is
    #: a question of its own (`headcount.rooms.agreement.agreement.by_role`).
    says: Literal["job", "place", "observation"] = "job"
    #: Its place among roles, as people read them.
    rank: int = 500
    #: Its place among the roles of which a picture shows one; None: never shown first.
    telling: int | None = None
    sign: str = "✕"
    light: str = "#1b1d22"
    dark: str = "#ece9e2"
    glyph: str = "M3 3 13 13M13 3 3 13"
    solid: bool = False
    #: What would have to be given to a survey, as its option: "--treebank".
    needs: str = ""
    #: How the page looks for what it says in a sentence: "arcs", "mentions", "links", "offset",
    #: "before", "followed", "repeated"; empty where a sentence shows nothing of it.
    shows: str = ""

    @property
    def rests(self) -> bool:
        """Whether no job can be named."""
        return self.says != "job"

    @property
    def title(self) -> str:
        """The name as a title."""
        return self.name.capitalize()


def kind_beside(module: str, name: str) -> Kind:
    """A kind from ``kinds.json`` beside a module: its words and its looks are data."""
    kinds = json.loads(Path(module).with_name("kinds.json").read_text(encoding="utf8"))
    return Kind(name, **kinds[name])


#: What is named by its label alone, or by a role of somebody else who is not here.
OTHER = Kind("other", "named by its label", rank=1000, telling=1000)


class _Kinds(Mapping[str, Kind]):
    """The kinds of all roles of the registry, in the order in which people read them."""

    def __init__(self) -> None:
        self._more: dict[str, Kind] = {}
        self._known: dict[tuple[str, ...], dict[str, Kind]] = {}

    def know(self, role: Any) -> None:
        """Take in a role that is given in hand."""
        for kind in _kinds_of(role):
            if kind.name not in self:
                self._more[kind.name] = kind
                self._known.clear()

    def _all(self) -> dict[str, Kind]:
        key = tuple(plugins.names_of("roles"))
        if key not in self._known:
            every = [kind for role in plugins.every("roles").values() for kind in _kinds_of(role)]
            every = sorted([*every, *self._more.values(), OTHER], key=lambda kind: kind.rank)
            self._known[key] = {kind.name: kind for kind in every}
        return self._known[key]

    def __getitem__(self, name: str) -> Kind:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


def _kinds_of(role: Any) -> list[Kind]:
    """A role's kind, and others that its verdicts may be of."""
    own = getattr(role, "kind", None) or Kind(role.name, "named by its label")
    return [own, *getattr(role, "also", ())]


#: Every role that is there.
KINDS = _Kinds()


def kind_of(role: str) -> Kind:
    """The kind of a role by its name.

    >>> kind_of("positional").meaning
    'points to one offset'
    """
    if role not in KINDS:
        raise UsageError(
            f"There is no role '{role}'; there are {', '.join(KINDS)}. A role of your own comes in "
            "by the registry (`hc.plugins.role`), or is 'other' with a label."
        )
    return KINDS[role]


# --- A role -------------------------------------------------------------------------------------

_UNKNOWN = math.nan


@dataclass(frozen=True)
class Verdict:
    """One role of one head, with its evidence; a head may have several.

    >>> verdict = Verdict(Head("enc", 5, 3), "syntactic", "nsubj dep->head", 0.71, 0.68, 0.74,
    ...                   n=820, baseline=0.45, control=0.22,
    ...                   evidence="nsubj dep->head 0.71 [0.68, 0.74], offset baseline 0.45")
    >>> str(verdict)
    'enc.5.3 syntactic: nsubj dep->head 0.71 [0.68, 0.74], offset baseline 0.45, random twin 0.22'
    """

    head: Head
    #: One of `KINDS`.
    role: str
    #: Which of its kind: "offset -1", "nsubj dep->head"; a word or two.
    label: str
    #: The figure that decides, with the ends of its 95% interval.
    value: float
    low: float = _UNKNOWN
    high: float = _UNKNOWN
    #: How many cases (tokens, arcs, trials) it is over.
    n: int = 0
    #: What the same figure would be without looking: the best offset, a chance pick.
    baseline: float = _UNKNOWN
    #: What the best head of a randomly initialised twin gets.
    control: float = _UNKNOWN
    p: float = _UNKNOWN
    #: Corrected over all heads that were tested together.
    p_adjusted: float = _UNKNOWN
    #: The figures in words, without the control.
    evidence: str = ""
    #: How high it stands on the ladder of nulls (`headcount.rooms.nulls`; 0 where that was not
    #: asked), and that in words.
    rung: int = 0
    beyond: str = ""

    def __post_init__(self) -> None:
        """Refuse a role that is not on the list."""
        kind_of(self.role)

    @property
    def rests(self) -> bool:
        """Whether only a place at which the head looks is named, and no job."""
        return KINDS[self.role].rests

    @property
    def in_words(self) -> str:
        """The evidence, and the random twin's figure if there is one."""
        twin = "" if math.isnan(self.control) else f", random twin {self.control:.2f}"
        return self.evidence + twin + (f"; {self.beyond}" if self.beyond else "")

    def __str__(self) -> str:
        return f"{self.head} {self.role}: {self.in_words}"

    def beside(self, control: float) -> Verdict:
        """The same verdict with the twin's figure."""
        return replace(self, control=control)

    @property
    def beats_twin(self) -> bool:
        """Whether its figure lies above that of a random twin (95%), where one was measured."""
        least = self.value if math.isnan(self.low) else self.low
        return math.isnan(self.control) or least > self.control


class Role(Protocol):
    """The protocol of a role: a dataclass whose thresholds are its fields."""

    @property
    def name(self) -> str:
        """What it is called, as its `kind`; without one its label names it."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns and the details of the table that it judges; without them it is silent."""

    def judge(self, table: HeadTable) -> list[Verdict]:
        """The verdicts that hold, the strongest first."""

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """What the best head of a random twin's table gets on the verdict's own question."""


def best_of(table: HeadTable, column: str, stack: str) -> float:
    """The highest value of a column in a stack; NaN where nothing was measured.

    >>> heads = [Head("enc", 0, 0), Head("enc", 0, 1)]
    >>> best_of(HeadTable.of(heads, {"rare": [0.2, 0.3]}), "rare", "enc")
    0.3
    """
    if column not in table.frame or stack not in table.stacks:
        return _UNKNOWN
    return float(table.stack(stack).frame[column].max())


# --- Verdicts as a frame, one row each, and back ------------------------------------------------

#: The frame's columns: the head in three, then the verdict's own fields.
COLUMNS = ("stack", "layer", "head", *(field.name for field in fields(Verdict)[1:]))
#: Told of each verdict besides: it follows from the role.
_RESTS = "rests"


class Verdicts(Brief, list[Verdict]):
    """A list of verdicts that prints a line each, the first of them."""

    #: The most lines.
    MOST: ClassVar[int] = 12

    def in_brief(self) -> tuple[str, pd.DataFrame]:
        """How many verdicts of how many heads, and the first in words."""
        heads = len({one.head for one in self})
        lines = [f"{len(self)} verdicts on {heads} heads", *map(str, self[: self.MOST])]
        lines += ["..."] * (len(self) > self.MOST)
        shown = {"head": "head", "role": "role", "label": "label", "value": "value", "low": "low"}
        shown |= {"high": "high", "n": "n", "chance": "baseline", "p": "p_adjusted"}
        rows = {title: [getattr(one, name) for one in self] for title, name in shown.items()}
        return "\n".join(lines), pd.DataFrame(rows).set_index("head")


def verdict_frame(verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """One row a verdict, in the order given; the columns are there also when there is none.

    >>> verdict_frame([Verdict(Head("enc", 0, 1), "rare", "rarest token", 0.5)]).head(1).iloc[0, :6]
    stack              enc
    layer                0
    head                 1
    role              rare
    label     rarest token
    value              0.5
    Name: 0, dtype: object
    """
    names = (*COLUMNS[3:], _RESTS)
    rows = [(*verdict.head, *(getattr(verdict, name) for name in names)) for verdict in verdicts]
    frame = pd.DataFrame(rows, columns=[*COLUMNS, _RESTS])
    if not rows:
        words = {"stack", "role", "label", "evidence", "beyond"}
        types = {name: "str" if name in words else "float64" for name in COLUMNS}
        return frame.astype({**types, "rung": "int64", _RESTS: "bool"})
    return frame


#: What a head does, or else at which place it looks; and all of its roles.
ROLE_COLUMNS = (
    Column(
        "role",
        meaning="What the head does: the first of its roles that says so, else where it looks.",
        group="What it does",
    ),
    Column("roles", meaning="All roles of the head, what it does first.", group="What it does"),
)


def with_roles(table: HeadTable) -> HeadTable:
    """The table with the columns `role` and `roles`, from the verdicts in its details.

    >>> heads = [Head("enc", 0, 0), Head("enc", 0, 1)]
    >>> found = [Verdict(heads[1], "sink", "", 0.9), Verdict(heads[1], "rare", "", 0.5)]
    >>> table = HeadTable.of(heads, {}, details={"roles": verdict_frame(found)})
    >>> with_roles(table).frame["roles"].tolist()
    [<NA>, 'rare, sink']
    """
    order = sorted(KINDS, key=lambda role: KINDS[role].rests)
    found: dict[Head, set[str]] = {}
    for verdict in verdicts_of(table.details["roles"]):
        found.setdefault(verdict.head, set()).add(verdict.role)
    own = [[role for role in order if role in found.get(head, ())] for head in table.heads]
    values = {
        "role": pd.array([roles[0] if roles else None for roles in own], dtype="string"),
        "roles": pd.array([", ".join(roles) or None for roles in own], dtype="string"),
    }
    return table.join(HeadTable.of(table.heads, values, ROLE_COLUMNS), replace=True)


def verdicts_of(frame: HeadTable | pd.DataFrame, head: str | Head | None = None) -> Verdicts:
    """The verdicts of a table, or of its frame ``details["roles"]``; those on one head, if named.

    In that frame ``roles.head`` is the method of pandas and no column: ``roles["head"]`` is the
    number of a head within its layer, and here each verdict has its `head` whole.
    """
    if isinstance(frame, HeadTable):
        if "roles" not in frame.details:
            raise UsageError("No role was judged in this table; survey it with roles=True.")
        frame = frame.details["roles"]
    # Columns that a later version added are passed over; those that an earlier one lacks are empty.
    lacking: dict[str, Any] = {
        one.name: one.default for one in fields(Verdict) if one.name not in frame
    }
    lacking.pop("head", None)
    known = frame.assign(**lacking)[list(COLUMNS)].itertuples(index=False, name=None)
    found = []
    for stack, layer, index, name, label, *figures in known:
        if name not in KINDS:  # of a package that is not here
            name, label = OTHER.name, f"{name}: {label}"
        found.append(Verdict(Head(str(stack), int(layer), int(index)), name, label, *figures))
    return Verdicts(one for one in found if head is None or one.head == parse_head(head))


# --- Rows that hold on the half that judges, after they held on the half that chose -------------

#: Whether each row passes, as a mask.
Rule = Callable[[pd.DataFrame], pd.Series]


def confirmed(frame: pd.DataFrame, key: Sequence[str], chosen: Rule, judged: Rule) -> pd.DataFrame:
    """Rows of `report` that pass `judged` and whose twins of `select` passed `chosen`.

    >>> frame = pd.DataFrame({"head": [0, 1, 0, 1], "split": ["select"] * 2 + ["report"] * 2,
    ...                       "value": [0.9, 0.1, 0.8, 0.9]})
    >>> rule = lambda rows: rows["value"] > 0.5
    >>> confirmed(frame, ["head"], rule, rule)["head"].tolist()
    [0]
    """
    halves = {split: rows.set_index(list(key)) for split, rows in frame.groupby("split")}
    if not {"select", "report"} <= halves.keys():
        return frame.iloc[:0]
    select, report = halves["select"], halves["report"]
    found = select.index[chosen(select)]
    return report[judged(report) & report.index.isin(found)].reset_index()


HEAD_KEY = ["stack", "layer", "head"]


def reported(frame: pd.DataFrame, verdict: Verdict, **same: str) -> pd.DataFrame:
    """The rows of `report` of a verdict's stack with these values."""
    rows = frame[(frame["split"] == "report") & (frame["stack"] == verdict.head.stack)]
    for column, value in same.items():
        rows = rows[rows[column] == value]
    return rows


def first_of(values: pd.Series) -> float:
    """The first of these figures; NaN where there is none."""
    return float(values.iloc[0]) if len(values) else math.nan


# --- Verdicts from rows of figures --------------------------------------------------------------


def row_verdicts(
    rows: pd.DataFrame,
    role: str,
    label: Callable[[pd.Series], str],
    evidence: Callable[[pd.Series], str],
) -> list[Verdict]:
    """A verdict for each row: `value`, `low`, `high`, `n`, `baseline`, `p` and `p_adjusted`."""
    return [
        Verdict(
            head_of(row),
            role,
            label(row),
            value=float(row["value"]),
            low=float(row["low"]),
            high=float(row["high"]),
            n=int(row["n"]),
            baseline=float(row["baseline"]),
            p=float(row["p"]),
            p_adjusted=float(row["p_adjusted"]),
            evidence=evidence(row),
        )
        for _, row in rows.iterrows()
    ]


def value_text(row: pd.Series) -> str:
    """A row's value with its interval.

    >>> value_text(pd.Series({"value": 0.86, "low": 0.79, "high": 0.92}))
    '0.86 [0.79, 0.92]'
    """
    return f"{row['value']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"


def head_of(row: pd.Series) -> Head:
    """The head that a row is about."""
    return Head(str(row["stack"]), int(row["layer"]), int(row["head"]))


# --- Roles that read a trial --------------------------------------------------------------------
# A trial leaves one row a head and column in ``details["trials"]``: value, interval, baseline and
# p values that are corrected over all heads that were measured for the same column.

#: The details in which trials leave their figures, and what the model itself did.
TRIALS = "trials"
MEASURES = "trial_models"


# --- Verdicts in words, and in a terminal ---------------------------------------------------------


def counted(does: int, rests: int, heads: str, observed: int = 0) -> str:
    """How many heads do something, and of how many others no more is known than where they look.

    >>> counted(35, 1, "144 heads")
    '35 of 144 heads do a nameable job; 1 more looks much at one place'
    >>> counted(9, 30, "144 heads", observed=11)
    '9 of 144 heads do a nameable job; 30 more look much at one place, 11 at one kind of word'
    """
    told = f"{does or 'none'} of {heads} {'do' if does > 1 else 'does'} a nameable job"
    first = rests or observed
    if not first:
        return told
    more = f"{told}; {first} {'more ' if does else ''}look{'s' if first == 1 else ''}"
    if not rests:
        return f"{more} at one kind of word"
    return f"{more} much at one place" + (f", {observed} at one kind of word" if observed else "")


def says_of(row: Mapping[Any, Any]) -> str:
    """What a row of verdicts says: a job, a place or an observation; of a role that is not here as
    its table has it.

    >>> says_of({"role": "feature", "rests": False}), says_of({"role": "mine", "rests": True})
    ('observation', 'place')
    """
    role = str(row["role"])
    return KINDS[role].says if role in KINDS else "place" if row["rests"] else "job"


_HOW_TO_READ = "A line gives a share with its 95% interval, then what a rule without a model gets"
_TWIN = ", then what the best head gets with random weights"
_CERTAIN = ". Tests are corrected for all heads that were tried."
_DIRECTIONS = (
    "nsubj dep->head: the subject looks most at its verb; head->dep: the verb at its subject; "
    "head<-dep: of all words the verb looks most at the subject."
)


@dataclass(frozen=True, repr=False)
class RolesText(Drawn):
    """The verdicts that rich prints, the clearest of each role; a few lines a role."""

    verdicts: Sequence[Verdict]
    #: How many heads the model has, and what it is called.
    heads: int
    model: str = ""
    #: Roles that were judged; those without a verdict are told in one line.
    judged: Sequence[str] = ()
    #: Roles that could not be judged, with what they would need; empty where nothing would help.
    unjudged: dict[str, str] = field(default_factory=dict)
    #: The most verdicts of one role that are shown.
    most: int = 5
    #: The sign and colour of each role, as on the page.
    signs: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """A headline, a block for each role, then what was not found and not asked."""
        yield Text(self.headline, style="bold")
        for role in KINDS:
            own = [verdict for verdict in self.verdicts if verdict.role == role]
            if own:
                yield Text("")
                yield self._title(role, own)
                yield _rows(self._shown(own))
                yield from _rest(own, self.most)
        yield Text("")
        for line in self._footnotes():
            yield Text(line, style="dim")

    @property
    def headline(self) -> str:
        """How many heads do something, and how many look at one place, as a report says it.

        >>> RolesText([], 72, "minilm").headline
        'minilm: none of 72 heads does a nameable job'
        """
        by = {
            says: {one.head for one in self.verdicts if KINDS[one.role].says == says}
            for says in ("job", "place", "observation")
        }
        rests = by["place"] - by["job"]
        observed = by["observation"] - by["job"] - rests
        name = f"{self.model}: " if self.model else ""
        return name + counted(len(by["job"]), len(rests), f"{self.heads} heads", len(observed))

    def _title(self, role: str, own: Sequence[Verdict]) -> Text:
        heads = len({verdict.head for verdict in own})
        counted = f"{heads} {'head' if heads == 1 else 'heads'}"
        sign, colour = self.signs.get(role, ("", ""))
        named = Text.assemble((f"{sign} " if sign else "", colour), (role, "bold"))
        return named.append(f" · {KINDS[role].meaning} · {counted}")

    def _shown(self, own: Sequence[Verdict]) -> list[Verdict]:
        """The clearest of each label first, so that one relation does not fill the block."""
        firsts = {verdict.label: verdict for verdict in reversed(own)}
        others = [verdict for verdict in own if verdict is not firsts[verdict.label]]
        clearest = [verdict for verdict in own if verdict is firsts[verdict.label]]
        return [*clearest, *others][: self.most]

    def _footnotes(self) -> Iterator[str]:
        found = {verdict.role for verdict in self.verdicts}
        if found:
            asked = any(not math.isnan(verdict.control) for verdict in self.verdicts)
            yield _HOW_TO_READ + (_TWIN if asked else "") + _CERTAIN
        if "syntactic" in found:
            yield _DIRECTIONS
        silent = {role: why for role, why in self.unjudged.items() if role not in found}
        for told, roles in (
            ("No head", [role for role in self.judged if role not in found]),
            ("Not asked", [f"{role} ({why})" for role, why in silent.items() if why]),
            ("Not for this model", [role for role, why in silent.items() if not why]),
        ):
            if roles:
                yield f"{told}: {', '.join(roles)}."


def _rows(shown: Sequence[Verdict]) -> Table:
    # Text, never strings: rich would read a relation named "[red]" as markup.
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column()
    for verdict in shown:
        table.add_row(Text(f"  {verdict.head}"), Text(verdict.in_words))
    return table


def _rest(own: Sequence[Verdict], most: int) -> Iterator[Text]:
    if len(own) > most:
        yield Text(f"  ... and {len(own) - most} more", style="dim")


# --- The roles that a survey judges, and the judging ---------------------------------------------


def all_roles() -> list[Role]:
    """Every role with the thresholds of its paper, in the order of `KINDS`."""
    made: list[Role] = [role() for role in plugins.every("roles").values()]
    return sorted(made, key=lambda role: [*KINDS].index(role.name))


def judged(
    table: HeadTable, roles: Sequence[Role], twins: Sequence[HeadTable] = ()
) -> list[Verdict]:
    """The verdicts of all roles whose figures are there.

    Where random twins were measured they decide: what the best head of a model that has learned
    nothing reaches is no role. The lower end of a verdict's interval must lie above their mean.
    """
    for role in roles:
        KINDS.know(role)
    found = [
        verdict.beside(_by_chance(role, verdict, twins)) if twins else verdict
        for role in roles
        if not unread(role, table)
        for verdict in role.judge(table)
    ]
    held = [verdict for verdict in found if verdict.beats_twin]
    return sorted(held, key=lambda verdict: [*KINDS].index(verdict.role))


def unread(role: Role, table: HeadTable) -> list[str]:
    """The columns and details that a role needs and the table does not have."""
    known = [name for name in table.names if table.frame[name].notna().any()]
    return [name for name in role.reads if name not in known and name not in table.details]


def _by_chance(role: Role, verdict: Verdict, twins: Sequence[HeadTable]) -> float:
    found = [role.chance(twin, verdict) for twin in twins if not unread(role, twin)]
    return math.fsum(found) / len(found) if found else math.nan
