"""Keeps the webhook configuration as it should be, on the leader.

Deleting it by hand is how an administrator switches us off: it is then not made again until this process restarts,
unless the settings say `always`.
"""

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from catalog.definition import JsonObject
from webhook.cluster.client import APPLY, MERGE, ApiError, ApiServer, ConnectionFault
from webhook.cluster.configuration import MANAGED_BY, NAME, drifted, with_foreign_terms, with_present_bundle
from webhook.cluster.rates import TokenBucket
from webhook.cluster.supervision import Supervision

COLLECTION = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
PATH = f"{COLLECTION}/{NAME}"
FIELD_SELECTOR = f"metadata.name={NAME}"

LOOK_AGAIN = 30.0
"""Seconds between two looks without a reason; what is known to have changed is looked at once."""

NOT_YET = 0.5
"""Seconds until the next look while it can't be told yet what is wanted: nothing is served, or without certificate."""

AFTER_FAULT = 2.0
"""Seconds until the next look after a fault."""

MENDS_AT_ONCE = 20
MEND_EVERY = 30.0
"""Seconds between two mends once so many have been made: a controller that insists must not be fought at full speed."""

Mode = str
"""`auto`, `always` or `never`; settings let nothing else through."""


class Presence:
    """A sink for the watch of the configuration: whether it is there, and whether somebody took it away.

    Every replica follows it, so that a new leader knows of a deletion that happened before it led. `since` is when it
    was made (RFC 3339).
    """

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self.since: str | None = None
        self.taken_away = False

    @property
    def present(self) -> bool:
        """Whether it is there, as far as the watch has shown."""
        return self.since is not None

    def seen(self, obj: JsonObject) -> None:
        """It is there."""
        self.since, self.taken_away = obj["metadata"].get("creationTimestamp", ""), False
        self._on_change()

    def gone(self, obj: JsonObject) -> None:  # noqa: ARG002 - a sink is given the object
        """It was deleted."""
        self.since, self.taken_away = None, True
        self._on_change()

    def listed(self, uids: frozenset[str]) -> None:
        """A list without it, after it was there, is a deletion that the watch missed."""
        if not uids and self.present:
            self.since, self.taken_away = None, True
            self._on_change()


class Registration:
    """The leader's loop over the configuration; `wake` makes it look at once.

    `wanted` gives the configuration as it should be, or None while it cannot be told (no certificate yet).
    """

    def __init__(
        self,
        server: ApiServer,
        presence: Presence,
        mode: Mode,
        wanted: Callable[[], JsonObject | None],
        *,
        on_applied: Callable[[JsonObject], None],
        supervision: Supervision,
    ) -> None:
        self._server = server
        self._presence = presence
        self._mode = mode
        self._wanted = wanted
        self._on_applied = on_applied
        self._supervision = supervision
        self._due = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._mends = TokenBucket(1 / MEND_EVERY, MENDS_AT_ONCE, self._loop.time())

    def wake(self) -> None:
        """Something has changed that the configuration follows from."""
        self._due.set()

    async def keep(self) -> None:
        """Reconcile for as long as this replica leads. Faults are reported and tried again."""
        while True:
            self._due.clear()
            pause = await self._look() if self._mode != "never" else LOOK_AGAIN
            try:
                async with asyncio.timeout(pause):
                    await self._due.wait()
            except TimeoutError:
                continue

    async def _look(self) -> float:
        """Reconcile; seconds until the next time."""
        wanted = self._wanted()
        if wanted is None:
            return NOT_YET
        try:
            await self.reconcile(wanted)
        except (ApiError, ConnectionFault) as error:
            self._tell(f"the webhook configuration could not be kept: {error}")
            return AFTER_FAULT
        return LOOK_AGAIN

    async def reconcile(self, wanted: JsonObject) -> None:
        """Make the configuration, or mend it, where it is not as it should be. Raises `ApiError`, `ConnectionFault`."""
        present = await self._read()
        if present is not None:
            await self._mend(present, wanted)
        elif self._mode != "always" and (self._presence.taken_away or self._presence.present):
            # Where the watch still shows it, it is about to tell of the deletion.
            self._tell(f"{NAME} was deleted: nothing is stamped until a restart, or with --registration=always")
        else:
            self._made(await self._apply(wanted), "made")

    async def _mend(self, present: JsonObject, wanted: JsonObject) -> None:
        if not drifted(present, wanted):
            self._on_applied(present)
            return
        if self._mends.delay(self._loop.time(), 0.0) is None:
            self._tell(f"{NAME} is changed again and again by somebody else; it is mended every {MEND_EVERY:g} s now")
            return  # it is looked at again by itself
        wanted = with_foreign_terms(wanted, present)
        applied = await self._apply(wanted)
        if drifted(applied, wanted):
            # What others have added to a list of ours is theirs to server-side apply, yet it may keep us from being
            # called: a condition that is never true, a webhook of the same configuration.
            body = {"webhooks": with_present_bundle(wanted, applied)["webhooks"]}
            applied = await self._server.request("PATCH", PATH, body=body, content_type=MERGE, within=5)
        self._made(applied, "mended")

    async def _read(self) -> JsonObject | None:
        try:
            return await self._server.get(PATH, within=5)
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    async def _apply(self, configuration: JsonObject) -> JsonObject:
        query: Mapping[str, str] = {"fieldManager": MANAGED_BY, "force": "true"}
        return await self._server.request("PATCH", PATH, query=query, body=configuration, content_type=APPLY, within=5)

    def _made(self, applied: JsonObject, verb: str) -> None:
        rules = sum(len(webhook.get("rules") or ()) for webhook in applied.get("webhooks") or ())
        self._tell(f"{NAME} {verb}: {rules} rules, at {datetime.now(UTC).isoformat(timespec='seconds')}")
        self._on_applied(applied)

    def _tell(self, sentence: str) -> None:
        self._supervision.tell("registration", sentence)
