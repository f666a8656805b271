"""Tests of the live views' pure half, on made-up clusters."""
