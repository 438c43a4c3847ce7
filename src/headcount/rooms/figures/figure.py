"""What all figures share: their look in print, panels and keys, and what they are drawn from.

A figure is drawn from a run, its path, a head table or a frame; what is not there is named in one
sentence with the command that makes it.
"""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from functools import partialmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, TypeVar

import numpy as np
import pandas as pd

from headcount.errors import HeadcountError, RunError, UsageError, install_hint
from headcount.records import HeadTable, Run, write_bytes
from headcount.reports import looks, read_source, run_at

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# --- A figure in print's look, its panels, and the key below them -------------------------------
# matplotlib is loaded only when something is drawn, and pyplot never: no window, no global state.

#: Keywords of a drawing function of matplotlib.
Style = dict[str, Any]
#: One column of a two-column paper, or the whole page.
Width = Literal["column", "page"]


class How(TypedDict, total=False):
    """What every figure takes besides: its width, and a file to be saved in."""

    width: Width
    path: str | Path | None


INK, GREY, HAIRLINE = "#333333", "#8a8d94", 0.6
#: Okabe and Ito's colours, which stay apart for all kinds of sight; each with its marker.
SERIES = (
    ("#0072b2", "o"),
    ("#d55e00", "s"),
    ("#009e73", "^"),
    ("#cc79a7", "D"),
    ("#e69f00", "v"),
    ("#56b4e9", "P"),
    (INK, "X"),
)
STACK_COLOURS = {"enc": SERIES[0], "dec": SERIES[1], "cross": SERIES[2], "all": (INK, "X")}

_INCHES = {"column": 3.3, "page": 6.9}
_DATES = {".svg": "Date", ".pdf": "CreationDate", ".png": None}


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


@contextmanager
def sheet(
    count: int = 1,
    *,
    most: int = 3,
    columns: int | None = None,
    width: Width = "page",
    height: float = 1.9,
    path: str | Path | None = None,
    sharey: bool = False,
) -> Iterator[tuple[Figure, list[Axes]]]:
    """A figure with `count` panels, saved at the end where a path is given.

    At most `most` panels stand in a row, half as many in one column of a paper, or exactly
    `columns`; `height` is of one row in inches. The same numbers give the same bytes.

    >>> with sheet(5) as (figure, drawn):
    ...     len(drawn), _spot(drawn[3])
    (5, (1, 0))
    """
    try:
        from matplotlib import style
        from matplotlib.figure import Figure
    except ImportError as error:
        raise HeadcountError(
            f"Figures need matplotlib, which is not installed; {install_hint('plot')}."
        ) from error

    if width not in _INCHES:
        raise UsageError(f"width is '{width}'; it is 'column' (3.3 in) or 'page' (6.9 in).")
    wide = columns or min(count, most if width == "page" else max(1, most // 2))
    rows = -(-count // wide)
    with style.context(["default", Path(__file__).with_name("paper.mplstyle")]):
        shown = {"_repr_png_": partialmethod(saved, ".png"), "__repr__": _in_words}
        made = type("Figure", (Figure,), shown)  # a notebook shows it as it is
        figure = made(figsize=(_INCHES[width], 0.3 + height * rows), layout="constrained")
        panels = figure.subplots(rows, wide, squeeze=False, sharey=sharey).flatten()
        for panel in panels[count:]:
            panel.set_axis_off()
        yield figure, list(panels[:count])
        if path is not None:
            place = Path(path)
            if place.suffix not in _DATES:
                raise UsageError(
                    f"'{place.name}' cannot be a figure's name; it ends with .svg, .pdf or .png."
                )
            write_bytes(place, saved(figure, place.suffix))


Shown = TypeVar("Shown")


@contextmanager
def panelled(
    shown: Mapping[str, Shown], x: str, y: str, key: int = 4, **shape: Any
) -> Iterator[tuple[Figure, Iterator[tuple[Axes, Shown]]]]:
    """A panel for each of several things, its title above; axes named once, and one key below.

    >>> with panelled({"one": [1, 2], "two": [3]}, "place", "value") as (figure, pairs):
    ...     drawn = [panel.plot(values) for panel, values in pairs]
    >>> [panel.get_ylabel() for panel in figure.axes]
    ['value', '']
    """
    with sheet(len(shown), **shape) as (figure, panels):
        for panel, title in zip(panels, shown, strict=True):
            panel.set_title(title)
        yield figure, zip(panels, shown.values(), strict=True)
        label_outer(panels, x, y)
        key_below(figure, key)


def _in_words(figure: Figure) -> str:
    wide, high = figure.get_size_inches()
    return f"Figure({wide:.1f} x {high:.1f} inches, {len(figure.axes)} panels)"


def saved(figure: Figure, suffix: str) -> bytes:
    """The figure as a file of this kind, without a date."""
    date, held = _DATES[suffix], io.BytesIO()
    about: dict[str, Any] = {date: None} if date else {}
    figure.savefig(held, format=suffix[1:], metadata=about)
    return held.getvalue()


def key_below(figure: Figure, columns: int = 4) -> None:
    """The legend of what the panels hold below the whole figure, where it hides no point."""
    handles: dict[str, Any] = {}
    for panel in figure.axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if handles:
        inches = 0.42 + 0.042 * max(map(len, handles))  # a mark, and letters of 7 points
        wide = max(1, min(columns, len(handles), int(figure.get_figwidth() / inches)))
        lines = -(-len(handles) // wide)
        figure.set_figheight(figure.get_figheight() + 0.15 * (lines - 1))  # panels stay as tall
        style: Style = {"loc": "outside lower center", "ncols": wide}
        figure.legend(list(handles.values()), list(handles), **style)


def layer_axis(panel: Axes, layers: int) -> None:
    """Whole numbers below a panel, not too many of them."""
    panel.set_xticks(range(0, layers, max(1, -(-layers // 12))))
    panel.set_xlabel("layer")


def label_outer(drawn: list[Axes], x: str, y: str) -> None:
    """Name the axes once: x where no panel is underneath, y at the left."""
    spots = [_spot(panel) for panel in drawn]
    for panel, (row, column) in zip(drawn, spots, strict=True):
        panel.set_xlabel("" if (row + 1, column) in spots else x)
        panel.set_ylabel("" if column else y)


def _spot(panel: Axes) -> tuple[int, int]:
    """Row and column of a panel."""
    where = panel.get_subplotspec()
    assert where is not None  # panels are only made by `sheet`
    return where.rowspan.start, where.colspan.start


def role_colour(role: str) -> str:
    """The colour that the role has on the page of a report.

    >>> role_colour("sink") == looks()["sink"].light, role_colour("mine") == looks()["other"].light
    (True, True)
    """
    return looks().get(role, looks()["other"]).light


def role_marker(role: str) -> str:
    """The sign that the role has in a terminal and on the page, as a marker.

    >>> role_marker("rare") == f"${looks()['rare'].sign}$"
    True
    """
    return f"${looks().get(role, looks()['other']).sign}$"


# --- What a figure needs, and the one sentence that says what is not there ----------------------

_SCORE = "`headcount score MODEL --task TASK --by {} -o RUN`"
_TREES = "`headcount survey MODEL --treebank FILE -o RUN`"
SURVEY = "`headcount survey MODEL --text FILE -o RUN`"
#: The command that makes a frame, a column, or columns that begin so.
_MAKES = {
    **{
        score: _SCORE.format(score)
        for score in ("ablation", "gradient", "contribution", "relevance")
    },
    **dict.fromkeys(("roles", "relations", "features", "links", "to_"), _TREES),
    "noop": "`headcount survey MODEL --text FILE --judging roles -o RUN`",
    "pattern": "`headcount survey MODEL --text FILE --show patterns -o RUN`",
    "curve": "`headcount prune MODEL --task TASK -o DIR` or `headcount report MODEL`",
    "pairs": "`headcount survey MODEL --text FILE --show families -o RUN`",
    "changes": "`headcount compare A B --text FILE -o RUN`",
    "coreference": "`headcount survey MODEL --coref FILE -o RUN`",
    "": SURVEY,
}


def maker(name: str) -> str:
    """The command that makes a frame or a column."""
    return next(made for start, made in _MAKES.items() if name.startswith(start))


def need_columns(table: HeadTable, names: Iterable[str]) -> None:
    """Refuse a table that lacks a column, has no heads, or knows none of the columns of any."""
    wanted = list(names)
    for name in wanted:
        if name not in table.frame:
            raise RunError(f"There is no column '{name}' in this table; {maker(name)} makes it.")
    if not len(table.frame):
        raise UsageError("The table has no heads, so there is nothing to draw.")
    if table.frame[wanted].isna().all(axis=None):
        words = ", ".join(f"'{name}'" for name in wanted)
        why = next((f": {table.notes[name]}" for name in wanted if name in table.notes), ".")
        raise UsageError(f"No head of this table has a value of {words}{why}")


def need_rows(
    frame: pd.DataFrame, columns: Iterable[str], what: str, known: str | None = None
) -> None:
    """Refuse a frame without these columns, without rows, or that knows nothing of one column."""
    for name in columns:
        if name not in frame:
            raise UsageError(f"The frame of {what} has no column '{name}'; give a run's own.")
    if not len(frame):
        raise UsageError(f"The frame of {what} has no rows, so there is nothing to draw.")
    if known is not None and not frame[known].notna().any():
        raise UsageError(
            f"The frame of {what} has no number in '{known}', so there is nothing to draw."
        )


# --- What a figure is drawn from ----------------------------------------------------------------

#: A run, its path, or a table by itself.
Given: TypeAlias = HeadTable | Run | str | Path
#: One of them, or several under the names that the figure shall show.
Many: TypeAlias = Given | Mapping[str, Given]
#: The same for what is drawn from a frame, which may be given as it is.
Framed: TypeAlias = Given | pd.DataFrame
Frames: TypeAlias = Framed | Mapping[str, Framed]


def table_of(given: Given) -> HeadTable:
    """The head table."""
    return read_source(given, exhibits=False).table


def frame_of(given: Framed, name: str) -> pd.DataFrame:
    """A frame of a run, or of the details of a table; a frame itself is taken as it is."""
    if isinstance(given, pd.DataFrame):
        return given
    if isinstance(given, HeadTable):
        frame = given.details.get(name)
    else:
        run = run_at(given)
        frame = run.read_frame(name) if run is not None and name in run.frames else None
    if frame is None:
        raise RunError(f"{_where(given)} has no {name}.parquet; {maker(name)} makes it.")
    return frame


def pairs_of(given: Given | Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """The arrays of `pairs.npz`: heads and their places on the plane."""
    pairs: Mapping[str, np.ndarray]
    if isinstance(given, Mapping):
        pairs = given
    else:
        run = None if isinstance(given, HeadTable) else run_at(given)
        if run is None or not (run.path / "pairs.npz").exists():
            raise RunError(f"{_where(given)} has no pairs.npz; {maker('pairs')} makes it.")
        pairs = run.read_arrays("pairs")
    for name in ("heads", "mds"):
        if name not in pairs or not len(pairs[name]):
            raise UsageError(f"The pairs have no '{name}'; {maker('pairs')} makes them.")
    return pairs


def roles_of(given: Given | pd.DataFrame) -> dict[tuple[str, int, int], list[str]]:
    """The roles of each head, each once, strongest first; empty where they were not judged."""
    try:
        frame = frame_of(given, "roles")
    except RunError:
        return {}
    need_rows(frame, ("stack", "layer", "head", "role"), "roles")
    grouped = frame.groupby(["stack", "layer", "head"], sort=False)["role"]
    return {head: list(dict.fromkeys(roles)) for head, roles in grouped}  # type: ignore[misc]


def by_name(given: Any) -> dict[str, Any]:
    """Several sources by name; a single one has no name.

    >>> by_name("run"), by_name({"RTE": "run"})
    ({'': 'run'}, {'RTE': 'run'})
    """
    several = given if isinstance(given, Mapping) else {"": given}
    if not several:
        raise UsageError("There is nothing to draw; give one run or more.")
    return {str(name): one for name, one in several.items()}


def tables_of(given: Many, columns: Iterable[str]) -> dict[str, HeadTable]:
    """The head tables by name, each with these columns."""
    tables = {name: table_of(one) for name, one in by_name(given).items()}
    for table in tables.values():
        need_columns(table, columns)
    return tables


def frames_of(
    given: Frames, name: str, columns: Sequence[str], what: str, known: str | None = None
) -> dict[str, pd.DataFrame]:
    """A frame of each run by name, each with these columns; `what` says what it is of."""
    frames = {source: frame_of(one, name) for source, one in by_name(given).items()}
    for frame in frames.values():
        need_rows(frame, columns, what, known)
    return frames


def titled(name: str, stack: str, stacks: Sized) -> str:
    """The title of a panel: the source, and the stack unless it is the only one.

    >>> titled("RTE", "enc", ["enc"]), titled("", "enc", ["enc"]), titled("a", "dec", [0, 1])
    ('RTE', 'enc', 'a dec')
    """
    return name if name and len(stacks) == 1 else f"{name} {stack}".strip()


def by_stack(frames: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The rows of each stack of each source, under the title of their panel."""
    shown: dict[str, pd.DataFrame] = {}
    for name, frame in frames.items():
        stacks = [stack for stack in ("enc", "dec", "cross") if (frame["stack"] == stack).any()]
        shown |= {titled(name, s, stacks): frame[frame["stack"] == s] for s in stacks}
    return shown


def measured_stacks(table: HeadTable, columns: Iterable[str]) -> list[str]:
    """The stacks where any of these columns was measured."""
    there = table.frame[list(columns)].notna().any(axis=1)
    known = {stack for stack, _, _ in table.frame.index[there]}
    return [stack for stack in table.stacks if stack in known]


def grid_of(values: pd.Series, stack: str) -> np.ndarray:
    """Values `[layer, head]` of one stack; NaN where a head is gone or was not measured.

    >>> index = pd.MultiIndex.from_tuples([("enc", 0, 1)], names=["stack", "layer", "head"])
    >>> grid_of(pd.Series([0.5], index=index), "enc").tolist()
    [[nan, 0.5]]
    """
    there = list(dict.fromkeys(values.index.get_level_values("stack")))
    if stack not in there:
        raise UsageError(
            f"There is no stack '{stack}' here; there is {', '.join(there)}, "
            f"so say stack='{there[0]}'."
        )
    own = values.loc[stack]
    layers, heads = (own.index.get_level_values(level).to_numpy(int) for level in ("layer", "head"))
    grid = np.full((layers.max() + 1, heads.max() + 1), np.nan)
    grid[layers, heads] = own.to_numpy(dtype=float, na_value=np.nan)
    return grid


def _where(given: Given) -> str:
    if isinstance(given, HeadTable):
        return "This table"
    return f"{given.path if isinstance(given, Run) else given}"
