from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from headcount.errors import RunError
from headcount.records.columns import Column
from headcount.records.files import json_decode, json_encode
from headcount.records.heads import Head
from headcount.records.parquet import about_table, frame_bytes, read_frame, read_table, table_bytes
from headcount.records.table import HeadTable

HEADS = [Head("enc", 0, 0), Head("cross", 0, 0)]


def table() -> HeadTable:
    return HeadTable.of(
        HEADS,
        {"x": [0.5, None], "y_low": [1, 2]},
        [Column("x", unit="nats")],
        low={"x": [0.25, None]},
        high={"x": [0.75, None]},
        notes={"x": "why"},
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "heads.parquet").write_bytes(table_bytes(table()))
    return tmp_path / "heads.parquet"


def rewrite(path: Path, about: object | None) -> None:
    """What another tool might do to the file: other metadata, same data."""
    data = pq.read_table(path)
    metadata = {} if about is None else {"headcount": json_encode(about)}
    pq.write_table(data.replace_schema_metadata(metadata), path)


def test_any_tool_reads_ordinary_columns(path: Path) -> None:
    frame = pd.read_parquet(path)
    assert list(frame) == ["stack", "layer", "head", "x", "y_low", "x_low", "x_high"]
    assert frame["stack"].tolist() == ["enc", "cross"]
    assert pq.read_table(path)["x"].null_count == 1, "what is missing is null, not NaN"


def test_the_file_carries_its_descriptions(path: Path) -> None:
    told = json_decode(pq.read_schema(path).metadata[b"headcount"])
    assert told["schema"] == 1
    assert told["columns"][0]["unit"] == "nats"
    assert read_table(path).columns == table().columns


def test_descriptions_that_were_dropped_come_from_elsewhere(path: Path) -> None:
    rewrite(path, None)
    read = read_table(path, about_table(table()))
    assert read.columns["x"].unit == "nats"
    assert read.notes == {"x": "why"}
    assert read.names == ["x", "y_low"]


def test_without_any_description_bounds_are_told_by_their_names(path: Path) -> None:
    rewrite(path, None)
    read = read_table(path)
    assert read.names == ["x", "y_low"], "y_low is no bound: there is no y"
    assert read.low["x"].tolist()[0] == 0.25
    assert read.high["x"].tolist()[0] == 0.75


def test_a_statistic_may_be_called_as_a_bound_would_be(tmp_path: Path) -> None:
    path = tmp_path / "heads.parquet"
    path.write_bytes(table_bytes(HeadTable.of(HEADS, {"x": [1, 2], "x_low": [3, 4]})))
    read = read_table(path)
    assert read.names == ["x", "x_low"]
    assert list(read.low) == []


def test_columns_that_another_tool_dropped_or_added(path: Path) -> None:
    data = pq.read_table(path)
    data = data.drop_columns(["x", "x_low", "x_high"]).append_column("z", data["y_low"])
    pq.write_table(data, path)
    read = read_table(path)
    assert read.names == ["y_low", "z"]
    assert read.notes == {}


def test_a_newer_schema_is_refused_by_name(path: Path) -> None:
    rewrite(path, {**about_table(table()), "schema": 2})
    with pytest.raises(
        RunError,
        match=r"heads\.parquet was written with schema 2; this headcount \S+ reads up to 1",
    ):
        read_table(path)


@pytest.mark.parametrize("schema", ["1", True, 0, None, 1.0])
def test_a_schema_that_is_no_number_is_refused(schema: object, path: Path) -> None:
    rewrite(path, {**about_table(table()), "schema": schema})
    with pytest.raises(RunError, match=f"has the schema {schema!r}, which headcount never writes"):
        read_table(path)


def test_a_frame_that_is_no_table(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(frame_bytes(pd.DataFrame({"a": [1]})))
    with pytest.raises(RunError, match="is not a table of heads that headcount wrote"):
        read_table(path)
    two = pd.DataFrame({"stack": ["enc"] * 2, "layer": [0, 0], "head": [0, 0], "x": [1, 2]})
    path.write_bytes(frame_bytes(two))
    with pytest.raises(RunError, match=r"\(enc\.0\.0 has two rows"):
        read_table(path)


def test_every_cut_of_the_file_is_one_sentence(path: Path) -> None:
    whole = path.read_bytes()
    for cut in [*range(0, len(whole), 97), len(whole) - 1]:
        path.write_bytes(whole[:cut])
        with pytest.raises(
            RunError, match=r"heads\.parquet cannot be read: it is cut off, damaged"
        ):
            read_table(path)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"There is no .*x\.parquet; make it first"):
        read_frame(tmp_path / "x.parquet")


def test_an_index_with_names_becomes_columns(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(frame_bytes(table().frame))
    assert list(read_frame(path)) == ["stack", "layer", "head", "x", "y_low"]
    path.write_bytes(frame_bytes(pd.DataFrame({"a": [1, 2]}).iloc[1:]))
    assert read_frame(path).to_dict("list") == {"a": [2]}
