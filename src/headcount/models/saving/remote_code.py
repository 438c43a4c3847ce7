"""The file of code that a saved model brings where no config can say its sizes.

It holds a copy of `headcount.models.fit` and a class that uses it, and needs transformers alone.
"""

from __future__ import annotations

import inspect
from typing import Any

from headcount.models import fit
from headcount.models.saving.auto_classes import code_classes

__all__ = ["code_for"]

_CLASS = '''
class Pruned{name}(transformers.{name}):
    """{name} without some of its heads; config.headcount says which."""

    def __init__(self, config: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(config, *args, **kwargs)
        fit(self, config.headcount)
'''


def code_for(model: Any) -> str:
    """The text of the file.

    >>> from transformers import BertConfig, BertModel
    >>> config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=4,
    ...                     intermediate_size=16, vocab_size=32)
    >>> "class PrunedBertModel(transformers.BertModel):" in code_for(BertModel(config))
    True
    """
    text = inspect.getsource(fit).replace(
        "import torch\n", "import torch\nimport transformers\n", 1
    )
    names = dict.fromkeys(name.removeprefix("Pruned") for name in code_classes(model).values())
    return text + "".join(f"\n{_CLASS.format(name=name)}" for name in names)
