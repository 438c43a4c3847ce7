"""The figures of the results are drawn from their JSON, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import headcount as hc
from research import DOCS
from research.figures import PAGES, main
from research.tables import kept, table


@pytest.mark.parametrize("page", PAGES)
def test_a_command_draws_every_figure_of_a_page(page: str, tmp_path: Path) -> None:
    main([page, "--out", str(tmp_path)])
    text = (DOCS / f"{page}.md").read_text(encoding="utf8")
    shown = set(re.findall(r"\(([\w-]+\.svg)\)", text))
    assert {path.name for path in tmp_path.iterdir()} == shown
    assert all((DOCS / name).exists() for name in shown)


def test_no_picture_is_left_without_a_page() -> None:
    shown = {
        name for page in PAGES
        for name in re.findall(r"[\w-]+\.svg", (DOCS / f"{page}.md").read_text(encoding="utf8"))
    }  # fmt: skip
    assert {path.name for path in DOCS.glob("*.svg")} == shown


def test_a_page_without_figures_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["glue"])
    assert "no page 'glue' with figures; there is surface, roles" in capsys.readouterr().err


def test_a_table_comes_back_from_its_json() -> None:
    heads = [hc.Head("enc", 0, 0), hc.Head("enc", 0, 1)]
    told = kept(hc.HeadTable.of(heads, {"self": [0.12341, float("nan")]}), ["self"])
    assert told == {"index": ["enc.0.0", "enc.0.1"], "self": [0.1234, None]}
    back = table(told)
    assert back.heads == heads
    assert back.frame["self"].isna().tolist() == [False, True]
