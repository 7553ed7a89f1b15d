"""One browser for all that look at pages."""

import pytest

from .browser import started


@pytest.fixture(scope="session")
def browser():
    with started() as browser:
        yield browser
