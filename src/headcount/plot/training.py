"""What pruning leaves of the score at stages of training.

Michel et al. 2019, figure 5.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from headcount.errors import UsageError
from headcount.plot.curve_lines import curve_of, of_order, percent_left
from headcount.plot.layout import key_below, panels
from headcount.plot.reading import Given
from headcount.plot.style import Style, Width, finish, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["pruning_over_training"]


def pruning_over_training(
    given: Mapping[Any, Given | pd.DataFrame],
    order: str | None = None,
    metric: str | None = None,
    *,
    width: Width = "column",
    path: str | Path | None = None,
) -> Figure:
    """What pruning leaves of the score, in percent of the unpruned model of the same epoch.

    Michel et al. 2019, figure 5. Keys are epochs or steps, values their runs or curves.

    >>> frame = pd.DataFrame({"order": "gradient", "scope": "all", "step": [0, 1],
    ...     "heads_left": [8, 4], "metric": "bleu", "value": [30.0, 15], "low": [29.0, 14],
    ...     "high": [31.0, 16]})
    >>> pruning_over_training({1: frame, 2: frame}).axes[0].lines[1].get_xydata().tolist()
    [[0.0, 100.0], [50.0, 50.0]]
    """
    if not isinstance(given, Mapping) or not given:
        raise UsageError("Give a mapping of epochs to curves or runs, one entry a checkpoint.")
    curves = {str(epoch): curve_of(one, metric) for epoch, one in given.items()}
    with paper():
        from matplotlib import colormaps

        figure, axes = panels(1, 1, width=width, height=2.4)
        for place, (epoch, rows) in enumerate(curves.items()):
            chosen = of_order(rows[rows["scope"] == "all"], order or str(rows["order"].iloc[0]))
            shade = colormaps["viridis"](0.9 * place / max(1, len(curves) - 1))
            x, y = percent_left(chosen)
            whole = f"after {epoch} ({chosen.sort_values('step')['value'].iloc[0]:.3g} unpruned)"
            style: Style = {"marker": "o", "gid": f"epoch {epoch}"}
            axes[0, 0].plot(x, y, color=shade, label=whole, **style)
        axes[0, 0].set_xlabel("heads removed, percent")
        axes[0, 0].set_ylabel(f"percent of the unpruned {rows['metric'].iloc[0]}")
        key_below(figure, axes[0, 0])
        return finish(figure, path)
