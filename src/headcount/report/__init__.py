"""The report: one HTML file that holds a run, opened from disk, without any network."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.report.atlas import AtlasModel, AtlasPlan, run_atlas
    from headcount.report.inspector import inspector_of
    from headcount.report.page import Report, report
    from headcount.report.parts.argument import finding
    from headcount.report.parts.look import terminal_signs
    from headcount.report.parts.numbers import read_source
    from headcount.report.parts.scoreboard import freed_sentences, run_tolerance
    from headcount.report.parts.wording import missing_part
    from headcount.report.plot.pruning_figures import draw_plan
    from headcount.report.serve import address, app_of, new_token, run_server, taken_socket
    from headcount.report.show import show
    from headcount.report.story import StageStatus, story

open_door(__name__)
