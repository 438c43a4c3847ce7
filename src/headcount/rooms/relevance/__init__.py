"""Relevance and contribution: which share of a prediction each head carries."""

#: What it adds; see `headcount.plugins`.
ADDS = {
    "scores": {
        "contribution": "score:ContributionScore",
        "relevance": "score:RelevanceScore",
    },
    "stages": {"contribution": "stage:STAGE"},
}
