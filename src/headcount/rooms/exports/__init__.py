"""Exports: models as ONNX and GGUF, and at their old size."""

#: What it adds; see `headcount.plugins`.
ADDS = {
    "exporters": {
        "zeros": "exports:export_zeros",
        "onnx": "exports:export_onnx",
        "onnx-int8": "exports:export_int8",
        "gguf": "llama_cpp:export_gguf",
        "gguf-q8_0": "llama_cpp:export_q8",
    },
    "parts": {"gguf": "llama_cpp", "judge onnx-int8": "onnx_files:judged_int8"},
}
