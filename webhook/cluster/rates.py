"""How often something may be done: a lasting rate, and a burst. No clock of its own: the time is an argument."""


class TokenBucket:
    """A rate with a burst. `delay` takes one token and says how long to wait for it, in seconds."""

    def __init__(self, rate: float, burst: int, now: float) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._tokens = float(burst)
        self._at = now

    def delay(self, now: float, patience: float) -> float | None:
        """Seconds until the token is there; `None`, and nothing taken, when that is longer than `patience`."""
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
        self._at = now
        wait = max(0.0, (1.0 - self._tokens) / self._rate)
        if wait > patience:
            return None
        self._tokens -= 1.0
        return wait
