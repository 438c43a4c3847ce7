"""Write a model as ONNX, with batch and length left open, and compare it in onnxruntime.

The one format in which layers with different numbers of heads load everywhere.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from headcount.errors import ModelError
from headcount.models.probe import core_of, probe_inputs
from headcount.models.quiet import no_logs, quiet
from headcount.models.rest import at_rest
from headcount.models.switch import switched
from headcount.subject import Subject

__all__ = ["ONNX", "write_onnx"]

ONNX = "model.onnx"

#: How far apart the file and the model may be, of the largest number that comes out.
ROOM = 1e-4


class _First(nn.Module):
    """A model that gives its first output alone, and keeps no cache."""

    def __init__(self, model: Any, names: list[str]) -> None:
        super().__init__()
        self.model, self.names = model, names
        has_cache = "use_cache" in inspect.signature(model.forward).parameters
        self.more = {"use_cache": False} if has_cache else {}

    def forward(self, *inputs: Tensor) -> Tensor:
        """The first output."""
        named = dict(zip(self.names, inputs, strict=True))
        output: Tensor = self.model(**named, **self.more)[0]
        return output


def write_onnx(subject: Subject, folder: Path) -> float:
    """Write `model.onnx`, and say how far from the model it is on an input of another shape."""
    runtime = _imported()
    inputs = _inputs(subject, batch=2, longer=0)
    wrapped = _First(subject.inner, list(inputs)).eval()
    file = folder / ONNX
    silent = no_logs("torch.onnx")  # it tells of packages that nobody asked for
    with quiet(), silent, at_rest(subject.model), switched(subject.model, lambda _: "eager"):
        torch.onnx.export(
            wrapped,
            tuple(inputs.values()),
            file,
            input_names=list(inputs),
            output_names=["output"],
            dynamic_shapes=(tuple(_open_axes(value) for value in inputs.values()),),
            dynamo=True,
            verbose=False,
        )
    return _compared(runtime, subject, wrapped, file)


def _imported() -> Any:
    try:
        import onnxruntime
        import onnxscript  # noqa: F401 - torch.onnx writes with it
    except ImportError as error:
        raise ModelError(
            f"Writing ONNX needs the package {error.name}, which is not installed; "
            "run `pip install headcount[onnx]`."
        ) from None
    return onnxruntime


def _inputs(subject: Subject, batch: int, longer: int) -> dict[str, Tensor]:
    """Small inputs of a batch; texts may be longer than the smallest, with one row padded."""
    found: dict[str, Tensor] = {}
    for name, value in probe_inputs(core_of(subject.model)).items():
        if value.is_floating_point():
            dice = torch.Generator().manual_seed(batch)
            found[name] = torch.randn(batch, *value.shape[1:], generator=dice).to(value)
        else:
            found[name] = torch.cat([value, value[:, :1].repeat(1, longer)], 1).repeat(batch, 1)
    if "input_ids" in found:
        mask = torch.ones_like(found["input_ids"])
        mask[-1, -1] = 0
        ids = found.pop("input_ids")
        found = {"input_ids": ids, "attention_mask": mask, **found}
    return found


def _open_axes(value: Tensor) -> dict[int, Any]:
    """The axes whose size is not fixed: the batch, and the length of a text."""
    free = {0: torch.export.Dim.DYNAMIC}
    return free if value.is_floating_point() else free | {1: torch.export.Dim.DYNAMIC}


def _compared(runtime: Any, subject: Subject, wrapped: _First, file: Path) -> float:
    inputs = _inputs(subject, batch=3, longer=4)
    session = runtime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    given = {name: value.cpu().numpy() for name, value in inputs.items()}
    got = torch.from_numpy(session.run(None, given)[0]).double()
    with quiet(), at_rest(subject.model), torch.no_grad():
        wanted = wrapped(*inputs.values()).cpu().double()
    apart = float((got - wanted).abs().max() / wanted.abs().max().clamp_min(1e-30))
    if not apart <= ROOM:
        raise ModelError(
            f"onnxruntime gives other outputs than {subject.name} ({apart:.1e} apart, where "
            f"{ROOM:.0e} is allowed), so no ONNX file was written."
        )
    return apart
