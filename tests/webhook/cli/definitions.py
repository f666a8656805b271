"""Definitions of a made-up kind, as text, for the tests of the command line."""

DEFINITION = """\
apiVersion: {api_version}
kind: {definition_kind}
metadata: {{name: {name}}}
spec:
  structureDefinition:
    rootComponent:
      name: part
      kind: {{group: example.com, version: v1, kind: {kind}}}
      specDefinition: {{podTemplateSpecPath: .spec.template}}
      scaleDefinition: {{replicasPath: '{replicas}'}}
      statusDefinition:
        phaseDefinition: {{path: .status.phase}}
        statusMappings: {{running: [{{byPhase: Running}}]}}
"""

REPLICAS_LINE = 10


def definition(
    kind: str = "Engine",
    replicas: str = ".spec.size // 1",
    *,
    api_version: str = "workload-stamp.io/v1alpha1",
    definition_kind: str = "WorkloadDefinition",
) -> str:
    """A definition of a kind of example.com with one component, in any of the formats."""
    return DEFINITION.format(
        api_version=api_version, definition_kind=definition_kind, name=kind.lower(), kind=kind, replicas=replicas
    )


def karta(kind: str = "Engine") -> str:
    """The same in upstream's current format."""
    return definition(kind, api_version="run.ai/v1alpha1", definition_kind="Karta")


def resource_interface(kind: str = "Engine") -> str:
    """The same in upstream's first format."""
    api_version = "optimization.nvidia.com/v1alpha1"
    return definition(kind, api_version=api_version, definition_kind="ResourceInterface")
