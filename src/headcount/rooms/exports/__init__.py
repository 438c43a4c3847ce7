"""Exports: models as ONNX and GGUF, and at their old size."""

#: What it adds; see `headcount.plugins`.
ADDS = {
    "exporters": {
        "zeros": "exports:export_zeros",
        "onnx": "exports:export_onnx",
        "gguf": "exports:export_gguf",
    }
}
