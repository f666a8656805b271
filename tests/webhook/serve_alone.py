"""A server in a process of its own, for tests that send it signals: `python -m tests.webhook.serve_alone FOLDER TIME`.

Reads the certificate from `tls.crt` and `tls.key` in the folder, prints the ports as a line of JSON once it listens,
logs to standard error; TIME is the lame-duck time in seconds.
An admission takes a few milliseconds; one whose uid starts with `slow` takes half a second.
"""

import asyncio
import json
import sys
from pathlib import Path

from tests.webhook.serving import admit, settings_with
from webhook.admit import Answer
from webhook.log import adopt_standard_logging, build
from webhook.metrics import Metrics
from webhook.server import Addresses, run, serve
from webhook.tls import CertificateFiles, ServingCertificate


async def unhurried(body: bytes, deadline: float) -> Answer:
    """Admit after a while."""
    await asyncio.sleep(0.5 if b'"uid":"slow' in body else 0.003)
    return await admit(body, deadline)


def tell(addresses: Addresses) -> None:
    """Print the ports."""
    print(json.dumps({"reviews": addresses.reviews.port, "plain": addresses.plain.port}), flush=True)  # noqa: T201


def main() -> None:
    """Serve until told to stop."""
    folder = Path(sys.argv[1])
    files = CertificateFiles(certificate=folder / "tls.crt", key=folder / "tls.key")
    logger, admissions = build("info", "json")
    adopt_standard_logging(logger)
    run(
        serve(
            settings_with(lame_duck=float(sys.argv[2]), cert_poll_interval=0.1),
            unhurried,
            ready_checks={},
            certificate=ServingCertificate.from_files(files),
            metrics=Metrics("1.2.3"),
            logger=logger,
            admissions=admissions,
            on_started=tell,
        )
    )


if __name__ == "__main__":
    main()
