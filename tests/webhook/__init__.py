"""Tests of the package `webhook`."""
