"""Readiness as named conditions, told as Kubernetes' own components tell it.

This module must not know HTTP, nor what the conditions are about.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Check = Callable[[], str | None]
"""A condition: None while it holds, else why it doesn't, in a few words. Cheap, never waits, never raises."""


@dataclass(frozen=True, slots=True)
class Health:
    """Conditions by name, in order. All have to hold."""

    checks: Mapping[str, Check] = field(default_factory=dict)

    def faults(self) -> dict[str, str]:
        """The conditions that don't hold, and why."""
        return {name: fault for name, check in self.checks.items() if (fault := check()) is not None}

    def report(self, endpoint: str, *, verbose: bool) -> tuple[bool, str]:
        """Whether all is well, and the text to answer with: `ok`, or every condition when asked or when one fails."""
        faults = self.faults()
        if not faults and not verbose:
            return True, "ok"
        lines = [f"[-]{name} failed: {faults[name]}" if name in faults else f"[+]{name} ok" for name in self.checks]
        return not faults, "\n".join([*lines, f"{endpoint} check {'failed' if faults else 'passed'}", ""])
