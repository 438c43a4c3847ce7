"""What a run lacks is named, with the command that makes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import headcount as hc
from headcount.errors import HeadcountError, RunError, UsageError
from headcount.run import Run

LACKS: list[tuple[Callable[..., Any], str]] = [
    (hc.plot.head_grids, "no column 'relevance'.*--by relevance"),
    (hc.plot.positions, "no column 'previous'.*headcount survey MODEL --text"),
    (hc.plot.noop_gradients, "no noop_layers.parquet; `headcount survey MODEL .*--roles"),
    (hc.plot.head_map, "no pairs.npz; .*--families"),
    (hc.plot.dependencies, "no relations.parquet; .*--treebank"),
    (hc.plot.coreference, "no coreference.parquet; .*--coref"),
    (hc.plot.pruning_curves, "no curve.parquet; `headcount prune"),
    (hc.plot.gated_quality, "no curve.parquet; `headcount prune"),
    (hc.plot.functions_left, "no curve.parquet; `headcount prune"),
    (hc.plot.scores_without_one_head, "no column 'ablation'.*--by ablation"),
    (hc.plot.patterns, "no column 'pattern_vertical'.*--patterns"),
    (hc.plot.changes, "no changes.parquet; `headcount compare"),
    (hc.plot.first_row, "no features.parquet; .*--treebank"),
    (hc.plot.attention_to, "no column 'to_separator'.*--treebank"),
    (hc.plot.disabling, "no column 'ablation'.*--by ablation"),
]


@pytest.mark.parametrize(("draw", "said"), LACKS, ids=[draw.__name__ for draw, _ in LACKS])
def test_a_stage_that_is_missing_is_named(draw: Callable[..., Any], said: str, bare: Path) -> None:
    with pytest.raises(RunError, match=said) as caught:
        draw(bare)
    assert str(caught.value).count(". ") == 0
    assert "\n" not in str(caught.value)


def test_a_run_its_path_its_table_and_its_file_give_the_same(full: Path) -> None:
    run = Run.open(full, create=False)
    given = [run, full, str(full), run.read_table(), full / "heads.parquet"]
    drawn = [
        hc.plot.head_grids(one, ["confidence"], roles=False).axes[0].collections[0].get_array()
        for one in given
    ]
    assert all((one == drawn[0]).all() for one in drawn)


def test_a_folder_that_prune_wrote_is_its_run(full: Path, tmp_path: Path) -> None:
    (tmp_path / "run").symlink_to(full)
    assert len(hc.plot.pruning_curves(tmp_path).axes) == 1


def test_what_cannot_be_drawn_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HeadcountError, match="nowhere"):
        hc.plot.positions(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="nothing to draw; give one run or more"):
        hc.plot.positions({})
    with pytest.raises(UsageError, match="has no column 'gradient'; give a run's own"):
        hc.plot.noop_gradients(pd.DataFrame({"stack": [], "layer": [], "target": []}))
    table = hc.HeadTable.of([hc.Head("enc", 0, 0)], {"pattern": ["block"]})
    with pytest.raises(UsageError, match="holds words"):
        hc.plot.head_grids(table, ["pattern"])
