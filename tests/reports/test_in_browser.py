"""The page in a real browser: what people see, press and point at."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from browsers import eventually
from report_runs import (
    ENCODER,
    HOSTILE,
    THREE,
    made_curve,
    made_exhibit,
    made_roles,
    made_run,
    made_sizes,
    made_table,
)

from headcount.pruning import can_go, removal_table
from headcount.records.heads import parse_head
from headcount.records.run import Run
from headcount.records.table import HeadTable
from headcount.reports.page import report
from headcount.reports.parts.numbers import read_source
from headcount.rooms.exhibits.exhibits import read_exhibits, visible_token
from headcount.rooms.gates.page import freed_sentences

Visit = Callable[..., Any]


def chosen(page: Any) -> list[str]:
    """The names of the heads that some mark shows as chosen, and the dossier's."""
    marks = page.eval_on_selector_all("[data-head].sel", "all => all.map(e => +e.dataset.head)")
    title = page.inner_text("#big")
    return [title, *{str(mark) for mark in marks}]


def number(page: Any, name: str) -> int:
    """A head's number on the page, from its cell in the grid."""
    cell = page.query_selector(f'.cell[aria-label^="{name},"]')
    return int(cell.get_attribute("data-head"))


# --- offline, and nothing runs but ours ----------------------------------------------------------


def test_it_asks_nothing_of_the_network(chromium: Any, pages: dict[str, Path]) -> None:
    context = chromium.new_context(offline=True)
    page, asked, wrongs = context.new_page(), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: wrongs.append(str(error)))
    page.goto(pages["three"].as_uri())
    page.wait_for_selector("html[data-ready]")
    context.close()
    assert asked == [pages["three"].as_uri()]
    assert wrongs == []


def test_hostile_text_is_shown_and_never_run(visit: Visit) -> None:
    page = visit("hostile", "#enc.0.0")
    assert page.evaluate("window.hit") is None
    assert page.query_selector("img") is None
    assert page.title() == f"{HOSTILE[0]}: attention heads"
    assert page.inner_text("#about").startswith(HOSTILE[0])
    shown = page.eval_on_selector_all(".tk:not(.to) .tok", "all => all.map(e => e.textContent)")
    assert shown == [visible_token(token) for token in ["[CLS]", *HOSTILE, "[SEP]"]]
    assert page.wrongs == []


def test_markup_that_slipped_in_would_be_stopped(visit: Visit) -> None:
    page = visit("hostile")
    page.evaluate(
        "() => { const holder = document.createElement('div'); document.body.append(holder);"
        "holder.innerHTML = '<img src=x onerror=\"window.hit=1\"><script>window.hit=2</script>'; }"
    )
    page.wait_for_timeout(150)
    assert page.evaluate("window.hit") is None
    assert any("Content Security Policy" in said for said in page.wrongs)


# --- the state, and its links --------------------------------------------------------------------


def test_the_address_restores_the_page_and_follows_it(visit: Visit) -> None:
    page = visit("encoder", "#head=enc.2.8&col=entropy&ex=made-002")
    assert page.inner_text("#big") == "enc.2.8"
    assert page.input_value("#col") == "entropy"
    assert page.input_value("#ex") == "1"
    page.click(f'.cell[data-head="{number(page, "enc.3.1")}"]')
    assert "head=enc.3.1" in page.url
    assert page.wrongs == []


def test_a_short_address_names_a_head(visit: Visit) -> None:
    page = visit("encoder", "#enc.5.3")
    assert page.inner_text("#big") == "enc.5.3"
    page.evaluate("location.hash = '#enc.1.1'")
    assert eventually(page, lambda: page.inner_text("#big") == "enc.1.1")
    assert chosen(page) == ["enc.1.1", str(number(page, "enc.1.1"))]


def test_arrows_move_focus_and_choice_with_one_tab_stop(visit: Visit) -> None:
    page = visit("three", "#enc.1.3")
    page.focus('.cell[tabindex="0"]')
    for key, name in [
        ("ArrowDown", "enc.2.3"),
        ("ArrowRight", "dec.2.0"),
        ("ArrowUp", "dec.1.0"),
        ("ArrowLeft", "enc.1.3"),
        ("Home", "enc.1.0"),
        ("End", "enc.1.3"),
    ]:
        page.keyboard.press(key)
        assert page.inner_text("#big") == name
        assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith(name)
    assert len(page.query_selector_all('.cell[tabindex="0"]')) == 1
    assert len(page.query_selector_all('[role="gridcell"][aria-selected="true"]')) == 1


@pytest.mark.parametrize("where", ["#grid", "#map", "#reltable", "#agscatter", "#sim"])
def test_every_view_chooses_for_all_others(visit: Visit, where: str) -> None:
    page = visit("encoder", "#enc.2.8")
    mark = page.query_selector_all(f"{where} [data-head]:not(.sel)")[0]
    wanted = int(mark.get_attribute("data-head"))
    mark.dispatch_event("click")
    assert chosen(page) == [str(made_table().heads[wanted]), str(wanted)]
    assert page.query_selector(f"#grid .sel[data-head='{wanted}']")


def test_a_role_dims_all_heads_without_it(visit: Visit) -> None:
    page = visit("encoder")
    page.click('#strip [data-role="sink"]')
    count = int(page.inner_text('#strip [data-role="sink"] i'))
    assert len(page.query_selector_all(".cell.dim")) == len(made_table()) - count
    page.keyboard.press("Escape")
    assert page.query_selector_all(".cell.dim") == []


# --- attention -----------------------------------------------------------------------------------


def test_a_token_is_held_until_it_is_let_go(visit: Visit) -> None:
    page = visit("encoder")
    page.click(".tk:not(.to) .tok:nth-of-type(3)")
    assert page.inner_text("#read").endswith("held")
    page.hover("h1")
    assert page.inner_text("#read").endswith("held")
    page.keyboard.press("Escape")
    assert not page.inner_text("#read").endswith("held")
    assert page.query_selector(".tok.on") is None


@pytest.mark.parametrize("name", ["enc.1.2", "dec.0.1", "cross.2.3"])
def test_the_readout_says_what_the_map_holds(
    visit: Visit, runs: dict[str, Path], name: str
) -> None:
    head, exhibit = parse_head(name), read_exhibits(runs["three"])[0]
    row = exhibit.maps[head.stack, head.layer][head.index][2]
    page = visit("three", f"#{name}")
    page.focus(".tk:not(.to) .tok:nth-of-type(3)")
    told = page.inner_text("#read").split("→ ")[1]
    read = [float(part.rsplit(" ", 1)[1]) for part in told.split(", ")]
    assert read == pytest.approx(sorted(row, reverse=True)[: len(read)], abs=0.005)


def test_two_texts_ask_and_answer(visit: Visit) -> None:
    page = visit("three", "#cross.1.1")
    tokens = "all => all.map(e => e.textContent)"
    asks = page.eval_on_selector_all(".tk:not(.to) .tok", tokens)
    answers = page.eval_on_selector_all(".tk.to .tok", tokens)
    assert (asks[0], len(asks), answers[1], len(answers)) == ("<pad>", 6, "the", 8)
    page.click('[data-view="text"]')
    assert eventually(page, lambda: len(page.query_selector_all(".flow")) == 2)
    wide = "all => all.every(e => e.scrollWidth <= e.clientWidth)"
    assert page.eval_on_selector_all(".flow", wide)
    page.click(".flow:first-child .tok:nth-of-type(4)")
    shaded = page.eval_on_selector_all(
        ".flow:last-child .tok", "all => all.filter(e => e.style.backgroundColor).length"
    )
    assert shaded > 0


def test_known_arcs_are_counted_and_outlined(visit: Visit, tmp_path: Path) -> None:
    """What the page says a head does here is what its map of words says."""
    sizes = {"enc": (1, 1)}
    seen = made_exhibit(sizes, ["[CLS]", *"abcdefgh", "[SEP]"])
    arcs = [("src", "obj", 0, 2), ("src", "obj", 3, 1), ("src", "det", 1, 0), ("src", "obj", 2, 3)]
    exhibit = replace(seen, arcs=arcs)
    words = np.array(exhibit.texts["src"].words)
    maps, n = exhibit.maps["enc", 0][0], max(words) + 1
    of_words = np.array(
        [[maps[words == a][:, words == b].sum(1).mean() for b in range(n)] for a in range(n)]
    )
    np.fill_diagonal(of_words, -1)
    hits = sum(of_words[word].argmax() == head for _, name, word, head in arcs if name == "obj")
    run = made_run(tmp_path / "run", sizes, exhibits=[exhibit])
    said = made_roles(sizes).assign(role="syntactic", label="obj dep->head", value=0.75)
    with Run.open(run) as opened:
        opened.write_frame("roles", said)
    page = visit(report(run, tmp_path / "page.html").path)
    assert page.inner_text("#seen").startswith(f"Here {hits} of 3 obj arcs")
    assert "over the corpus 0.75" in page.inner_text("#seen")
    assert len(page.query_selector_all(".mx .proof")) == 3
    assert len(page.query_selector_all(".mx .proof.missed")) == 3 - hits
    assert page.wrongs == []


@pytest.mark.parametrize(
    ("label", "kinds"),
    [("antecedents", "all"), ("antecedents of pronoun mentions", "pronoun")],
    ids=["all", "pronoun"],
)
def test_mentions_and_antecedents_are_counted_and_outlined(
    visit: Visit, tmp_path: Path, label: str, kinds: str
) -> None:
    """One of the antecedents is enough; only words before the mention are asked."""
    sizes = {"enc": (1, 1)}
    seen = made_exhibit(sizes, ["[CLS]", *"abcdefgh", "[SEP]"])
    antecedents = {("pronoun", 3): [0, 2], ("pronoun", 2): [1], ("proper", 3): [1]}
    arcs = [
        ("src", f"coref:{kind}", word, head)
        for (kind, word), heads in antecedents.items()
        for head in heads
    ]
    exhibit = replace(seen, arcs=[*arcs, ("src", "obj", 1, 2)])
    words = np.array(exhibit.texts["src"].words)
    maps = exhibit.maps["enc", 0][0]
    right: dict[int, list[int]] = {}
    for (kind, word), heads in antecedents.items():
        if kinds in ("all", kind):
            right[word] = [*right.get(word, []), *heads]

    def chosen_by(word: int) -> int:
        weights = [maps[words == word][:, words == other].sum(1).mean() for other in range(word)]
        return int(np.argmax(weights))

    hits = sum(chosen_by(word) in heads for word, heads in right.items())
    run = made_run(tmp_path / "run", sizes, exhibits=[exhibit])
    said = made_roles(sizes).assign(role="coreference", label=label, value=0.61, n=1212)
    with Run.open(run) as opened:
        opened.write_frame("roles", said)
    page = visit(report(run, tmp_path / "page.html").path)
    what = "mentions" if kinds == "all" else "pronoun mentions"
    assert page.inner_text("#seen").startswith(f"Here {hits} of {len(right)} {what}, to an ante")
    assert "over the corpus 0.61 (n = 1212)" in page.inner_text("#seen")
    assert len(page.query_selector_all(".mx .proof")) == len(right)
    assert len(page.query_selector_all(".mx .proof.missed")) == len(right) - hits
    assert page.wrongs == []


def test_a_head_without_a_role_says_what_it_missed(visit: Visit) -> None:
    page = visit("encoder", "#enc.0.1")
    assert "No role found" in page.inner_text("#dh")
    assert "nothing it does" not in page.inner_text("#dh")
    assert page.inner_text("#dh .ev").startswith(("Nearest: ", "No rule could be asked"))


def test_words_add_up_their_pieces(visit: Visit, runs: dict[str, Path]) -> None:
    exhibit = read_exhibits(runs["encoder"])[0]
    maps = exhibit.maps["enc", 1][4]
    page = visit("encoder", "#enc.1.4")
    page.click('[data-unit="words"]')
    asks = ".tk:not(.to) .tok"
    assert eventually(page, lambda: len(page.query_selector_all(asks)) == 5)
    words = page.eval_on_selector_all(asks, "all => all.map(e => e.textContent)")
    assert words == ["[CLS]", "theold", "millstands", "still", "[SEP]"]
    page.focus(".tk:not(.to) .tok:nth-of-type(3)")
    told = dict(part.rsplit(" ", 1) for part in page.inner_text("#read").split("→ ")[1].split(", "))
    wanted = maps[3:5][:, 1:3].sum(1).mean()
    assert float(told["theold"]) == pytest.approx(float(wanted), abs=0.005)


def test_long_texts_open_as_text(visit: Visit, tmp_path: Path) -> None:
    sizes = {"enc": (1, 2)}
    long = made_exhibit(sizes, ["[CLS]", *(f"w{k}" for k in range(60)), "[SEP]"])
    page = visit(report(made_run(tmp_path / "r", sizes, exhibits=[long]), tmp_path / "p.html").path)
    assert page.get_attribute('[data-view="text"]', "aria-pressed") == "true"
    assert len(page.query_selector_all(".flow .tok")) == 62


# --- numbers -------------------------------------------------------------------------------------


def test_numbers_are_those_of_the_run(visit: Visit, runs: dict[str, Path]) -> None:
    table = HeadTable.load(runs["three"])
    for name in ["enc.0.1", "cross.2.3"]:
        page = visit("three", f"#{name}")
        row = table.head(name)
        for column in ["confidence", "entropy", "gradient", "ablation"]:
            told = page.inner_text(f'[data-col="{column}"] .v').replace("−", "-")
            assert float(told) == pytest.approx(row[column], rel=0.006, abs=0.006), column
        assert float(page.inner_text("[data-cost=ablation]").replace("−", "-")) == pytest.approx(
            row["ablation"], rel=0.006
        )
        rank = page.inner_text('[data-col="confidence"] .k')
        assert rank == f"{table.rank('confidence').index(parse_head(name)) + 1}/{len(table)}"


def test_what_was_not_measured_is_hatched_and_said(visit: Visit) -> None:
    page = visit("three", "#head=cross.0.0&col=next")
    assert "not measured" in page.inner_text("#nowhere")
    assert "Next" in page.inner_text("#nowhere")
    cells = page.query_selector_all(".cell.na")
    assert len(cells) == 24
    assert "not measured" in cells[0].get_attribute("aria-label")
    assert page.inner_text(".agm").count("not measured") >= 1


def test_a_step_of_pruning_empties_the_heads_that_went(visit: Visit) -> None:
    page = visit("encoder")
    curve = made_curve(ENCODER).query("order == 'ablation' and 0 < step <= 3")
    gone = {str(head) for names in curve["removed"] for head in names.split(",")}
    page.fill("#prstep", str(len(gone)))  # the slider counts heads, as the bars above it do
    bar = page.eval_on_selector(
        ".pick.now", "e => e.getBoundingClientRect().x + e.width.baseVal.value / 2"
    )
    box = page.query_selector("#prstep").bounding_box()
    most = int(page.get_attribute("#prstep", "max"))
    assert box["x"] + 8 + (box["width"] - 16) * len(gone) / most == pytest.approx(bar, abs=2)
    shown = page.eval_on_selector_all(
        ".cell.gone", "all => all.map(e => e.getAttribute('aria-label').split(',')[0])"
    )
    assert set(shown) == gone
    assert page.inner_text("#prtext").startswith(f"{len(made_table()) - len(gone)} heads left")
    assert page.inner_text("#prtext").count("BLEU 26 ") == 1


def with_jobs(tmp_path: Path) -> Path:
    """A page of a run whose jobs were taken away."""
    place = made_run(tmp_path / "run", THREE)
    rows = [
        ("positional", "enc.0.0,dec.0.0", 0.15, 0.12, 0.17, 0.01, "more"),
        ("any function", "enc.0.0,dec.0.0,enc.0.3", 0.75, 0.67, 0.83, 0.22, "more"),
    ]
    names = ("set", "members", "added", "added_low", "added_high", "control", "answer")
    frame = pd.DataFrame([dict(zip(names, row, strict=True)) for row in rows]).assign(
        heads=[2, 3], metric="loss", examples=96, draws=8, note="", alone=0.1,
        control_least=0.0, control_most=[0.03, 0.26],
    )  # fmt: skip
    with Run.open(place) as run:
        run.write_frame("knockout", frame)
        table = run.read_table()
        table.origins["ablation"] = {"task": {"kind": "lm", "examples": 96, "metric": "loss"}}
        run.write_table(table)
    return report(place, tmp_path / "jobs.html").path


def test_whole_jobs_stand_under_the_title_and_empty_the_grid(visit: Visit, tmp_path: Path) -> None:
    page = visit(with_jobs(tmp_path))
    assert page.wrongs == []
    assert page.inner_text("h1").startswith("Without the 2 heads of made with the role positional")
    rows = page.query_selector_all("#sets [data-set]")
    assert [row.get_attribute("data-set") for row in rows] == ["positional", "any function"]
    assert page.inner_text('[data-set="any function"] .told').startswith(
        "2.1 times less likely, more than others (20%)"
    )
    page.click('[data-set="positional"] .tiny')
    gone = page.eval_on_selector_all(
        ".cell.gone", "all => all.map(e => e.getAttribute('aria-label').split(',')[0])"
    )
    assert sorted(gone) == ["dec.0.0", "enc.0.0"]
    assert page.query_selector('.sv[aria-pressed="true"]') is None
    assert "step=" not in page.url
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert len(page.query_selector_all(".cell.gone")) == 2


def test_all_heads_are_seen_at_one_glance_and_open_on_a_click(visit: Visit) -> None:
    page = visit("three")
    page.evaluate("document.querySelector('#gallery').scrollIntoView()")
    assert eventually(page, lambda: page.get_attribute("#gallery", "data-drawn") == "36")
    page.click('.thumb[data-head="5"]')
    assert page.inner_text("#big") == "enc.1.1"


def test_a_card_is_saved_where_nothing_can_be_copied(visit: Visit, tmp_path: Path) -> None:
    page = visit(with_jobs(tmp_path))
    page.evaluate("() => { Clipboard.prototype.write = () => Promise.reject(1); }")
    with page.expect_download() as download:
        page.click("#card")
    data = Path(download.value.path()).read_bytes()
    assert data.startswith(b"\x89PNG")
    assert (int.from_bytes(data[16:20]), int.from_bytes(data[20:24])) == (1200, 630)


def test_what_is_folded_draws_itself_when_it_opens(visit: Visit) -> None:
    page = visit("three", unfold=False)
    assert not page.is_visible("#prchart svg")
    page.click("[data-fold=pruning] summary")
    assert eventually(page, lambda: page.is_visible("#prchart svg"))


def test_every_view_counts_the_same_heads(visit: Visit) -> None:
    """Heads that do something, that rest and that cost something: rows, dots, chips agree."""
    page = visit("encoder")
    table, roles = made_table(), made_roles(ENCODER)
    rests = int((roles["role"] == "sink").sum())
    costly = int((table.numbers("ablation") > 0.03).sum())
    rows = page.eval_on_selector_all("#strip [data-told]", "all => all.map(e => e.textContent)")
    assert sum(int(told.split()[0]) for told in rows) == costly
    assert sum(int(told.split()[2]) for told in rows) == 72
    assert len(page.query_selector_all("#strip .bead:not(.open)")) == costly
    assert len(page.query_selector_all("#strip .bead")) == 72
    counts = page.eval_on_selector_all("#strip .chip i", "all => all.map(e => +e.textContent)")
    assert sum(counts) == 72
    assert len(page.query_selector_all("#grid .cell.rests")) == rests
    left = page.inner_text("#prtext").split("Left: ")[1]
    assert f"{rests} sink" in left


@pytest.mark.parametrize("times", [0.25, 1, 4, 16])
def test_what_can_go_is_what_the_rule_says_at_every_tolerance(
    visit: Visit, tmp_path: Path, times: float
) -> None:
    """The page counts with the bounds of the run; `pruning.can_go` is the rule."""
    bounds = dict(enumerate([0, 0.1, 0.3, 0.9, 3, 20]))
    bleu = made_curve(ENCODER, ["ablation"]).assign(bound=lambda rows: rows["step"].map(bounds))
    loss = bleu.assign(metric="loss", more="worse", value=30.0, bound=bleu["bound"] / 3)
    frame = pd.concat([bleu, loss])
    run = made_run(tmp_path / "run", ENCODER)
    with Run.open(run) as opened:
        opened.write_frame("curve", frame)
    page = visit(report(run, tmp_path / "page.html").path)
    page.fill("#tolerance", str([0.25, 0.5, 1, 2, 4, 8, 16].index(times)))
    said = {one.metric: one.heads for one in can_go(frame, f"bleu={times / 2},loss={times}%")}
    shown = {name: page.inner_text(f'[data-by="{name}"] b') for name in ("BLEU", "loss")}
    assert shown == {name: str(said[name.lower()] or "none") for name in shown}
    least, most = min(said.values()), max(said.values())
    assert page.inner_text("#answer b") == (f"{least or most} heads" if most else "No head")
    assert page.wrongs == []


def test_what_gates_free_and_healing_gives_back_is_what_the_run_holds(
    visit: Visit, tmp_path: Path
) -> None:
    run = made_run(tmp_path / "run", ENCODER)
    frames = {"gates": made_sizes(ENCODER), "healed": made_sizes(ENCODER, healed=True)}
    with Run.open(run) as opened:
        for name, frame in frames.items():
            opened.write_frame(name, frame)
            opened.stage(name).finish({"steps": 200, "by": "gates"})
    page = visit(report(run, tmp_path / "page.html").path)
    read = "all => all.map(r => [...r.cells].map(c => c.innerText.replaceAll('\u2212', '-')))"
    rows = {row[0]: row[1:] for row in page.eval_on_selector_all("#survivors tbody tr", read)}
    assert [*rows] == ["BLEU as is", "BLEU healed", "loss as is", "loss healed"]
    heads = page.eval_on_selector_all("#survivors .sv", "all => all.map(e => e.innerText)")
    assert heads == ["all 72", "68 left", "64 left", "60 left"]
    assert float(rows["BLEU as is"][0]) == 30
    for metric, title in (("bleu", "BLEU"), ("loss", "loss")):
        for name, way in (("gates", "as is"), ("healed", "healed")):
            frame = frames[name].set_index(["metric", "step"])
            for step, cell in zip((1, 2, 3), rows[f"{title} {way}"][1:], strict=True):
                value, delta = cell.split()
                assert float(value) == pytest.approx(frame["value"][metric, step], rel=0.005)
                assert float(delta) == pytest.approx(frame["delta"][metric, step], rel=0.06)
    assert "not measured" in page.inner_text("#timed")
    said = page.eval_on_selector_all("#trsaid li", "all => all.map(e => e.textContent)")
    source = read_source(run)
    assert said == freed_sentences(source)
    assert len(said) == 2
    page.click(".sv:has-text('64 left')")
    assert page.eval_on_selector_all(".sv[aria-pressed=true]", "all => all.length") == 1
    assert "left=64" in page.url
    page.reload()
    page.wait_for_selector("html[data-ready]")
    gone = frames["gates"].query("metric == 'loss' and step == 2")["removed"].iloc[0]
    empty = page.eval_on_selector_all("#grid .cell.gone", "all => all.map(e => e.ariaLabel)")
    assert {label.split(",")[0] for label in empty} == set(gone.split(","))
    assert page.wrongs == []


def test_the_path_leads_to_what_it_speaks_of(visit: Visit) -> None:
    page = visit("encoder")
    links = page.query_selector_all("#path a")
    assert 2 <= len(links) <= 4
    for link in links:
        said = link.inner_text()
        link.click()
        if "." in said:
            assert page.inner_text("#big") == said
        else:
            assert len(page.query_selector_all("#grid .cell:not(.dim)")) == int(said.split()[0])
            page.keyboard.press("Escape")
    assert page.wrongs == []


def test_the_csv_has_a_line_for_every_head(visit: Visit) -> None:
    page = visit("encoder")
    with page.expect_download() as download:
        page.click("#csv")
    rows = list(csv.reader(io.StringIO(Path(download.value.path()).read_text())))
    table = made_table()
    assert len(rows) == len(table) + 1
    at = rows[0].index("confidence")
    assert [float(row[at]) for row in rows[1:]] == pytest.approx(
        table.numbers("confidence").tolist(), abs=1e-4
    )


@pytest.mark.parametrize("kind", ["SVG", "PNG"])
def test_charts_are_saved_as_pictures(visit: Visit, kind: str) -> None:
    page = visit("three")
    for name in ["heads", "map", "attention", "pruning"]:
        with page.expect_download() as download:
            page.click(f'[aria-label="Save {name} as {kind}"]')
        data = Path(download.value.path()).read_bytes()
        assert data.startswith(b"\x89PNG" if kind == "PNG" else b"<svg")
        assert len(data) > 2_000
    assert page.wrongs == []


# --- themes, sizes, people -----------------------------------------------------------------------


def test_the_theme_redraws_the_map(visit: Visit) -> None:
    page = visit("encoder", color_scheme="light")
    corner = "c => [...c.getContext('2d').getImageData(0, 0, 3, 3).data].join()"
    before = page.eval_on_selector("#stage canvas", corner)
    page.click("#theme")
    assert page.get_attribute("html", "data-theme") == "dark"
    assert eventually(page, lambda: page.eval_on_selector("#stage canvas", corner) != before)


@pytest.mark.parametrize("name", ["three", "hostile"])
def test_nothing_scrolls_sideways(visit: Visit, name: str) -> None:
    page, fits = visit(name), "document.documentElement.scrollWidth <= innerWidth"
    for width in [1440, 1024, 768, 390, 320]:
        page.set_viewport_size({"width": width, "height": 900})
        assert eventually(page, lambda: page.evaluate(fits)), width


@pytest.mark.parametrize("name", ["three", "encoder"])
def test_sizes_stand_in_one_row(visit: Visit, name: str) -> None:
    for width in (1440, 1280, 390):
        page = visit(name, width=width)
        read = "all => [...new Set(all.map(e => Math.round(e.getBoundingClientRect().bottom)))]"
        assert len(page.eval_on_selector_all(".sv", read)) == 1, width


@pytest.mark.parametrize("name", ["three", "encoder", "hostile"])
def test_captions_stay_under_their_survivors(visit: Visit, name: str) -> None:
    page = visit(name)
    over = """all => Math.max(...all.map(one => Math.max(...[...one.children].map(part =>
        part.getBoundingClientRect().right - one.getBoundingClientRect().right))))"""
    for width in [1440, 768, 390, 320]:
        page.set_viewport_size({"width": width, "height": 900})
        assert eventually(page, lambda: page.eval_on_selector_all(".sv", over) <= 0), width


def test_the_grid_stays_beside_its_dossier_and_covers_nothing(visit: Visit) -> None:
    page = visit("three")
    page.evaluate("document.querySelector('.mapbox').hidden = true")  # a grid without a map
    page.evaluate("document.querySelector('#dossier').scrollIntoView(); scrollBy(0, 60)")
    top = "e => Math.round(e.getBoundingClientRect().top)"
    assert page.eval_on_selector("#over", top) == 14
    page.evaluate("document.querySelector('#agreement').scrollIntoView({ block: 'end' })")
    ends = page.eval_on_selector("#over", "e => e.getBoundingClientRect().bottom")
    assert ends <= page.eval_on_selector("#relations", "e => e.getBoundingClientRect().top")


def test_it_works_in_a_sandboxed_frame(chromium: Any, pages: dict[str, Path]) -> None:
    page = chromium.new_page()
    page.set_content(
        "<iframe sandbox='allow-scripts allow-downloads' width=1200 height=800></iframe>"
    )
    page.eval_on_selector(
        "iframe", "(frame, text) => { frame.srcdoc = text; }", pages["encoder"].read_text()
    )
    assert eventually(page, lambda: len(page.frames) == 2)
    frame = page.frames[1]
    frame.wait_for_selector("html[data-ready]")
    frame.click(".cell[data-head='5']")
    assert frame.inner_text("#big") == "enc.0.5"
    page.close()


#: Where a page may stand: at rest, with a role, a head, a column, a step, on a phone.
STATES = [
    *(("three", 1440, scheme, "") for scheme in ("light", "dark")),
    *(("three", 1440, scheme, "#role=sink") for scheme in ("light", "dark")),
    *(("three", 1440, "light", hash) for hash in ("#head=enc.1.1", "#col=ablation", "#step=0.2")),
    *(("encoder", 390, "light", hash) for hash in ("", "#role=positional")),
]


@pytest.mark.parametrize(("name", "width", "scheme", "hash"), STATES)
@pytest.mark.parametrize("unfold", [True, False])
def test_axe_finds_nothing(
    visit: Visit, axe_script: str, name: str, width: int, scheme: str, hash: str, unfold: bool
) -> None:
    page = visit(name, hash, width, unfold, color_scheme=scheme, bypass_csp=True)
    page.evaluate(axe_script)
    rules = "{ rules: { 'target-size': { enabled: true } } }"
    found = page.evaluate(f"async () => (await axe.run({rules})).violations")
    assert [(one["id"], [node["html"][:120] for node in one["nodes"][:3]]) for one in found] == []


@pytest.mark.parametrize("name", ["three", "encoder"])
def test_the_heads_are_few_stops_away_and_large_enough(visit: Visit, name: str) -> None:
    page = visit(name, unfold=False)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the first stop of all leads there
    inside = "() => document.activeElement.classList.contains('cell')"
    assert page.evaluate(inside)
    page.reload()
    page.wait_for_selector("html[data-ready]")
    stops = 0
    while not page.evaluate(inside):
        page.keyboard.press("Tab")
        stops += 1
        assert stops <= 20
    least = """all => Math.min(...all.flatMap(e => {
        const { width, height } = e.getBoundingClientRect(); return [width, height]; }))"""
    for width in (1440, 1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert eventually(page, lambda: page.eval_on_selector_all(".cell", least) >= 24), width


def test_arrows_go_through_a_group_of_buttons(visit: Visit) -> None:
    page = visit("three")
    page.focus("#card")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") == "share"
    assert page.eval_on_selector_all(".tools [tabindex='0']", "all => all.length") == 1


def test_what_reads_as_nothing_has_no_colour(visit: Visit, tmp_path: Path) -> None:
    table = made_table({"enc": (2, 4)})
    values = np.array([0.0001, 0.0002, 0.0003, 0.0004, 0.01, 0.02, 5.0, 90.0])
    seen = HeadTable.of(table.heads, {"entropy": values}, [table.column("entropy")])
    page = visit(report(seen, tmp_path / "n.html").path, "#col=entropy")
    colours = page.eval_on_selector_all(".cell", "all => all.map(e => e.style.backgroundColor)")
    assert len(set(colours[:4])) == 1
    assert colours[7] != colours[0]


def test_a_step_that_does_not_apply_is_not_called_unmeasured(visit: Visit, tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", ENCODER)
    with Run.open(run) as opened:
        curve = made_curve(ENCODER, ["ablation"])
        table = opened.read_table().join(removal_table(curve, made_table().heads), replace=True)
        opened.write_table(table)
    steps = table.numbers("removal_step")
    stays = next(head for head, step in zip(table.heads, steps, strict=True) if np.isnan(step))
    page = visit(report(run, tmp_path / "p.html").path, f"#head={stays}&col=removal_step")
    assert page.inner_text('[data-col="removal_step"] .k') == "stays"
    label = page.get_attribute(".cell.sel", "aria-label")
    assert "does not apply: it stays" in label
    assert "not measured" not in label


#: Sentences of earlier pages that a reader had to decode.
RIDDLES = (
    *("look much at one place", "is worse", "it saves", "the diagonal", "random twin", "1 matter;"),
    *("Framed:", "for 0 tests", "have been seen", "under its first", "for sure", "beyond chance"),
)


@pytest.mark.parametrize("name", ["three", "encoder"])
def test_no_page_speaks_in_riddles(visit: Visit, name: str) -> None:
    page = visit(name)
    titles = "all => all.map(e => [e.title, e.ariaLabel].join(' ')).join(' ')"
    said = page.inner_text("body") + page.eval_on_selector_all("[title], [aria-label]", titles)
    assert [riddle for riddle in RIDDLES if riddle in said] == []


def test_it_prints(visit: Visit) -> None:
    page = visit("three")
    pdf = page.pdf(format="A4")
    assert pdf.startswith(b"%PDF")
    assert 3 <= pdf.count(b"/Type /Page\n") <= 12


def test_chosen_marks_stand_out_in_forced_colours(visit: Visit) -> None:
    page = visit("three", forced_colors="active")
    style = page.eval_on_selector(".cell.sel", "e => getComputedStyle(e).outlineStyle")
    assert style == "solid"


# --- odd runs ------------------------------------------------------------------------------------


def test_a_table_alone_still_makes_a_page(visit: Visit, tmp_path: Path) -> None:
    table = made_table({"enc": (2, 3)})
    bare = table.without([name for name in table.names if name != "entropy"])
    page = visit(report(bare, tmp_path / "bare.html").path)
    assert page.wrongs == []
    assert page.inner_text("h1") == "The 6 attention heads of made"
    assert len(page.query_selector_all(".missing li")) == 13
    assert "not measured" in page.inner_text("#pruning")


def test_a_column_of_nan_and_a_table_without_columns(visit: Visit, tmp_path: Path) -> None:
    table = made_table({"dec": (2, 2)})
    nothing = table.without(table.names)
    assert np.isnan(table.numbers("next")).all()
    for name, one in [("nan", table), ("none", nothing)]:
        page = visit(report(one, tmp_path / f"{name}.html").path)
        assert page.wrongs == []
        assert len(page.query_selector_all(".cell")) == 4


def test_heads_that_went_keep_their_places(visit: Visit, tmp_path: Path) -> None:
    table = made_table({"enc": (2, 4)})
    kept = table.select([head for head in table.heads if head.index != 1])
    page = visit(report(kept, tmp_path / "pruned.html").path)
    assert len(page.query_selector_all(".cell.gone")) == 2
    assert "2 removed before" in page.inner_text("#made")
    page.dispatch_event(".cell.gone", "click")
    assert page.inner_text("#big") != "enc.0.1"


def test_two_runs_are_compared(visit: Visit, tmp_path: Path) -> None:
    first, second = made_table({"enc": (2, 4)}), made_table({"enc": (2, 4)}, "other", seed=9)
    page = visit(report(first, tmp_path / "c.html", compare=second).path, "#col=diff-entropy")
    assert page.inner_text("h1").startswith(
        "From made to other, the order of importance agrees at "
    )
    moved = np.abs(second.numbers("ablation") - first.numbers("ablation")).argmax()
    assert page.inner_text("#changed .hd") == str(first.heads[int(moved)])
    wanted = np.abs(second.numbers("entropy") - first.numbers("entropy")).argmax()
    assert page.inner_text("#chtable tbody .hd") == str(first.heads[int(wanted)])
    assert page.input_value("#col") == "diff-entropy"
    assert page.wrongs == []


def test_it_says_when_it_holds_the_users_text(
    visit: Visit, runs: dict[str, Path], tmp_path: Path
) -> None:
    assert "your corpus" in visit("hostile").inner_text("#own")
    page = visit(report(runs["hostile"], tmp_path / "without.html", exhibits=False).path)
    assert not page.is_visible("#own")
    assert "not measured" in page.inner_text("#stage")
    assert "&amp;amp;" not in page.content()


def test_a_thousand_heads(visit: Visit, tmp_path: Path) -> None:
    page = visit(report(made_table({"dec": (32, 32)}), tmp_path / "large.html").path)
    assert len(page.query_selector_all(".cell")) == 1024
    page.click('.cell[data-head="777"]')
    assert page.inner_text("#big") == "dec.24.9"


def test_all_stacks_have_their_grid(visit: Visit) -> None:
    page = visit("three")
    assert len(page.query_selector_all('[role="grid"]')) == len(THREE)
