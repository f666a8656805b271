"""The guides name flags, metrics, alerts and files that exist."""

import re

import pytest

from tests.manifests.documents import KUSTOMIZATIONS
from tests.manifests.generated import MANIFESTS
from tests.manifests.test_monitoring import exposed, rules
from webhook.cli.backfill import command as backfill
from webhook.cli.uninstall import command as uninstall
from webhook.settings import OPTIONS

DOCS = MANIFESTS.parent / "docs"
GUIDES = {name: (DOCS / name).read_text() for name in ("install.md", "operations.md")}
OTHERS = {"--server-side", "--replicas", "--sum", "--raw", "--data-urlencode", "--help", "--metric-labels-allowlist"}


@pytest.mark.parametrize("guide", GUIDES)
def test_every_flag_exists(guide: str) -> None:
    """A flag is one of the settings', of a command, or of a tool that the guide calls."""
    commands = {flag for command in (uninstall, backfill) for each in command.params for flag in each.opts}
    ours = {option.flag for option in OPTIONS} | commands
    found = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", GUIDES[guide]))
    assert found <= ours | OTHERS


@pytest.mark.parametrize("guide", GUIDES)
def test_every_metric_exists(guide: str) -> None:
    """A metric under our prefix is exposed by a replica in a cluster; a histogram may be named as a whole."""
    known = exposed()
    for name in re.findall(r"`(workload_stamp_\w+)`", GUIDES[guide]):
        assert name in known or f"{name}_bucket" in known, name


@pytest.mark.parametrize("guide", GUIDES)
def test_every_link_leads_somewhere(guide: str) -> None:
    """Files exist, and so do the headings that are linked to, here and in the other guide."""
    for target in re.findall(r"\]\(([^)]+)\)", GUIDES[guide]):
        path, _, heading = target.partition("#")
        assert not path or (DOCS / path).exists(), target
        text = GUIDES.get(path or guide)
        if heading and text is not None:
            headings = {re.sub(r"[^a-z0-9 -]", "", line.lower()).replace(" ", "-") for line in _headings(text)}
            assert heading in headings, target


def _headings(text: str) -> list[str]:
    return re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)


def test_the_operations_guide_knows_every_alert() -> None:
    """None is missing and none is made up."""
    named = set(re.findall(r"`(WorkloadStamp\w+)`", GUIDES["operations.md"]))
    assert named == {rule["alert"] for rule in rules()}


def test_the_install_guide_names_every_component_and_policy() -> None:
    """What can be chosen is in its tables."""
    names = {f"components/{path.name}" for path in (MANIFESTS / "components").iterdir()}
    names |= {name for name in KUSTOMIZATIONS if name.startswith("policies/")} | {"monitoring"}
    assert {name for name in names if f"`{name}`" not in GUIDES["install.md"]} == set()
