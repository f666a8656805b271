"""Keeps the webhook configuration as it should be, on the leader.

Deleting it by hand is how an administrator switches us off: it is then not made again until this process restarts,
unless the settings say `always`.
"""

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from catalog.definition import JsonObject
from webhook.cluster.client import APPLY, ApiError, ApiServer, ConnectionFault
from webhook.cluster.configuration import MANAGED_BY, NAME, drifted, with_foreign_terms

COLLECTION = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
PATH = f"{COLLECTION}/{NAME}"
FIELD_SELECTOR = f"metadata.name={NAME}"

LOOK_AGAIN = 30.0
"""Seconds between two looks without a reason; what is known to have changed is looked at once."""

Mode = str
"""`auto`, `always` or `never`; settings let nothing else through."""


class Presence:
    """A sink for the watch of the configuration: whether it is there, and whether somebody took it away.

    Every replica follows it, so that a new leader knows of a deletion that happened before it led.
    """

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self.present = False
        self.taken_away = False

    def seen(self, obj: JsonObject) -> None:  # noqa: ARG002 - a sink is given the object
        """It is there."""
        self.present, self.taken_away = True, False
        self._on_change()

    def gone(self, obj: JsonObject) -> None:  # noqa: ARG002 - a sink is given the object
        """It was deleted."""
        self.present, self.taken_away = False, True
        self._on_change()

    def listed(self, uids: frozenset[str]) -> None:
        """A list without it, after it was there, is a deletion that the watch missed."""
        if not uids and self.present:
            self.present, self.taken_away = False, True
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
        report: Callable[[str, str], None],
    ) -> None:
        self._server = server
        self._presence = presence
        self._mode = mode
        self._wanted = wanted
        self._on_applied = on_applied
        self._report = report
        self._due = asyncio.Event()
        self._told = ""

    def wake(self) -> None:
        """Something has changed that the configuration follows from."""
        self._due.set()

    async def keep(self) -> None:
        """Reconcile for as long as this replica leads. Faults are reported and tried again."""
        while True:
            try:
                await self.reconcile()
            except (ApiError, ConnectionFault) as error:
                self._tell(f"the webhook configuration could not be kept: {error}")
            self._due.clear()
            try:
                async with asyncio.timeout(LOOK_AGAIN):
                    await self._due.wait()
            except TimeoutError:
                continue

    async def reconcile(self) -> None:
        """Make the configuration, or mend it, where it is not as it should be. Raises `ApiError`, `ConnectionFault`."""
        wanted = self._wanted()
        if self._mode == "never" or wanted is None:
            return
        present = await self._read()
        if present is None:
            if self._presence.taken_away and self._mode != "always":
                self._tell(f"{NAME} was deleted: nothing is stamped until a restart, or with --registration=always")
                return
            await self._apply(wanted, "made")
        elif drifted(present, wanted):
            await self._apply(with_foreign_terms(wanted, present), "mended")
        else:
            self._on_applied(present)

    async def _read(self) -> JsonObject | None:
        try:
            return await self._server.get(PATH, within=5)
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    async def _apply(self, configuration: JsonObject, verb: str) -> None:
        query: Mapping[str, str] = {"fieldManager": MANAGED_BY, "force": "true"}
        applied = await self._server.request(
            "PATCH", PATH, query=query, body=configuration, content_type=APPLY, within=5
        )
        rules = sum(len(webhook.get("rules") or ()) for webhook in applied.get("webhooks") or ())
        self._tell(f"{NAME} {verb}: {rules} rules, at {datetime.now(UTC).isoformat(timespec='seconds')}")
        self._on_applied(applied)

    def _tell(self, sentence: str) -> None:
        if sentence != self._told:
            self._told = sentence
            self._report("registration", sentence)
