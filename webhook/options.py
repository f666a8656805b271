"""What an option is, and how its text is read: the kinds of value that flags and environment variables hold.

This module must not know which options there are (that is `settings`), nor the environment, nor click.
"""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

ENVIRONMENT_PREFIX = "WORKLOAD_STAMP_"

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_SPAN = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_SPANS = re.compile(rf"({_SPAN.pattern})+", re.ASCII)
_NUMBER = re.compile(r"\d+\.?\d*|\.\d+", re.ASCII)
_BYTES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "KI": 2**10, "MI": 2**20, "GI": 2**30}
_SIZE = re.compile(r"(\d+)\s*(K|M|G|KI|MI|GI)?B?", re.ASCII | re.IGNORECASE)
_YES = frozenset({"true", "yes", "on", "1"})
_NO = frozenset({"false", "no", "off", "0"})
_DNS_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_DNS_SUBDOMAIN = re.compile(rf"{_DNS_LABEL}(\.{_DNS_LABEL})*", re.ASCII)
_DNS_SUBDOMAIN_LENGTH = 253


def shown(value: object) -> str:
    """A setting's value as one would write it."""
    match value:
        case None | ():
            return ""
        case bool():
            return str(value).lower()
        case tuple():
            return ",".join(map(str, value))
        case float():
            return f"{value:g}"
        case _:
            return str(value)


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen. An empty host is every interface, IPv6 too where there is one; port 0 is any free port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader(Generic[T_co]):
    """How one kind of value is read and written. `read` raises ValueError for a text that isn't `expected`."""

    expected: str
    metavar: str
    read: Callable[[str], T_co]
    write: Callable[[Any], str] = shown
    is_flag: bool = False
    is_list: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One line of the table of options: a flag, an environment variable, what it holds and what it is for."""

    name: str
    group: str
    reader: Reader[Any]
    default: Any
    help: str

    @property
    def flag(self) -> str:
        """The flag, for example `--log-level`."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def env(self) -> str:
        """The environment variable, for example `WORKLOAD_STAMP_LOG_LEVEL`."""
        return f"{ENVIRONMENT_PREFIX}{self.name.upper()}"

    @property
    def shown_default(self) -> str:
        """The default as one would write it; empty where there is none."""
        return "" if self.default is None else self.reader.write(self.default)


def option(default: T, reader: Reader[T], group: str, text: str) -> T:
    """One field of a dataclass of settings together with its line in the table of options."""
    declared: T = field(default=default, metadata={"reader": reader, "group": group, "help": text})
    return declared


def switch(group: str, text: str) -> bool:
    """An option that is off until it is asked for."""
    reader = Reader(expected="true or false", metavar="", read=_boolean, is_flag=True)
    return option(False, reader, group, text)  # noqa: FBT003 - the default, not a mode


def seconds(text: str) -> float:
    """Seconds of a duration as Go writes it (`500ms`, `1m30s`) or of a plain number; raises ValueError."""
    if _NUMBER.fullmatch(text):
        return float(text)
    if not _SPANS.fullmatch(text):
        raise ValueError(text)
    return sum(float(amount) * _SECONDS[unit] for amount, unit in _SPAN.findall(text))


def words(
    expected: str = "text", metavar: str = "TEXT", *, check: Callable[[str], object] = lambda _: None
) -> Reader[str]:
    """Any text that isn't empty; `check` may raise ValueError for it."""

    def read(text: str) -> str:
        check(text)
        return _filled(text)

    return Reader(expected=expected, metavar=metavar, read=read)


def choice(*values: str) -> Reader[str]:
    """One of a few words."""

    def read(text: str) -> str:
        return _within(text.lower(), values)

    return Reader(expected=f"one of {', '.join(values)}", metavar="|".join(values), read=read)


def path() -> Reader[Path]:
    """A file or folder; whether it is there is found out by who opens it."""
    return Reader(expected="a path", metavar="PATH", read=lambda text: Path(_filled(text)))


def whole(minimum: int, maximum: int) -> Reader[int]:
    """A whole number within bounds."""
    return Reader(
        expected=f"a whole number from {minimum} to {maximum}",
        metavar="N",
        read=lambda text: int(
            _bounded(int(text) if re.fullmatch(r"[+-]?\d+", text, re.ASCII) else None, minimum, maximum)
        ),
    )


def number(minimum: float, maximum: float) -> Reader[float]:
    """A decimal number within bounds."""
    return Reader(
        expected=f"a number from {minimum:g} to {maximum:g}",
        metavar="X",
        read=lambda text: _bounded(float(text) if _NUMBER.fullmatch(text) else None, minimum, maximum),
    )


def duration(minimum: float, maximum: float) -> Reader[float]:
    """A span of time, in seconds."""
    return Reader(
        expected=f"a duration such as 500ms, 2s or 1m30s, from {minimum:g}s to {maximum:g}s",
        metavar="DURATION",
        write=lambda value: f"{value:g}s",
        read=lambda text: _bounded(seconds(text), minimum, maximum),
    )


def size(minimum: int, maximum: int) -> Reader[int]:
    """A number of bytes, written in MiB or the like."""

    def read(text: str) -> int:
        match = _SIZE.fullmatch(text)
        amount = int(match[1]) * _BYTES[(match[2] or "").upper()] if match else None
        return int(_bounded(amount, minimum, maximum))

    expected = f"bytes such as 7MiB, from {_mebibytes(minimum)} to {_mebibytes(maximum)}"
    return Reader(expected=expected, metavar="SIZE", read=read, write=_mebibytes)


def address() -> Reader[Address]:
    """Where to listen."""
    return Reader(expected="HOST:PORT, :PORT or [IPV6]:PORT", metavar="ADDRESS", read=_address)


def dns_subdomain(reserved: Collection[str] = ()) -> Reader[str]:
    """A DNS subdomain as Kubernetes defines it, outside the `reserved` domains."""

    def read(text: str) -> str:
        if any(text == domain or text.endswith(f".{domain}") for domain in reserved):
            raise ValueError(text)
        return subdomain(text)

    outside = f" outside {' and '.join(reserved)}" if reserved else ""
    expected = f"a lower-case DNS subdomain such as stamps.example.com{outside}"
    return Reader(expected=expected, metavar="DOMAIN", read=read)


def several(item: Reader[T]) -> Reader[tuple[T, ...]]:
    """Several values, separated by commas or by repeating the flag."""

    def read(text: str) -> tuple[T, ...]:
        return tuple(item.read(part.strip()) for part in text.split(",") if part.strip())

    return Reader(expected=f"{item.expected}, or several with commas", metavar=item.metavar, read=read, is_list=True)


def subdomain(text: str) -> str:
    """`text`, which must be a DNS subdomain: raises ValueError."""
    if len(text) > _DNS_SUBDOMAIN_LENGTH or not _DNS_SUBDOMAIN.fullmatch(text):
        raise ValueError(text)
    return text


def _filled(text: str) -> str:
    if not text.strip():
        raise ValueError(text)
    return text.strip()


def _within(text: str, values: Collection[str]) -> str:
    if text not in values:
        raise ValueError(text)
    return text


def _mebibytes(amount: int) -> str:
    return f"{amount / 2**20:g}MiB"


def _boolean(text: str) -> bool:
    return _within(text.lower(), _YES | _NO) in _YES


def _bounded(value: float | None, minimum: float, maximum: float) -> float:
    if value is None or not minimum <= value <= maximum:
        raise ValueError(value)
    return value


def _address(text: str) -> Address:
    host, colon, port = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    bracketed = host != bare
    if not colon or bracketed != (":" in bare) or (bracketed and host != f"[{bare}]"):
        raise ValueError(text)
    return Address(bare, whole(0, 65535).read(port))
