"""Models with two towers, whose heads would share one name: refused until one is passed."""

from __future__ import annotations

from torch import nn

from headcount.errors import UnsupportedModel

__all__ = ["refuse_two_towers"]

#: Attribute names of the two towers, as CLIP and its kin write them.
TOWERS = (
    ("text_model", "vision_model"),
    ("text_model", "audio_model"),
    ("text_encoder", "vision_encoder"),
)


def refuse_two_towers(model: nn.Module) -> None:
    """Raise if the model holds two encoders side by side (CLIP, SigLIP, CLAP ...)."""
    for first, second in TOWERS:
        towers = [getattr(model, name, None) for name in (first, second)]
        if all(isinstance(tower, nn.Module) for tower in towers):
            raise UnsupportedModel(
                f"{type(model).__name__} has two towers whose heads would share their names; "
                f"pass one of them: Subject(model.{first}, tokenizer) or Subject(model.{second})."
            )
