"""The report: one HTML file that holds a run, opened from disk, without any network."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.reports.chosen_sentences import encode_one, look_at
    from headcount.reports.page import Report, finding, page_html, report, style
    from headcount.reports.parts.look import LOOKS, asset, terminal_signs
    from headcount.reports.parts.numbers import (
        HELD_OUT,
        Source,
        first_known,
        held_out,
        metric_title,
        read_source,
        run_at,
    )
    from headcount.reports.parts.scoreboard import freed_sentences, known_heads, run_tolerance
    from headcount.reports.parts.verdicts import kind_part, role_part
    from headcount.reports.parts.wording import missing_part
    from headcount.reports.stories import StageStatus, story

open_door(__name__)
