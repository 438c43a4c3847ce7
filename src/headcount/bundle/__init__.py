"""What comes with headcount: a translator with packed weights, and a sample of texts."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.bundle.packed import is_packed, read_packed

open_door(__name__)
