"""The webhook configuration is made, kept as it should be, and not made again against an administrator's will."""

import asyncio
import copy
from collections.abc import Callable
from typing import Any

import pytest

from catalog.library import Catalog
from tests.webhook.cluster.conftest import Witness
from tests.webhook.cluster.fake_api_server import FakeApiServer
from tests.webhook.polling import until
from webhook.cluster.client import ApiServer
from webhook.cluster.configuration import Reach, webhook_configuration
from webhook.cluster.registration import MENDS_AT_ONCE, PATH, Presence, Registration

REACH = Reach(
    namespace="stamps", service="stamp", url=None, ca_bundle=b"PEM", timeout=3, prefix="workload-stamp.io",
    excluded_namespaces=("kube-system",), opt_in=False,
)  # fmt: skip
WANTED = webhook_configuration(Catalog.of(), {}, REACH)
AKS = {"key": "control-plane", "operator": "DoesNotExist"}

Edit = Callable[[dict[str, Any]], None]


class Kept:
    """A leader's registration with what it follows from."""

    def __init__(self, server: ApiServer, witness: Witness, mode: str = "auto") -> None:
        self.wanted: Any = WANTED
        self.applied: list[Any] = []
        self.presence = Presence(lambda: None)
        self.registration = Registration(
            server, self.presence, mode, lambda: self.wanted, on_applied=self.applied.append,
            supervision=witness.supervision,
        )  # fmt: skip

    async def look(self) -> None:
        """One look."""
        await self.registration.reconcile(self.wanted)


@pytest.fixture
async def kept(server: ApiServer, witness: Witness) -> Kept:
    """In the default mode."""
    return Kept(server, witness)


async def test_it_is_made_and_then_left_alone(fake: FakeApiServer, kept: Kept) -> None:
    """One write, however often is looked."""
    for _ in range(3):
        await kept.look()
    assert fake.count("PATCH", PATH) == 1
    assert fake.objects[PATH]["webhooks"] == WANTED["webhooks"]
    assert len(kept.applied) == 3


def _fail(found: dict[str, Any]) -> None:
    found["webhooks"][0]["failurePolicy"] = "Fail"


def _everywhere(found: dict[str, Any]) -> None:
    found["webhooks"][0]["namespaceSelector"] = {}


def _bundle(found: dict[str, Any]) -> None:
    found["webhooks"][0]["clientConfig"]["caBundle"] = "b2xk"


def _condition(found: dict[str, Any]) -> None:
    found["webhooks"][0]["matchConditions"].append({"name": "never", "expression": "false"})


def _no_webhooks(found: dict[str, Any]) -> None:
    found["webhooks"] = []


def _another_webhook(found: dict[str, Any]) -> None:
    found["webhooks"].append({"name": "guest.example.com", "clientConfig": {}})


def _contract(found: dict[str, Any]) -> None:
    found["metadata"]["annotations"]["workload-stamp.io/contract"] = "v0"


@pytest.mark.parametrize(
    "edit",
    [_fail, _everywhere, _bundle, _condition, _no_webhooks, _another_webhook, _contract],
    ids=lambda e: e.__name__,
)
async def test_an_edit_is_mended(edit: Edit, fake: FakeApiServer, kept: Kept) -> None:
    """Whatever somebody changes by hand is as it was at the next look."""
    await kept.look()
    edited = copy.deepcopy(fake.objects[PATH])
    edit(edited)
    fake.put(PATH, edited)

    await kept.look()

    assert fake.objects[PATH]["webhooks"] == WANTED["webhooks"]
    assert fake.objects[PATH]["metadata"]["annotations"] == WANTED["metadata"]["annotations"]


async def test_a_controller_that_insists_is_not_fought_at_full_speed(
    fake: FakeApiServer, kept: Kept, witness: Witness
) -> None:
    """A few edits are mended at once; edit after edit, it is told and mended now and then."""
    await kept.look()
    for _ in range(2 * MENDS_AT_ONCE):
        edited = copy.deepcopy(fake.objects[PATH])
        _fail(edited)
        fake.put(PATH, edited)
        await kept.look()

    assert fake.count("PATCH", PATH) == 1 + MENDS_AT_ONCE
    assert "again and again" in witness.log


async def test_foreign_selector_terms_stay(fake: FakeApiServer, kept: Kept) -> None:
    """A provider's controller that insists on its term would fight with us for ever: it is kept, and no drift."""
    await kept.look()
    edited = copy.deepcopy(fake.objects[PATH])
    edited["webhooks"][0]["namespaceSelector"]["matchExpressions"].append(AKS)
    fake.put(PATH, edited)

    await kept.look()
    assert fake.count("PATCH", PATH) == 1
    edited["webhooks"][0]["timeoutSeconds"] = 30
    fake.put(PATH, copy.deepcopy(edited))
    await kept.look()

    webhook = fake.objects[PATH]["webhooks"][0]
    assert AKS in webhook["namespaceSelector"]["matchExpressions"]
    assert webhook["timeoutSeconds"] == 3


@pytest.mark.parametrize("how", ["watched", "missed", "not-yet-watched"])
async def test_a_deletion_switches_us_off(how: str, fake: FakeApiServer, kept: Kept, witness: Witness) -> None:
    """Whether the watch saw it, found it missing from a list, or is about to see it: it is not made again."""
    await kept.look()
    made = fake.objects[PATH]
    kept.presence.seen(made)
    fake.delete(PATH)
    if how == "watched":
        kept.presence.gone(made)
    elif how == "missed":
        kept.presence.listed(frozenset())

    await kept.look()

    assert PATH not in fake.objects
    assert "nothing is stamped until a restart" in witness.log


async def test_always_makes_it_again(fake: FakeApiServer, server: ApiServer, witness: Witness) -> None:
    """For who wants it there whatever happens."""
    kept = Kept(server, witness, "always")
    await kept.look()
    kept.presence.seen(fake.objects[PATH])
    kept.presence.gone(fake.objects[PATH])
    fake.delete(PATH)

    await kept.look()

    assert PATH in fake.objects


async def test_it_is_made_again_by_hand_too(fake: FakeApiServer, kept: Kept) -> None:
    """Whoever restores it from a backup wants it kept again."""
    await kept.look()
    made = fake.objects[PATH]
    kept.presence.seen(made)
    kept.presence.gone(made)
    fake.delete(PATH)
    kept.presence.seen(fake.put(PATH, {"webhooks": []}))

    await kept.look()

    assert fake.objects[PATH]["webhooks"] == WANTED["webhooks"]


async def test_nothing_is_registered_before_it_can_be_served(fake: FakeApiServer, kept: Kept) -> None:
    """No certificate yet, or no port: looked at again soon, without being told."""
    kept.wanted = None
    keeping = asyncio.create_task(kept.registration.keep())
    await asyncio.sleep(0)
    assert not fake.requests
    kept.wanted = WANTED

    await until(lambda: PATH in fake.objects, seconds=3)
    keeping.cancel()


async def test_never_touches_nothing(fake: FakeApiServer, server: ApiServer, witness: Witness) -> None:
    """The configuration is somebody else's to write."""
    keeping = asyncio.create_task(Kept(server, witness, "never").registration.keep())
    for _ in range(10):
        await asyncio.sleep(0)
    keeping.cancel()
    assert not fake.requests


async def test_a_refused_write_is_told_and_tried_again(
    fake: FakeApiServer, kept: Kept, witness: Witness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rights may come later."""
    monkeypatch.setattr("webhook.cluster.registration.AFTER_FAULT", 0.05)
    fake.faults.append(lambda _: (403, "Forbidden"))
    keeping = asyncio.create_task(kept.registration.keep())
    await until(lambda: "could not be kept" in witness.log)
    fake.faults.clear()

    await until(lambda: PATH in fake.objects, seconds=2)
    keeping.cancel()
