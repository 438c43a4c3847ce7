"""Uniform attention: every query looks at all its keys alike.

Kovaleva et al. (EMNLP 2019, section 4.5) disable a head by setting its weights to 1/L, L the
length of the input, before dropout. Values still flow, as their average: this is not zero.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import dropout

from headcount.errors import ModelError, UnsupportedModel
from headcount.models.site import Site
from headcount.subject import Subject
from headcount.wiring.seam import Attended

__all__ = ["check_uniform", "uniform", "uniform_weights"]


def uniform(site: Site, attended: Attended) -> Tensor:
    """What the heads of a site would give, `[row, query, head, dim]`: the mean of seen values.

    Padded keys get 0, and in a causal stack so do keys to come; heads that share a key head
    share its values.
    """
    assert attended.value is not None  # see check_uniform
    rows, queries = attended.output.shape[:2]
    weights = uniform_weights(site, attended.mask, rows, queries, attended.value)
    weights = dropout(weights, attended.dropout, training=attended.dropout > 0)
    mixed = weights @ attended.value
    return mixed.repeat_interleave(site.heads // mixed.shape[1], dim=1).transpose(1, 2)


def uniform_weights(
    site: Site, mask: Tensor | None, rows: int, queries: int, value: Tensor
) -> Tensor:
    """One over the number of keys that a query sees, 0 elsewhere: `[row or 1, 1, query, key]`.

    >>> site = Site("dec", 0, heads=1, kv_heads=1, head_dim=1, module="", causal=True)
    >>> uniform_weights(site, None, 1, 2, torch.zeros(1, 1, 2, 1))
    tensor([[[[1.0000, 0.0000],
              [0.5000, 0.5000]]]])
    """
    seen = _seen(site, mask, queries, value.shape[-2], value.device)
    seen = seen.to(value.dtype).expand(-1, -1, queries, -1)
    return seen / seen.sum(dim=-1, keepdim=True).clamp_min(1)


def check_uniform(subject: Subject) -> None:
    """Refuse a family whose maps cannot be replaced, since its values are out of reach."""
    if any(site.route == "projection" for site in subject.anatomy.sites):
        kind = subject.inner.config.model_type
        raise UnsupportedModel(
            f"{subject.name} (model type '{kind}') does not speak transformers' attention "
            "interface, so its maps cannot be made uniform; use the mode zero, mean or resample."
        )


def _seen(site: Site, mask: Tensor | None, queries: int, keys: int, device: torch.device) -> Tensor:
    """Which keys a query may see, true or false, `[row or 1, 1, query or 1, key]`."""
    if mask is not None and not isinstance(mask, Tensor):
        raise ModelError(
            f"The attention mask at {site.stack}.{site.layer} is a {type(mask).__name__}, which "
            "does not say which keys are seen; use model.set_attn_implementation('sdpa')."
        )
    if mask is not None and mask.dim() == 4:
        allowed = mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2
        return allowed[..., :keys]
    looking_back = torch.ones(queries, keys, dtype=torch.bool, device=device)
    if site.causal and queries > 1:
        looking_back = looking_back.tril(diagonal=keys - queries)
    if mask is None:
        return looking_back[None, None]
    return looking_back[None, None] & (mask > 0)[:, None, None, :keys]
