"""The report: one HTML file that holds a run, opened from disk, without any network."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.reports.options import Fineness, PageOptions, StoryOptions
    from headcount.reports.page import Report, missing_part, page_data, page_html, style
    from headcount.reports.parts.argument import less_likely
    from headcount.reports.parts.curve import could_go, curve_part, places_gone, run_tolerance
    from headcount.reports.parts.look import UD, asset, looks, terminal_signs
    from headcount.reports.parts.numbers import (
        HELD_OUT,
        Source,
        deflated,
        figure,
        figures,
        first_known,
        held_out,
        metric_title,
        printed,
        read_source,
        row_head,
        run_at,
    )
    from headcount.reports.parts.verdicts import kind_part, role_part
    from headcount.reports.stages import (
        StageMaker,
        StoryContext,
        StoryStage,
        evaluation_step,
        forward_steps,
        halves_of,
        own_metric,
        score_stage,
        too_few,
    )

#: What it adds; see `headcount.plugins`.
ADDS = {
    "stages": {
        "survey": "stages:SURVEY",
        "gradient": "stages:GRADIENT",
        "ablation": "stages:ABLATION",
        "curve": "stages:CURVE",
        "can-go": "stages:CAN_GO",
    }
}

open_door(__name__)
