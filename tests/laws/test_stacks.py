"""A stack on its own: what it says does not depend on which others are looked at."""

from __future__ import annotations

import pandas as pd
import pytest
import torch
from sightings import batch_of, draw_texts
from tiny import INTERFACE

import headcount as hc
from headcount.models.subject import Subject
from headcount.surveys.surveying import survey


@pytest.mark.parametrize(
    "stacks", [["enc"], ["dec"], ["cross"], ["enc", "cross"], ["dec", "cross"]]
)
def test_some_stacks_of_ready_inputs_read_as_in_a_survey_of_all(stacks: list[str]) -> None:
    subject = Subject(INTERFACE["marian"]())
    inputs = batch_of(draw_texts(5), "enc-dec").inputs
    assert not torch.all(inputs["decoder_attention_mask"] > 0), "padding is part of the test"
    every, some = (
        survey(subject, inputs),
        survey(subject, inputs, reading=hc.ReadingOptions(stacks=stacks)),
    )
    for stack in stacks:
        pd.testing.assert_frame_equal(every.frame.loc[[stack]], some.frame.loc[[stack]])
