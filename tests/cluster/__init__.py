"""Tests against real Kubernetes: API server, controllers and the webhook as processes on loopback, no containers.

`tools` builds the programs, `control_plane` and `controllers` run them, `conftest` offers them to tests as fixtures.
Whatever stands here knows nothing of how the webhook works inside: it is started and asked like anyone's program.
"""
