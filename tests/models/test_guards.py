"""quiet: silence inside, everything as it was outside."""

from __future__ import annotations

import logging
import warnings

import pytest
import torch
from huggingface_hub.utils import are_progress_bars_disabled
from tiny import TINY
from transformers import PreTrainedModel
from transformers.utils import logging as voice

from headcount.models.guards import eval_mode, quiet


def settings() -> tuple[object, ...]:
    """Everything that quiet touches."""
    return (
        voice.get_verbosity(),
        voice.is_progress_bar_enabled(),
        are_progress_bars_disabled(),
        logging.getLogger("huggingface_hub").level,
        list(warnings.filters),
    )


@pytest.mark.parametrize("bars", [True, False])
def test_settings_come_back_also_after_an_error(bars: bool) -> None:
    before = voice.is_progress_bar_enabled()
    (voice.enable_progress_bar if bars else voice.disable_progress_bar)()
    try:
        at_first = settings()
        with quiet():
            assert not voice.is_progress_bar_enabled()
        assert settings() == at_first
        with pytest.raises(KeyboardInterrupt), quiet():
            raise KeyboardInterrupt
        assert settings() == at_first
    finally:
        (voice.enable_progress_bar if before else voice.disable_progress_bar)()


def test_inside_nobody_speaks(caplog: pytest.LogCaptureFixture) -> None:
    with quiet(), warnings.catch_warnings(record=True) as heard:
        warnings.warn("advice", FutureWarning, stacklevel=1)
        logging.getLogger("transformers.modeling_utils").error("advice")
        logging.getLogger("huggingface_hub.utils._http").warning("advice")
    assert not caplog.records
    assert not heard


# --- A model at rest, and as it was afterwards --------------------------------------------------


def draw_and_break(model: PreTrainedModel) -> None:
    with eval_mode(model):
        assert not any(module.training for module in model.modules())
        torch.rand(3)
        raise KeyError


def test_modes_and_randomness_are_put_back_also_after_an_error() -> None:
    model = TINY["bert"]().train()
    model.pooler.eval()  # a mode per module, not one for all
    modes = [module.training for module in model.modules()]
    noise = torch.get_rng_state()
    with pytest.raises(KeyError):
        draw_and_break(model)
    assert [module.training for module in model.modules()] == modes
    assert torch.equal(torch.get_rng_state(), noise)
