"""Starts a framework's real controller beside the control plane, as it would run in a cluster, on demand.

    jobset = Controllers(control_plane).start("jobset")
    jobset.process.kill()

Its own service account, its own definitions and webhooks from the Go module it was built from, so that they always fit;
webhooks are registered with upstream's names and selectors at loopback URLs, in place of a Service. What is particular
to a framework stands in `recipes`. Knows nothing of the webhook under test.
"""

import base64
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.api_client import api_path
from tests.cluster.control_plane import ControlPlane
from tests.cluster.manifests import apply_files, manifests
from tests.cluster.pki import Authority, new_rsa_key
from tests.cluster.ports import free_port, healthy, is_open
from tests.cluster.process import Process
from tests.cluster.tools.building import GoMissingError, ModuleMissingError, go, sources
from tests.cluster.tools.table import Tool, tool

SECONDS_TO_START = 120.0


class NotAvailableError(Exception):
    """A controller can't be run here; the message says why. A reason to skip a test, not to fail it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhooks:
    """Upstream's registration: a kustomization in the Go module, and the name prefix its overlays would add."""

    kustomization: str
    name_prefix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What a controller is started with."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What a recipe may use: where the controller will run, as whom, with which ports and certificates."""

    control_plane: ControlPlane
    tool: Tool
    namespace: str
    folder: Path  # the controller's own; also its TMPDIR
    kubeconfig: Path
    webhook_port: int
    health_port: int
    metrics_port: int
    extra_port: int
    authority: Authority

    @property
    def certificates(self) -> Path:
        """Folder with ca.crt, ca.key, tls.crt, tls.key; where controller-runtime looks when it is told nothing."""
        return self.folder / "k8s-webhook-server" / "serving-certs"

    def module(self, go_module: str) -> Path:
        """Folder of a Go module's sources at the version the controller was built with."""
        return sources(self.tool.module_folder, go_module)

    def manifests(self, go_module: str, *patterns: str) -> list[Path]:
        """Files of a Go module; every pattern must find some."""
        return manifests(self.module(go_module), *patterns)

    def write_configuration(self, document: Mapping[str, Any]) -> Path:
        """Write the controller's configuration file; its path."""
        file = self.folder / "configuration.yaml"
        file.write_text(yaml.safe_dump(dict(document)))
        return file


def _nothing(_site: Site) -> None:
    """No step of its own."""


def _serves_webhook(site: Site) -> bool:
    return is_open(site.webhook_port) and healthy(site.health_port)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How one framework's controller is run outside a cluster."""

    name: str
    namespace: str
    account: str
    definitions: Mapping[str, tuple[str, ...]]  # Go module to patterns of files that are applied first
    launch: Callable[[Site], Launch]
    webhooks: Webhooks | None = None
    service: str = ""  # DNS name in the serving certificate
    authority: str = "controller-ca"  # common name of the CA
    needs: tuple[str, ...] = ()  # controllers that must run before
    fixed_port: int | None = None  # a port that upstream compiled in
    prepare: Callable[[Site], None] = _nothing  # after definitions, before the start
    ready: Callable[[Site], bool] = _serves_webhook
    finish: Callable[[Site], None] = _nothing  # once it is ready

    @property
    def tool(self) -> Tool:
        """The program."""
        return tool(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller:
    """A running controller."""

    recipe: Recipe
    site: Site
    process: Process

    @property
    def name(self) -> str:
        """Name in the table of recipes, and of its program."""
        return self.recipe.name

    def restart(self) -> None:
        """Kill it if it runs, start it again, wait until it is ready."""
        self.process.kill()
        # A killed leader's Lease would hold its successor back, and look as if it led already.
        self.site.control_plane.client.delete(
            api_path("coordination.k8s.io/v1", "leases", namespace=self.site.namespace)
        )
        self.process.start()
        self.process.wait_ready(lambda: self.recipe.ready(self.site), seconds=SECONDS_TO_START)


class Controllers:
    """The controllers of one control plane; each is started once and runs until the control plane stops."""

    def __init__(self, control_plane: ControlPlane, recipes: Mapping[str, Recipe]) -> None:
        """`recipes` is the table in `recipes`."""
        self._control_plane = control_plane
        self._recipes = recipes
        self._started: dict[str, Controller] = {}
        self._failed: dict[str, Exception] = {}

    def start(self, name: str) -> Controller:
        """Start the controller, and those it needs, unless they run. NotAvailableError when it can't be run here.

        Of two with the same compiled-in port the one that runs is stopped; ask for it again to have it back.
        """
        recipe = self._recipes[name]
        _check_available(recipe)
        for needed in recipe.needs:
            self.start(needed)
        if name not in self._started:
            self._started[name] = self._first_start(recipe)
        controller = self._started[name]
        if not controller.process.running:
            self._free_fixed_port(recipe)
            controller.restart()
        return controller

    def _free_fixed_port(self, recipe: Recipe) -> None:
        if recipe.fixed_port is None:
            return
        for other in self._started.values():
            if other.recipe.fixed_port == recipe.fixed_port:
                other.process.kill()
        if is_open(recipe.fixed_port):
            raise NotAvailableError(f"{recipe.name} listens on port {recipe.fixed_port}, which somebody else uses")

    def _first_start(self, recipe: Recipe) -> Controller:
        """Tried once: a second try would fail the same way, after as long a wait."""
        if recipe.name in self._failed:
            raise self._failed[recipe.name]
        try:
            return self._install_and_start(recipe)
        except Exception as problem:
            self._failed[recipe.name] = problem
            raise

    def _install_and_start(self, recipe: Recipe) -> Controller:
        self._free_fixed_port(recipe)
        site = self._site(recipe)
        try:
            for go_module, patterns in recipe.definitions.items():
                apply_files(self._control_plane, site.manifests(go_module, *patterns))
            recipe.prepare(site)
            if recipe.webhooks:
                _register(site, recipe.webhooks)
        except ModuleMissingError as problem:
            raise NotAvailableError(str(problem)) from problem
        launch = recipe.launch(site)
        process = self._control_plane.add(
            recipe.name,
            (str(recipe.tool.binary), *launch.arguments),
            environment={"KUBECONFIG": str(site.kubeconfig), "TMPDIR": str(site.folder), **launch.environment},
        )
        controller = Controller(recipe=recipe, site=site, process=process)
        controller.restart()
        recipe.finish(site)
        return controller

    def _site(self, recipe: Recipe) -> Site:
        folder = self._control_plane.folder / f"{recipe.name}.d"
        folder.mkdir()
        account = self._control_plane.service_account(recipe.namespace, recipe.account, cluster_role="cluster-admin")
        site = Site(
            control_plane=self._control_plane,
            tool=recipe.tool,
            namespace=recipe.namespace,
            folder=folder,
            kubeconfig=account,
            webhook_port=free_port(),
            health_port=free_port(),
            metrics_port=free_port(),
            extra_port=free_port(),
            # Some controllers read the key of their CA and know nothing but PKCS#1.
            authority=Authority(recipe.authority, key=new_rsa_key()),
        )
        site.authority.pair.write(site.certificates, "ca")
        site.authority.serving(recipe.service or "localhost").write(site.certificates, "tls")
        return site


def _check_available(recipe: Recipe) -> None:
    if not recipe.tool.built:
        raise NotAvailableError(f"{recipe.name} {recipe.tool.version} is not built; `make cluster-tools` builds it")
    try:
        go()
    except GoMissingError as problem:
        raise NotAvailableError(f"{recipe.name}: {problem}") from problem


def _register(site: Site, webhooks: Webhooks) -> None:
    """Register upstream's webhooks. Before the start: the API server has them by the time the controller is ready."""
    folder = site.module(site.tool.go_module) / webhooks.kustomization
    for document in yaml.safe_load_all(_kustomized(folder)):
        if document["kind"].endswith("WebhookConfiguration"):
            configuration = _on_loopback(document, site, webhooks.name_prefix)
            plural = f"{configuration['kind'].lower()}s"
            path = api_path(configuration["apiVersion"], plural, name=configuration["metadata"]["name"])
            site.control_plane.client.apply(path, configuration)


def _kustomized(folder: Path) -> str:
    # From inside the folder: kustomize takes a path with a host's name in it for a repository to be fetched.
    command = [str(tool("kubectl").binary), "kustomize", "."]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def _on_loopback(document: dict[str, Any], site: Site, name_prefix: str) -> dict[str, Any]:
    bundle = base64.b64encode(site.authority.pair.certificate).decode()
    url = f"https://127.0.0.1:{site.webhook_port}"
    webhooks = [
        {**webhook, "clientConfig": {"url": url + webhook["clientConfig"]["service"]["path"], "caBundle": bundle}}
        for webhook in document["webhooks"]
    ]
    return {**document, "metadata": {"name": name_prefix + document["metadata"]["name"]}, "webhooks": webhooks}
