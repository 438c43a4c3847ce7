"""Papers: what single papers measured, in their own way."""

#: What it adds; see `headcount.plugins`.
ADDS = {
    "parts": {
        "best single heads": "michel:best_single_heads",
        "gradient program": "michel:GradientProgram",
    }
}
