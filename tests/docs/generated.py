"""The parts of pages that are generated, and how they get there: between two comments that name them.

    python -m tests.docs

writes them, and what the commands of the pages in `FOLLOWED` print; tests hold both current. The rest of a page is
written by hand.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.docs import catalogue, language, statuses
from tests.docs.following import corrected
from tests.docs.pages import DOCS

BLOCKS: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "catalogue.md": {"summary": catalogue.summary, "details": catalogue.details},
    "definitions.md": {
        "fields": language.fields,
        "functions": language.functions,
        "refused": language.refused,
    },
    "status.md": {"kinds": statuses.kinds},
}
"""Page → name of a block → what writes it."""


FOLLOWED = ("add-a-framework.md",)
"""Pages whose commands are run."""


def current(page: str) -> str:
    """The page with its generated parts as they should be."""
    text = (DOCS / page).read_text()
    for name, write in BLOCKS[page].items():
        begin, end = f"<!-- generated: {name} -->", f"<!-- end: {name} -->"
        assert text.count(begin) == text.count(end) == 1, f"{page} has not one place for {name}: {begin} … {end}"
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = f"{before}{begin}\n\n{write()}\n\n{end}{after}"
    return text


def outdated() -> Iterator[tuple[Path, str]]:
    """Pages that are not current, with what they should say."""
    for page in BLOCKS:
        text = current(page)
        if text != (DOCS / page).read_text():
            yield DOCS / page, text
    for page in FOLLOWED:
        with TemporaryDirectory() as folder:
            text = corrected(DOCS / page, Path(folder))
        if text != (DOCS / page).read_text():
            yield DOCS / page, text
