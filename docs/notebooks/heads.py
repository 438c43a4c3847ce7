# %% [markdown]
# # Which heads do what in my model?
#
# Survey a model, read the verdicts, look at a head. It runs on the bundled translator in a minute on a CPU; put your hub id and your texts in.

# %%
import headcount as hc
from headcount.bundle import sample

subject = hc.load("translator", device="cpu")
subject

# %% [markdown]
# ## Where does every head look?
#
# `hc.survey` reads texts and gives a table: one row per head, one column per statistic, each with its 95% interval.

# %%
table = hc.survey(subject, sample.pairs()[:24])
table

# %%
table.top("previous", 3)

# %%
hc.plot.positions(table.stack("enc"))

# %% [markdown]
# ## What does each head do, beyond chance?
#
# With a treebank, rules turn the figures into verdicts. A verdict holds on sentences that did not choose it, and its p value is corrected for all
# heads that were tried.

# %%
rules = [hc.roles.Positional(), hc.roles.Syntactic()]
judged = hc.survey(
    subject, treebank=sample.path(), roles=rules, reading=hc.ReadingOptions(stacks=["enc"])
)
hc.roles.verdicts_of(judged)

# %% [markdown]
# ## Look at one head, and at its whole layer

# %%
hc.show(subject, "The old dog slept near the warm stove.", "enc.5.3")

# %%
hc.show(subject, "The old dog slept near the warm stove.", layer="enc.5")

# %% [markdown]
# ## How much does it matter?
#
# The gradient score asks how much the loss notices a head (Michel et al. 2019). The table is ready for a paper: `"latex"` and `"typst"` work too.

# %%
task = hc.tasks.translation(sample.pairs()[:24], metric="loss")
known = judged.join(hc.score(subject, task, by="gradient"))
hc.paper_table(known, most=6)

# %%
hc.explain(known, "enc.5.3")

# %% [markdown]
# Next: `headcount report translator` measures all of this and more, and writes one page.
