"""Which resources are accelerators and how much of a GPU each is: a setting, pattern by pattern.

Knows names of resources and of device classes; it has seen no pod.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal, TypeAlias, TypeVar

from catalog.resources.message import shown

DEFAULT_RESOURCES = (
    "nvidia.com/gpu.shared=0,nvidia.com/mig-*=0,nvidia.com/gpu=1,amd.com/gpu=1,"
    "gpu.intel.com/i915=1,gpu.intel.com/xe=1,habana.ai/gaudi=1,*/gpu=1,"
    "google.com/tpu=0,aws.amazon.com/neuron*=0,huawei.com/Ascend*=0,*/npu=0"
)
"""The contract's section 6, and the accelerators that are no GPUs."""

DEFAULT_DEVICE_CLASSES = (
    "vfio.gpu.nvidia.com=1,gpu.*=1,gaudi.intel.com=1,"
    "mig.nvidia.com=0,tpu.google.com=0,neuron.aws.com=0,compute-domain-*.nvidia.com=none"
)
"""Classes of the known drivers. `gpu.*`: drivers are named `gpu.<vendor>`, and their class of whole GPUs likewise."""

IMPLICIT_RESOURCE_PREFIX = "deviceclass.resource.kubernetes.io/"
"""An extended resource of this prefix asks for devices of the class that follows it.

Kubernetes 1.36, k8s.io/api/resource/v1/types.go (KEP-5004).
"""

Weight: TypeAlias = Decimal | Literal["none"]
"""GPUs that one device counts as: 0 for an accelerator that is no GPU, `none` for what is no accelerator at all."""

Weights: TypeAlias = tuple[tuple[str, Weight], ...]
"""Patterns with their weights; the first pattern that matches a name decides. `*` stands for any characters."""

_LONGEST_NAME = 317  # a qualified name: 253 characters of prefix, a slash, 63 of name
_REMEMBERED_NAMES = 4096
_LONGEST_KEY = 4096  # bytes
_REMEMBERED_RESULTS = 2048

T = TypeVar("T")
_PATTERN = re.compile(r"(?:[A-Za-z0-9.*-]+/)?[A-Za-z0-9._*-]+")
_NUMBER = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,3})?")


class UnknownDevices(Exception):
    """How many devices there are cannot be told; the message is the reason, fit for a stamp."""


class PolicyError(ValueError):
    """A setting that cannot be read; `problems` holds all that is wrong with it, a sentence each."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorPolicy:
    """The weights of extended resources and of the device classes of Dynamic Resource Allocation.

    A resource that no pattern matches is no accelerator. A device class that no pattern matches may be anything.
    """

    resources: Weights = field(default_factory=lambda: _parsed(DEFAULT_RESOURCES))
    device_classes: Weights = field(default_factory=lambda: _parsed(DEFAULT_DEVICE_CLASSES))
    _seen: dict[str, Decimal | None] = field(default_factory=dict, init=False, repr=False, compare=False)
    _ordinary: set[str] = field(default_factory=set, init=False, repr=False, compare=False)
    remembered: dict[bytes, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What was worked out under this policy before, by whoever does; see `remember`."""

    @classmethod
    def parse(
        cls, resources: str = DEFAULT_RESOURCES, device_classes: str = DEFAULT_DEVICE_CLASSES
    ) -> "AcceleratorPolicy":
        """Reads `pattern=weight,pattern=weight,…`. Raises `PolicyError` with the problems of both settings."""
        problems = tuple(problem for text in (resources, device_classes) for problem in _problems(text))
        if problems:
            raise PolicyError(problems)
        return cls(resources=_parsed(resources), device_classes=_parsed(device_classes))

    def resource_weight(self, name: str) -> Decimal | None:
        """GPUs in one unit of the resource, None when it is no accelerator.

        Raises `UnknownDevices` when the name is that of an unknown device class.
        """
        try:
            return self._seen[name]
        except KeyError:
            weight = self._resource_weight(name)
        if len(self._seen) < _REMEMBERED_NAMES and len(name) <= _LONGEST_NAME:
            self._seen[name] = weight
            if weight is None:
                self._ordinary.add(name)
        return weight

    def remember(self, key: bytes, value: T) -> T:
        """Keep a result; a few thousand are kept, none for a key that is long."""
        if len(key) <= _LONGEST_KEY:
            if len(self.remembered) >= _REMEMBERED_RESULTS:
                self.remembered.clear()
            self.remembered[key] = value
        return value

    def knows_as_ordinary(self, names: Iterable[str]) -> bool:
        """Whether all the names are known to be no accelerators: the quick answer for most containers."""
        return self._ordinary.issuperset(names)

    def _resource_weight(self, name: str) -> Decimal | None:
        if name.startswith(IMPLICIT_RESOURCE_PREFIX):
            return self.device_class_weight(name.removeprefix(IMPLICIT_RESOURCE_PREFIX))
        weight = _first_match(self.resources, name)
        return None if weight == "none" else weight

    def device_class_weight(self, name: str) -> Decimal | None:
        """GPUs in one device of the class, None when it is no accelerator. Raises `UnknownDevices`."""
        weight = _first_match(self.device_classes, name)
        if weight is None:
            raise UnknownDevices(f"it is not known whether devices of class {shown(name, 63)} are GPUs")
        return None if weight == "none" else weight


def _first_match(weights: Weights, name: str) -> Weight | None:
    if len(name) > _LONGEST_NAME:
        return None
    return next((weight for pattern, weight in weights if _expression(pattern).fullmatch(name)), None)


@lru_cache(maxsize=256)
def _expression(pattern: str) -> re.Pattern[str]:
    # Atomic groups: one star never gives back what it took, so no name costs more than its length for each star.
    first, *others = (re.escape(part) for part in pattern.split("*"))
    if not others:
        return re.compile(first)
    *middle, last = others
    return re.compile(first + "".join(f"(?>.*?{part})" for part in middle) + ".*" + last, re.DOTALL)


def _parsed(text: str) -> Weights:
    return tuple((pattern, _weight(weight)) for pattern, weight in _pairs(text))


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for entry in text.split(","):
        pattern, _, weight = entry.partition("=")
        yield pattern.strip(), weight.strip()


def _weight(text: str) -> Weight:
    return "none" if text == "none" else Decimal(text)


def _problems(text: str) -> Iterator[str]:
    if not text.strip():
        yield 'no weights are given; write pattern=weight, or "*=none" to count nothing'
        return
    pairs = list(_pairs(text))
    for position, (pattern, weight) in enumerate(pairs):
        yield from _problems_of_pair(pattern, weight, pairs[:position])


def _problems_of_pair(pattern: str, weight: str, before: Sequence[tuple[str, str]]) -> Iterator[str]:
    where = f"{pattern}={weight}"
    if not _PATTERN.fullmatch(pattern):
        yield f"{where}: {shown(pattern)} is no name or pattern of a resource such as nvidia.com/gpu or */gpu"
    if weight != "none" and not _NUMBER.fullmatch(weight):
        yield f'{where}: the weight is {shown(weight)}, write a number such as 1, 0.5 or 0, or "none"'
    if any(pattern == earlier for earlier, _ in before):
        yield f"{where}: the pattern is there twice, only its first weight would count"
