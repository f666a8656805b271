"""Leadership by Lease: at most one replica does upkeep; every replica serves whether it leads or not.

The rules are client-go's (`tools/leaderelection`): a lease is judged by when *we* last saw it change, so clocks of
different machines need not agree.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from catalog.definition import JsonObject
from webhook.cluster.client import ApiError, ApiServer, ConnectionFault


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTerms:
    """Where the lease is and how long it holds; `duration` and `renewal` in seconds."""

    namespace: str
    name: str
    identity: str
    duration: float
    renewal: float

    @property
    def patience(self) -> float:
        """Seconds after a renewal for which whoever leads goes on without another: others wait for `duration`."""
        return self.duration * 2 / 3

    @property
    def collection(self) -> str:
        """The URL path of the namespace's leases."""
        return f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"

    @property
    def path(self) -> str:
        """The URL path of the lease."""
        return f"{self.collection}/{self.name}"


class Leadership:
    """Stands for election for as long as `run` runs, and has `upkeep` run while it leads.

    `upkeep` is cancelled when leadership is lost; serving is not concerned. `on_fault` is told why the lease could not
    be taken or renewed.
    """

    def __init__(
        self,
        server: ApiServer,
        terms: LeaseTerms,
        upkeep: Callable[[], Awaitable[None]],
        on_change: Callable[[str, str], None],
        on_fault: Callable[[str], None],
    ) -> None:
        self._server = server
        self._terms = terms
        self._upkeep = upkeep
        self._on_change = on_change
        self._on_fault = on_fault
        self._loop = asyncio.get_running_loop()
        self._seen: tuple[object, ...] = ()
        self._seen_at = 0.0
        self._renewed_at = 0.0
        self.leading = False

    async def run(self) -> None:
        """Stand for election until cancelled; then give the lease back, so that the next leader need not wait."""
        task: asyncio.Task[None] | None = None
        try:
            while True:
                held = await self._hold()
                if held and (task is None or task.done()):
                    task = self._begin(task)
                elif not held and task is not None:
                    await self._end(task, "the lease is lost")
                    task = None
                await asyncio.sleep(self._nap())
        finally:
            if task is not None:
                await self._end(task, "stopping")
                await self._release()

    def _nap(self) -> float:
        """Seconds until the next attempt; whoever leads on an old renewal wakes up in time to stop."""
        nap = self._terms.renewal * random.uniform(0.8, 1.0)  # noqa: S311 - jitter, no secret
        left = self._renewed_at + self._terms.patience - self._loop.time()
        return min(nap, max(left, 0.0)) if self.leading else nap

    def _begin(self, before: asyncio.Task[None] | None) -> asyncio.Task[None]:
        reason = "the lease is ours"
        if before is not None:
            fault = before.exception() if not before.cancelled() else None
            reason = f"upkeep ended and is begun again: {fault!r}"
        self.leading = True
        self._on_change("leading", reason)
        return asyncio.ensure_future(self._upkeep())

    async def _end(self, task: asyncio.Task[None], reason: str) -> None:
        self.leading = False
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        self._on_change("following", reason)

    async def _hold(self) -> bool:
        """Whether the lease is ours now: taken, renewed, or not yet run out when it could not be renewed."""
        asked_at, until = self._loop.time(), self._renewed_at + self._terms.patience
        limit = asked_at + self._terms.renewal * 2
        try:
            # Whoever leads must have stopped before others may take over, so no attempt outlasts that.
            async with asyncio.timeout_at(min(limit, max(until, asked_at)) if self.leading else limit):
                held = await self._acquire()
        except (ApiError, ConnectionFault, TimeoutError) as error:
            self._on_fault(str(error) or "the API server did not answer in time")
            return self.leading and self._loop.time() < until
        if held:
            self._renewed_at = asked_at
        return held

    async def _acquire(self) -> bool:
        try:
            lease = await self._server.get(self._terms.path)
        except ApiError as error:
            if error.code != 404:
                raise
            return await self._write("POST", self._terms.collection, {})
        spec = lease.get("spec") or {}
        state = (spec.get("holderIdentity"), spec.get("renewTime"), spec.get("leaseTransitions"))
        if state != self._seen:
            self._seen, self._seen_at = state, self._loop.time()
        holder = spec.get("holderIdentity")
        span = float(spec.get("leaseDurationSeconds") or self._terms.duration)
        if holder and holder != self._terms.identity and self._loop.time() < self._seen_at + span:
            return False
        return await self._write("PUT", self._terms.path, lease)

    async def _write(self, method: str, path: str, lease: JsonObject) -> bool:
        """Write the lease as ours; false when somebody else was quicker."""
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        before = lease.get("spec") or {}
        changes_hands = before.get("holderIdentity") != self._terms.identity
        spec = {
            **before,
            "holderIdentity": self._terms.identity,
            "leaseDurationSeconds": max(1, round(self._terms.duration)),
            "renewTime": now,
            "acquireTime": now if changes_hands else before.get("acquireTime", now),
            "leaseTransitions": int(before.get("leaseTransitions") or 0) + (1 if changes_hands else 0),
        }
        metadata = {**(lease.get("metadata") or {}), "name": self._terms.name, "namespace": self._terms.namespace}
        body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
        try:
            await self._server.request(method, path, body=body)
        except ApiError as error:
            if error.code == 409:
                return False
            raise
        return True

    async def _release(self) -> None:
        try:
            async with asyncio.timeout(2):
                lease = await self._server.get(self._terms.path)
                if (lease.get("spec") or {}).get("holderIdentity") == self._terms.identity:
                    spec = {**lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
                    await self._server.request("PUT", self._terms.path, body={**lease, "spec": spec})
        except (ApiError, ConnectionFault, TimeoutError):
            return  # it runs out by itself
