"""The rules as plain functions of tensors: relevance out of a step in, relevance of its inputs out.

=============== ===================================== ==========================================
rule            source                                functions
=============== ===================================== ==========================================
``default``     ours, docs/decisions                  `epsilon_dense`, `_add`, `_product`,
                                                      `_layer_norm`, `_attention`
``ding``        Voita et al. 2019, appendix A         `ding_dense`, `_add`, `_product`,
                                                      `_attention`
``z+``          their program, June 2019              `z_plus_dense`, `_add`, `_attention`
``alpha-beta``  their program, 2021                   `alpha_beta_dense`, `_add`, `_layer_norm`,
                                                      `_rms_norm`, `_attention`
=============== ===================================== ==========================================

Weights are `[in, out]`, as in y = x W. Which rule meets which module is in `composite`.
"""

from __future__ import annotations

from headcount.lrp.alpha_beta import (
    alpha_beta_add,
    alpha_beta_dense,
    alpha_beta_layer_norm,
    alpha_beta_rms_norm,
)
from headcount.lrp.alpha_beta_attention import alpha_beta_attention
from headcount.lrp.ding import ding_add, ding_attention, ding_dense, ding_product
from headcount.lrp.epsilon import (
    epsilon_add,
    epsilon_attention,
    epsilon_dense,
    epsilon_layer_norm,
    epsilon_product,
)
from headcount.lrp.z_plus import z_plus_add, z_plus_attention, z_plus_dense

__all__ = [
    "alpha_beta_add",
    "alpha_beta_attention",
    "alpha_beta_dense",
    "alpha_beta_layer_norm",
    "alpha_beta_rms_norm",
    "ding_add",
    "ding_attention",
    "ding_dense",
    "ding_product",
    "epsilon_add",
    "epsilon_attention",
    "epsilon_dense",
    "epsilon_layer_norm",
    "epsilon_product",
    "z_plus_add",
    "z_plus_attention",
    "z_plus_dense",
]
