# %% [markdown]
# # Prune my classifier and ship it
#
# A classifier goes in, a smaller folder comes out that `transformers` loads. Here the classifier is made on the spot: MiniLM with a new output layer that
# says whether a sentence has an auxiliary verb. Put yours in its place: `hc.load("your/model")`.

# %%
import conllu
import torch
from transformers import AutoModelForSequenceClassification, logging, pipeline

import headcount as hc
from headcount.bundle import sample

encoder = hc.load("minilm", device="cpu")
trees = conllu.parse(sample.path().read_text(encoding="utf8"))
labels = [int(any(word["upos"] == "AUX" for word in tree)) for tree in trees]
texts = [tree.metadata["text"] for tree in trees]
f"{len(texts)} sentences, {sum(labels)} of them with an auxiliary verb"

# %%
torch.manual_seed(0)
logging.set_verbosity_error()
logging.disable_progress_bar()
config = type(encoder.model.config)(**encoder.model.config.to_dict() | {"num_labels": 2})
model = AutoModelForSequenceClassification.from_config(config).eval()
model.bert.load_state_dict(encoder.model.state_dict())
features = torch.cat(
    [
        model.bert(**encoder.tokenizer(text, return_tensors="pt")).pooler_output.detach()
        for text in texts[:150]
    ]
)
optimizer = torch.optim.LBFGS(model.classifier.parameters(), max_iter=60)


def loss() -> torch.Tensor:
    optimizer.zero_grad()
    found = torch.nn.functional.cross_entropy(
        model.classifier(features), torch.tensor(labels[:150])
    )
    found = found + 0.01 * model.classifier.weight.square().sum()
    found.backward()
    return found


optimizer.step(loss)
subject = hc.Subject(model, encoder.tokenizer, name="auxiliaries")
subject

# %% [markdown]
# ## How many heads can be pruned?
#
# Heads are ordered on one half of the examples and judged on the other. `max_loss` is in points of accuracy: the 95% upper bound of the loss must stay
# within it. Few examples promise little, and the plan says so. Here we prune a quarter of the heads; the curve shows the cost.

# %%
task = hc.tasks.classification(list(zip(texts[150:], labels[150:], strict=True)))
plan = hc.prune_plan(subject, task, drop_share=0.25)
plan

# %%
hc.plot.pruning_curves(plan.curve)

# %% [markdown]
# ## Ship it
#
# `save` proves that the folder loads in a fresh process with the same outputs, or says why not.

# %%
small = plan.prune(subject)
small.save("small", force=True)

# %%
classify = pipeline(
    "text-classification",
    model="small",
    tokenizer=small.tokenizer,
    trust_remote_code=True,
)
classify("The old dog slept near the warm stove.")

# %% [markdown]
# Next: `headcount bench your/model small` times both, and `headcount prune --max-loss` does all of it from a file.
