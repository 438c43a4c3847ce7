"""Rarity: how often heads look at the rarest token."""

#: What it adds; see `headcount.plugins`.
ADDS = {
    "roles": {"rare": "rare:Rare"},
    "tallies": {"rarity": "rarity:PLAN"},
    "parts": {"frequencies": "rarity:frequencies_of"},
}
