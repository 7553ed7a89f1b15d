"""One browser for all that look at pages."""

import pytest

from kit import chromium


@pytest.fixture(scope="session")
def browser():
    if chromium.PATH is None:
        pytest.fail(f"no browser: {chromium.NONE}")
    with chromium.started() as browser:
        yield browser
