"""Records: heads, columns, tables, run directories, journals and files; no model is needed here."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.records.columns import NA, STEPS, Column, heat_steps
    from headcount.records.engine import (
        DEATHS,
        TRIES,
        Answer,
        Engine,
        EngineOptions,
        LocalEngine,
        Losses,
        Lost,
        MakeWorker,
        PartRange,
        Piece,
        PieceWork,
        Worker,
        WorkerDied,
        engine_of,
        told,
    )
    from headcount.records.files import (
        InnerPath,
        is_leftover,
        json_decode,
        json_encode,
        reason,
        recover,
        replace_folder,
        to_strict,
        write_bytes,
    )
    from headcount.records.heads import (
        STACKS,
        Head,
        check_head_set,
        check_heads,
        check_once,
        check_stack,
        heads_named,
        parse_head,
        parse_heads,
        stack_names,
    )
    from headcount.records.journal import Journal, Ledger, check_same
    from headcount.records.options import (
        Renamed,
        WorkOptions,
        as_value,
        names,
        old_keywords,
        option,
    )
    from headcount.records.parquet import npz_bytes, parquet_batches, read_npz, unpacked_size
    from headcount.records.provenance import hash_strings, version
    from headcount.records.rendering import (
        MATTERS,
        MOST_LETTERS,
        Brief,
        Drawn,
        column_steps,
        plain_figure,
        telling_first,
    )
    from headcount.records.run import FRAMES, Run, Stage, writable_run
    from headcount.records.table import HeadTable
    from headcount.records.watching import (
        Bars,
        Steps,
        announce,
        few_collected,
        noticed,
        progress,
        working,
    )

open_door(__name__)
