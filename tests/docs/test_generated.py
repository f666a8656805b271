"""The generated parts of the pages are what the code says today."""

import pytest

from tests.docs.generated import BLOCKS, current
from tests.docs.pages import DOCS


@pytest.mark.parametrize("page", BLOCKS)
def test_page_is_current(page: str) -> None:
    """`python -m tests.docs` would change nothing."""
    assert (DOCS / page).read_text() == current(page)
