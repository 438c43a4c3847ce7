"""Adapters: models with a LoRA or another adapter of peft on them."""

#: What it adds; see `headcount.plugins`.
ADDS = {"parts": {"adapters": "adapter"}}
