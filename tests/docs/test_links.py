"""What the pages point to is there."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.docs.pages import DOCS

REPOSITORY = DOCS.parent
PAGES = (*sorted(DOCS.glob("*.md")), REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md")
LINK = re.compile(r"\[[^\]]+\]\((?P<target>[^)\s]+)\)")
HEADING = re.compile(r"^#+ (?P<text>.+)$", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


@cache
def _anchors(page: Path) -> frozenset[str]:
    """The anchors that GitHub makes of a page's headings."""
    text = FENCED.sub("", page.read_text())
    plain = (re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", heading["text"]) for heading in HEADING.finditer(text))
    return frozenset(re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in plain)


def _links(page: Path) -> Iterator[str]:
    for found in LINK.finditer(FENCED.sub("", page.read_text())):
        if not found["target"].startswith(("http://", "https://")):
            yield found["target"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """Files exist, and headings that are pointed to are in them."""
    for target in _links(page):
        path, _, anchor = target.partition("#")
        other = (page.parent / path).resolve() if path else page

        assert other.exists(), target
        assert not anchor or anchor in _anchors(other), target
