# %% [markdown]
# # See Clark's heads with your own eyes
#
# [Clark et al. (2019)](https://aclanthology.org/W19-4828/) read BERT's heads: some look at the token before, some at the separator, some at a noun's
# determiner. Here is the same on MiniLM, a BERT of 72 heads that a laptop runs.

# %%
import headcount as hc
from headcount.bundle import sample

subject = hc.load("minilm", device="cpu")
table = hc.survey(subject, treebank=sample.path(), limit=150, roles=[hc.roles.Syntactic()])

# %% [markdown]
# ## Section 3.1: heads that look next to themselves, and at the separator

# %%
table.top("next", 3)

# %%
hc.plot.token_types(table)

# %% [markdown]
# ## Section 4.2: the best head of each relation (Table 1)
#
# Head and fixed offset are chosen on one half of the sentences and judged on the other. `p_chosen` is corrected over the rows of this table.

# %%
best = hc.roles.best_heads(table.details["relations"])
columns = ["relation", "head", "direction", "n", "accuracy", "baseline", "p_chosen"]
best[columns].round(3)

# %%
hc.roles.not_shown(best)

# %% [markdown]
# ## Look: a determiner finds its noun
#
# Rows look, columns are looked at. Hover over a cell for its weight.

# %%
best.set_index("relation").loc["det", "head"]

# %%
hc.show(
    subject,
    "The cat chased a small mouse through the garden.",
    best.set_index("relation").loc["det", "head"],
)

# %%
hc.show(subject, "The cat chased a small mouse through the garden.", layer=2)

# %% [markdown]
# On 150 sentences of a made-up sample, not the Wall Street Journal: what the paper's own test says of MiniLM is in
# [the results](../results/roles.md).
