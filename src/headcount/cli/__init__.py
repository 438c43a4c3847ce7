"""The command line: one file a verb, heavy imports inside the verb that needs them."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.cli.main import run

open_door(__name__)
