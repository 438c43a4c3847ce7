"""The error tree: every mistake a user can make, and the exit code it ends with.

::

    HeadcountError            exit 1   anything that went wrong for a reason we can name
    ├── UsageError            exit 2   the call itself is wrong: an option, a name, a value
    │   └── UnknownHead       exit 2   a head that the model does not have
    ├── InputError            exit 1   a file or text that cannot be read as what it should be
    ├── ModelError            exit 1   a model that cannot be loaded or used
    │   └── UnsupportedModel  exit 1   a model whose heads cannot be reached soundly
    ├── RunError              exit 1   a run directory, its schema or its journal
    └── StatsError            exit 1   a test that cannot answer the question it was asked

A message is one sentence or two: the thing, the value, what is allowed, the next step.
"""

from __future__ import annotations


class HeadcountError(Exception):
    """Anything that went wrong for a reason we can name; the command line prints it and exits 1."""

    exit_code = 1


class UsageError(HeadcountError):
    """The call itself is wrong: an option, a name or a value that is not allowed."""

    exit_code = 2


class UnknownHead(UsageError):
    """A head that the model does not have."""


class InputError(HeadcountError):
    """A file or text that cannot be read as what it should be."""


class ModelError(HeadcountError):
    """A model that cannot be loaded or used."""


class UnsupportedModel(ModelError):
    """A model whose attention heads cannot be reached soundly."""


class RunError(HeadcountError):
    """A run directory, its schema or its journal that cannot be used."""


class StatsError(HeadcountError):
    """A statistical test that cannot answer the question it was asked."""
