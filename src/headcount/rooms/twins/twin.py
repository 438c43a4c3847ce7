"""A random twin: the same architecture with weights as before training, to compare with chance.

Clark et al. 2019, section 5, compare with BERT whose weights are random but for its embeddings.
A twin's best head of a stack stands for chance: it was chosen with the benefit of hindsight, so a
head that only does as well has learnt nothing that can be told apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from headcount.errors import ModelError, UsageError
from headcount.models import KEY, Subject, core_of
from headcount.records import HeadTable
from headcount.surveys import ShardWork, SurveyPlan

_FLAG = "_is_hf_initialized"  # transformers' mark on what need not be drawn any more


def random_twin(subject: Subject, *, seed: int = 0, keep_embeddings: bool = False) -> Subject:
    """A copy of the subject whose weights are drawn anew by the model's own initialisation.

    With `keep_embeddings` the embeddings of tokens, positions and segments stay as trained.
    Tied weights stay tied; device and dtype are kept. Weights are drawn on the CPU in float32,
    so that a seed means the same weights everywhere, but where they are so many that this takes
    minutes, and on a GPU: there they are drawn in place. Nobody else's random numbers are touched.

    >>> from transformers import BertConfig, BertModel
    >>> config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=4,
    ...                     intermediate_size=16, vocab_size=32)
    >>> random_twin(Subject(BertModel(config), name="mine"), seed=3).name
    'random twin 3 of mine'
    """
    twin = Subject(
        deepcopy(subject.model),
        subject.tokenizer,
        name=f"random twin {seed} of {subject.name}",
        source=f"random twin {seed} of {subject.source}",
        notes=["Its weights are random."],
    )
    kinds = {key: (one.device, one.dtype) for key, one in _tensors(twin.model).items()}
    tensors = _tensors(twin.model).values()
    # A large twin on a GPU is drawn there.
    in_place = all(tensor.device.type == "cuda" for tensor in tensors)
    in_place = in_place and sum(tensor.numel() for tensor in tensors) >= _MANY
    for tensor in () if in_place else tensors:
        wide = torch.float32 if tensor.is_floating_point() else tensor.dtype
        tensor.data = tensor.data.to("cpu", wide)
    parts: list[Any] = [*twin.inner.modules(), *_tensors(twin.inner).values()]
    for part in parts:
        if hasattr(part, _FLAG):
            delattr(part, _FLAG)
    if keep_embeddings:
        # Keep embeddings that stand outside attention; T5's position bias stands inside.
        inside = {
            id(part)
            for site in twin.anatomy.sites
            for part in twin.model.get_submodule(site.module).modules()
        }
        for module in twin.model.modules():
            if isinstance(module, nn.Embedding) and id(module) not in inside:
                setattr(module, _FLAG, True)
                setattr(module.weight, _FLAG, True)
    devices = sorted({device.index or 0 for device, _ in kinds.values()}) if in_place else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        twin.inner.initialize_weights()
    # A layer that lost all its heads still runs one, of zeros; nothing is drawn for it.
    before, after = core_of(subject.model), core_of(twin.model)
    for name in (getattr(before.config, KEY, None) or {"shapes": {}})["shapes"]:
        if not before.get_parameter(name).any():
            after.get_parameter(name).data.zero_()
    for key, tensor in _tensors(twin.model).items():
        tensor.data = tensor.data.to(*kinds[key])
    _check_drawn(subject, twin)
    # What its weights are follows from these; to read them all again would take as long.
    about = f"{subject.weights_hash} {seed} {keep_embeddings} {in_place}"
    twin.__dict__["weights_hash"] = sha256(about.encode()).hexdigest()
    return twin


#: From so many weights on, a twin on a GPU is drawn there.
_MANY = 2**29


def _tensors(model: nn.Module) -> dict[int, Tensor]:
    """Every weight and buffer, each once: tied ones are the same."""
    return {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}


def _check_drawn(subject: Subject, twin: Subject) -> None:
    """Raise where some layer's attention stayed as trained: that would be no twin."""
    for site in subject.anatomy.sites:
        before = subject.model.get_submodule(site.module).state_dict()
        after = twin.model.get_submodule(site.module).state_dict()
        weights = [name for name, value in before.items() if isinstance(value, Tensor)]
        if all(torch.equal(before[name], after[name]) for name in weights):
            raise ModelError(
                f"The weights of {site.module} in {subject.name} cannot be drawn anew "
                "(are they quantised?); load it in a floating dtype, or leave out the control."
            )


#: Kind of control to whether embeddings stay as trained (Clark et al. 2019, section 5).
CONTROLS = {"random-init": False, "random-but-embeddings": True}


def check_control(control: str | None, seeds: Sequence[int]) -> None:
    """Refuse a control that is none, or none of its seeds."""
    if control is not None and control not in CONTROLS:
        raise UsageError(f"There is no control '{control}'; choose {' or '.join(CONTROLS)}.")
    if not seeds:
        raise UsageError("The control has no seed; give at least one, e.g. 0.")


def twin_tables(
    subject: Subject,
    programme: SurveyPlan,
    control: str,
    seeds: Sequence[int],
    work: ShardWork = ShardWork(),  # noqa: B008 - a frozen value
) -> list[HeadTable]:
    """The programme's table for a twin of each seed; one twin lives at a time."""
    tables = []
    for seed in seeds:
        twin = random_twin(subject, seed=seed, keep_embeddings=CONTROLS[control])
        of = " the random twin" if len(seeds) == 1 else f" random twin {seed}"
        # What a trial asks that no rule compares with a twin's is left out.
        asked = [one.of_twin() if hasattr(one, "of_twin") else one for one in programme.trials]
        again = replace(programme.again(), trials=tuple(filter(None, asked)))
        tables.append(again.run(twin, of, work))
    return tables


def add_control(table: HeadTable, twins: Sequence[HeadTable]) -> None:
    """Put the twins' figures into the table's details, and a `control` into its relations."""
    if not twins:
        return
    table.details["control"] = pd.concat(
        [_summary(twin, number) for number, twin in enumerate(twins)], ignore_index=True
    )
    if "relations" in table.details:
        table.details["relations"] = _with_control(
            table.details["relations"], [twin.details["relations"] for twin in twins]
        )


def _summary(twin: HeadTable, number: int) -> pd.DataFrame:
    """For each column and stack of a twin: its mean, lowest and highest head."""
    long = twin.frame.melt(ignore_index=False, var_name="column").reset_index()
    found = long.groupby(["column", "stack"], observed=True, sort=False)["value"]
    return found.agg(["mean", "min", "max"]).reset_index().assign(twin=number)


def _with_control(relations: pd.DataFrame, twins: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """`control`: the accuracy of the twin's best head of the stack, averaged over twins.

    Chosen on one half and shown on both, as ours; over all sentences, the best with hindsight.
    """
    key = ["stack", "relation", "direction", "split"]
    best = [
        twin[twin["selected"].astype(bool) | (twin["split"] == "all")]
        .groupby(key)["accuracy"]
        .max()
        for twin in twins
    ]
    return relations.join(pd.concat(best, axis=1).mean(axis=1).rename("control"), on=key)
