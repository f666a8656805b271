"""Devices that a pod asks for through Dynamic Resource Allocation: its resourceClaims and the templates they name.

Every claim of a pod is allocated for it before it starts, whether or not a container uses the claim
(Kubernetes 1.36, k8s.io/api/core/v1/types.go, PodSpec.ResourceClaims). A ResourceClaim that exists beside the pod may
be shared with other pods; only a template says what this pod gets for itself.
Knows resource.k8s.io v1 and v1beta2 (`exactly`, `firstAvailable`) and v1beta1 (the request's own fields).
"""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from catalog.definition import Json, JsonObject
from catalog.resources.accelerators import AcceleratorPolicy, UnknownDevices
from catalog.resources.message import shown
from catalog.resources.quantity import QuantityError, add, multiply, quantity

ClaimedDevices = Mapping[str, tuple[Decimal, Decimal]]
"""Name of a device class → number of its devices, GPUs that they count as."""


def claimed_devices(pod_spec: JsonObject, policy: AcceleratorPolicy, templates: Sequence[Json]) -> ClaimedDevices:
    """The accelerators behind a pod's claims. Raises `UnknownDevices` when a claim does not say how many it gets."""
    claims = list(_claims(pod_spec.get("resourceClaims")))
    declared = {claim.get("name") for claim in claims if isinstance(claim.get("name"), str)}
    for name in _used_claims(pod_spec):
        if not isinstance(name, str) or name not in declared:
            raise _not_here(name)
    devices: dict[str, tuple[Decimal, Decimal]] = {}
    for claim in claims:
        name = claim.get("name")
        for device_class, number in _requested(_requests(claim, templates), name):
            weight = _weight(policy, device_class, name)
            if weight is not None:
                before, gpus_before = devices.get(device_class, (Decimal(0), Decimal(0)))
                devices[device_class] = (add((before, Decimal(number))), add((gpus_before, multiply(weight, number))))
    return devices


def _not_here(name: Json) -> UnknownDevices:
    return UnknownDevices(f"devices asked for through resourceClaim {shown(name, 63)} are not in this object")


def _unknown(claim: Json, reason: str) -> UnknownDevices:
    return UnknownDevices(f"resourceClaim {shown(claim, 63)}: {reason}")


def _claims(stated: Json) -> Iterator[JsonObject]:
    if stated is None:
        return
    if not isinstance(stated, list):
        raise UnknownDevices(f"resourceClaims is {shown(stated)}, not a list")
    for index, claim in enumerate(stated):
        if not isinstance(claim, dict):
            raise UnknownDevices(f"resourceClaims[{index}] is {shown(claim)}, not an object")
        yield claim


def _used_claims(pod_spec: JsonObject) -> Iterator[Json]:
    """Names of the claims that containers use. The containers' own form has been checked before."""
    for containers in (pod_spec.get("containers"), pod_spec.get("initContainers")):
        for container in containers or ():
            resources = container.get("resources")
            if resources and resources.get("claims"):
                yield from _names(resources["claims"])


def _names(claims: Json) -> Iterator[Json]:
    if not isinstance(claims, list):
        raise UnknownDevices(f"resources.claims of a container is {shown(claims)}, not a list")
    for claim in claims:
        yield claim.get("name") if isinstance(claim, dict) else claim


def _requests(claim: JsonObject, templates: Sequence[Json]) -> Sequence[Json]:
    """The device requests of the template that a claim names."""
    name, wanted = claim.get("name"), _template_name(claim)
    template = next((each for each in templates if wanted and isinstance(each, dict) and _name(each) == wanted), None)
    if template is None:
        raise _not_here(name)
    devices = _devices(template)
    if devices is None:
        raise _unknown(name, f"its template {shown(wanted, 63)} has no spec.devices")
    requests = devices.get("requests") or []
    if not isinstance(requests, list):
        raise _unknown(name, f"requests of its template is {shown(requests)}, not a list")
    return requests


def _template_name(claim: JsonObject) -> Json:
    """The template's name; up to Kubernetes 1.30 it stood below `source`."""
    source = claim.get("source")
    return claim.get("resourceClaimTemplateName") or (
        source.get("resourceClaimTemplateName") if isinstance(source, dict) else None
    )


def _name(template: JsonObject) -> Json:
    metadata = template.get("metadata")
    return template.get("name") or (metadata.get("name") if isinstance(metadata, dict) else None)


def _devices(template: JsonObject) -> JsonObject | None:
    """`devices` of a template, however deep: a ResourceClaimTemplate wraps the claim's spec once more than its user."""
    for wrapper in ("spec", "templateSpec", "template"):
        inner = template.get(wrapper)
        while isinstance(inner, dict):
            devices = inner.get("devices")
            if isinstance(devices, dict):
                return devices
            inner = inner.get("spec")
    return None


def _requested(requests: Sequence[Json], claim: Json) -> Iterator[tuple[str, int]]:
    """Device class and number of devices of each request."""
    for request in requests:
        if not isinstance(request, dict):
            raise _unknown(claim, f"a request is {shown(request)}, not an object")
        alternatives = request.get("firstAvailable")
        if alternatives is None:
            exactly = request.get("exactly")
            yield _exact(request if exactly is None else exactly, claim)
            continue
        if not isinstance(alternatives, list) or not alternatives:
            raise _unknown(claim, f"firstAvailable is {shown(alternatives)}, not a list of requests")
        possible = {_exact(alternative, claim) for alternative in alternatives}
        if len(possible) != 1:
            raise _unknown(claim, "the alternatives of firstAvailable ask for different devices")
        yield possible.pop()


def _exact(request: Json, claim: Json) -> tuple[str, int]:
    if not isinstance(request, dict):
        raise _unknown(claim, f"a request is {shown(request)}, not an object")
    device_class = request.get("deviceClassName")
    if not isinstance(device_class, str) or not device_class:
        raise _unknown(claim, f"deviceClassName is {shown(device_class)}, not a name")
    if request.get("adminAccess") is True:
        return device_class, 0  # watches devices that belong to others
    mode = request.get("allocationMode") or "ExactCount"
    if mode != "ExactCount":
        raise _unknown(claim, f"allocationMode is {shown(mode)}: how many devices that is depends on the node")
    if request.get("capacity") is not None:
        raise _unknown(claim, "it asks for a part of a device's capacity: how large a part depends on the device")
    return device_class, _count(request.get("count"), claim)


def _count(stated: Json, claim: Json) -> int:
    """The number of devices; one when none is stated, and 0 states none (k8s.io/api/resource/v1/types.go)."""
    if stated is None or stated == 0:
        return 1
    try:
        number = quantity(stated) if not isinstance(stated, str) else None
    except QuantityError:
        number = None
    if number is None or number <= 0 or number != int(number):
        raise _unknown(claim, f"count is {shown(stated)}, not a number of devices")
    return int(number)


def _weight(policy: AcceleratorPolicy, device_class: str, claim: Json) -> Decimal | None:
    try:
        return policy.device_class_weight(device_class)
    except UnknownDevices as reason:
        raise _unknown(claim, str(reason)) from None
