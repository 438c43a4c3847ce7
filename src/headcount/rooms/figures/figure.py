"""What all figures share: their look in print, panels and keys, and what they are drawn from.

A figure is drawn from a run, its path, a head table or a frame; what is not there is named in one
sentence with the command that makes it.
"""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from headcount.errors import HeadcountError, RunError, UsageError, install_hint
from headcount.records import HeadTable, Run, write_bytes
from headcount.reports import LOOKS, run_at

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# --- How figures look in print ------------------------------------------------------------------
# matplotlib is loaded only when something is drawn, and pyplot never: no window, no global state.

#: Keywords of a drawing function of matplotlib.
Style = dict[str, Any]
#: One column of a two-column paper, or the whole page.
Width = Literal["column", "page"]

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
SEQUENTIAL, DIVERGING = "YlGnBu", "RdBu"

_KINDS = {".svg": "Date", ".pdf": "CreationDate", ".png": None}
_RC: Any = {
    "font.family": "sans-serif",
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 8,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.linewidth": HAIRLINE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": HAIRLINE,
    "ytick.major.width": HAIRLINE,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 3,
    "hatch.linewidth": HAIRLINE,
    "hatch.color": "#b9bcc4",
    "figure.facecolor": "white",
    "savefig.dpi": 300,
    "svg.hashsalt": "headcount",
    "pdf.fonttype": 42,
}


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


@contextmanager
def paper() -> Iterator[None]:
    """Draw inside this: the house's sizes and lines, whatever the user's own settings are."""
    try:
        from matplotlib import rc_context, rcdefaults
    except ImportError as error:
        raise HeadcountError(
            f"Figures need matplotlib, which is not installed; {install_hint('plot')}."
        ) from error
    with rc_context():
        rcdefaults()
        with rc_context(_RC):
            yield


def finish(figure: Figure, path: str | Path | None) -> Figure:
    """Save the figure where a path is given: the same numbers give the same bytes."""
    if path is not None:
        place = Path(path)
        if place.suffix not in _KINDS:
            raise UsageError(
                f"'{place.name}' cannot be a figure's name; it ends with .svg, .pdf or .png."
            )
        date, held = _KINDS[place.suffix], io.BytesIO()
        about: dict[str, Any] = {date: None} if date else {}
        figure.savefig(held, format=place.suffix[1:], metadata=about)
        write_bytes(place, held.getvalue())
    return figure


def role_colour(role: str) -> str:
    """The colour that the role has on the page of a report.

    >>> role_colour("sink") == LOOKS["sink"].light, role_colour("mine") == LOOKS["other"].light
    (True, True)
    """
    return LOOKS.get(role, LOOKS["other"]).light


def role_marker(role: str) -> str:
    """The sign that the role has in a terminal and on the page, as a marker.

    >>> role_marker("rare") == f"${LOOKS['rare'].sign}$"
    True
    """
    return f"${LOOKS.get(role, LOOKS['other']).sign}$"


# --- Where panels stand in a figure, what their axes say, and the key below them ----------------

_INCHES = {"column": 3.3, "page": 6.9}


def panels(
    rows: int, columns: int, *, width: Width = "page", height: float = 1.9, **shared: Any
) -> tuple[Figure, np.ndarray]:
    """A figure with `[row, column]` panels; `height` is of one row in inches."""
    from matplotlib.figure import Figure

    if width not in _INCHES:
        raise UsageError(f"width is '{width}'; it is 'column' (3.3 in) or 'page' (6.9 in).")
    figure = Figure(figsize=(_INCHES[width], 0.3 + height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **shared)


def wrapped(
    count: int, *, most: int = 3, width: Width = "page", height: float = 1.9, **shared: Any
) -> tuple[Figure, list[Axes]]:
    """A figure with `count` panels, at most so many in a row; half as many in one column.

    >>> figure, drawn = wrapped(5, most=3)
    >>> len(drawn), _spot(drawn[3])
    (5, (1, 0))
    """
    wide = min(count, most if width == "page" else max(1, most // 2))
    figure, axes = panels(-(-count // wide), wide, width=width, height=height, **shared)
    for panel in axes.flat[count:]:
        panel.set_axis_off()
    return figure, list(axes.flat[:count])


def key_below(figure: Figure, *drawn: Axes, columns: int = 4) -> None:
    """The legend of what panels hold below the whole figure, where it hides no point."""
    found: dict[str, Any] = {}
    for panel in drawn:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if found:
        inches = 0.42 + 0.042 * max(map(len, found))  # a mark, and letters of 7 points
        most = max(1, min(columns, int(figure.get_figwidth() / inches)))
        style: Style = {"loc": "outside lower center", "ncols": min(len(found), most)}
        lines = -(-len(found) // most)
        figure.set_figheight(figure.get_figheight() + 0.15 * (lines - 1))  # panels stay as tall
        figure.legend(list(found.values()), list(found), **style)


def layer_axis(panel: Axes, layers: int, label: str = "layer") -> None:
    """Whole numbers below a panel, not too many of them."""
    step = max(1, -(-layers // 12))
    panel.set_xticks(range(0, layers, step))
    panel.set_xlabel(label)


def label_outer(drawn: list[Axes], x: str, y: str) -> None:
    """Name the axes once: x where no panel is underneath, y at the left."""
    spots = [_spot(panel) for panel in drawn]
    for panel, (row, column) in zip(drawn, spots, strict=True):
        panel.set_xlabel("" if (row + 1, column) in spots else x)
        panel.set_ylabel("" if column else y)


def _spot(panel: Axes) -> tuple[int, int]:
    """Row and column of a panel."""
    where = panel.get_subplotspec()
    assert where is not None  # panels are only made by `panels`
    return where.rowspan.start, where.colspan.start


# --- What a figure needs, and the one sentence that says what is not there ----------------------

_SCORE = "`headcount score MODEL --task TASK --by {} -o RUN`"
_TREES = "`headcount survey MODEL --treebank FILE -o RUN`"
#: The command that makes a frame, a column, or columns that begin so.
_MAKES = {
    "ablation": _SCORE.format("ablation"),
    "gradient": _SCORE.format("gradient"),
    "relevance": _SCORE.format("relevance"),
    "noop": "`headcount survey MODEL --text FILE --roles -o RUN`",
    "pattern": "`headcount survey MODEL --text FILE --patterns -o RUN`",
    "curve": "`headcount prune MODEL --task TASK -o DIR` or `headcount report MODEL`",
    "pairs": "`headcount survey MODEL --text FILE --families -o RUN`",
    "changes": "`headcount compare A B --text FILE -o RUN`",
    "coreference": "`headcount survey MODEL --coref FILE -o RUN`",
    "roles": _TREES,
    "relations": _TREES,
    "features": _TREES,
    "links": _TREES,
    "to_": _TREES,
}
SURVEY = "`headcount survey MODEL --text FILE -o RUN`"


def maker(name: str) -> str:
    """The command that makes a frame or a column."""
    return next((made for start, made in _MAKES.items() if name.startswith(start)), SURVEY)


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
    lacking = [name for name in columns if name not in frame]
    if lacking:
        raise UsageError(f"The frame of {what} has no column '{lacking[0]}'; give a run's own.")
    if not len(frame):
        raise UsageError(f"The frame of {what} has no rows, so there is nothing to draw.")
    if known is not None and not frame[known].notna().any():
        raise UsageError(
            f"The frame of {what} has no number in '{known}', so there is nothing to draw."
        )


def need_arrays(pairs: Mapping[str, np.ndarray]) -> None:
    """Refuse pairs without heads or without their places on the plane."""
    for name in ("heads", "mds"):
        if name not in pairs or not len(pairs[name]):
            raise UsageError(f"The pairs have no '{name}'; {maker('pairs')} makes them.")


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
    if isinstance(given, HeadTable):
        return given
    run = run_at(given)
    if run is None:
        return HeadTable.load(str(given))
    if not run.has_table:
        raise RunError(f"{run.path}/ has no head table yet; {SURVEY} makes it.")
    return run.read_table()


def frame_of(given: Given | pd.DataFrame, name: str) -> pd.DataFrame:
    """A frame of a run, or of the details of a table; a frame itself is taken as it is."""
    if isinstance(given, pd.DataFrame):
        return given
    if isinstance(given, HeadTable):
        found = given.details.get(name)
    else:
        run = run_at(given)
        found = run.read_frame(name) if run is not None and name in run.frames else None
    if found is None:
        raise RunError(f"{_where(given)} has no {name}.parquet; {maker(name)} makes it.")
    return found


def pairs_of(given: Given | Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """The arrays of `pairs.npz`."""
    if isinstance(given, Mapping):
        return given
    run = None if isinstance(given, HeadTable) else run_at(given)
    if run is None or not (run.path / "pairs.npz").exists():
        raise RunError(f"{_where(given)} has no pairs.npz; {maker('pairs')} makes it.")
    return run.read_arrays("pairs")


def roles_of(given: Given) -> dict[tuple[str, int, int], list[str]]:
    """The roles of each head, the strongest first; empty where they were not judged."""
    try:
        frame = frame_of(given, "roles")
    except RunError:
        return {}
    return roles_in(frame)


def roles_in(frame: pd.DataFrame) -> dict[tuple[str, int, int], list[str]]:
    """The roles of each head by a frame of verdicts, each once."""
    found: dict[tuple[str, int, int], list[str]] = {}
    columns = (frame[name] for name in ("stack", "layer", "head", "role"))
    for stack, layer, head, role in zip(*columns, strict=True):
        held = found.setdefault((str(stack), int(layer), int(head)), [])
        if role not in held:
            held.append(str(role))
    return found


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
    """What stands above a panel: the source, and the stack unless it is the source's only one.

    >>> titled("RTE", "enc", ["enc"]), titled("", "enc", ["enc"]), titled("a", "dec", [0, 1])
    ('RTE', 'enc', 'a dec')
    """
    return name if name and len(stacks) == 1 else f"{name} {stack}".strip()


def measured_stacks(table: HeadTable, columns: Iterable[str]) -> list[str]:
    """The stacks where any of these columns was measured; all where none was."""
    there = table.frame[list(columns)].notna().any(axis=1)
    known = {stack for stack, _, _ in table.frame.index[there]}
    return [stack for stack in table.stacks if stack in known] or table.stacks


def grid_of(values: pd.Series, stack: str) -> np.ndarray:
    """Values `[layer, head]` of one stack; NaN where a head is gone or was not measured.

    >>> index = pd.MultiIndex.from_tuples([("enc", 0, 1)], names=["stack", "layer", "head"])
    >>> grid_of(pd.Series([0.5], index=index), "enc").tolist()
    [[nan, 0.5]]
    """
    own = values[values.index.get_level_values("stack") == stack]
    layers, heads = (own.index.get_level_values(level).to_numpy(int) for level in ("layer", "head"))
    grid = np.full((layers.max() + 1, heads.max() + 1), np.nan)
    grid[layers, heads] = own.to_numpy(dtype=float, na_value=np.nan)
    return grid


def stack_grid(values: pd.Series, stack: str) -> np.ndarray:
    """The grid of a stack, which must be there."""
    there = list(dict.fromkeys(values.index.get_level_values("stack")))
    if stack not in there:
        raise UsageError(
            f"There is no stack '{stack}' here; there is {', '.join(there)}, "
            f"so say stack='{there[0]}'."
        )
    return grid_of(values, stack)


def _where(given: Given) -> str:
    if isinstance(given, HeadTable):
        return "This table"
    return f"{given.path if isinstance(given, Run) else given}"
