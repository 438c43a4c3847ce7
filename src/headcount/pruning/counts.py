"""How many heads are gone after each step.

Michel et al., NeurIPS 2019, section 4.2: a tenth of all heads a step.
"""

from __future__ import annotations

import math

from headcount.errors import UsageError

__all__ = ["removed_counts"]


def removed_counts(
    total: int,
    step: float = 10.0,
    *,
    convention: str = "headcount",
    encoder_decoder: bool = False,
    spared: int = 0,
    also: int | None = None,
) -> list[int]:
    """How many of `total` heads are gone after each step of so many percent, rounded down.

    By default the last head stays. The convention "paper" goes on to no heads at all. "code" is
    the authors' programs: the one for BERT ends at no heads too, the one for translation rounds
    up and stops before. `spared` heads may never go: steps end at the first that would need them.
    `also` is one more number that must be among them.

    >>> removed_counts(72, 25), removed_counts(72, 25, also=30)
    ([18, 36, 54], [18, 30, 36, 54])
    >>> removed_counts(96, 10, convention="code", encoder_decoder=True)[:3]
    [10, 20, 29]
    """
    if not 0 < step <= 100:
        raise UsageError(f"The step is {step:g}; it must be above 0 and at most 100 percent.")
    spoken = convention == "code" and encoder_decoder
    rounded = math.ceil if spoken else int
    steps = range(1, int(100 / step + 1e-9) + 1)
    found = {rounded(round(total * step * number / 100, 6)) for number in steps}
    found |= set() if also is None else {also}
    most = total if convention != "headcount" and not spoken else total - 1
    most = min(most, total - spared)
    return sorted(count for count in found if 0 < count <= most or count == also)
