"""Names that Workload Stamp gives: the id of a workload, and label values made safe.

Pure functions of their arguments: every replica, dry run and reinvocation computes the same.
"""

import re
from functools import lru_cache
from hashlib import sha256

MAX_LABEL_VALUE = 63
"""Characters (Kubernetes apimachinery, `pkg/util/validation`: LabelValueMaxLength)."""

ID_DIGITS = 10
ROLE_DIGITS = 6

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")
_EDGES = "-_."


@lru_cache(maxsize=16_384)
def workload_id(group: str, kind: str, namespace: str, name: str) -> str:
    """The id of a workload: `<name>-<10 hex digits>`, at most 63 characters, a legal label value.

    The digits are SHA-256 over `group/kind/namespace/name`, so runs that reuse a name share the id
    (contract, section 3).
    """
    digits = sha256(f"{group}/{kind}/{namespace}/{name}".encode()).hexdigest()[:ID_DIGITS]
    head = _UNSAFE.sub("-", name)[: MAX_LABEL_VALUE - ID_DIGITS - 1].strip(_EDGES)
    return f"{head}-{digits}" if head else digits


@lru_cache(maxsize=16_384)
def label_safe(text: str) -> str:
    """`text` as a legal label value; two different texts never give the same value.

    A legal value stays as it is. Anything else has its illegal characters replaced by `-`, is cut, and gets a hash
    of the whole behind it.
    """
    safe = _UNSAFE.sub("-", text).strip(_EDGES)
    if safe == text and len(text) <= MAX_LABEL_VALUE:
        return text
    digits = sha256(text.encode()).hexdigest()[:ROLE_DIGITS]
    head = safe[: MAX_LABEL_VALUE - ROLE_DIGITS - 1].rstrip(_EDGES)
    return f"{head}-{digits}" if head else digits
