"""The devices of one pod: Kubernetes' effective request of each accelerator, and the GPUs it amounts to.

The request is computed as Kubernetes 1.36 does (component-helpers/resource/helpers.go), for accelerators only, and with
`limits` standing in for absent `requests`, as the API server defaults them. Overhead concerns no device.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType

import orjson

from catalog.definition import Json, JsonObject
from catalog.resources.accelerators import AcceleratorPolicy, UnknownDevices
from catalog.resources.claims import ClaimedDevices, claimed_devices
from catalog.resources.message import shown
from catalog.resources.quantity import QuantityError, add, multiply, quantity
from catalog.resources.sharing import is_share, shared_gpus

Amounts = Mapping[str, Decimal]
"""Resource name → amount."""

_NOTHING: Amounts = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """What one pod, or many, ask for. When `problem` says why it is unknown, `gpus` is None and the map is empty.

    `accelerators` has every accelerator resource and device class of which there is more than none, GPUs included.
    """

    gpus: Decimal | None
    accelerators: Amounts = field(default_factory=lambda: _NOTHING)
    problem: str | None = None


NO_DEVICES = Devices(gpus=Decimal(0))
"""A pod without any accelerator."""


def effective_devices(
    pod_spec: Json,
    annotations: Mapping[str, Json],
    policy: AcceleratorPolicy,
    claim_templates: Sequence[JsonObject] = (),
) -> Devices:
    """The devices of a pod with that spec and those annotations. Never raises: what is malformed makes them unknown.

    `claim_templates` are the ResourceClaimTemplates that stand in the same object, or parts of it that look like one:
    a name, and `devices` below `spec`, `templateSpec` or `template`.
    """
    signature = _signature(pod_spec, annotations)
    if signature is None:
        return _worked_out(pod_spec, annotations, policy, claim_templates)
    devices = policy.remembered.get(signature)
    if devices is None:
        devices = policy.remember(signature, _worked_out(pod_spec, annotations, policy, claim_templates))
    return devices


def _signature(pod_spec: Json, annotations: Mapping[str, Json]) -> bytes | None:
    """All of an ordinary pod that its devices follow from, as text: most pods of a cluster ask for the same few things.

    None for a pod whose claims or whose parts of a GPU have to be looked at.
    """
    if not isinstance(pod_spec, dict) or pod_spec.get("resourceClaims") or any(map(is_share, annotations)):
        return None
    parts = [pod_spec.get("resources")]
    for field_name in ("containers", "initContainers"):
        containers = pod_spec.get(field_name)
        if containers is None:
            continue
        for container in containers if isinstance(containers, list) else (None,):
            if not isinstance(container, dict):
                return None
            parts += (field_name, container.get("restartPolicy"), container.get("resources"))
    try:
        return orjson.dumps(parts)
    except (orjson.JSONEncodeError, RecursionError):
        return None


def _worked_out(
    pod_spec: Json, annotations: Mapping[str, Json], policy: AcceleratorPolicy, claim_templates: Sequence[JsonObject]
) -> Devices:
    try:
        requests = _effective_requests(pod_spec, policy)
        claims = claimed_devices(pod_spec, policy, claim_templates)
        share = shared_gpus(annotations) if annotations else None
        if not requests and not claims and share is None:
            return NO_DEVICES
        return _counted(requests, claims, share, policy)
    except UnknownDevices as reason:
        return Devices(gpus=None, problem=str(reason))


def total(parts: Iterable[tuple[int, Devices]]) -> Devices:
    """The devices of several pods, given as (number of pods, devices of one). Unknown as soon as one of them is.

    Of no pods the devices are none, known or not.
    """
    gpus = Decimal(0)
    accelerators: dict[str, Decimal] = {}
    for count, devices in parts:
        if count == 0:
            continue
        if devices.gpus is None:
            return devices
        gpus = add((gpus, multiply(devices.gpus, count)))
        _increase(accelerators, {name: multiply(amount, count) for name, amount in devices.accelerators.items()})
    return Devices(gpus=gpus, accelerators=MappingProxyType(accelerators))


def _counted(requests: Amounts, claims: ClaimedDevices, share: Decimal | None, policy: AcceleratorPolicy) -> Devices:
    accelerators = {name: amount for name, amount in requests.items() if amount}
    gpus = add(multiply(amount, policy.resource_weight(name) or 0) for name, amount in accelerators.items())
    for device_class, (number, claimed_gpus) in claims.items():
        gpus = add((gpus, claimed_gpus))
        if number:
            accelerators[device_class] = number
    if share is not None and gpus:
        raise UnknownDevices("the pod asks for whole GPUs and, by annotation gpu-fraction, for a part of one")
    return Devices(gpus=gpus if share is None else share, accelerators=MappingProxyType(accelerators))


def _effective_requests(pod_spec: Json, policy: AcceleratorPolicy) -> Amounts:
    """Accelerator → amount that a node has to have free for the pod."""
    if not isinstance(pod_spec, dict):
        raise UnknownDevices(f"the pod spec is {shown(pod_spec)}, not an object")
    asked: dict[str, Decimal] = {}
    for index, container in enumerate(_containers(pod_spec, "containers")):
        _increase(asked, _container_requests(container, policy, "containers", index))
    if pod_spec.get("initContainers") is not None:
        _raise_to_init_containers(asked, pod_spec, policy)
    whole = pod_spec.get("resources")
    if whole is not None:
        asked |= _requests(whole, policy, "resources")
    return asked


def _raise_to_init_containers(asked: dict[str, Decimal], pod_spec: JsonObject, policy: AcceleratorPolicy) -> None:
    """Add the restartable init containers; then each ordinary one needs itself and the restartable ones before it."""
    peak: dict[str, Decimal] = {}
    restartable: dict[str, Decimal] = {}
    for index, container in enumerate(_containers(pod_spec, "initContainers")):
        requests = _container_requests(container, policy, "initContainers", index)
        if container.get("restartPolicy") == "Always":
            _increase(asked, requests)
            _increase(restartable, requests)
        else:
            for name, amount in requests.items():
                needed = add((amount, restartable.get(name, Decimal(0))))
                peak[name] = max(peak.get(name, needed), needed)
    for name, amount in peak.items():
        asked[name] = max(asked.get(name, amount), amount)


def _increase(amounts: dict[str, Decimal], more: Amounts) -> None:
    for name, amount in more.items():
        amounts[name] = add((amounts[name], amount)) if name in amounts else amount


def _containers(pod_spec: JsonObject, field: str) -> Sequence[JsonObject]:
    containers = pod_spec.get(field)
    if containers is None:
        return ()
    if not isinstance(containers, list):
        raise UnknownDevices(f"{field} is {shown(containers)}, not a list")
    for index, container in enumerate(containers):
        if not isinstance(container, dict):
            raise UnknownDevices(f"{field}[{index}] is {shown(container)}, not an object")
    return containers


def _container_requests(container: JsonObject, policy: AcceleratorPolicy, field: str, index: int) -> Amounts:
    resources = container.get("resources")
    if resources is None:
        return _NOTHING
    return _requests(resources, policy, f"{field}[{index}].resources")


def _requests(resources: Json, policy: AcceleratorPolicy, where: str) -> Amounts:
    """Accelerators of one `resources` block: `requests` if it names the resource, else `limits`."""
    if not isinstance(resources, dict):
        raise UnknownDevices(f"{where} is {shown(resources)}, not an object")
    limits = _amounts(resources.get("limits"), policy, where, "limits")
    requests = _amounts(resources.get("requests"), policy, where, "requests")
    if not limits:
        return requests
    return {**limits, **requests} if requests else limits


def _amounts(stated: Json, policy: AcceleratorPolicy, where: str, field: str) -> Amounts:
    if stated is None:
        return _NOTHING
    if not isinstance(stated, dict):
        raise UnknownDevices(f"{where}.{field} is {shown(stated)}, not an object")
    if policy.knows_as_ordinary(stated):
        return _NOTHING
    amounts: dict[str, Decimal] = {}
    for name, value in stated.items():
        try:
            if policy.resource_weight(name) is not None and value is not None:
                amounts[name] = _amount(value)
        except (QuantityError, UnknownDevices) as reason:
            raise UnknownDevices(f"{where}.{field}[{shown(name)}]: {reason}") from None
    return amounts


def _amount(value: Json) -> Decimal:
    amount = quantity(value)
    if amount < 0:
        raise UnknownDevices(f"{shown(value)} is less than none")
    return amount
