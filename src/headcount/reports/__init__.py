"""The report: one HTML file that holds a run, opened from disk, without any network."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.reports.page import Report, finding, page_html, report, style
    from headcount.reports.parts.look import asset, looks, terminal_signs
    from headcount.reports.parts.numbers import (
        HELD_OUT,
        Source,
        figure,
        first_known,
        held_out,
        metric_title,
        read_source,
        run_at,
    )
    from headcount.reports.parts.scoreboard import (
        could_go,
        curve_part,
        freed_sentences,
        known_heads,
        places_gone,
        run_tolerance,
    )
    from headcount.reports.parts.title import less_likely
    from headcount.reports.parts.verdicts import kind_part, role_part
    from headcount.reports.parts.wording import missing_part
    from headcount.reports.stages import (
        StageMaker,
        StoryContext,
        StoryStage,
        evaluation_step,
        forward_steps,
        halves_of,
        score_stage,
        too_few,
    )
    from headcount.reports.stories import StageStatus, story

#: What it adds; see `headcount.plugins`.
ADDS = {
    "stages": {
        "survey": "stages:SURVEY",
        "gradient": "stages:GRADIENT",
        "ablation": "stages:ABLATION",
        "own-metric": "stages:OWN_METRIC",
        "agreement": "stages:AGREEMENT",
        "curve": "stages:CURVE",
        "can-go": "stages:CAN_GO",
        "function": "stages:FUNCTION",
    }
}

open_door(__name__)
