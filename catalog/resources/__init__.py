"""What pods ask for in devices: Kubernetes' quantities and effective requests, accelerators, and the weight of a GPU.

Knows pod specs, and neither definitions nor workloads.
"""

from catalog.resources.accelerators import (
    DEFAULT_DEVICE_CLASSES,
    DEFAULT_RESOURCES,
    AcceleratorPolicy,
    PolicyError,
    UnknownDevices,
)
from catalog.resources.pods import NO_DEVICES, Devices, effective_devices, total
from catalog.resources.quantity import QuantityError, add, device_text, multiply, quantity

__all__ = [
    "DEFAULT_DEVICE_CLASSES",
    "DEFAULT_RESOURCES",
    "NO_DEVICES",
    "AcceleratorPolicy",
    "Devices",
    "PolicyError",
    "QuantityError",
    "UnknownDevices",
    "add",
    "device_text",
    "effective_devices",
    "multiply",
    "quantity",
    "total",
]
