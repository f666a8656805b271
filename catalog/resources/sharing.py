"""Parts of a GPU that a pod asks for by annotation: GPU sharing of KAI Scheduler and Run:ai.

No resource of the pod shows them. Names: KAI-Scheduler, pkg/common/constants/constants.go; their meaning: Run:ai 2.25,
"dynamic GPU fractions", and what KAI-Scheduler's admission refuses.
"""

import re
from collections.abc import Mapping
from decimal import Decimal

from catalog.definition import Json
from catalog.resources.accelerators import UnknownDevices
from catalog.resources.message import shown
from catalog.resources.quantity import multiply

FRACTION = "gpu-fraction"
"""Part of a GPU's memory, more than 0 and at most 1."""

NUMBER_OF_DEVICES = "gpu-fraction-num-devices"
"""Number of GPUs of each of which the pod gets that part; 1 when absent."""

MEMORY = "gpu-memory"
"""Memory of a GPU in MiB: what part of a GPU that is, only the node knows."""

# For one container: nvidia.com/container.<name>.gpu-memory.request
_OF_CONTAINER = "nvidia.com/container."
_MEMORY_REQUEST = ".gpu-memory.request"

_DECIMAL = re.compile(r"\+?(?:[0-9]{1,18}(?:\.[0-9]{0,18})?|\.[0-9]{1,18})(?:[eE][+-]?[0-9]{1,2})?")
_NUMBER = re.compile(r"\+?[0-9]{1,9}")


def is_share(annotation: str) -> bool:
    """Whether an annotation of that name may ask for a part of a GPU."""
    return annotation.startswith(("gpu-", _OF_CONTAINER))


def shared_gpus(annotations: Mapping[str, Json]) -> Decimal | None:
    """GPUs asked for by annotation, None when none are. Raises `UnknownDevices` when they cannot be counted.

    An empty annotation is as good as none, as KAI Scheduler has it.
    """
    if annotations.get(MEMORY):
        raise _memory(MEMORY)
    for name in annotations:
        if name.startswith(_OF_CONTAINER) and name.endswith(_MEMORY_REQUEST) and annotations[name]:
            raise _memory(name)
    stated = annotations.get(FRACTION)
    if stated is None or stated == "":
        return None
    fraction = Decimal(stated) if isinstance(stated, str) and _DECIMAL.fullmatch(stated) else None
    if fraction is None or not 0 < fraction <= 1:
        raise UnknownDevices(f"annotation {FRACTION} is {shown(stated)}, not a text such as 0.5")
    return multiply(fraction, _number_of_devices(annotations.get(NUMBER_OF_DEVICES)))


def _memory(name: str) -> UnknownDevices:
    return UnknownDevices(f"annotation {name} asks for GPU memory: how many GPUs that is depends on the node")


def _number_of_devices(stated: Json) -> int:
    if stated is None or stated == "":
        return 1
    number = int(stated) if isinstance(stated, str) and _NUMBER.fullmatch(stated) else 0
    if number < 1:
        raise UnknownDevices(f"annotation {NUMBER_OF_DEVICES} is {shown(stated)}, not a number of devices")
    return number
