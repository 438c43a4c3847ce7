"""The command line: one file a verb, heavy imports inside the verb that needs them."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.cli.inputs import SAMPLE, CorpusArguments, parse_task, read_toml, sample_corpus
    from headcount.cli.main import run
    from headcount.cli.options import (
        Json,
        Model,
        RunArguments,
        argument,
        loaded,
        without,
    )
    from headcount.cli.printing import (
        echo,
        output,
        print_json,
        print_notes,
        print_ranking,
        print_rows,
        print_run,
        say,
        status,
    )

#: What it adds; see `headcount.plugins`.
ADDS = {
    "commands": {
        "report": "report:report_command",
        "survey": "survey:survey_command",
        "score": "score:score_command",
        "prune": "prune:prune_command",
    },
}

open_door(__name__)
