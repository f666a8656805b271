"""How flags and environment variables become settings, and what is said about wrong ones."""

import re
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.options import Address, Option, seconds
from webhook.settings import OPTIONS, Settings, SettingsError, reference


def problems_of(flags: dict[str, object], environ: dict[str, str] | None = None) -> tuple[str, ...]:
    """What is said about these settings."""
    with pytest.raises(SettingsError) as caught:
        Settings.parse(flags, environ or {})
    return caught.value.problems


class TestParse:
    """Where values come from."""

    def test_gives_the_defaults_when_nothing_is_given(self) -> None:
        """No flag and no variable: the table's defaults, which are good together."""
        assert Settings.parse({}, {}) == Settings()

    def test_reads_variables(self) -> None:
        """Each option has a variable of its own."""
        settings = Settings.parse({}, {"WORKLOAD_STAMP_LOG_LEVEL": "warning", "WORKLOAD_STAMP_OBSERVE": "yes"})

        assert (settings.log_level, settings.observe) == ("warning", True)

    def test_prefers_flags_to_variables(self) -> None:
        """What is typed goes before what is set."""
        environ = {"WORKLOAD_STAMP_DEADLINE": "1s", "WORKLOAD_STAMP_OBSERVE": "true"}
        settings = Settings.parse({"deadline": "500ms", "observe": False}, environ)

        assert (settings.deadline, settings.observe) == (0.5, False)

    def test_takes_none_and_empty_as_not_given(self) -> None:
        """The command line passes None for flags that aren't there, shells set empty variables."""
        settings = Settings.parse(
            {"deadline": None, "excluded_namespaces": ()},
            {"WORKLOAD_STAMP_DEADLINE": "1s", "WORKLOAD_STAMP_LOG_LEVEL": " "},
        )

        assert settings == Settings(deadline=1.0)

    def test_takes_several_values(self) -> None:
        """A list is written with commas, by repeating the flag, or both."""
        flags = {"self_signed": True, "serving_names": ["a.example", "b.example, 10.0.0.1"]}
        settings = Settings.parse(flags, {"WORKLOAD_STAMP_EXCLUDED_NAMESPACES": "one,two"})

        assert settings.serving_names == ("a.example", "b.example", "10.0.0.1")
        assert settings.excluded_namespaces == ("one", "two")

    @pytest.mark.parametrize(
        "text, address",
        [
            (":10250", Address("", 10250)),
            ("127.0.0.1:0", Address("127.0.0.1", 0)),
            ("[::1]:8443", Address("::1", 8443)),
            ("localhost:65535", Address("localhost", 65535)),
        ],
    )
    def test_reads_addresses(self, text: str, address: Address) -> None:
        """An address is written as everywhere in Kubernetes, and written back alike."""
        assert Settings.parse({"bind_address": text}, {}).bind_address == address
        assert str(address) == text

    @pytest.mark.parametrize(
        "text, amount", [("7MiB", 7 * 2**20), ("8388608", 8388608), ("10 M", 10**7), ("1gib", 2**30)]
    )
    def test_reads_sizes(self, text: str, amount: int) -> None:
        """A size may have a unit, decimal or binary."""
        assert Settings.parse({"max_body": text}, {}).max_body == amount

    def test_takes_its_own_defaults_as_text(self) -> None:
        """What the reference shows as a default can be written in a flag, and changes nothing."""
        flags = {found.name: found.shown_default for found in OPTIONS if found.shown_default}

        assert Settings.parse(flags, {}) == Settings()

    def test_knows_where_the_certificate_comes_from(self) -> None:
        """Files when they are given, else one made at start when asked for, else the cluster's upkeep."""
        files = {"cert_file": "tls.crt", "key_file": "tls.key"}

        assert Settings.parse(files, {}).certificate_source == "files"
        assert Settings.parse(files, {}).cert_file == Path("tls.crt")
        assert Settings.parse({"self_signed": True}, {}).certificate_source == "self-signed"
        assert Settings.parse({}, {}).certificate_source == "cluster"

    def test_reads_weights(self) -> None:
        """What counts as a GPU is a setting, for resources and for device classes."""
        policy = Settings.parse({"gpu_weights": "a.example/gpu=2", "device_class_weights": "b.example=0.5"}, {})

        assert policy.accelerator_policy.resource_weight("a.example/gpu") == 2
        assert policy.accelerator_policy.resource_weight("nvidia.com/gpu") is None
        assert policy.accelerator_policy.device_class_weight("b.example") == Decimal("0.5")

    def test_is_not_misled_by_service_links(self) -> None:
        """The variables that Kubernetes sets for a Service of our name, or one like it, are no settings."""
        links = {
            "WORKLOAD_STAMP_SERVICE_HOST": "10.96.0.7",
            "WORKLOAD_STAMP_SERVICE_PORT": "443",
            "WORKLOAD_STAMP_SERVICE_PORT_HTTPS": "443",
            "WORKLOAD_STAMP_PORT": "tcp://10.96.0.7:443",
            "WORKLOAD_STAMP_PORT_443_TCP": "tcp://10.96.0.7:443",
            "WORKLOAD_STAMP_PORT_443_TCP_ADDR": "10.96.0.7",
            "WORKLOAD_STAMP_METRICS_PORT": "tcp://10.96.0.8:8080",
            "WORKLOAD_STAMP_METRICS_SERVICE_HOST": "10.96.0.8",
        }

        assert Settings.parse({}, links) == Settings()


class TestProblems:
    """What is said about settings that can't be used."""

    @pytest.mark.parametrize(
        "name, text, expected",
        [
            ("bind_address", "10250", "expected HOST:PORT, :PORT or [IPV6]:PORT"),
            ("bind_address", "::1:10250", "expected HOST:PORT"),
            ("bind_address", "[127.0.0.1]:1", "expected HOST:PORT"),
            ("bind_address", ":99999", "expected HOST:PORT"),
            ("deadline", "2 sec", "expected a duration such as 500ms, 2s or 1m30s, from 0.1s to 30s"),
            ("deadline", "1h", "expected a duration"),
            ("deadline", "-1s", "expected a duration"),
            ("deadline_margin", "1", "expected a number from 0 to 0.9"),
            ("deadline_margin", "nan", "expected a number"),
            ("max_body", "7 potatoes", "expected bytes such as 7MiB"),
            ("max_in_flight", "0", "expected a whole number from 1 to 100000"),
            ("max_in_flight", "1_0", "expected a whole number"),
            ("max_in_flight", "\u0663", "expected a whole number"),
            ("log_level", "loud", "expected one of debug, info, warning, error"),
            ("prefix", "Stamps.example", "expected a lower-case DNS subdomain"),
            ("prefix", "a" * 254, "expected a lower-case DNS subdomain"),
            ("prefix", "stamps.k8s.io", "outside kubernetes.io and k8s.io"),
            ("prefix", "stamps.example/", "expected a lower-case DNS subdomain"),
            ("observe", "perhaps", "expected true or false"),
            ("cert_file", " ", "expected a path"),
            ("excluded_namespaces", "one,Two", "expected a lower-case DNS subdomain"),
        ],
    )
    def test_name_what_was_found_and_what_would_be_right(self, name: str, text: str, expected: str) -> None:
        """A wrong value is quoted with its flag and with what is expected instead."""
        (found,) = problems_of({name: text})

        assert found.startswith(f"--{name.replace('_', '-')}: found {text!r}, ")
        assert expected in found

    def test_name_the_variable(self) -> None:
        """A value from the environment is told by its variable."""
        (found,) = problems_of({}, {"WORKLOAD_STAMP_DEADLINE": "soon"})

        assert found.startswith("WORKLOAD_STAMP_DEADLINE: found 'soon', expected a duration")

    def test_come_all_at_once(self) -> None:
        """Wrong values, unknown variables and values that don't fit together are reported in one go."""
        found = problems_of({"log_level": "loud", "cert_file": "tls.crt"}, {"WORKLOAD_STAMP_PREFIXX": "a.example"})

        assert found == (
            "--log-level: found 'loud', expected one of debug, info, warning, error",
            "WORKLOAD_STAMP_PREFIXX: is no setting; did you mean WORKLOAD_STAMP_PREFIX?",
            "--cert-file: --key-file is missing; give both or neither",
        )

    def test_of_weights_are_told_one_by_one(self) -> None:
        """Each wrong weight has its own line."""
        found = problems_of({"gpu_weights": "a.example/gpu=many,b c=1"})

        assert len(found) == 2
        assert found[0].startswith("--gpu-weights: a.example/gpu=many: the weight is ")
        assert found[1].startswith("--gpu-weights: b c=1: ")

    @pytest.mark.parametrize(
        "flags, expected",
        [
            ({"key_file": "tls.key"}, "--key-file: --cert-file is missing"),
            ({"cert_file": "a", "key_file": "b", "self_signed": True}, "--self-signed: a --cert-file is given as well"),
            (
                {"serving_names": ("a.example",), "cert_file": "a", "key_file": "b"},
                "--serving-names: --cert-file has its own names; give one of them",
            ),
            ({"keep_alive": "90s"}, "--keep-alive: found 90s, expected more than 90s"),
            ({"lease_duration": "3s"}, "--lease-renewal: found 2s, expected at most half of --lease-duration (3s)"),
            ({"webhook_url": "http://a.example"}, "--webhook-url: found 'http://a.example', expected an https://"),
        ],
    )
    def test_include_what_does_not_go_together(self, flags: dict[str, object], expected: str) -> None:
        """Values that are good each by itself can be wrong together."""
        (found,) = problems_of(flags)

        assert found.startswith(expected)

    def test_of_a_wrong_value_hide_no_other(self) -> None:
        """A value that couldn't be read isn't blamed a second time for not fitting."""
        assert len(problems_of({"lease_renewal": "often", "lease_duration": "3s"})) == 1


class TestOptions:
    """The table from which flags, variables and the reference are made."""

    @pytest.mark.parametrize("found", OPTIONS, ids=lambda found: found.name)
    def test_have_names_that_kubernetes_leaves_alone(self, found: Option) -> None:
        """No variable of ours is one that Kubernetes sets for a Service."""
        assert not found.name.endswith("_port")
        assert found.name not in {"port", "service_host"}

    def test_stand_in_the_reference(self) -> None:
        """Every option has a row with flag, variable and default, of four cells."""
        rows = reference().splitlines()

        assert len(rows) == len(OPTIONS) + 2
        for found, row in zip(OPTIONS, rows[2:], strict=True):
            assert row.startswith(f"| `{found.flag}")
            assert f"`{found.env}`" in row
            assert row.replace("\\|", "").count("|") == 5

    def test_can_be_shown_by_group(self) -> None:
        """A reference of one group has that group's options only."""
        assert "--lame-duck" in reference("Stopping")
        assert "--log-level" not in reference("Stopping")


class TestSeconds:
    """Durations as Go writes them."""

    @pytest.mark.parametrize(
        "text, expected",
        [("10s", 10), ("1m0s", 60), ("500ms", 0.5), ("1h2m3.5s", 3723.5), ("0", 0), ("2.5", 2.5), ("250µs", 0.00025)],
    )
    def test_are_read(self, text: str, expected: float) -> None:
        """Every unit of Go's, and plain seconds."""
        assert seconds(text) == pytest.approx(expected)

    @given(
        hours=st.integers(0, 99),
        minutes=st.integers(0, 59),
        millis=st.integers(0, 59_999),
        dot=st.sampled_from(["", "."]),
    )
    def test_add_up(self, hours: int, minutes: int, millis: int, dot: str) -> None:
        """The parts of a duration add up to it."""
        text = f"{hours}h{minutes}{dot}m{millis}ms"

        assert seconds(text) == pytest.approx(3600 * hours + 60 * minutes + millis / 1000)

    @pytest.mark.parametrize("text", ["", "s", "10 s", "-1s", "1d", "1s1", "1e3s", "inf", "nan", "\u0661s"])
    def test_that_are_none_are_refused(self, text: str) -> None:
        """Anything else is an error, never zero."""
        with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
            seconds(text)
