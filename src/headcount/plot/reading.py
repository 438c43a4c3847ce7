"""What a figure is drawn from: a run, its path, a head table or a frame; and what it lacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sized
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from headcount.errors import RunError, UsageError
from headcount.plot.needs import SURVEY, maker
from headcount.run import Run
from headcount.table import HeadTable

__all__ = ["Framed", "Frames", "Given", "Many", "by_name", "frame_of", "frames_by_name"]
__all__ += ["grid_of", "pairs_of", "roles_in", "roles_of", "stack_grid", "stacks_of"]
__all__ += ["table_of", "titled"]

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
    run = _run_of(given)
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
        run = _run_of(given)
        found = run.read_frame(name) if run is not None and name in run.frames else None
    if found is None:
        raise RunError(f"{_where(given)} has no {name}.parquet; {maker(name)} makes it.")
    return found


def pairs_of(given: Given | Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """The arrays of `pairs.npz`."""
    if isinstance(given, Mapping):
        return given
    run = None if isinstance(given, HeadTable) else _run_of(given)
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


def by_name(given: Many) -> dict[str, Given]:
    """Several tables by name; a single one has the name of nothing.

    >>> by_name("run"), by_name({"RTE": "run"})
    ({'': 'run'}, {'RTE': 'run'})
    """
    return dict(_several(given))


def frames_by_name(given: Frames) -> dict[str, Framed]:
    """The same for what is drawn from frames."""
    return dict(_several(given))


def _several(given: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(given, Mapping):
        given = {"": given}
    if not given:
        raise UsageError("There is nothing to draw; give one run or more.")
    return ((str(name), one) for name, one in given.items())


def titled(name: str, stack: str, stacks: Sized) -> str:
    """What stands above a panel: the source, and the stack unless it is the source's only one.

    >>> titled("RTE", "enc", ["enc"]), titled("", "enc", ["enc"]), titled("a", "dec", [0, 1])
    ('RTE', 'enc', 'a dec')
    """
    return name if name and len(stacks) == 1 else f"{name} {stack}".strip()


def stacks_of(table: HeadTable, columns: Iterable[str]) -> list[str]:
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


def _run_of(given: Run | str | Path) -> Run | None:
    """The run; None for a heads.parquet on its own. A folder that `prune` wrote holds its run."""
    if isinstance(given, Run):
        return given
    path = Path(given)
    if path.suffix == ".parquet":
        return None
    inner = path / "run"
    held = not (path / "run.json").exists() and (inner / "run.json").exists()
    return Run.open(inner if held else path, create=False)


def _where(given: Given) -> str:
    if isinstance(given, HeadTable):
        return "This table"
    return f"{given.path if isinstance(given, Run) else given}"
