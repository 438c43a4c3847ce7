"""Transformers 4: `head_mask` and `prune_heads`, which transformers 5 took away."""

#: What it adds; see `headcount.plugins`.
ADDS = {"names": {"head_mask": "masks:head_mask", "prune_heads": "masks:prune_heads"}}
