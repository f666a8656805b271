"""Whoever follows a page gets what the page says."""

from pathlib import Path

import pytest

from tests.docs.following import follow
from tests.docs.generated import FOLLOWED
from tests.docs.pages import DOCS


@pytest.mark.slow
@pytest.mark.parametrize("page", FOLLOWED)
def test_every_command_prints_what_the_page_says(page: str, tmp_path: Path) -> None:
    """The files are written and the commands run in the page's order; what they print is compared line by line."""
    found = list(follow(DOCS / page, tmp_path))

    assert found
    for command, printed in found:
        assert printed == command.output, command.line
