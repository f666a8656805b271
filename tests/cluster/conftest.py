"""The cluster tests' fixtures: one control plane per test run, one namespace per test, controllers on demand.

A test that uses `control_plane`, in whatever way, is marked `cluster`. Without Go or the built tools it is skipped
with the reason; with CI=true in the environment the control plane, KWOK and JobSet are required and it fails instead.
What can be started without pytest stands in `control_plane` and `controllers`.
"""

import os
import re
import uuid
from collections.abc import Callable, Generator, Iterator
from typing import NoReturn

import pytest

from tests.cluster.api_client import ApiClient, api_path
from tests.cluster.control_plane import ControlPlane
from tests.cluster.controllers import Controller, Controllers, NotAvailableError
from tests.cluster.definitions import install_definitions
from tests.cluster.kubectl import Kubectl
from tests.cluster.recipes import RECIPES
from tests.cluster.tools.building import GoMissingError, ModuleMissingError
from tests.cluster.tools.table import CONTROLLERS, tools
from tests.cluster.webhook_replica import WebhookReplica

REQUIRED_IN_CI = {"control-plane", "jobset"}
NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")

running = pytest.StashKey[ControlPlane]()
log_sizes = pytest.StashKey[dict[str, int]]()
has_cluster_tests = pytest.StashKey[bool]()
RunReplica = Callable[[WebhookReplica], WebhookReplica]
StartController = Callable[[str], Controller]


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """The control plane of this test run, with eight nodes of eight GPUs; see `control_plane.ControlPlane`."""
    missing = ControlPlane.missing_tools()
    if missing:
        _not_available("control-plane", f"not built: {', '.join(missing)}; `make cluster-tools` builds them")
    with ControlPlane(tmp_path_factory.mktemp("cluster")) as control_plane:
        request.config.stash[running] = control_plane
        yield control_plane
    del request.config.stash[running]


@pytest.fixture(scope="session")
def controller(control_plane: ControlPlane) -> StartController:
    """`controller("jobset")`: a framework's own controller, running; the test is skipped where it isn't built."""
    controllers = Controllers(control_plane, RECIPES)

    def start(name: str) -> Controller:
        try:
            return controllers.start(name)
        except NotAvailableError as problem:
            _not_available(name, str(problem))

    return start


@pytest.fixture(scope="session")
def definitions(control_plane: ControlPlane) -> Callable[[str], None]:
    """`definitions("cert-manager")`: a project's custom resource definitions, served from then on."""

    def install(name: str) -> None:
        try:
            install_definitions(control_plane, name)
        except (GoMissingError, ModuleMissingError) as problem:
            _not_available(name, str(problem))

    return install


@pytest.fixture
def client(control_plane: ControlPlane) -> ApiClient:
    """The admin's HTTP client of the API server."""
    return control_plane.client


@pytest.fixture
def kubectl(control_plane: ControlPlane) -> Kubectl:
    """The admin's kubectl: `kubectl("get", "pods", "-n", namespace)` is its output."""
    return control_plane.kubectl


@pytest.fixture
def namespace(control_plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of the test's own, named after it, deleted with all that is in it once the test has ended."""
    words = NOT_IN_NAMES.sub("-", request.node.name.lower().removeprefix("test_"))[:40].strip("-")
    name = f"{words}-{uuid.uuid4().hex[:6]}"
    control_plane.create_namespace(name)
    yield name
    control_plane.client.delete(api_path("v1", "namespaces", name=name))


@pytest.fixture
def run_replica(control_plane: ControlPlane) -> Iterator[RunReplica]:
    """`run_replica(WebhookReplica(…))`: start a replica and wait until it is ready; killed when the test has ended."""
    started: list[WebhookReplica] = []

    def run(replica: WebhookReplica) -> WebhookReplica:
        control_plane.adopt(replica)
        started.append(replica)
        replica.start()
        replica.wait_until_ready()
        return replica

    yield run
    for replica in started:
        control_plane.dismiss(replica)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs the control plane, before markers are looked at."""
    for item in items:
        if "control_plane" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.cluster)


@pytest.hookimpl(trylast=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Remember where the logs end, so that a failure shows what was written during the test."""
    if running in item.config.stash:
        item.stash[log_sizes] = item.config.stash[running].log_sizes()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the ends of the processes' logs to the report of a failed cluster test."""
    report = yield
    if report.failed and item.get_closest_marker("cluster") and running in item.config.stash:
        since = item.stash.get(log_sizes, None)
        report.sections.append(("cluster processes", item.config.stash[running].log_tails(since)))
    return report


def pytest_collection_finish(session: pytest.Session) -> None:
    """Remember whether this run has cluster tests at all."""
    session.config.stash[has_cluster_tests] = any(item.get_closest_marker("cluster") for item in session.items)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Name the controllers that aren't built, where that matters."""
    if not config.stash.get(has_cluster_tests, False):
        return
    missing = [f"{tool.name} {tool.version}" for tool in tools([CONTROLLERS]) if not tool.built]
    if missing:
        terminalreporter.section("cluster tools that are not built (`make cluster-tools`)")
        terminalreporter.line(", ".join(missing))


def _not_available(name: str, reason: str) -> NoReturn:
    if os.environ.get("CI") == "true" and name in REQUIRED_IN_CI:
        pytest.fail(f"{reason} (required, as CI=true)", pytrace=False)
    pytest.skip(reason)
