"""Stands in for the dashboards and Serve proxies of all Ray clusters: there is no Ray in the pods, and no pod network.

`python ray_dashboard.py PORT STATUS_FILE`. The operator is started with HTTP_PROXY pointing here, so that every Service
name and pod address "resolves" to it. Speaks what kuberay v1.6.0 asks for
(ray-operator/controllers/ray/utils/dashboardclient): every Ray job has the status in the file, and every application
that was deployed to a Serve is running and healthy. Knows nothing of Kubernetes.
"""

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

JOBS = "/api/jobs/"
APPLICATIONS = "/api/serve/applications/"
ENDED = ("SUCCEEDED", "FAILED", "STOPPED")

status_file = Path()
deployed: dict[str, list[str]] = {}  # host that was asked: names of the applications deployed to it


class Dashboard(BaseHTTPRequestHandler):
    """One request that was meant for some Ray cluster."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Job status, Serve applications, health."""
        path = urlsplit(self.path).path
        if path.startswith(APPLICATIONS):
            self._answer({"applications": {name: _application(name) for name in deployed.get(self._host, [])}})
        elif path.rstrip("/") == JOBS.rstrip("/"):
            self._answer([])
        elif path.startswith(JOBS):
            self._answer(_job(path.removeprefix(JOBS)))
        else:
            self._answer("success")

    def do_PUT(self) -> None:
        """Deployment of Serve applications."""
        applications = json.loads(self._body() or b"{}").get("applications", [])
        deployed[self._host] = [application.get("name", "default") for application in applications]
        self._answer({})

    def do_POST(self) -> None:
        """A job is submitted, or stopped."""
        identity = json.loads(self._body() or b"{}").get("submission_id", "submitted")
        self._answer({"job_id": identity, "submission_id": identity, "stopped": True})

    def do_DELETE(self) -> None:
        """A job is forgotten."""
        self._answer({"deleted": True})

    @property
    def _host(self) -> str:
        """Host and port the operator believes to speak to."""
        return urlsplit(self.path).netloc or self.headers.get("Host", "")

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _answer(self, document: Any) -> None:
        body = document.encode() if isinstance(document, str) else json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _job(identity: str) -> dict[str, Any]:
    status = status_file.read_text().strip()
    now = int(time.time() * 1000)
    job = {"job_id": identity, "submission_id": identity, "status": status, "entrypoint": "", "start_time": now}
    return {**job, "end_time": now} if status in ENDED else job


def _application(name: str) -> dict[str, Any]:
    deployment = {"name": "deployment", "status": "HEALTHY"}
    return {"name": name, "status": "RUNNING", "route_prefix": "/", "deployments": {"deployment": deployment}}


if __name__ == "__main__":
    status_file = Path(sys.argv[2])
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Dashboard).serve_forever()
