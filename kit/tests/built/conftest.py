"""One browser for all that look at pages."""

import pytest

from kit import chromium


@pytest.fixture(scope="module")
def browser():
    """Ended with the module: while it is there, nothing else can run an event loop."""
    if chromium.PATH is None:
        pytest.fail(f"no browser: {chromium.NONE}")
    with chromium.started() as browser:
        yield browser
