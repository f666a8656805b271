"""The wire: AdmissionReview bytes to a `Review`, a `Verdict` to AdmissionReview bytes.

The only module that knows the shapes of `admission.k8s.io/v1` (Kubernetes api, `admission/v1/types.go`).
"""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import orjson

from catalog.definition import GroupVersionKind, Json, JsonObject

MAX_WARNING = 120
"""Characters of one warning; the API server advises no more (`admission/v1/types.go`, Warnings)."""

MAX_WARNINGS = 16
"""Warnings of one answer; the API server drops what is beyond 4,096 characters in all."""


class BadReview(Exception):
    """The request is no AdmissionReview that can be answered: the sender's fault, HTTP 400."""


class PatchOperation(TypedDict, total=False):
    """One operation of a JSON Patch (RFC 6902); `remove` has no value."""

    op: str
    path: str
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """One admission request. `kind` is the object's own kind and version, as sent to us.

    `namespace` is the request's (empty for cluster scope), `name` is empty when it is still to be generated,
    `obj` is null on DELETE. `username` tells people from service accounts.
    """

    uid: str
    kind: GroupVersionKind
    subresource: str
    name: str
    namespace: str
    operation: str
    username: str
    obj: Json
    dry_run: bool = False

    @property
    def by_person(self) -> bool:
        """Whether the sender is no component of the cluster: every service account and component is `system:…`."""
        return not self.username.startswith("system:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is answered: always allowed, with the patch (none when empty) and warnings for the sender."""

    operations: Sequence[PatchOperation] = ()
    warnings: Sequence[str] = ()
    patch: str = ""
    """The operations as they are sent, where that is known already."""


def encoded(operations: Sequence[PatchOperation]) -> str:
    """A JSON Patch as a response carries it: base64 of its JSON."""
    return b64encode(orjson.dumps(operations)).decode()


def decode(body: bytes) -> Review:
    """The review in `body`. Raises `BadReview` with one sentence that says what is wrong with it."""
    request = _request(body)
    kind = request.get("kind")
    if not isinstance(kind, dict):
        raise BadReview("request.kind is not an object with group, version and kind")
    return Review(
        uid=_uid(request),
        kind=GroupVersionKind(_string(kind, "group"), _string(kind, "version"), _string(kind, "kind")),
        subresource=_string(request, "subResource"),
        name=_string(request, "name"),
        namespace=_string(request, "namespace"),
        operation=_string(request, "operation"),
        username=_string(request.get("userInfo"), "username"),
        obj=request.get("object"),
        dry_run=request.get("dryRun") is True,
    )


def _request(body: bytes) -> JsonObject:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadReview(f"the body is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise BadReview("the body is not an AdmissionReview object")
    if document.get("kind") != "AdmissionReview" or document.get("apiVersion") != "admission.k8s.io/v1":
        raise BadReview(
            f"expected an AdmissionReview of admission.k8s.io/v1, found {_shown(document.get('kind'))} "
            f"of {_shown(document.get('apiVersion'))}"
        )
    request = document.get("request")
    if not isinstance(request, dict):
        raise BadReview("the AdmissionReview has no request")
    return request


def _uid(request: JsonObject) -> str:
    uid = request.get("uid")
    if not isinstance(uid, str) or not uid:
        raise BadReview(f"request.uid is {_shown(uid)}, expected a non-empty string")
    return uid


def _string(holder: Json, field: str) -> str:
    """A string field; absent, null and any other type read as empty, as the API server omits empty ones."""
    value = holder.get(field) if isinstance(holder, dict) else None
    return value if isinstance(value, str) else ""


def _shown(value: Json) -> str:
    return repr(value)[:60] if isinstance(value, str | int | float | bool) or value is None else type(value).__name__


def encode(uid: str, verdict: Verdict) -> bytes:
    """The AdmissionReview that answers the request with that uid; patch and patch type come together or not at all."""
    response: dict[str, Any] = {"uid": uid, "allowed": True}
    if verdict.operations:
        response["patchType"] = "JSONPatch"
        response["patch"] = verdict.patch or encoded(verdict.operations)
    if verdict.warnings:
        response["warnings"] = [clipped(warning) for warning in verdict.warnings[:MAX_WARNINGS]]
    return orjson.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})


def clipped(warning: str) -> str:
    """A warning of at most 120 characters on one line."""
    line = " ".join(warning.split())
    return line if len(line) <= MAX_WARNING else f"{line[: MAX_WARNING - 1]}…"


def admitted_unpatched(body: bytes, warning: str) -> bytes:
    """An answer that admits whatever `body` asks for, for when we failed. Raises `BadReview` when it has no uid."""
    return encode(_uid(_request(body)), Verdict(warnings=(warning,)))
