"""The serving certificate and its authority, kept in two Secrets: made once, renewed in time, shared by all replicas.

Every replica follows the serving Secret and swaps its certificate when it changes; the leader alone writes.
A Secret that is not ours is reported and left alone.
"""

import asyncio
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from catalog.definition import Json, JsonObject
from certs.authority import KeyPair, service_names
from certs.rotation import Plan, Stored, plan
from webhook.cluster.client import ApiError, ApiServer
from webhook.cluster.configuration import MANAGED_BY

MANAGED_LABEL = "app.kubernetes.io/managed-by"
ROTATED_AT = "rotated-at"
CHECK_INTERVAL = 30.0
"""Seconds between two looks at the certificates: a clock that jumps (a suspended machine) is noticed within them."""

SOON = 2.0
"""Seconds until the next look while an old authority's certificate is still served: the change waits for clients."""

MAX_CONFLICTS = 10
"""Attempts to write while others write too."""


class ForeignSecret(Exception):
    """A Secret of our name that we did not make; it is not touched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretNames:
    """Where the Secrets are, and under which names the server is reached."""

    namespace: str
    service: str
    prefix: str
    further_names: tuple[str, ...] = ()

    @property
    def authority(self) -> str:
        """Name of the Secret with the authority and its key."""
        return f"{self.service}-authority"

    @property
    def serving(self) -> str:
        """Name of the Secret with the serving certificate and its key."""
        return f"{self.service}-serving"

    @property
    def collection(self) -> str:
        """The URL path of the namespace's Secrets."""
        return f"/api/v1/namespaces/{self.namespace}/secrets"

    @property
    def server_names(self) -> tuple[str, ...]:
        """DNS names and addresses in the serving certificate."""
        return (*service_names(self.service, self.namespace), *self.further_names)


class SecretWatch:
    """A sink for the watch of one of the Secrets: tells of every change, and hands on every usable pair.

    `first` is set once there was one.
    """

    def __init__(self, stem: str, on_pair: Callable[[KeyPair], None], on_change: Callable[[], None]) -> None:
        self._stem = stem
        self._on_pair = on_pair
        self._on_change = on_change
        self._pair: KeyPair | None = None
        self.first = asyncio.Event()

    def seen(self, obj: JsonObject) -> None:
        """The Secret as it is now."""
        pair = pair_in(obj, self._stem)
        if pair is not None:
            self._pair = pair
            self.first.set()
            self.offer_again()
        self._on_change()

    def offer_again(self) -> None:
        """Hand on the newest pair once more: one that was refused because a clock is behind is good a little later."""
        if self._pair is not None:
            self._on_pair(self._pair)

    def gone(self, obj: JsonObject) -> None:  # noqa: ARG002 - a sink is given the object
        """Deleted: what is served stays; the leader makes a new one."""
        self._on_change()

    def listed(self, uids: frozenset[str]) -> None:
        """A list without it may be a deletion that the watch missed."""
        if not uids:
            self._on_change()


class Keys:
    """The leader's half: brings the Secrets to the plan, and knows what clients must trust.

    `trusted` is the bundle for the webhook configuration (PEM), empty until it is known; `published` is what the
    configuration was last found to carry.
    """

    def __init__(self, server: ApiServer, names: SecretNames, report: Callable[[str, str], None]) -> None:
        self._server = server
        self._names = names
        self._report = report
        self._due = asyncio.Event()
        self.trusted = b""
        self.published = b""
        self.changed = asyncio.Event()

    def wake(self) -> None:
        """A Secret has changed, or what clients trust."""
        self._due.set()

    async def keep(self) -> None:
        """Look and renew, for as long as this replica leads. Raises `ApiError`, `ConnectionFault`."""
        while True:
            self._due.clear()
            pause = await self._look()
            try:
                async with asyncio.timeout(pause):
                    await self._due.wait()
            except TimeoutError:
                continue

    async def _look(self) -> float:
        """Renew what has to be; seconds until the next look without a reason."""
        try:
            decided = await self.renew(datetime.now(UTC))
        except ForeignSecret as foreign:
            self._report("certificate", str(foreign))
            return CHECK_INTERVAL
        is_published = decided.authority.certificate in self.published
        return SOON if decided.is_changing and is_published else CHECK_INTERVAL

    async def renew(self, at: datetime) -> Plan:
        """Bring both Secrets to what they should be at that time; true to the plan even when others write too.

        Raises `ForeignSecret`, `ApiError` or `ConnectionFault`.
        """
        decided = await self._written(at)
        if decided.trusted != self.trusted:
            self.trusted = decided.trusted
            self.changed.set()
        return decided

    async def _written(self, at: datetime) -> Plan:
        for _ in range(MAX_CONFLICTS):
            authority = await self._read(self._names.authority)
            serving = await self._read(self._names.serving)
            stored = _stored(authority, serving, self._names.prefix)
            decided = plan(stored, self._names.server_names, at, published=self._is_published(stored))
            for reason in decided.reasons:
                self._report("certificate", reason)
            if await self._write(decided, stored, authority, serving):
                return decided
        raise ApiError(409, "Conflict", f"the Secrets in {self._names.namespace} could not be written: others do too")

    def _is_published(self, stored: Stored) -> bool:
        return stored.authority is not None and stored.authority.certificate in self.published

    async def _read(self, name: str) -> JsonObject | None:
        try:
            secret = await self._server.get(f"{self._names.collection}/{name}")
        except ApiError as error:
            if error.code == 404:
                return None
            raise
        labels = (secret.get("metadata") or {}).get("labels") or {}
        if labels.get(MANAGED_LABEL) != MANAGED_BY:
            raise ForeignSecret(
                f"Secret {self._names.namespace}/{name} lacks the label {MANAGED_LABEL}={MANAGED_BY}: it is not ours "
                "and was left alone; delete it, or run with --service-name of another name"
            )
        return secret

    async def _write(
        self, decided: Plan, stored: Stored, authority: JsonObject | None, serving: JsonObject | None
    ) -> bool:
        """Write what differs, the authority first. False when somebody else wrote meanwhile: look again."""
        if (decided.authority, decided.previous, decided.rotated_at) != (
            stored.authority,
            stored.previous,
            stored.rotated_at,
        ) and not await self._put(self._names.authority, authority, _authority_secret(decided, self._names.prefix)):
            return False
        wanted = _serving_secret(decided)
        present = (serving or {}).get("data") or {}
        if all(present.get(key) == value for key, value in wanted["data"].items()):
            return True
        return await self._put(self._names.serving, serving, wanted)

    async def _put(self, name: str, present: JsonObject | None, content: JsonObject) -> bool:
        """Create or replace one Secret, under optimistic locking."""
        metadata: JsonObject = {
            "name": name,
            "namespace": self._names.namespace,
            "labels": {MANAGED_LABEL: MANAGED_BY, "app.kubernetes.io/name": "workload-stamp"},
            "annotations": content["annotations"],
        }
        secret = {"apiVersion": "v1", "kind": "Secret", "type": content["type"], "data": content["data"]}
        try:
            if present is None:
                await self._server.request("POST", self._names.collection, body={**secret, "metadata": metadata})
            else:
                metadata["resourceVersion"] = present["metadata"]["resourceVersion"]
                path = f"{self._names.collection}/{name}"
                await self._server.request("PUT", path, body={**secret, "metadata": metadata})
        except ApiError as error:
            if error.code == 409 or (error.code == 404 and present is not None):
                return False
            raise
        return True


def _stored(authority: JsonObject | None, serving: JsonObject | None, prefix: str) -> Stored:
    annotations = ((authority or {}).get("metadata") or {}).get("annotations") or {}
    return Stored(
        authority=pair_in(authority, "ca"),
        previous=_bytes((authority or {}).get("data"), "previous.crt") or b"",
        rotated_at=_time(annotations.get(f"{prefix}/{ROTATED_AT}")),
        serving=pair_in(serving, "tls"),
        trusted=_bytes((serving or {}).get("data"), "ca.crt") or b"",
    )


def pair_in(secret: JsonObject | None, stem: str) -> KeyPair | None:
    """The certificate and key `<stem>.crt` and `<stem>.key` of a Secret; `None` when either is missing or no base64."""
    data = (secret or {}).get("data")
    certificate, key = _bytes(data, f"{stem}.crt"), _bytes(data, f"{stem}.key")
    return KeyPair(certificate=certificate, key=key) if certificate and key else None


def _bytes(data: Json, key: str) -> bytes | None:
    try:
        return b64decode(data[key], validate=True) if isinstance(data, dict) and key in data else None
    except (Base64Error, ValueError, TypeError):
        return None


def _time(text: Json) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _encoded(**data: bytes) -> dict[str, str]:
    return {name.replace("_", "."): b64encode(value).decode() for name, value in data.items() if value}


def _authority_secret(decided: Plan, prefix: str) -> JsonObject:
    rotated = decided.rotated_at.isoformat() if decided.rotated_at is not None else ""
    return {
        "type": "Opaque",
        "annotations": {f"{prefix}/{ROTATED_AT}": rotated},
        "data": _encoded(
            ca_crt=decided.authority.certificate, ca_key=decided.authority.key, previous_crt=decided.previous
        ),
    }


def _serving_secret(decided: Plan) -> JsonObject:
    return {
        "type": "kubernetes.io/tls",
        "annotations": {},
        "data": _encoded(tls_crt=decided.serving.certificate, tls_key=decided.serving.key, ca_crt=decided.trusted),
    }
