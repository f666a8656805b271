"""The floor: a bare aiohttp HTTPS server that parses each review and answers with one constant patch.

`python -m tests.bench.echo CERTIFICATE KEY PORT`.
"""

import asyncio
import base64
import ssl
import sys

import orjson
from aiohttp import web

PATCH = base64.b64encode(
    orjson.dumps(
        [
            {"op": "add", "path": f"/metadata/labels/workload-stamp.io~1{key}", "value": "constant"}
            for key in ("workload-id", "workload-kind", "role", "gang-size", "gpu-total")
        ]
    )
).decode()


async def answer(request: web.Request) -> web.Response:
    """The constant patch for whatever is asked."""
    review = orjson.loads(await request.read())
    response = {"uid": review["request"]["uid"], "allowed": True, "patchType": "JSONPatch", "patch": PATCH}
    body = orjson.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
    return web.Response(body=body, content_type="application/json")


async def serve(certificate: str, key: str, port: int) -> None:
    """Serve for ever."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    app = web.Application(client_max_size=7 * 2**20)
    app.router.add_post("/mutate", answer)
    runner = web.AppRunner(app, access_log=None, keepalive_timeout=120)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, ssl_context=context).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], sys.argv[2], int(sys.argv[3])))
