"""Models: found, loaded and saved; where their heads are; contexts that change them for a while."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.models.anatomy import (
        GGUF,
        KEY,
        MAP,
        Anatomy,
        heads_left,
        map_beside,
        sites_of,
        whole_counts,
    )
    from headcount.models.dummy_forward import (
        capture_hooks_off,
        check_not_open,
        core_of,
        finding_heads,
        locked,
        own_thread,
        probe_inputs,
        quiet_arguments,
    )
    from headcount.models.explain import as_model_error, check_files, first_line
    from headcount.models.finding import BUNDLED, PACKAGES, FoundModel, find, is_model, model_dir
    from headcount.models.guards import (
        eval_mode,
        frozen,
        global_state,
        no_logs,
        on_exit,
        out_of_memory,
        quiet,
    )
    from headcount.models.loading import load
    from headcount.models.modeling_headcount import (
        OwnConfig,
        Part,
        Pick,
        forget_bias,
        put,
        take_along,
        whole_class,
    )
    from headcount.models.options import LoadOptions
    from headcount.models.projections import (
        COUNTS,
        GIVEN,
        HeadWeight,
        head_weights,
        is_activation,
        is_rms_norm,
        joint_norms,
        layout_of,
        output_of,
    )
    from headcount.models.saving.fresh_process import apart, apart_of, room_of, small_inputs
    from headcount.models.saving.routes import Route
    from headcount.models.saving.save import (
        CARD,
        Saved,
        card_for,
        draft_of,
        map_of,
        put_in_place,
        save_tokenizer,
    )
    from headcount.models.site import Site, SiteGroup, is_causal, members_of
    from headcount.models.subject import (
        Subject,
        bare_table,
        check_finite,
        check_subject,
        enough_memory,
        fingerprint_of,
        refuse_nan,
        subject_facts,
    )
    from headcount.models.switch import (
        attention_configs,
        base_function,
        full_rows,
        register,
        switched,
    )

open_door(__name__)
