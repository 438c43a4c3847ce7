"""Text: corpora are read, and strings become batches."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.text.batch import SIDES, Batch, Ready, Side, bare_side, is_ready, ready_batch
    from headcount.text.corpus import (
        AS_USUAL,
        PASSAGE,
        Corpus,
        CorpusFormat,
        CorpusPart,
        Parser,
        ReadOptions,
        read_corpus,
        read_sample,
    )
    from headcount.text.encoding import BatchSize, Encoded, Long, encode
    from headcount.text.lines import (
        PACKINGS,
        Line,
        TextFile,
        cells_of,
        is_saved_dataset,
        need,
        record,
        suffix_of,
        text_file,
        whole_number,
    )
    from headcount.text.sentence import (
        Argument,
        Clusters,
        Form,
        Item,
        Multiword,
        Pair,
        Predicate,
        Sentence,
        Span,
        Word,
        check_tree,
        divided,
        inside,
        joined,
        place_forms,
        sentences_of,
        spaced,
        split_words,
        texts_of,
    )
    from headcount.text.spans import EncodeReport, Place, TokenRow, special_ids, unplaced
    from headcount.text.tables import Records, column_name, is_number, read_rows
    from headcount.text.tokenize import Intake, RowTokenizer, intake_of, shift_of
    from headcount.text.words import Rows, Words

open_door(__name__, "text")
