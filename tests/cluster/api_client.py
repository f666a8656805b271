"""A plain client of the API server for tests: paths in, JSON out, one kept-alive connection per thread.

Knows nothing of any kind of object. Not the webhook's own client: that one is under test.
"""

import http.client
import json
import select
import ssl
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"  # JSON is YAML
FIELD_MANAGER = "tests"


class ApiError(Exception):
    """The API server refused: `code` is the HTTP status, `reason` and `message` are those of its Status object."""

    def __init__(self, code: int, body: Any, *, request: str) -> None:
        """`body` is the parsed answer, or its text when it was no JSON."""
        status = body if isinstance(body, dict) else {}
        self.code = code
        self.reason: str = status.get("reason", "")
        self.message: str = status.get("message", str(body))
        super().__init__(f"{request}: {code} {self.reason}: {self.message}")


def api_path(api_version: str, plural: str, *, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """Path of a collection, of one object in it when `name` is given, or of its subresource."""
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    inside = f"namespaces/{namespace}" if namespace else ""
    return "/".join(part for part in (root, inside, plural, name, subresource) if part)


class ApiClient:
    """Speaks for one user, who is known by a client certificate in the context or by a token."""

    def __init__(self, port: int, context: ssl.SSLContext, *, token: str = "") -> None:
        """`port` is the API server's on 127.0.0.1; connections are made when they are needed."""
        self._port = port
        self._context = context
        self._token = token
        self._local = threading.local()
        self._connections: list[http.client.HTTPSConnection] = []

    def get(self, path: str, *, query: Mapping[str, str] | None = None) -> Any:
        """An object or a list; ApiError when there is none or it may not be read."""
        return self.request("GET", path, query=query)

    def post(self, path: str, document: Any, *, query: Mapping[str, str] | None = None) -> Any:
        """Create an object; as it was stored. ApiError when it was refused."""
        return self.request("POST", path, document, query=query)

    def put(self, path: str, document: Any, *, query: Mapping[str, str] | None = None) -> Any:
        """Replace an object; as it was stored."""
        return self.request("PUT", path, document, query=query)

    def merge_patch(self, path: str, patch: Any, *, query: Mapping[str, str] | None = None) -> Any:
        """Change an object by a JSON merge patch (RFC 7396); as it was stored."""
        return self.request("PATCH", path, patch, query=query, content_type=MERGE_PATCH)

    def apply(self, path: str, document: Any, *, manager: str = FIELD_MANAGER) -> Any:
        """Server-side apply, forced: create the object or take over the fields that are given; as it was stored."""
        query = {"fieldManager": manager, "force": "true"}
        return self.request("PATCH", path, document, query=query, content_type=APPLY_PATCH)

    def delete(self, path: str, *, query: Mapping[str, str] | None = None) -> Any:
        """Delete an object, or every object of a collection."""
        return self.request("DELETE", path, query=query)

    def request(
        self, method: str, path: str, document: Any = None, *, query: Mapping[str, str] | None = None,
        content_type: str = JSON,
    ) -> Any:  # fmt: skip
        """One request; the parsed answer. ApiError for a status from 400, OSError when there is no connection."""
        target = f"{path}?{urlencode(query)}" if query else path
        body = None if document is None else json.dumps(document).encode()
        connection = self._connection()
        try:
            connection.request(method, target, body, self._headers(content_type))
            response = connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException) as problem:
            connection.close()
            if isinstance(problem, OSError):
                raise
            raise ConnectionError(f"{method} {target}: {problem!r}") from problem
        answer = _parsed(text, response.headers.get_content_type())
        if response.status >= 400:
            raise ApiError(response.status, answer, request=f"{method} {target}")
        return answer

    def close(self) -> None:
        """Close every thread's connection."""
        for connection in self._connections:
            connection.close()

    def _headers(self, content_type: str) -> dict[str, str]:
        headers = {"Content-Type": content_type, "Accept": JSON}
        return {**headers, "Authorization": f"Bearer {self._token}"} if self._token else headers

    def _connection(self) -> http.client.HTTPSConnection:
        """This thread's connection, connected anew by the library where the server has closed it meanwhile."""
        connection: http.client.HTTPSConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = http.client.HTTPSConnection("127.0.0.1", self._port, context=self._context, timeout=60)
            self._local.connection = connection
            self._connections.append(connection)
        elif connection.sock is not None and select.select([connection.sock], [], [], 0)[0]:
            connection.close()  # an idle connection has nothing to be read but its end
        return connection


def tls_context(authority: Path, *, certificate: tuple[Path, Path] | None = None) -> ssl.SSLContext:
    """TLS that trusts the authority and, when given, shows a client certificate (its file and its key's)."""
    context = ssl.create_default_context(cafile=str(authority))
    if certificate:
        context.load_cert_chain(*certificate)
    return context


def _parsed(text: bytes, content_type: str) -> Any:
    return json.loads(text) if content_type == JSON else text.decode(errors="replace")
