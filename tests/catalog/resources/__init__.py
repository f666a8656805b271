"""Tests of quantities, accelerators and the devices of pods."""
