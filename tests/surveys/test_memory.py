"""Long texts and little memory: sampled rows, and batches that are halved where they do not fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import pytest
import tiny_subjects
import torch

import headcount as hc
from headcount.errors import ModelError, UsageError
from headcount.surveys import passes
from headcount.wiring import rows

TEXTS = [f"The cat number {n} sat on the mat, and the dog did not." for n in range(12)]


#: How torch says that memory has run out: on a GPU and on a CPU; and how NumPy does.
ERRORS = [
    torch.OutOfMemoryError("out of memory"),
    RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: 9 bytes"),
    MemoryError("Unable to allocate 9 GiB"),
]


@contextmanager
def memory_for(
    subject: hc.Subject, texts: int, error: Exception = ERRORS[0]
) -> Iterator[list[int]]:
    """A model that runs out of memory for larger batches; gives the sizes that were tried."""
    own, tried = type(subject.model).forward, list[int]()

    def forward(self: torch.nn.Module, *given: object, **inputs: torch.Tensor) -> object:
        size = inputs["input_ids"].shape[0]
        tried.append(size)
        if size > texts:
            raise error
        return own(self, *given, **inputs)

    with mock.patch.object(type(subject.model), "forward", forward):
        yield tried


@pytest.mark.parametrize("error", ERRORS, ids=["cuda", "cpu", "numpy"])
def test_batches_are_halved_until_they_fit_and_that_is_remembered(error: Exception) -> None:
    subject, other = tiny_subjects.encoder(), tiny_subjects.encoder()
    expected = hc.survey(other, TEXTS, reading=hc.ReadingOptions(batch_size=3))
    with memory_for(subject, 3, error) as tried:
        table = hc.survey(subject, TEXTS, reading=hc.ReadingOptions(batch_size=12))
        assert max(tried) == 12
        tried.clear()
        again = hc.survey(subject, TEXTS, reading=hc.ReadingOptions(batch_size=12))
        assert max(tried) <= 3
    for found in (table, again):
        torch.testing.assert_close(
            torch.tensor(found.frame.to_numpy()), torch.tensor(expected.frame.to_numpy())
        )
    assert any("Memory ran out 2 times" in remark for remark in table.provenance["remarks"])
    assert not any("Memory" in remark for remark in again.provenance["remarks"])


def test_what_never_fits_is_told_in_one_sentence() -> None:
    subject = tiny_subjects.encoder()
    assert subject.anatomy.heads  # found before there is no memory at all
    with (
        memory_for(subject, 0),
        mock.patch.dict(rows.TILE),
        pytest.raises(
            ModelError, match=r"has not enough memory for a batch of .*--reading max-length="
        ),
    ):
        hc.survey(subject, TEXTS, reading=hc.ReadingOptions(batch_size=4))


def test_tiles_are_halved_after_batches() -> None:
    subject = tiny_subjects.encoder()
    with mock.patch.dict(rows.TILE, {"cpu": 2**20}):
        corpus = mock.Mock()
        one = passes.PassOptions(("enc",), batch_size=1)
        assert passes._make_smaller(subject, corpus, one)
        assert rows.TILE["cpu"] == 2**19
        while passes._make_smaller(subject, corpus, one):
            pass
        assert rows.TILE["cpu"] == 2**16


# --- Sampled rows -------------------------------------------------------------------------------

LONG = [" ".join(["The cat sat on the mat."] * (12 + n)) for n in range(8)]


def test_a_sample_as_large_as_the_texts_changes_nothing() -> None:
    subject = tiny_subjects.encoder()
    whole, some = (
        hc.survey(subject, LONG),
        hc.survey(subject, LONG, reading=hc.ReadingOptions(rows=10_000)),
    )
    assert whole.frame.equals(some.frame)
    assert not any("sample" in remark for remark in some.provenance["remarks"])


def test_what_reads_whole_maps_says_that_it_takes_no_sample() -> None:
    subject = tiny_subjects.encoder()
    found = hc.survey(
        subject, LONG, columns=["entropy", "pattern_vertical"], reading=hc.ReadingOptions(rows=4)
    )
    told = found.provenance["remarks"]
    assert any(
        remark.startswith("All queries were read, not a sample (--reading rows=") for remark in told
    )
    assert not any("stands for all" in remark for remark in told)


@pytest.mark.parametrize("kind", ["encoder", "writer"])
def test_sampled_rows_estimate_all_of_them(kind: str) -> None:
    subject = getattr(tiny_subjects, kind)()
    whole = hc.survey(subject, LONG).frame
    draws = [
        hc.survey(subject, LONG, reading=hc.ReadingOptions(rows=16, seed=seed)).frame
        for seed in range(24)
    ]
    for column in ("entropy", "confidence", "previous", "first", "punctuation"):
        if whole[column].isna().all():
            continue
        found = torch.tensor([draw[column].to_numpy() for draw in draws])
        error = found.std(0) / len(draws) ** 0.5 + 1e-6
        off = (found.mean(0) - torch.tensor(whole[column].to_numpy())).abs() / error
        assert float(off.max()) < 5, column
    first = torch.tensor(draws[0]["entropy_first"].to_numpy())
    torch.testing.assert_close(first, torch.tensor(whole["entropy_first"].to_numpy()))


def test_a_sample_is_the_same_whatever_the_batch_and_says_so() -> None:
    subject = tiny_subjects.encoder()
    one = hc.survey(subject, LONG, reading=hc.ReadingOptions(rows=16, batch_size=1))
    many = hc.survey(subject, LONG, reading=hc.ReadingOptions(rows=16, batch_size=8))
    torch.testing.assert_close(
        torch.tensor(one.frame.to_numpy()), torch.tensor(many.frame.to_numpy()), equal_nan=True
    )
    assert one.provenance["settings"]["rows"] == 16
    assert one.provenance["attention"] == ["scores"]
    assert any("a sample of queries stands for all" in said for said in one.provenance["remarks"])


@pytest.mark.parametrize("wrong", [1, 0, -3, 2.5, True, "all"])
def test_a_sample_that_is_none_is_refused(wrong: object) -> None:
    with pytest.raises(UsageError, match="number of queries to read of longer texts"):
        hc.survey(tiny_subjects.encoder(), LONG, reading=hc.ReadingOptions(rows=wrong))  # type: ignore[arg-type]


def test_intervals_hold_the_noise_of_the_draw() -> None:
    """With few rows of each text they are wider, and still hold what all rows say."""
    subject = tiny_subjects.encoder()
    texts = [" ".join(["The cat sat on the mat."] * (6 + n % 7)) for n in range(24)]
    whole, held, wider = hc.survey(subject, texts), [], []
    for seed in range(8):
        some = hc.survey(subject, texts, reading=hc.ReadingOptions(rows=3, seed=seed))
        for name in ("confidence", "self", "punctuation"):
            exact = whole.frame[name]
            held += ((some.low[name] <= exact) & (exact <= some.high[name])).tolist()
            spans = [table.high[name] - table.low[name] for table in (some, whole)]
            wider += (spans[0] > spans[1]).tolist()
    assert sum(held) / len(held) > 0.9
    assert sum(wider) / len(wider) > 0.8
