"""`headcount survey`: what it prints and writes, and what it says when it cannot."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from headcount.bundle import sample
from headcount.records.run import FRAMES, Run
from headcount.records.table import HeadTable
from headcount.rooms.patterns.tally import PATTERNS
from headcount.surveys import shards

ROOT = Path(__file__).parents[2]
TEXT = "The old ferry leaves at noon, and nobody is ever late.\n\nRain.\nTwo crows argued.\n"
PAIRS = "Rain fell.\tRegen fiel.\nShe mends clocks.\tSie repariert Uhren.\n"

Command = Callable
Saved = Callable[[str], Path]


@pytest.fixture
def desk(headcount: Command, tmp_path: Path) -> Path:
    """A folder with inputs of every kind, good and bad; commands run in it."""
    files = {"s.txt": TEXT, "p.tsv": PAIRS, "empty.txt": "", "blank.txt": "\n \n", "afile": "x"}
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf8")
    (tmp_path / "latin.txt").write_bytes("café\n".encode("latin-1"))
    for name in ("nothing", "foreign", "newer"):
        (tmp_path / name).mkdir()
    (tmp_path / "foreign" / "thesis.tex").touch()
    (tmp_path / "newer" / "run.json").write_text('{"schema": 99}')
    return tmp_path


def contents(folder: Path) -> dict[str, bytes | None]:
    """Every file below a folder and what it holds."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


# --- what it prints -----------------------------------------------------------------------------


def test_a_table_for_people(desk: Path, headcount: Command, saved: Saved) -> None:
    ended = headcount("survey", saved("bert"), "--text", "s.txt")
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[0] == "8 heads of bert: enc 8"
    assert sum(line.startswith("enc.") for line in lines) == 8
    sizes = next(line for line in lines if line.startswith("3 sentences"))
    assert re.match(r"3 sentences of s\.txt, \d+ tokens; Subject\(bert: BertModel, 2 layers", sizes)
    assert "Note: 1 blank line skipped." in lines
    assert "\x1b" not in ended.out


@pytest.mark.parametrize(
    ("width", "titles"),
    [
        ("200", "Confidence Entropy Self Previous Next First Separator Punctuation offset share"),
        ("80", "Confidence Entropy Previous Next First Separator offset share"),
    ],
)
def test_people_see_the_columns_worth_seeing(
    desk: Path,
    headcount: Command,
    saved: Saved,
    monkeypatch: pytest.MonkeyPatch,
    width: str,
    titles: str,
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    ended = headcount("survey", saved("bert"), "--text", "s.txt")
    heading = " ".join(ended.out.split("───")[0].splitlines()[1:])
    words = {"Best", "token", "head"}
    assert sorted(set(heading.split()) - words) == sorted(titles.split())
    assert max(map(len, ended.out.splitlines())) <= int(width)
    assert "more columns not shown: entropy_first, entropy_uniform, " in ended.out
    assert "[Clark" not in ended.out  # papers are for `ls`


def test_chosen_columns_and_stacks_alone(desk: Path, headcount: Command, saved: Saved) -> None:
    words = ["--columns", "next,self", "--reading", "stacks=enc"]
    ended = headcount("survey", saved("marian"), "--text", "s.txt", *words)
    assert ended.code == 0
    assert ended.out.splitlines()[0] == "8 heads of marian: enc 8"
    assert "Confidence" not in ended.out
    assert "not surveyed" not in ended.out


def test_json_for_machines(desk: Path, headcount: Command, saved: Saved) -> None:
    ended = headcount("survey", saved("gpt2"), "--text", "s.txt", "--json")
    told = json.loads(ended.out)
    assert (ended.code, ended.err, len(told["heads"])) == (0, "", 8)
    first = told["heads"][0]
    assert first["name"] == "dec.0.0"
    assert first["next"] is None
    assert told["columns"]["next"]["note"] == "dec: a causal head cannot look ahead"
    assert 0 <= first["self_low"] < first["self"] < first["self_high"] <= 1
    assert told["provenance"]["command"].startswith("headcount survey ")
    assert told["provenance"]["counts"]["skipped"] == {"blank lines": 1}


def test_standard_input(desk: Path, headcount: Command, saved: Saved) -> None:
    from_file = headcount("survey", saved("bert"), "--text", "s.txt", "--json")
    piped = headcount("survey", saved("bert"), "--text", "-", "--json", stdin=TEXT)
    assert json.loads(piped.out)["heads"] == json.loads(from_file.out)["heads"]
    assert json.loads(piped.out)["provenance"]["corpus"] == "standard input"
    pairs = headcount("survey", saved("marian"), "--pairs", "-", "--json", stdin=PAIRS)
    assert json.loads(pairs.out)["provenance"]["counts"]["sentences"] == 2


def test_the_bundled_sample(desk: Path, headcount: Command, saved: Saved) -> None:
    from headcount.bundle import sample

    ended = headcount("survey", saved("bert"), "--text", "sample", "--limit", 6, "--json")
    plain = "\n".join(sample.sentences()[:6])
    piped = headcount("survey", saved("bert"), "--text", "-", "--json", stdin=plain)
    assert json.loads(ended.out)["heads"] == json.loads(piped.out)["heads"]
    assert json.loads(ended.out)["provenance"]["corpus"] == "sample.conllu"
    assert json.loads(ended.out)["provenance"]["settings"]["limit"] == 6
    ended = headcount("survey", saved("marian"), "--pairs", "sample", "--limit", 3)
    assert "3 pairs of sample.en-de.tsv, " in ended.out
    assert " source and " in ended.out


def test_pairs_are_two_columns_whatever_the_file_is_called(
    desk: Path, headcount: Command, saved: Saved
) -> None:
    (desk / "p.txt").write_text(PAIRS)
    ended = headcount("survey", saved("bert"), "--pairs", "p.txt", "--columns", "separator")
    assert "2 pairs of p.txt, " in ended.out


def test_limit_takes_the_first_and_with_a_seed_a_sample(
    desk: Path, headcount: Command, saved: Saved
) -> None:
    def data(*words: object) -> str:
        line = ["survey", saved("bert"), "--text", "sample", "--columns", "self", "--json", *words]
        return str(json.loads(headcount(*line).out)["provenance"]["data"])

    assert data("--limit", 3) == data("--limit", 3)
    assert data("--limit", 3, "--seed", 1) == data("--limit", 3, "--seed", 1)
    assert len({data("--limit", 3), data("--limit", 3, "--seed", 1)}) == 2


def test_long_sentences_are_counted_and_said(desk: Path, headcount: Command, saved: Saved) -> None:
    (desk / "long.txt").write_text(" ".join(["Rain fell on the tin roof."] * 40) + "\nRain.\n")
    line = ["survey", saved("bert"), "--text", "long.txt", "--columns", "self"]
    ended = headcount(*line)
    assert "Note: 1 of 2 sentences was too long and gave " in ended.out
    assert " windows." in ended.out
    ended = headcount(*line, "--reading", "long=truncate", "--reading", "max-length=9")
    assert "Note: 1 of 2 sentences was too long and lost the end." in ended.out
    ended = headcount(*line, "--reading", "long=error")
    assert ended.code == 1
    assert "Item 1 of long.txt (line 1) has " in ended.err
    assert " tokens and the model takes 64; shorten it" in ended.err


def test_chat_puts_each_sentence_into_the_template(
    desk: Path, headcount: Command, saved: Saved
) -> None:
    line = ["survey", saved("chatty"), "--text", "s.txt", "--json"]
    plain, chat = (json.loads(headcount(*line, *more).out) for more in ([], ["--reading", "chat"]))
    tokens = [table["provenance"]["counts"]["tokens"]["target"] for table in (plain, chat)]
    assert tokens[1] > tokens[0] + 3 * 10


def test_own_output_is_what_the_model_says(desk: Path, headcount: Command) -> None:
    line = [
        "survey",
        "translator",
        "--text",
        "s.txt",
        "--reading",
        "own-output",
        "--columns",
        "first",
    ]
    ended = headcount(*line, "--limit", 2, "--json")
    told = json.loads(ended.out)
    assert told["provenance"]["corpus"] == "s.txt in its own words"
    assert told["provenance"]["counts"]["tokens"].keys() == {"source", "target"}
    assert all(head["first"] is not None for head in told["heads"])


def test_what_there_is_to_know_of_the_model_is_a_note(
    desk: Path, headcount: Command, saved: Saved
) -> None:
    shutil.copytree(saved("bert"), desk / "old")
    config = json.loads((desk / "old" / "config.json").read_text())
    (desk / "old" / "config.json").write_text(json.dumps(config | {"pruned_heads": {"0": [1]}}))
    ended = headcount("survey", "old", "--text", "s.txt", "--columns", "self")
    assert (ended.code, ended.err) == (0, "")
    assert "Note: the config of old lists pruned_heads" in ended.out


def test_a_model_without_a_tokenizer_takes_another_folders(
    desk: Path, headcount: Command, saved: Saved
) -> None:
    shutil.copytree(
        saved("bert"), desk / "bare", ignore=shutil.ignore_patterns("*token*", "*vocab*")
    )
    line = ["survey", "bare", "--text", "s.txt", "--json"]
    ended = headcount(*line)
    assert ended.code == 2
    assert (
        "Reading text needs a tokenizer and this subject has none; pass one: --load tok"
        in ended.err
    )
    lent = headcount(*line, "--load", f"tokenizer={saved('bert')}")
    own = headcount("survey", saved("bert"), "--text", "s.txt", "--json")
    assert json.loads(lent.out)["heads"] == json.loads(own.out)["heads"]


# --- what it writes -----------------------------------------------------------------------------


def test_a_run_directory_is_written_and_joined(
    desk: Path, headcount: Command, saved: Saved
) -> None:
    line = ["survey", saved("bert"), "--text", "s.txt", "-o", "run"]
    ended = headcount(*line, "--columns", "self,best_offset")
    assert ended.out.endswith("Wrote run/ (headcount ls run lists what it holds).\n")
    assert sorted(contents(desk / "run")) == [
        "heads.parquet",
        "offsets.parquet",
        "positions.parquet",
        "run.json",
    ]
    before = HeadTable.load("run")
    assert headcount(*line, "--columns", "entropy").code == 0
    table = HeadTable.load("run")
    assert table.names == ["self", "best_offset", "entropy"]
    assert table.frame[before.names].equals(before.frame)
    assert set(table.details) == {"offsets", "positions"}
    run = Run.open("run", create=False)
    assert list(run.stages) == ["survey"]
    assert run.stages["survey"]["settings"]["columns"] == ["entropy"]
    assert run.stages["survey"]["notes"] == []
    assert run.stages["survey"]["seconds"] > 0.01  # the work, not the writing alone


def test_a_run_of_another_model_is_kept_unless_replaced(
    desk: Path, headcount: Command, saved: Saved
) -> None:
    headcount("survey", saved("bert"), "--text", "s.txt", "-o", "run", "--columns", "self")
    before = contents(desk)
    line = ["survey", saved("gpt2"), "--text", "s.txt", "-o", "run", "--columns", "first"]
    ended = headcount(*line)
    assert ended.code == 1
    assert ended.err == (
        "Error: run/ holds a table of 8 heads, and this one has 8 that are not the same; choose "
        "another folder, or pass replace=True (--replace).\n"
    )
    assert contents(desk) == before
    assert headcount(*line, "--replace").code == 0
    assert HeadTable.load("run").stacks == ["dec"]


def test_a_survey_of_one_stack_does_not_clear_the_others(
    desk: Path, headcount: Command, saved: Saved
) -> None:
    line = ["survey", saved("marian"), "--pairs", "p.tsv", "-o", "run", "--columns", "self"]
    headcount(*line)
    before = contents(desk)
    ended = headcount(*line, "--reading", "stacks=enc")
    assert ended.code == 2
    assert ended.err == (
        "Error: run/ has a survey already, and one of enc alone would clear dec, cross; leave out "
        "stacks=, choose another folder, or --replace.\n"
    )
    assert contents(desk) == before


# --- what it says when it cannot ------------------------------------------------------------------

#: Words, exit code, message; {name} is the folder of a saved model.
BAD: dict[str, tuple[str, int, str]] = {
    "missing file": ("{bert} --text t.txt", 1, "There is no file t.txt; near it are "),
    "empty file": ("{bert} --text empty.txt", 1, "empty.txt is empty: it has no sentence."),
    "blank file": (
        "{bert} --text blank.txt",
        1,
        "blank.txt is empty: it has no sentence (2 blank lines skipped).",
    ),
    "wrong encoding": (
        "{bert} --text latin.txt",
        1,
        "latin.txt is not UTF-8: byte 3 (line 1) is 0xE9; convert it, e.g. "
        "iconv -f latin1 -t utf-8 latin.txt > utf8-latin.txt.",
    ),
    "text that is a folder": ("{bert} --text nothing", 1, "nothing is a folder; give one file"),
    "one column for pairs": ("{bert} --pairs s.txt", 1, "s.txt"),
    "folder without config": (
        "nothing --text s.txt",
        1,
        "The folder 'nothing' is empty; pass a folder that save_pretrained wrote",
    ),
    "unknown model": (
        "no/such/model --text s.txt",
        1,
        "There is no folder or file 'no/such/model'. Known names: translator, minilm",
    ),
    "no attention": (
        "{mamba} --text s.txt",
        1,
        "MambaModel (model type 'mamba') has no attention heads; headcount works on Transformers "
        "with softmax attention.",
    ),
    "two towers": (
        "{clip} --text s.txt",
        1,
        "CLIPModel has two towers whose heads would share their names; pass one of them",
    ),
    "NaN in BERT": (
        "{nan-bert} --text s.txt",
        1,
        "The weight encoder.layer.0.attention.self.query.weight of nan-bert holds 1 values of "
        "1024 that are NaN or infinite; the checkpoint is broken",
    ),
    "NaN in Llama": ("{nan-llama} --text s.txt", 1, "of nan-llama holds 1 values of "),
    "NaN outside the interface": (
        "{nan-deberta} --text s.txt",
        1,
        "in_proj.weight of nan-deberta holds 1 values of 3072 that are NaN or infinite",
    ),
    "NaN in GPT-J": ("{nan-gptj} --text s.txt", 1, "of nan-gptj holds 1 values of 1024"),
    "newer run": (
        "{bert} --text s.txt -o newer",
        1,
        "newer/ was written with schema 99; this headcount",
    ),
    "run that is a file": (
        "{bert} --text s.txt -o afile",
        1,
        "afile is a file, not a folder; choose another folder for the run.",
    ),
    "foreign folder": (
        "{bert} --text s.txt -o foreign",
        1,
        "foreign/ is not a run directory: it holds thesis.tex and no run.json.",
    ),
    "unwritable place": (
        "{bert} --text s.txt -o afile/run",
        1,
        "afile/run/ cannot be made: not a directory. Choose another folder.",
    ),
    "model fails after the run was made": (
        "{mamba} --text s.txt -o deep/er/run",
        1,
        "has no attention heads",
    ),
    "unknown column": (
        "{bert} --text s.txt --columns selff",
        2,
        "There is no column 'selff'; did you mean self?",
    ),
    "no column": ("{bert} --text s.txt --columns ,", 2, "--columns names no column; name some"),
    "unknown convention": (
        "{bert} --text s.txt --convention codex",
        2,
        "--convention is 'codex'; choose headcount, paper or code.",
    ),
    "column without author code": (
        "{bert} --text s.txt --columns confidence --convention code",
        2,
        "Column 'confidence' does not exist under the convention 'code': the authors published no "
        "program for it; use the convention headcount or paper.",
    ),
    "unknown stack": (
        "{bert} --text s.txt --reading stacks=foo",
        2,
        "There is no stack 'foo'; stacks are enc, dec, cross.",
    ),
    "stack the model lacks": (
        "{bert} --text s.txt --reading stacks=dec",
        2,
        "bert has no stack 'dec'; it has enc.",
    ),
    "two corpora": (
        "{bert} --text s.txt --pairs p.tsv",
        2,
        "Both --text and --pairs were given; name one corpus",
    ),
    "no corpus": ("{bert}", 2, "No --text or --pairs was given; name one corpus"),
    "pairs for a decoder": (
        "{gpt2} --pairs p.tsv",
        1,
        "p.tsv holds pairs, which a decoder-only model cannot take; give one text a line (.txt).",
    ),
    "own output of no translator": (
        "{bert} --text s.txt --reading own-output",
        2,
        "bert is a BertModel, which translates nothing;",
    ),
    "no chat template": (
        "{bert} --text s.txt --reading chat",
        2,
        "BertTokenizer has no chat template; leave out chat=True (--chat), or use the instruct "
        "version of the model.",
    ),
    "unknown device": (
        "{bert} --text s.txt --device tpu",
        2,
        "There is no device 'tpu'; allowed: auto, cpu",
    ),
    "unknown dtype": (
        "{bert} --text s.txt --load dtype=int3",
        2,
        "There is no dtype 'int3'; allowed: auto, float32, bfloat16, float16, float64.",
    ),
    "batch of none": (
        "{bert} --text s.txt --batch-size 0",
        2,
        "--batch-size is 0; it must be 1 or more.",
    ),
    "limit of none": ("{bert} --text s.txt --limit 0", 2, "--limit is 0; it must be 1 or more."),
    "unknown way with long ones": (
        "{bert} --text s.txt --reading long=drop",
        2,
        "--reading long is 'drop'; choose window, truncate or error.",
    ),
    "unknown format": (
        "{bert} --text s.txt --input format=xml",
        2,
        "--input format is 'xml'; choose txt, tsv, csv, conllu, conll, jsonl, parquet or arrow.",
    ),
    "longer than the model": (
        "{bert} --text s.txt --reading max-length=999",
        2,
        "The maximum length is 999; this model takes 1 to 64 tokens.",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gives_one_sentence_and_leaves_nothing(
    desk: Path, headcount: Command, saved: Saved, case: str
) -> None:
    words, code, message = BAD[case]
    line = [str(saved(w[1:-1])) if w.startswith("{") else w for w in words.split()]
    before = contents(desk)
    ended = headcount("survey", *line)
    assert ended.code == code
    assert ended.err.startswith("Error: ")
    assert message in ended.err
    assert ended.err.count("\n") == 1
    assert ended.out == ""
    assert contents(desk) == before


SLOW = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from importlib import import_module
passing = import_module("headcount.surveys.passes")
counted = passing.check_numbers
def slow(*words):
    counted(*words)
    print("in the middle", flush=True)
    time.sleep(60)
passing.check_numbers = slow
from headcount.cli.main import run
run()
"""


def test_control_c_in_the_middle_leaves_nothing(desk: Path, saved: Saved) -> None:
    before = contents(desk)
    words = ["survey", str(saved("bert")), "--text", "s.txt", "-o", "new/run"]
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=desk,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "in the middle\n"
    assert (desk / "new" / "run").is_dir()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "Error: Interrupted; nothing half-written was left behind.\n"
    assert contents(desk) == before


def test_progress_is_shown_on_a_terminal_alone(
    desk: Path, headcount: Command, saved: Saved, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes this for a terminal
    ended = headcount("survey", saved("bert"), "--text", "s.txt", "--json")
    assert "Surveying" in ended.err
    assert "3/3" in ended.err
    assert "left" in ended.err
    json.loads(ended.out)


def test_columns_of_other_texts_are_told(desk: Path, headcount: Command, saved: Saved) -> None:
    (desk / "other.txt").write_text("Snow fell.\n")
    line = ["survey", saved("bert"), "-o", "run", "--text"]
    assert "measured on" not in headcount(*line, "s.txt", "--columns", "self,next").out
    again = " ".join(headcount(*line, "other.txt", "--columns", "next").out.split())
    assert "In run/ this replaces next, measured on s.txt." in again
    assert "In run/ this stands beside self, measured on s.txt." in again
    listed = " ".join(headcount("ls", "run").out.split())
    assert "On s.txt." in listed
    assert "On other.txt." in listed


# --- `headcount survey --patterns` --------------------------------------------------------------


TEXT_SURVEY_PATTERNS = (
    "The old ferry leaves at noon, and nobody is ever late.\nTwo crows argued over bread.\n"
)


@pytest.fixture
def desk_survey_patterns(headcount: Command, tmp_path: Path) -> Path:
    (tmp_path / "s.txt").write_text(TEXT_SURVEY_PATTERNS, encoding="utf8")
    (tmp_path / "one.txt").write_text("a\n", encoding="utf8")
    return tmp_path


def test_shares_of_layers_are_printed(
    desk_survey_patterns: Path, headcount: Command, saved: Saved
) -> None:
    ended = headcount("survey", saved("bert"), "--text", "s.txt", "--show", "patterns", "-o", "run")
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    start = lines.index("Patterns, mean share over the heads of a layer:")
    assert lines[start + 1].split() == [
        "layer", "vertical", "diagonal", "vertical+diagonal", "block", "heterogeneous",
    ]  # fmt: skip
    for line in lines[start + 2 : start + 4]:
        assert sum(int(cell.rstrip("%")) for cell in line.split()[1:]) in range(98, 103)
    assert len(pd.read_parquet(desk_survey_patterns / "run" / "patterns.parquet")) == 8 * 5


def test_a_column_by_its_name_is_enough(
    desk_survey_patterns: Path, headcount: Command, saved: Saved
) -> None:
    words = ["--columns", "pattern,pattern_block", "--json"]
    told = json.loads(headcount("survey", saved("bert"), "--text", "s.txt", *words).out)
    assert told["heads"][0]["pattern_block"] == 0
    assert told["heads"][0]["pattern"] in PATTERNS
    assert "entropy" not in told["columns"]


def test_a_text_too_short_is_na_with_a_reason(
    desk_survey_patterns: Path, headcount: Command, saved: Saved
) -> None:
    words = ["--text", "one.txt", "--show", "patterns", "--json"]
    told = json.loads(headcount("survey", saved("bert"), *words).out)
    assert told["heads"][0]["pattern"] is None
    assert told["columns"]["pattern"]["note"] == "enc: no text has 4 tokens or more"


def test_there_is_no_author_code(
    desk_survey_patterns: Path, headcount: Command, saved: Saved
) -> None:
    words = ["--text", "s.txt", "--show", "patterns", "--convention", "code"]
    ended = headcount("survey", saved("bert"), *words)
    assert ended.code == 2
    assert "the authors published no program for it" in ended.err


# --- `headcount survey` with annotated text -----------------------------------------------------


TREE = """# text = Rain fell
1\tRain\train\tNOUN\t_\t_\t2\tnsubj\t_\t_
2\tfell\tfall\tVERB\t_\t_\t0\troot\t_\t_

"""


@pytest.fixture
def desk_survey_roles(headcount: Command, tmp_path: Path) -> Path:
    """A folder with a few corpora, some of which lack what they should have."""
    (tmp_path / "s.txt").write_text("Rain fell.\nIt stopped.\nThe wind came back.\n")
    bare = TREE.replace("\t2\tnsubj", "\t_\t_").replace("\t0\troot", "\t_\t_")
    (tmp_path / "bare.conllu").write_text(bare)
    (tmp_path / "tree.conllu").write_text(TREE * 4)
    (tmp_path / "counts.tsv").write_text("rain\tmany\n")
    (tmp_path / "plain.jsonl").write_text('{"sents": [["Rain", "fell"]], "clusters": []}\n')
    return tmp_path


def test_a_treebank_is_told_in_roles(headcount: Command, saved: Saved) -> None:
    ended = headcount("survey", saved("bert"), "--treebank", "sample", "--limit", 30)
    assert ended.code == 0, ended.err
    assert " of 8 heads " in ended.out.splitlines()[0]
    told = " ".join(ended.out.split())
    assert "coreference (--coref)" in told
    assert "argument (--judging arguments=FILE)" in told
    assert "30 sentences of sample.conllu" in ended.out
    assert "confidence" not in ended.out  # the columns are there for those who ask


def test_how_attention_was_read_is_told_on_request(headcount: Command, saved: Saved) -> None:
    words = ["survey", saved("bert"), "--text", "sample", "--limit", "4"]
    told = " ".join(headcount(*words, "--explain").out.split())
    assert "was read by the path 'scores': a layer's map made from its scores" in told
    assert "was read by" not in headcount(*words).out


def test_a_long_survey_is_heard_of_where_there_is_no_terminal(
    headcount: Command, saved: Saved, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["survey", saved("bert"), "--text", "sample", "--limit", "4", "--batch-size", "2"]
    assert " of 4" not in headcount(*words).err
    monkeypatch.setattr("headcount.cli.printing._SILENCE", 0.0)
    assert "2 of 4" in headcount(*words).err


def test_the_best_heads_are_clarks_table(
    headcount: Command, saved: Saved, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["survey", saved("bert"), "--treebank", "sample", "--best-heads"]
    told = json.loads(headcount(*words, "--json").out)["best_heads"]
    assert told[0]["relation"] == "all"
    assert {"head", "accuracy", "low", "high", "baseline", "offset"} <= set(told[0])
    lines = headcount(*words).out.splitlines()
    titles = ["relation", "head", "direction", "arcs", "accuracy", "95%", "offset", "p"]
    assert lines[0].split() == [*titles, "naive"]
    monkeypatch.setenv("COLUMNS", "80")
    narrow = headcount(*words).out.splitlines()
    assert narrow[0].split() == titles, "no title is cut in a narrow terminal"
    assert "Not significant: " in " ".join(narrow) or "No lead: " in " ".join(narrow)
    first = lines[1].split()
    assert (first[1], first[4]) == (told[0]["head"], f"{100 * told[0]['accuracy']:.1f}")
    assert f"({told[0]['offset']:+.0f})" in lines[1]
    assert "chosen on one half of the sentences" in " ".join(lines)
    markdown = headcount(*words, "--table-format", "markdown").out.splitlines()
    assert markdown[0].startswith("| relation | head | direction | accuracy | best offset | offset")
    assert len(markdown) == len(told) + 2
    twin = headcount(*words, "--control", "random-init", "--table-format", "latex").out
    assert "random twin" in twin
    assert r"\bottomrule" in twin


def test_best_heads_of_a_small_treebank(
    desk_survey_roles: Path, headcount: Command, saved: Saved
) -> None:
    ended = headcount("survey", saved("bert"), "--treebank", "tree.conllu", "--best-heads")
    assert (ended.code, ended.out) == (1, "")
    assert "No relation has 100 arcs, the most that one has are" in ended.err


def test_columns_are_shown_beside_roles_when_chosen(headcount: Command, saved: Saved) -> None:
    words = ["--treebank", "sample", "--limit", 8, "--columns", "self,next"]
    ended = headcount("survey", saved("bert"), *words)
    assert "Self" in ended.out
    assert "a nameable job" in ended.out


def test_json_has_the_verdicts(headcount: Command, saved: Saved) -> None:
    words = [
        "--treebank",
        "sample",
        "--limit",
        20,
        "--control",
        "random-init",
        "--judging",
        "twins=2",
    ]
    ended = headcount("survey", saved("bert"), *words, "--json")
    told = json.loads(ended.out)
    assert isinstance(told["roles"], list)
    for verdict in told["roles"]:
        assert set(FRAMES["roles"]) == set(verdict)
    assert "rare" in told["columns"]


def test_plain_text_is_not_judged_unless_asked(
    desk_survey_roles: Path, headcount: Command, saved: Saved
) -> None:
    plain = headcount("survey", saved("bert"), "--text", "s.txt", "--json")
    assert "roles" not in json.loads(plain.out)
    asked = headcount("survey", saved("bert"), "--text", "s.txt", "--roles")
    assert "Not asked: syntactic (--treebank)" in " ".join(asked.out.split())


def test_a_run_keeps_every_frame(desk_survey_roles: Path, headcount: Command, saved: Saved) -> None:
    words = ["--treebank", "sample", "--coref", "sample", "--control", "random-init"]
    ended = headcount("survey", saved("bert"), *words, "--limit", 20, "-o", "run")
    assert ended.code == 0, ended.err
    run = Run.open("run", create=False)
    assert {"relations", "roles", "control", "coreference"} <= set(run.frames)
    relations = run.read_frame("relations")
    assert {*FRAMES["relations"], "control"} <= set(relations.columns)
    assert isinstance(run.read_table().details["roles"], pd.DataFrame)


def test_a_translator_reads_the_sample_with_its_translations(
    headcount: Command, saved: Saved
) -> None:
    ended = headcount("survey", saved("marian"), "--treebank", "sample", "--limit", 6)
    assert ended.code == 0, ended.err
    assert "6 pairs of sample.conllu" in " ".join(ended.out.split())


def test_a_translators_own_words_keep_the_trees(headcount: Command, saved: Saved) -> None:
    words = ["--treebank", sample.path(), "--limit", 3, "--reading", "own-output", "-o", "run"]
    ended = headcount("survey", saved("marian"), *words)
    assert ended.code == 0, ended.err
    assert "in its own words" in " ".join(ended.out.split())
    assert "enc" in set(Run.open("run", create=False).read_frame("relations")["stack"])


def test_text_and_treebank_are_both_told(
    desk_survey_roles: Path, headcount: Command, saved: Saved
) -> None:
    ended = headcount("survey", saved("bert"), "--text", "s.txt", "--treebank", "tree.conllu")
    told = " ".join(ended.out.split())
    assert "3 sentences of s.txt" in told
    assert "4 sentences of tree.conllu" in told


WRONG = {
    "missing treebank": ("--treebank none.conllu", 1, "There is no file none.conllu"),
    "missing coreference": ("--coref none.jsonl", 1, "There is no file none.jsonl"),
    "missing arguments": ("--judging arguments=none.jsonl", 1, "There is no file none.jsonl"),
    "no trees": ("--treebank bare.conllu", 1, "bare.conllu has no trees: no word has a HEAD"),
    "a plain text is no treebank": ("--treebank s.txt", 1, "s.txt has no trees"),
    "no clusters": ("--coref plain.jsonl", 1, "plain.jsonl has no coreference"),
    "no text to parse": ("--judging parser=x.udpipe", 2, "No --text or --pairs was given"),
    "missing parser": ("--text s.txt --judging parser=x.udpipe", 1, "x.udpipe"),
    "no such pipeline": (
        "--text s.txt --judging parser=en_none",
        2,
        "There is no parser 'en_none'",
    ),
    "parser and treebank": (
        "--text s.txt --judging parser=x.udpipe --treebank tree.conllu",
        2,
        "leave one of them out",
    ),
    "control": (
        "--treebank sample --control shuffle",
        2,
        "--control is 'shuffle'; choose random-init or random-but-embeddings.",
    ),
    "twins": (
        "--treebank sample --judging twins=0",
        2,
        "--judging twins is 0; it must be 1 or more.",
    ),
    "rows": (
        "--treebank sample --reading word-rows=last",
        2,
        "--reading word-rows is 'last'; choose mean",
    ),
    "best heads of nothing": (
        "--text s.txt --best-heads",
        2,
        "--best-heads is of relations, and there are no trees; give --treebank FILE",
    ),
    "confidence": (
        "--text s.txt --reading confidence-without=cls",
        2,
        "--reading confidence-without is 'cls'; choose special, separator or nothing.",
    ),
    "confidence of code": (
        "--text s.txt --reading confidence-without=special --convention code",
        2,
        "Column 'confidence' does not exist under the convention 'code'",
    ),
    "counts": (
        "--treebank sample --judging frequencies=counts.tsv",
        1,
        "Line 1 of counts.tsv is 'rain",
    ),
    "no counts": ("--treebank sample --judging frequencies=no.tsv", 1, "There is no file no.tsv"),
    "language": (
        "--treebank sample --judging frequencies=wordfreq:xx",
        2,
        "wordfreq has no language 'xx'",
    ),
}


@pytest.mark.parametrize(("words", "code", "message"), WRONG.values(), ids=WRONG)
def test_wrong_words_are_told_before_a_model_is_loaded(
    words: str, code: int, message: str, desk_survey_roles: Path, headcount: Command
) -> None:
    if "wordfreq" in words:
        pytest.importorskip("wordfreq")
    ended = headcount("survey", "no-such-model", *words.split())
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.startswith("Error: ")
    assert message in ended.err
    assert ended.err.count("\n") == 1


def test_a_relation_that_never_occurs(headcount: Command, saved: Saved) -> None:
    words = ["--treebank", "sample", "--limit", 5, "--relations", "nsubj,subject"]
    ended = headcount("survey", saved("bert"), *words)
    assert ended.code == 2
    assert "The relation 'subject' never occurs in this treebank" in ended.err


def test_no_rare_word_in_the_corpus(
    desk_survey_roles: Path, headcount: Command, saved: Saved
) -> None:
    ended = headcount("survey", saved("bert"), "--text", "s.txt", "--roles")
    assert ended.code == 0
    told = " ".join(ended.out.split())
    assert "no sentence has a token that is not among the 500 most frequent of the corpus" in told


def test_a_survey_that_was_stopped_goes_on(
    desk: Path, headcount: Command, saved: Saved, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "SHARD_ITEMS", 2)
    line = ["survey", saved("bert"), "--text", "s.txt", "--json", "-o"]
    whole = json.loads(headcount(*line, "whole").out)
    write = shards._Kept.write

    def stopping(self: Any, number: int, state: Any) -> None:
        if number:
            raise KeyboardInterrupt
        write(self, number, state)

    with monkeypatch.context() as patch:
        patch.setattr(shards._Kept, "write", stopping)
        ended = headcount(*line, "run")
    assert ended.code == 130
    assert (
        ended.err == "Error: Interrupted; what is done is in run/, and the same command goes on.\n"
    )
    other = headcount(
        "survey", saved("bert"), "--text", "s.txt", "--reading", "max-length=9", "-o", "run"
    )
    assert other.code == 1
    assert "was begun with settings.max_length = null, and now settings.max_length = 9" in other.err
    again = json.loads(headcount(*line, "run").out)
    assert again["heads"] == whole["heads"]
    assert not (desk / "run" / "shards").exists()
