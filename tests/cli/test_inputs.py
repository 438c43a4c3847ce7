from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headcount import tasks
from headcount.cli.inputs import KEYS, TaskArguments, TaskSpec, parse_task, read_task_file
from headcount.errors import InputError, UsageError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("translation:test.tsv,metric=bleu", ("translation", "test.tsv", {"metric": "bleu"})),
        (
            "classification:dev.tsv,text=sentence,label=label,metric=accuracy",
            (
                "classification",
                "dev.tsv",
                {"text": "sentence", "label": "label", "metric": "accuracy"},
            ),
        ),
        (
            "regression:sts.csv,text2=b,header=no",
            ("regression", "sts.csv", {"text2": "b", "header": False}),
        ),
        (
            "similarity:sts.tsv,span=0|5,prefix=query: ",
            ("similarity", "sts.tsv", {"span": (0.0, 5.0), "prefix": "query: "}),
        ),
        ("glue:sst2:data/glue", ("glue", "data/glue", {"set": "sst2"})),
        (
            "glue:stsb:C:\\glue,similarity=yes",
            ("glue", "C:\\glue", {"set": "stsb", "similarity": True}),
        ),
        ("lm:a.txt", ("lm", "a.txt", {})),
        (
            "mlm:a.txt,share=0.2,seed=3,hiding=bert",
            ("mlm", "a.txt", {"share": 0.2, "seed": 3, "hiding": "bert"}),
        ),
        ('translation:"a, b.tsv",beams=2', ("translation", "a, b.tsv", {"beams": 2})),
        ("translation:'a,b.tsv'", ("translation", "a,b.tsv", {})),
        ("translation:C:\\test.tsv", ("translation", "C:\\test.tsv", {})),
        (
            "classification:a.tsv,labels=no|yes,positive=0",
            ("classification", "a.tsv", {"labels": ("no", "yes"), "positive": 0}),
        ),
    ],
)
def test_a_task_is_one_word(text: str, expected: tuple[str, str, dict[str, Any]]) -> None:
    assert parse_task(text) == TaskSpec(*expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "tranlation:a.tsv",
            "The task 'tranlation:a.tsv' has the kind 'tranlation' (closest: translation); choose "
            "one of translation, classification, regression, similarity, lm, mlm, glue.",
        ),
        ("", "The task '' has the kind ''; choose one of translation, classification"),
        (
            "translation",
            "The task 'translation' names no file; write translation:FILE[,key=value...].",
        ),
        ("lm:", "The task 'lm:' names no file; write lm:FILE[,key=value...]."),
        (
            "glue:sst2",
            "The task 'glue:sst2' names no file; write glue:sst2:DIR[,key=value...].",
        ),
        (
            "translation:a,b.tsv",
            "'b.tsv' in the task 'translation:a,b.tsv' is no key=value; put a path with a comma in "
            "quotes ('translation:\"a,b.tsv\"'), or the whole task in a file: --task FILE.toml.",
        ),
        (
            "translation:a.tsv,beam=4",
            "Tasks of the kind translation have no key 'beam' (closest: beams); they have metric, ",
        ),
        (
            "lm:a.txt,metric=loss,metric=perplexity",
            "The task 'lm:a.txt,metric=loss,metric=perplexity' gives metric twice; give it once.",
        ),
        (
            "translation:a.tsv,beams=four",
            "beams of the task translation is 'four'; it must be a whole number.",
        ),
        (
            "translation:a.tsv,length_penalty=x",
            "length_penalty of the task translation is 'x'; it must be a number.",
        ),
        (
            "classification:a.tsv,header=maybe",
            "header of the task classification is 'maybe'; it must be yes or no.",
        ),
        (
            "similarity:a.tsv,span=5",
            "span of the task similarity is '5'; it must be two numbers such as 0|5.",
        ),
        (
            "translation:tom's.tsv",
            "The task translation:tom's.tsv has a quote that is not closed; close it.",
        ),
    ],
)
def test_what_is_wrong_with_it_is_told(text: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_task(text)
    assert str(error.value).startswith(message)


def test_a_task_file_has_the_same_keys(tmp_path: Path) -> None:
    path = tmp_path / "task.toml"
    path.write_text(
        'kind = "classification"\nfile = "a, b.tsv"\nlabels = ["no", "yes"]\nheader = false\n'
        'text = 3\nlabel = "1"\n'
    )
    assert read_task_file(path) == TaskSpec(
        "classification",
        str(tmp_path / "a, b.tsv"),
        {"labels": ("no", "yes"), "header": False, "text": "3", "label": "1"},
    )
    path.write_text('kind = "similarity"\nfile = "/data/a.tsv"\nspan = [0, 5]\n')
    assert read_task_file(path) == TaskSpec("similarity", "/data/a.tsv", {"span": (0.0, 5.0)})
    path.write_text('kind = "glue"\nset = "rte"\nfolder = "glue"\n')
    assert read_task_file(path) == TaskSpec("glue", str(tmp_path / "glue"), {"set": "rte"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('file = "a.tsv"', "The task file {path} has the kind ''; choose one of translation"),
        ('kind = "lm"', "The task file {path} names no file; add file = '...'."),
        ('kind = "glue"\nset = "rte"', "The task file {path} names no folder; add folder = '...'."),
        (
            'kind = "glue"\nfolder = "x"',
            "The task file {path} names no set of GLUE; add set = 'sst2'.",
        ),
        ("kind = ", "The task file {path} is not TOML: Invalid value (at end of document)."),
        (
            'kind = "lm"\nfile = "a.txt"\nbeams = 4',
            "Tasks of the kind lm have no key 'beams'; they have metric, text, header, long, chat.",
        ),
        (
            'kind = "translation"\nfile = "a.tsv"\nbeams = true',
            "beams of the task translation is 'True'; it must be a whole number.",
        ),
        (
            'kind = "lm"\nfile = "a.txt"\nmetric = 1.5',
            "metric of the task lm is '1.5'; it must be a word.",
        ),
    ],
)
def test_what_is_wrong_with_a_task_file_is_told(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "task.toml"
    path.write_text(text)
    with pytest.raises((UsageError, InputError)) as error:
        read_task_file(path)
    assert str(error.value).startswith(message.format(path=path))


def test_a_missing_task_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"There is no task file .*task\.toml"):
        read_task_file(tmp_path / "task.toml")
    with pytest.raises(InputError, match=r"The task file .* cannot be read"):
        read_task_file(tmp_path)


def test_exactly_one_of_the_options_is_given(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No --task was given; name one"):
        TaskArguments().spec()
    with pytest.raises(UsageError, match="Both --task and --task-file were given; name one"):
        TaskArguments("lm:a.txt", tmp_path).spec()
    assert TaskArguments("lm:a.txt").spec() == TaskSpec("lm", "a.txt")
    path = tmp_path / "task.toml"
    path.write_text('kind = "lm"\nfile = "a.txt"\n')
    assert TaskArguments(None, path).spec().kind == "lm"


def test_a_spec_builds_its_task(tmp_path: Path) -> None:
    path = tmp_path / "dev.tsv"
    path.write_text("sentence\tlabel\nGood.\t1\nBad.\t0\n")
    task = parse_task(f"classification:{path},text=sentence,metric=f1").build()
    assert (task.kind, task.metric.name, len(task)) == ("classification", "f1", 2)
    (tmp_path / "CoLA").mkdir()
    (tmp_path / "CoLA" / "dev.tsv").write_text("x\t1\t\tGood.\n")
    assert parse_task(f"glue:cola:{tmp_path}").build().metric.name == "matthews"
    (tmp_path / "a.txt").write_text("One.\n")
    assert parse_task(f"lm:{tmp_path / 'a.txt'},metric=perplexity").build().kind == "lm"
    with pytest.raises(InputError, match="There is no file"):
        parse_task(f"mlm:{tmp_path / 'b.txt'}").build()


def test_the_bundled_sample_needs_no_file() -> None:
    from headcount.bundle import sample

    task = parse_task("translation:sample,metric=chrf").build()
    assert [(pair.source, pair.target) for pair in task.examples] == list(sample.pairs())
    assert [one.text for one in parse_task("lm:sample").build().examples] == sample.sentences()
    with pytest.raises(InputError, match="There is no file sample"):
        parse_task("classification:sample").build()


@pytest.mark.parametrize("kind", KEYS)
def test_keys_are_the_arguments_of_the_task(kind: str) -> None:
    arguments = set(inspect.signature(getattr(tasks, kind)).parameters)
    own = {"name", "folder", "set"} if kind == "glue" else {"examples"}
    assert set(KEYS[kind]) - own == arguments - own


def test_a_metric_of_ones_own_is_named_by_module_and_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_metric.py").write_text(
        "def best(said, true):\n    return 1.0\n\n"
        "class Loaded:\n    name = 'loaded'\n\n"
        "    def compute(self, *, predictions, references):\n        return {'loaded': 0.5}\n\n"
        "loaded = Loaded()\n"
    )
    monkeypatch.setattr("sys.path", ["", *sys.path])
    spec = parse_task("classification:dev.tsv,metric=my_metric:best")
    assert spec.options["metric"]([], []) == 1.0
    for word in ("loaded", "loaded.compute"):  # as evaluate.load gives it, and its method
        task = tasks.classification(
            [("A", 0)], parse_task(f"lm:a,metric=my_metric:{word}").options["metric"]
        )
        assert (task.metric.name, task.metric.value(np.ones((1, 2)))) == ("loaded", 0.5)
    with pytest.raises(UsageError, match="my_metric has no function 'worst'"):
        parse_task("classification:dev.tsv,metric=my_metric:worst")
    (tmp_path / "broken_metric.py").write_text("1 / 0\n")
    with pytest.raises(UsageError, match="broken_metric cannot be imported: division by zero"):
        parse_task("classification:dev.tsv,metric=broken_metric:best")
    with pytest.raises(UsageError, match="no_such_module cannot be imported"):
        parse_task("classification:dev.tsv,metric=no_such_module:best")


def test_a_task_s_file_with_a_name_that_no_file_can_have_is_refused() -> None:
    with pytest.raises(InputError, match="which no file can be called"):
        TaskSpec("lm", "x" * 5000, {}).check_file()


@pytest.mark.parametrize("text", ["kind = " + "[" * 3000, "kind = " + "9" * 5000])
def test_a_task_file_beyond_the_limits_of_toml_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "task.toml"
    file.write_text(text)
    with pytest.raises(InputError, match="is not TOML"):
        read_task_file(file)
