"""Words: what heads do between annotated words, counted by sentence, with tests on a split."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.words.counts import (
        ALL,
        SPLITS,
        BatchCells,
        HitsTally,
        HitsTest,
        RelationCounts,
        SiteHits,
        Small,
        Unit,
        best_offset,
        compact_words,
        correct_tests,
        counts_of,
        figure_frame,
        figures_by_split,
        hits_by_cell,
        in_selection,
        number_cells,
        resample_units,
        universal,
        word_maps,
        word_tiles,
    )
    from headcount.rooms.words.pairs import (
        FEATURES,
        NOUN,
        PRONOUN,
        VERB,
        Compared,
        Feature,
        LayerSums,
        MeansTally,
        PairedMeans,
        Pairs,
        WordPairs,
        chosen_texts,
        one_group,
        word_pairs,
    )

#: What it adds; see `headcount.plugins`.
ADDS = {"names": {"text.word_maps": "counts:word_maps"}}

open_door(__name__)
