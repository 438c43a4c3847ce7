"""Exports: models as ONNX and GGUF."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.exports.exports import (
        ONNX,
        filled_with_zeros,
        write_gguf,
        write_onnx,
    )

open_door(__name__)
