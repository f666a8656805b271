"""Recorded traffic of real controllers is admitted again; the stamps have to equal what was counted then."""
