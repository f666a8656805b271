"""Takes away what was installed: for `workload-stamp uninstall`. Stamps are `stamp_removal`'s.

Knows the manifests by their label, `app.kubernetes.io/part-of`, and what the webhook makes itself by its names. What is
somebody else's is left alone. This module must not know how it is asked for or shown.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from catalog.definition import JsonObject
from webhook.cluster.client import ApiError, ApiServer
from webhook.cluster.configuration import MANAGED_BY
from webhook.cluster.discovery import Discovery, Resource
from webhook.cluster.keys import MANAGED_LABEL
from webhook.cluster.registration import PATH as CONFIGURATION

PART_OF = "app.kubernetes.io/part-of=workload-stamp"
OURS = f"{MANAGED_LABEL}={MANAGED_BY}"
REPLICAS = "app.kubernetes.io/name=workload-stamp,app.kubernetes.io/component=webhook"
ADDED_RIGHTS = "workload-stamp.io/aggregate-to-webhook=true,!app.kubernetes.io/part-of"
"""ClusterRoles that came with definitions of further frameworks."""

LOOK_AGAIN = 0.5
"""Seconds between two looks at what is being waited for."""

RBAC = "rbac.authorization.k8s.io"
ADMISSION = "admissionregistration.k8s.io"
MONITORING = "monitoring.coreos.com"
CERTIFICATES = "cert-manager.io"

Kind = tuple[str, str]

NAMESPACED: tuple[tuple[Kind, str], ...] = (
    (("autoscaling", "HorizontalPodAutoscaler"), PART_OF),
    (("apps", "Deployment"), PART_OF),
    (("policy", "PodDisruptionBudget"), PART_OF),
    (("networking.k8s.io", "NetworkPolicy"), PART_OF),
    (("", "Service"), PART_OF),
    (("", "ResourceQuota"), PART_OF),
    ((MONITORING, "ServiceMonitor"), PART_OF),
    ((MONITORING, "PrometheusRule"), PART_OF),
    ((CERTIFICATES, "Certificate"), PART_OF),
    ((CERTIFICATES, "Issuer"), PART_OF),
    ((RBAC, "RoleBinding"), PART_OF),
    ((RBAC, "Role"), PART_OF),
    (("", "ServiceAccount"), PART_OF),
    (("", "Secret"), OURS),
)
"""Kinds in the webhook's namespace and how ours are told, in the order in which they go."""

POLICIES: tuple[tuple[Kind, str], ...] = (
    ((ADMISSION, "ValidatingAdmissionPolicyBinding"), PART_OF),
    ((ADMISSION, "ValidatingAdmissionPolicy"), PART_OF),
)
"""The same in the cluster: what would keep people from removing stamps goes early."""

RIGHTS: tuple[tuple[Kind, str], ...] = (
    ((RBAC, "ClusterRoleBinding"), PART_OF),
    ((RBAC, "ClusterRole"), PART_OF),
)
"""The same in the cluster, which goes late."""

DEFINITIONS: Kind = ("workload-stamp.io", "WorkloadDefinition")


@dataclass(frozen=True, slots=True)
class Part:
    """One object to be deleted: how people name it, and its URL path."""

    name: str
    path: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """What is there: `registration` goes first, then `policies`, `deployments`, last `rest`, in order.

    `kept` is what stays, each with its reason.
    """

    registration: Part | None
    policies: tuple[Part, ...]
    deployments: tuple[Part, ...]
    rest: tuple[Part, ...]
    kept: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[Part, ...]:
        """Everything that goes, in order."""
        first = (self.registration,) if self.registration is not None else ()
        return (*first, *self.policies, *self.deployments, *self.rest)


class Removal:
    """One removal from one cluster, with the rights of whoever asks for it."""

    def __init__(self, server: ApiServer, discovery: Discovery, *, namespace: str, lease: str) -> None:
        """`discovery` has been read."""
        self._server = server
        self._discovery = discovery
        self._namespace = namespace
        self._lease = lease

    async def installed(self, *, definitions: bool) -> Installed:
        """What there is to remove; of the resource definitions only with `definitions`, or when none is in use.

        Raises `ApiError`, `ConnectionFault`.
        """
        kept: list[str] = []
        registration = await self.registration(kept)
        policies = await self._all(POLICIES)
        inside = await self._all(NAMESPACED, self._namespace)
        deployments = tuple(part for part in inside if part.name.startswith("Deployment "))
        rest = [part for part in inside if part not in deployments]
        rest += [part async for part in self._lease_held()]
        rest += await self._all(RIGHTS)
        rest += [part async for part in self._resource_definition(kept, definitions=definitions)]
        rest += [part async for part in self._own_namespace(kept)]
        return Installed(
            registration=registration, policies=policies, deployments=deployments, rest=tuple(rest), kept=tuple(kept)
        )

    async def registration(self, kept: list[str] | None = None) -> Part | None:
        """The webhook configuration when it is there and ours; when it is another's, that is added to `kept`."""
        configuration = await self._read(CONFIGURATION)
        if configuration is None:
            return None
        part = Part(f"MutatingWebhookConfiguration {configuration['metadata']['name']}", CONFIGURATION)
        if (configuration["metadata"].get("labels") or {}).get(MANAGED_LABEL) == MANAGED_BY:
            return part
        if kept is not None:
            kept.append(f"{part} lacks the label {OURS}: it is not ours")
        return None

    async def _all(self, kinds: tuple[tuple[Kind, str], ...], namespace: str = "") -> tuple[Part, ...]:
        return tuple([part for kind, selector in kinds for part in await self._parts(kind, selector, namespace)])

    async def _parts(self, kind: Kind, selector: str, namespace: str = "") -> list[Part]:
        resource = self._discovery.known(*kind)
        if resource is None:
            return []
        return [_part(resource, obj) async for obj in self._objects(resource, namespace, selector)]

    async def _objects(self, resource: Resource, namespace: str = "", selector: str = "") -> AsyncIterator[JsonObject]:
        pages = self._server.pages(resource.path(namespace), metadata_only=True, label_selector=selector)
        async for page in pages:
            for obj in page.items:
                yield obj

    async def _lease_held(self) -> AsyncIterator[Part]:
        resource = self._served("coordination.k8s.io", "Lease")
        lease = await self._read(resource.path(self._namespace, self._lease))
        if lease is not None:
            yield _part(resource, lease)

    async def _resource_definition(self, kept: list[str], *, definitions: bool) -> AsyncIterator[Part]:
        """The CustomResourceDefinition; with it every definition that people wrote would be gone."""
        crds = self._served("apiextensions.k8s.io", "CustomResourceDefinition")
        written = self._discovery.known(*DEFINITIONS)
        names = [obj["metadata"]["name"] async for obj in self._objects(written)] if written is not None else []
        async for obj in self._objects(crds, selector=PART_OF):
            part = _part(crds, obj)
            if definitions or not names:
                yield part
            else:
                kept.append(f"{part}, as it holds {_counted(names, 'WorkloadDefinition')}; see --remove-definitions")
        if definitions:
            for part in await self._parts((RBAC, "ClusterRole"), ADDED_RIGHTS):
                yield part

    async def _own_namespace(self, kept: list[str]) -> AsyncIterator[Part]:
        namespaces = self._served("", "Namespace")
        obj = await self._read(namespaces.path(name=self._namespace))
        if obj is None:
            return
        part = _part(namespaces, obj)
        name, _, value = PART_OF.partition("=")
        strangers = await self._strangers()
        if (obj["metadata"].get("labels") or {}).get(name) != value:
            kept.append(f"{part} lacks the label {PART_OF}: it is not ours")
        elif strangers:
            kept.append(f"{part}, as it has {_counted(strangers, 'pod')} that we did not make")
        else:
            yield part

    async def _strangers(self) -> list[str]:
        """Pods in our namespace that are none of our replicas."""
        pods = self._served("", "Pod")
        ours = {obj["metadata"]["uid"] async for obj in self._objects(pods, self._namespace, REPLICAS)}
        everything = [obj async for obj in self._objects(pods, self._namespace)]
        return [obj["metadata"]["name"] for obj in everything if obj["metadata"]["uid"] not in ours]

    async def delete(self, part: Part) -> None:
        """Delete one part, with what it owns; gone already is as good. Raises `ApiError`, `ConnectionFault`."""
        try:
            await self._server.request("DELETE", part.path, query={"propagationPolicy": "Background"})
        except ApiError as error:
            if error.code != 404:
                raise

    async def replicas_gone(self, within: float) -> bool:
        """Wait, at most `within` seconds, until no replica runs that could register itself anew."""
        pods = self._served("", "Pod")
        return await self._comes_true(lambda: self._has_none(pods.path(self._namespace), REPLICAS), within)

    async def gone(self, part: Part, within: float) -> bool:
        """Wait, at most `within` seconds, until a part is really gone: a namespace empties itself first."""

        async def is_gone() -> bool:
            return await self._read(part.path) is None

        return await self._comes_true(is_gone, within)

    def _served(self, group: str, kind: str) -> Resource:
        """A kind that every API server serves."""
        resource = self._discovery.known(group, kind)
        assert resource is not None, f"the API server does not serve {kind}"
        return resource

    async def _has_none(self, path: str, selector: str) -> bool:
        async for page in self._server.pages(path, metadata_only=True, label_selector=selector, limit=1):
            return not page.items
        return True

    async def _comes_true(self, probe: Callable[[], Awaitable[bool]], within: float) -> bool:
        deadline = asyncio.get_running_loop().time() + within
        while not await probe():
            if asyncio.get_running_loop().time() >= deadline:
                return False
            await asyncio.sleep(LOOK_AGAIN)
        return True

    async def _read(self, path: str) -> JsonObject | None:
        try:
            return await self._server.get(path)
        except ApiError as error:
            if error.code == 404:
                return None
            raise


def _part(resource: Resource, obj: JsonObject) -> Part:
    metadata = obj["metadata"]
    return Part(f"{resource.kind} {metadata['name']}", resource.path(metadata.get("namespace", ""), metadata["name"]))


def _counted(names: list[str], noun: str) -> str:
    shown = ", ".join(sorted(names)[:3]) + (", …" if len(names) > 3 else "")
    return f"{len(names)} {noun}{'' if len(names) == 1 else 's'} ({shown})"
