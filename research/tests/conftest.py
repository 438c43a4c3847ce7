"""The fixtures and the seeds of the package's tests, for those of the research as well."""

from tests.conftest import *  # noqa: F403
