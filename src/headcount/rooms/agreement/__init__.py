"""Agreement: do measures rank heads alike, and do heads with a role matter more, or survive?"""

#: What it adds; see `headcount.plugins`.
ADDS = {
    "stages": {"agreement": "agreement:AGREEMENT", "function": "agreement:FUNCTION"},
    "views": {"agreement": "agreement:agreement_part", "function": "agreement:function_part"},
    "parts": {"agreement": "agreement"},
}
