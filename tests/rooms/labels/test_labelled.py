from __future__ import annotations

import lzma
from pathlib import Path

import pytest
from tiny_subjects import classifier

from headcount import tasks
from headcount.errors import InputError, UsageError
from headcount.tasks.examples import Labelled

FILES = {
    "SST-2/dev.tsv": 'sentence\tlabel\na "fine film \t1\ndull .\t0\n',
    "SST-2/test.tsv": "index\tsentence\n0\tuneasy .\n",
    "MRPC/dev.tsv": (
        '\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t1\t2\tHe said "no .\tNo .\n'
    ),
    "MRPC/msr_paraphrase_test.txt.xz": (
        "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t1\t2\tOne .\tTwo .\n"
    ),
    "RTE/dev.tsv": "index\tsentence1\tsentence2\tlabel\n0\tA.\tB.\tnot_entailment\n",
    "QNLI/dev.tsv.xz": "index\tquestion\tsentence\tlabel\n0\tWho?\tMe.\tentailment\n",
    "CoLA/dev.tsv": "gj04\t1\t\tThe cat sat.\ngj04\t0\t*\tThe sat cat.\n",
    "STS-B/dev.tsv.xz": (
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n"
        "0\tnews\tMSR\t2012\t0\tnone\tnone\tA man.\tOne man.\t4.500\n"
    ),
    "STS-B/original-sts-test.tsv": (
        "news\tMSR\t2012\t24\t2.500\tA girl.\tA boy.\n"
        "forum\tMSR\t2016\t25\t3\tA cat.\tCats.\ta source\tanother\n"
    ),
}
#: Rows of each part that has labels.
COUNTS = {
    ("sst2", "train"): 67_349,
    ("sst2", "dev"): 872,
    ("mrpc", "train"): 3_668,
    ("mrpc", "dev"): 408,
    ("mrpc", "test"): 1_725,
    ("rte", "train"): 2_490,
    ("rte", "dev"): 277,
    ("stsb", "train"): 5_749,
    ("stsb", "dev"): 1_500,
    ("stsb", "test"): 1_379,
    ("cola", "train"): 8_551,
    ("cola", "dev"): 1_043,
    ("qnli", "dev"): 5_463,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("glue")
    for name, text in FILES.items():
        path = home / name
        path.parent.mkdir(exist_ok=True)
        raw = text.encode("utf-8")
        path.write_bytes(lzma.compress(raw) if path.suffix == ".xz" else raw)
    return home


@pytest.mark.parametrize(
    ("name", "split", "expected", "metric"),
    [
        ("sst2", "dev", Labelled('a "fine film ', "1"), "accuracy"),
        ("mrpc", "dev", Labelled('He said "no .', "1", "No ."), "accuracy"),
        ("mrpc", "test", Labelled("One .", "0", "Two ."), "accuracy"),
        ("rte", "dev", Labelled("A.", "not_entailment", "B."), "accuracy"),
        ("qnli", "dev", Labelled("Who?", "entailment", "Me."), "accuracy"),
        ("cola", "dev", Labelled("The cat sat.", "1"), "matthews"),
        ("stsb", "dev", Labelled("A man.", 4.5, "One man."), "spearman"),
        ("stsb", "test", Labelled("A girl.", 2.5, "A boy."), "spearman"),
    ],
)
def test_every_set_is_read_as_it_was_published(
    name: str, split: str, expected: Labelled, metric: str, folder: Path
) -> None:
    task = tasks.glue(name, folder, split=split)
    assert task.examples[0] == expected
    assert task.metric.name == metric
    assert task.kind == ("regression" if name == "stsb" else "classification")


def test_the_sets_own_folder_and_other_spellings_will_do(folder: Path) -> None:
    assert len(tasks.glue("SST-2", folder / "SST-2")) == 2
    assert tasks.glue("sts-b", folder, similarity=True).kind == "similarity"
    assert tasks.glue("mrpc", folder, metric="f1").metric.name == "f1"


def test_labels_of_entailment_reach_a_model_without_names(folder: Path) -> None:
    task = tasks.glue("rte", folder)
    [batch] = task.batches(classifier())
    assert batch.labels is not None
    assert batch.labels.tolist() == [1]
    named = {0: "not_entailment", 1: "entailment"}
    turned = classifier(id2label=named, label2id={name: key for key, name in named.items()})
    [batch] = task.batches(turned)
    assert batch.labels is not None
    assert batch.labels.tolist() == [0]


def test_what_is_not_there_is_told(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        tasks.glue("sst2", folder, split="test")
    assert str(error.value) == (
        "The labels of SST-2's test part were never published; use split=dev."
    )
    with pytest.raises(InputError) as error:
        tasks.glue("qnli", folder, split="train")
    assert str(error.value) == (
        f"There is no train.tsv of QNLI in {folder / 'QNLI'}, plain or packed; it has dev.tsv.xz."
    )
    with pytest.raises(InputError, match="there is no such folder"):
        tasks.glue("rte", tmp_path / "nowhere")
    with pytest.raises(UsageError) as usage:
        tasks.glue("sts", folder)
    assert str(usage.value) == (
        "There is no GLUE set 'sts' (closest: stsb); known are cola, mrpc, qnli, rte, sst2, stsb."
    )
    with pytest.raises(UsageError, match="SST-2 has classes and no scores of similarity"):
        tasks.glue("sst2", folder, similarity=True)


@pytest.mark.data
@pytest.mark.parametrize(("name", "split"), COUNTS)
def test_the_published_files_have_their_rows(name: str, split: str, data_dir: Path) -> None:
    assert len(tasks.glue(name, data_dir / "glue", split=split)) == COUNTS[name, split]
