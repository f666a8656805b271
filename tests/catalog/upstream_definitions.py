"""What upstream's catalogue (NVIDIA Workload Map, formerly Karta) says of the kinds that we describe too.

The facts alone, paths, selectors and conditions as of September 2026, put together here as documents of upstream's own
kind (run.ai/v1alpha1 Karta). Where upstream has several versions of a definition, the newest. What it states of a pod
besides its devices (schedulers, affinities, priorities, images) is left out: it plays no part in stamps. So is the
status of StatefulSet, of which only the fields that it looks at are known here.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Json = dict[str, Any]

_JOB_NAME = '.metadata.labels["training.kubeflow.org/job-name"]'


def _label(name: str) -> str:
    return f'.metadata.labels["{name}"]'


def _kind(text: str) -> Json:
    """A kind from `group/version Kind`; the core group has no name."""
    api_version, _, kind = text.partition(" ")
    group, _, version = api_version.rpartition("/")
    return {"group": group, "version": version, "kind": kind}


def _scale(replicas: str | None, least: str | None, most: str | None) -> Json:
    paths = {"replicasPath": replicas, "minReplicasPath": least, "maxReplicasPath": most}
    return {name: path for name, path in paths.items() if path is not None}


def _component(
    name: str,
    kind: str = "",
    owner: str = "",
    *,
    template: str = "",
    spec: str = "",
    metadata: str = "",
    fields: Mapping[str, str] | None = None,
    replicas: str | None = None,
    least: str | None = None,
    most: str | None = None,
    ids: str = "",
    instance: str = "",
    where: str = "",
    value: str | None = None,
    labels: Mapping[str, str] | None = None,
    replica: str = "",
    **rest: Any,
) -> Json:
    """A component with what is given. `where` is the selector's key path, `fields` the fragments of a pod spec."""
    component: Json = {"name": name, **rest}
    if kind:
        component["kind"] = _kind(kind)
    if owner:
        component["ownerRef"] = owner
    if template or spec or fields:
        shapes = {
            "podTemplateSpecPath": template,
            "podSpecPath": spec,
            "metadataPath": metadata,
            "fragmentedPodSpecDefinition": fields,
        }
        component["specDefinition"] = {name: shape for name, shape in shapes.items() if shape}
    if _scale(replicas, least, most):
        component["scaleDefinition"] = _scale(replicas, least, most)
    if ids:
        component["instanceIdPath"] = ids
    chosen = {"keyPath": where, "matchLabels": labels, "value": value}
    selector = {
        "componentTypeSelector": {name: part for name, part in chosen.items() if part},
        "componentInstanceSelector": {"idPath": instance} if instance else None,
        "replicaSelector": {"keyPath": replica} if replica else None,
    }
    if any(selector.values()):
        component["podSelector"] = {name: part for name, part in selector.items() if part}
    return component


def _when(*conditions: str, phase: str = "", expression: str = "") -> Json:
    """A matcher; a condition is written `Type=Status`, with `,Reason` behind it when that matters."""
    matcher: Json = {}
    if conditions:
        matcher["byConditions"] = [_condition(condition) for condition in conditions]
    if phase:
        matcher["byPhase"] = phase
    if expression:
        matcher["byExpression"] = {"expression": expression, "expectedResult": "true"}
    return matcher


def _condition(text: str) -> Json:
    type_and_status, _, reason = text.partition(",")
    type_, _, status = type_and_status.partition("=")
    return {"type": type_, "status": status, **({"reason": reason} if reason else {})}


def _status(phase: str = "", conditions: str = ".status.conditions", **statuses: Json | Sequence[Json]) -> Json:
    """A status definition; each status has one matcher or several."""
    mappings = {name: [found] if isinstance(found, dict) else list(found) for name, found in statuses.items()}
    definition: Json = {"statusMappings": mappings}
    if phase:
        definition["phaseDefinition"] = {"path": phase}
    if any("byConditions" in matcher for matchers in mappings.values() for matcher in matchers):
        definition["conditionsDefinition"] = {"path": conditions}
    return definition


def _suspension(path: str, suspended: str = "true", resumed: str = "false") -> Json:
    return {
        "suspendActions": [{"path": path, "value": suspended}],
        "resumeActions": [{"path": path, "value": resumed}],
    }


def _gang(name: str, members: Mapping[str, Sequence[str]]) -> Json:
    """The older form, which every upstream definition uses: components with their grouping keys."""
    listed = [{"componentName": component, "groupByKeyPaths": list(keys)} for component, keys in members.items()]
    return {"podGroups": [{"name": name, "members": listed}]}


def _karta(
    kind: str,
    root: Json,
    *children: Json,
    status: Json | None = None,
    suspension: Json | None = None,
    gang: Json | None = None,
    below: Sequence[str] = (),
) -> Json:
    of = _kind(kind)
    root = {**root, "kind": of, "statusDefinition": status or {"statusMappings": {}}}
    if suspension is not None:
        root["suspendDefinition"] = suspension
    structure: Json = {"rootComponent": root, "childComponents": list(children)}
    if below:
        structure["additionalChildKinds"] = [_kind(each) for each in below]
    group = (of["group"] or "core").replace(".", "-")
    name = f"{group}-{of['kind'].lower()}-{of['version']}"
    spec: Json = {"structureDefinition": structure}
    if gang is not None:
        spec["optimizationInstructions"] = {"gangScheduling": gang}
    return {"apiVersion": "run.ai/v1alpha1", "kind": "Karta", "metadata": {"name": name}, "spec": spec}


# ----------------------------------------------------------------------------------------------- built-in kinds


def _built_in() -> Iterator[Json]:
    yield _karta(
        "v1 Pod",
        _component("pod", template=".", replicas="1"),
        status=_status(
            phase=".status.phase",
            initializing=_when(phase="Pending"),
            running=_when(phase="Running"),
            completed=_when(phase="Succeeded"),
            failed=_when(phase="Failed"),
        ),
    )
    yield _karta(
        "apps/v1 Deployment",
        _component("deployment", template=".spec.template", replicas=".spec.replicas // 1"),
        _component("replicaset", "apps/v1 ReplicaSet", "deployment"),
        status=_status(
            initializing=_when("Progressing=True,NewReplicaSetCreated"),
            running=_when("Progressing=True,NewReplicaSetAvailable"),
            failed=_when("Progressing=False,ProgressDeadlineExceeded"),
        ),
    )
    yield _karta(
        "apps/v1 StatefulSet",
        _component("statefulset", template=".spec.template", replicas=".spec.replicas // 1"),
    )
    yield _karta(
        "batch/v1 Job",
        _component("job", template=".spec.template", replicas=".spec.parallelism // 1"),
        status=_status(
            initializing=_when(expression="(.status.active // 0) > 0 and (.status.ready // 0) == 0"),
            running=_when(expression="(.status.active // 0) > 0 and (.status.ready // 0) > 0"),
            completed=[_when("Complete=True"), _when("SuccessCriteriaMet=True")],
            failed=[_when("Failed=True"), _when("FailureTarget=True")],
            degraded=_when(
                expression=(
                    "(.spec.parallelism // 1) > 1 and (.status.ready // 0) < (.spec.parallelism // 1)"
                    " and ((.status.succeeded // 0) > 0 or (.status.failed // 0) > 0)"
                )
            ),
            suspended=_when("Suspended=True"),
        ),
        suspension=_suspension(".spec.suspend"),
        gang=_gang("job", {"job": [_label("batch.kubernetes.io/job-name")]}),
    )
    yield _karta(
        "batch/v1 CronJob",
        _component(
            "cronjob",
            template=".spec.jobTemplate.spec.template",
            replicas=".spec.jobTemplate.spec.parallelism // 1",
        ),
        _component("job", "batch/v1 Job", "cronjob"),
        status=_status(
            initializing=_when(expression=".spec.suspend != true and .status.lastScheduleTime == null"),
            running=_when(expression=".spec.suspend != true and .status.lastScheduleTime != null"),
            suspended=_when(expression=".spec.suspend == true"),
        ),
        suspension=_suspension(".spec.suspend"),
    )


# ----------------------------------------------------------------------------------------------------- training


def _conditions_of_jobs() -> Json:
    """training-operator's and mpi-operator's conditions, one for each status."""
    return _status(
        initializing=_when("Created=True"),
        running=_when("Running=True"),
        completed=_when("Succeeded=True"),
        failed=_when("Failed=True"),
        suspended=_when("Suspended=True"),
    )


def _role(name: str, owner: str, at: str, label: str, **rest: Any) -> Json:
    """A role of a Kubeflow job, whose pods are made by the operator itself."""
    return _component(
        name,
        "v1 Pod",
        owner,
        template=f"{at}.template",
        replicas=f"{at}.replicas // 1",
        where=_label(label),
        value=name,
        **rest,
    )


def _training() -> Iterator[Json]:
    of_job = _label("jobset.sigs.k8s.io/replicatedjob-name")
    yield _karta(
        "jobset.x-k8s.io/v1alpha2 JobSet",
        _component("jobset"),
        _component(
            "replicatedjob",
            "batch/v1 Job",
            "jobset",
            template=".spec.replicatedJobs[].template.spec.template",
            replicas=".spec.replicatedJobs[] | .replicas * .template.spec.parallelism",
            ids=".spec.replicatedJobs[].name",
            instance=of_job,
        ),
        status=_status(
            initializing=_when(
                expression=(
                    "([.status.replicatedJobsStatus[]?] | any(.active > 0 and .ready == 0))"
                    " and ([.status.replicatedJobsStatus[]?] | all(.failed == 0))"
                )
            ),
            running=_when(expression="[.status.replicatedJobsStatus[]?] | any(.active > 0 or .ready > 0)"),
            completed=_when("Completed=True"),
            failed=_when("Failed=True"),
            suspended=_when("Suspended=True"),
        ),
        suspension=_suspension(".spec.suspend"),
        gang=_gang("job", {"replicatedjob": [of_job]}),
    )
    roles = ".spec.pytorchReplicaSpecs"
    replica_type = "training.kubeflow.org/replica-type"
    bounds: Json = {"least": ".spec.elasticPolicy.minReplicas", "most": ".spec.elasticPolicy.maxReplicas"}
    yield _karta(
        "kubeflow.org/v1 PyTorchJob",
        _component("pytorchjob"),
        _role("master", "pytorchjob", f"{roles}.Master", replica_type),
        _role("worker", "pytorchjob", f"{roles}.Worker", replica_type, **bounds),
        status=_conditions_of_jobs(),
        suspension=_suspension(".spec.runPolicy.suspend"),
        gang=_gang("job", {"master": [_JOB_NAME], "worker": [_JOB_NAME]}),
    )
    job_role = "training.kubeflow.org/job-role"
    yield _karta(
        "kubeflow.org/v2beta1 MPIJob",
        _component("mpijob"),
        _role("launcher", "mpijob", ".spec.mpiReplicaSpecs.Launcher", job_role),
        _role("worker", "mpijob", ".spec.mpiReplicaSpecs.Worker", job_role),
        status=_conditions_of_jobs(),
        suspension=_suspension(".spec.runPolicy.suspend"),
        gang=_gang("job", {"launcher": [_JOB_NAME], "worker": [_JOB_NAME]}),
    )


# ---------------------------------------------------------------------------------------------------------- Ray


def _ray(kind: str, name: str, at: str, default: str, status: Json, *, bounded: bool, **rest: Any) -> Json:
    node, groups = _label("ray.io/node-type"), f"{at}.workerGroupSpecs[]"
    bounds: Json = {"least": f"{groups}.minReplicas", "most": f"{groups}.maxReplicas"} if bounded else {}
    cluster = [_label("ray.io/cluster")]
    return _karta(
        f"ray.io/v1 {kind}",
        _component(kind.lower()),
        _component(
            "head",
            "v1 Pod",
            kind.lower(),
            template=f"{at}.headGroupSpec.template",
            replicas="1",
            where=node,
            value="head",
        ),
        _component(
            "worker",
            "v1 Pod",
            kind.lower(),
            template=f"{groups}.template",
            replicas=f"{groups}.replicas{default}",
            ids=f"{groups}.groupName",
            instance=_label("ray.io/group"),
            where=node,
            value="worker",
            **bounds,
        ),
        status=status,
        gang=_gang(name, {"head": cluster, "worker": cluster}),
        **rest,
    )


def _rays() -> Iterator[Json]:
    yield _ray(
        "RayCluster",
        "cluster",
        ".spec",
        "",
        _status(
            phase=".status.state",
            running=_when(phase="ready"),
            failed=_when(phase="failed"),
            suspended=_when(expression='.spec.suspend == true and .status.state == "suspended"'),
        ),
        bounded=True,
        suspension=_suspension(".spec.suspend"),
    )
    yield _ray(
        "RayJob",
        "job",
        ".spec.rayClusterSpec",
        " // 1",
        _status(
            phase=".status.jobStatus",
            initializing=[
                _when(phase="PENDING"),
                _when(expression='.status.jobDeploymentStatus == "Initializing"'),
            ],
            running=_when(phase="RUNNING"),
            completed=_when(phase="SUCCEEDED"),
            failed=_when(phase="FAILED"),
            suspended=_when(expression='.status.jobDeploymentStatus == "Suspended"'),
        ),
        bounded=True,
        suspension=_suspension(".spec.suspend"),
    )
    yield _ray(
        "RayService",
        "service",
        ".spec.rayClusterConfig",
        " // 1",
        _status(
            running=_when("Ready=True"),
            initializing=_when("Ready=False,Initializing"),
            failed=[_when("Ready=False,InitializingTimeout"), _when("Ready=False,ValidationFailed")],
            degraded=_when("Ready=False,ZeroServeEndpoints"),
        ),
        bounded=False,
    )


# ------------------------------------------------------------------------------------------- groups of several pods


def _leader_worker_set() -> Json:
    lws, template = "leaderworkerset.sigs.k8s.io", ".spec.leaderWorkerTemplate"
    return _karta(
        "leaderworkerset.x-k8s.io/v1 LeaderWorkerSet",
        _component("leaderworkerset"),
        _component("group", owner="leaderworkerset", replicas=f"{template}.size", replica=_label(f"{lws}/group-index")),
        _component(
            "leader",
            "apps/v1 StatefulSet",
            "group",
            template=f"{template}.leaderTemplate",
            replicas=".spec.replicas // 1",
            where=_label(f"{lws}/worker-index"),
            value="0",
        ),
        _component(
            "worker",
            "apps/v1 StatefulSet",
            "group",
            template=f"{template}.workerTemplate",
            replicas=f"(.spec.replicas // 1) * (({template}.size // 1) - 1)",
            where=f'.metadata.annotations["{lws}/leader-name"]',
        ),
        status=_status(
            initializing=_when("Progressing=True"),
            running=_when("Available=True"),
            failed=_when("Available=False", "Progressing=False", "UpdateInProgress=False"),
        ),
        gang=_gang("group", {"group": [_label(f"{lws}/name"), f'{_label(f"{lws}/group-index")} // "0"']}),
    )


def _pod_clique_set() -> Json:
    cliques, groups = ".spec.template.cliques[]", ".spec.template.podCliqueScalingGroups[]"
    keys = [_label("app.kubernetes.io/part-of"), _label("grove.io/podcliqueset-replica-index")]
    pod = f"{cliques}.spec.podSpec"
    return _karta(
        "grove.io/v1alpha1 PodCliqueSet",
        _component("podcliqueset"),
        _component(
            "clique",
            "grove.io/v1alpha1 PodClique",
            "podcliqueset",
            fields={"containersPath": f"{pod}.containers", "resourceClaimsPath": f"{pod}.resourceClaims"},
            replicas=f"(.spec.replicas // 1) * ({cliques}.spec.replicas // 1)",
            ids=f"{cliques}.name",
            instance=_label("grove.io/podclique"),
            replica=_label("grove.io/podcliqueset-replica-index"),
        ),
        _component(
            "scalinggroup",
            "grove.io/v1alpha1 PodCliqueScalingGroup",
            "podcliqueset",
            replicas=f"(.spec.replicas // 1) * ({groups}.replicas // 1)",
            ids=f"{groups}.name",
            instance=_label("grove.io/podcliquescalinggroup"),
            replica=_label("grove.io/podcliquescalinggroup-replica-index"),
        ),
        status=_status(
            failed=_when("TopologyLevelsUnavailable=True"),
            running=_when(expression="(.status.availableReplicas // 0) >= (.spec.replicas // 1)"),
            initializing=_when(expression="(.status.availableReplicas // 0) < (.spec.replicas // 1)"),
        ),
        gang=_gang("podcliqueset-replica", {"clique": keys, "scalinggroup": keys}),
        below=(
            "grove.io/v1alpha1 PodClique",
            "grove.io/v1alpha1 PodCliqueScalingGroup",
            "scheduler.grove.io/v1alpha1 PodGang",
        ),
    )


def _dynamo_graphs() -> Iterator[Json]:
    component = _label("nvidia.com/dynamo-component")
    index = (
        f"{_label('grove.io/podcliquescalinggroup-replica-index')} // "
        f"{_label('leaderworkerset.sigs.k8s.io/group-index')}"
    )
    below = (
        "nvidia.com/v1alpha1 DynamoComponentDeployment",
        "leaderworkerset.x-k8s.io/v1 LeaderWorkerSet",
        "scheduler.grove.io/v1alpha1 PodGang",
        "grove.io/v1alpha1 PodClique",
        "grove.io/v1alpha1 PodCliqueSet",
        "grove.io/v1alpha1 PodCliqueScalingGroup",
    )
    status = _status(
        phase=".status.state",
        initializing=[_when(phase="initializing"), _when(phase="pending")],
        running=_when(phase="successful"),
        failed=_when(phase="failed"),
    )
    service = ".spec.services | .[]"
    yield _karta(
        "nvidia.com/v1alpha1 DynamoGraphDeployment",
        _component("dynamographdeployment"),
        _component(
            "service",
            owner="dynamographdeployment",
            fields={
                "resourcesPath": f"{service} | .resources",
                "annotationsPath": f"{service} | .annotations",
                "resourceClaimsPath": f"{service} | .extraPodSpec.resourceClaims",
                "containerPath": f"{service} | .extraPodSpec.mainContainer",
            },
            replicas=".spec.services[] | (.replicas // 1) * (.multinode.nodeCount // 1)",
            ids=".spec.services | to_entries[] | .key",
            instance=component,
            replica=index,
        ),
        status=status,
        gang=_gang("service", {"service": [component]}),
        below=below,
    )
    template = ".spec.components[] | .podTemplate"
    yield _karta(
        "nvidia.com/v1beta1 DynamoGraphDeployment",
        _component("dynamographdeployment"),
        _component(
            "component",
            owner="dynamographdeployment",
            fields={
                "annotationsPath": f"{template} | .metadata.annotations",
                "resourceClaimsPath": f"{template} | .spec.resourceClaims",
                "containerPath": f'{template} | .spec.containers[] | select(.name == "main")',
            },
            replicas=".spec.components[] | (.replicas // 1) * (.multinode.nodeCount // 1)",
            ids=".spec.components[] | .name",
            instance=component,
            replica=index,
        ),
        status=status,
        gang=_gang("component", {"component": [f"{component} | ascii_downcase"]}),
        below=below,
    )


def _groups() -> Iterator[Json]:
    yield _leader_worker_set()
    yield _pod_clique_set()
    yield from _dynamo_graphs()


# ------------------------------------------------------------------------------------------------------ serving


def _knative_service() -> Json:
    scale = '.spec.template.metadata.annotations["autoscaling.knative.dev/{}-scale"]'
    return _karta(
        "serving.knative.dev/v1 Service",
        _component("knativeservice"),
        _component(
            "revision",
            "serving.knative.dev/v1 Revision",
            "knativeservice",
            template=".spec.template",
            least=f"{scale.format('min')} // 1 | tonumber",
            most=f"{scale.format('max')} | tonumber?",
        ),
        status=_status(initializing=_when("Ready=Unknown"), running=_when("Ready=True"), failed=_when("Ready=False")),
        gang=_gang("revision", {"revision": [_label("serving.knative.dev/revision")]}),
        below=("apps/v1 Deployment",),
    )


def _inference_service() -> Json:
    def role(name: str, **pods: Any) -> Json:
        at = f".spec.{name}"
        return _component(
            name,
            "apps/v1 Deployment",
            "inferenceservice",
            least=f"{at}.minReplicas",
            most=f"{at}.maxReplicas",
            where=_label("component"),
            value=name,
            **pods,
        )

    model = ".spec.predictor | [.[]? | objects | select(.storageUri != null)] | first"
    fields = {
        "containersPath": ".spec.predictor.containers",
        "containerPath": model,
        "annotationsPath": ".spec.predictor.annotations",
    }
    own = [_label("serving.kserve.io/inferenceservice")]
    return _karta(
        "serving.kserve.io/v1beta1 InferenceService",
        _component("inferenceservice"),
        role("predictor", fields=fields),
        role("transformer", spec=".spec.transformer", metadata=".spec.transformer"),
        status=_status(
            running=_when("PredictorReady=True", "RoutesReady=True", "LatestDeploymentReady=True"),
            failed=_when("PredictorReady=False", "PredictorConfigurationReady=False", "RoutesReady=False"),
        ),
        gang=_gang("service", {"predictor": own, "transformer": own}),
    )


def _llm_inference_service() -> Json:
    """The newest form: seven components, each there or not by a `select`."""

    def role(name: str, kind: str, at: str, *, part: str, value: str, guard: str = "") -> Json:
        guarded = f"select({guard}) | " if guard else ""
        return _component(
            name,
            kind,
            "llminferenceservice",
            spec=f"{guarded}{part}",
            replicas=f"{guarded}{at}.replicas",
            where=_label("app.kubernetes.io/component"),
            value=f"llminferenceservice-{value}",
        )

    deployment, sets = "apps/v1 Deployment", "leaderworkerset.x-k8s.io/v1 LeaderWorkerSet"
    at, router = ".spec.prefill", ".spec.router.scheduler"
    no_worker, worker = ".spec.worker == null", ".spec.worker != null"
    no_prefill_worker, prefill_worker = ".spec.prefill.worker == null", ".spec.prefill.worker != null"
    name = _label("app.kubernetes.io/name")
    group = [_label("leaderworkerset.sigs.k8s.io/name"), _label("leaderworkerset.sigs.k8s.io/group-index")]
    several = ("leader", "worker", "prefill-leader", "prefill-worker")
    return _karta(
        "serving.kserve.io/v1alpha2 LLMInferenceService",
        _component("llminferenceservice"),
        role("main", deployment, ".spec", guard=no_worker, part=".spec.template", value="workload"),
        role("leader", sets, ".spec", guard=worker, part=".spec.template", value="workload-leader"),
        role("worker", sets, ".spec", guard=worker, part=".spec.worker", value="workload-worker"),
        role("prefill", deployment, at, guard=no_prefill_worker, part=f"{at}.template", value="workload-prefill"),
        role("prefill-leader", sets, at, guard=prefill_worker, part=f"{at}.template", value="workload-leader-prefill"),
        role("prefill-worker", sets, at, guard=prefill_worker, part=f"{at}.worker", value="workload-worker-prefill"),
        role("router-scheduler", deployment, router, part=f"{router}.template", value="router-scheduler"),
        status=_status(
            initializing=[
                _when("Ready=Unknown"),
                *(
                    _when(f"Ready=False,{reason}")
                    for reason in ("Progressing", "MinimumReplicasUnavailable", "WaitingForGateway")
                ),
            ],
            running=_when("Ready=True"),
            suspended=_when("Ready=False,Stopped"),
            failed=_when("PresetsCombined=False"),
        ),
        gang=_gang(
            "service",
            {
                **{member: [name] for member in ("main", "prefill", "router-scheduler")},
                **dict.fromkeys(several, group),
            },
        ),
        below=("leaderworkerset.x-k8s.io/v1 LeaderWorkerSet",),
    )


def _nims() -> Iterator[Json]:
    yield _karta(
        "apps.nvidia.com/v1alpha1 NIMService",
        _component(
            "nimservice",
            fields={"resourcesPath": ".spec.resources", "annotationsPath": ".spec.annotations"},
            replicas=".spec.replicas // 1",
        ),
        status=_status(
            phase=".status.state",
            initializing=[_when(phase="Pending"), _when(phase="NotReady")],
            running=_when(phase="Ready"),
            failed=_when(phase="Failed"),
        ),
        gang=_gang("service", {"nimservice": [_label("app.kubernetes.io/name")]}),
    )
    yield _karta(
        "apps.nvidia.com/v1alpha1 NIMCache",
        _component("nimcache", fields={"resourcesPath": "{requests: .spec.resources}"}, replicas="1"),
        status=_status(
            phase=".status.state",
            initializing=[
                *(_when(phase=phase) for phase in ("Pending", "NotReady", "PVC-Created", "Started")),
                _when("NIM_CACHE_JOB_CREATED=True"),
            ],
            running=_when(phase="InProgress"),
            completed=_when("NIM_CACHE_JOB_COMPLETED=True", phase="Ready"),
            failed=_when(phase="Failed"),
        ),
    )


_MILVUS_COMPONENTS = (
    "standalone",
    "proxy",
    "mixCoord",
    "dataNode",
    "queryNode",
    "streamingNode",
    "indexNode",
    "rootCoord",
    "dataCoord",
    "queryCoord",
    "indexCoord",
    "cdc",
)


def _milvus() -> Json:
    def component(name: str) -> Json:
        return _component(
            name.lower(),
            "apps/v1 Deployment",
            "milvus",
            fields={
                "resourcesPath": f".spec.components.{name}.resources",
                "annotationsPath": f".spec.components.{name}.podAnnotations",
            },
            replicas=f".spec.components.{name}.replicas",
            where=_label("app.kubernetes.io/component"),
            value=name.lower(),
        )

    def dependency(name: str, at: str, replicas: str | None, **selector: Any) -> Json:
        values = f".spec.dependencies.{at}"
        return _component(
            name,
            "apps/v1 StatefulSet",
            "milvus",
            fields={"resourcesPath": f"{values}.resources"},
            replicas=f"{values}.{replicas}" if replicas else None,
            **selector,
        )

    pulsar = {
        name: {"app": "pulsar", "component": label}
        for name, label in (
            ("zookeeper", "zookeeper"),
            ("bookkeeper", "bookie"),
            ("broker", "broker"),
            ("proxy", "proxy"),
        )
    }
    own = [_label("app.kubernetes.io/instance")]
    return _karta(
        "milvus.io/v1beta1 Milvus",
        _component("milvus"),
        *(component(name) for name in _MILVUS_COMPONENTS),
        dependency("etcd", "etcd.inCluster.values", "replicaCount"),
        dependency("minio", "storage.inCluster.values", None),
        *(
            dependency(f"pulsar-{name}", f"pulsar.inCluster.values.{name}", "replicaCount", labels=labels)
            for name, labels in pulsar.items()
        ),
        status=_status(
            phase=".status.status",
            initializing=_when(phase="Pending"),
            running=_when(phase="Healthy"),
            degraded=_when(phase="Unhealthy"),
        ),
        gang=_gang("cluster", dict.fromkeys(("querynode", "datanode", "streamingnode"), own)),
    )


def _sandbox() -> Json:
    def pair(condition: str, mode: str) -> Json:
        return _when(condition, expression=f".spec.operatingMode {mode}")

    owner = '.metadata.ownerReferences[] | select(.kind == "Sandbox") | .uid'
    return _karta(
        "agents.x-k8s.io/v1beta1 Sandbox",
        _component("sandbox"),
        _component(
            "agent",
            "v1 Pod",
            "sandbox",
            template=".spec.podTemplate",
            replicas='if .spec.operatingMode == "Suspended" then 0 else 1 end',
            where=_label("agents.x-k8s.io/sandbox-name-hash"),
        ),
        status=_status(
            initializing=pair("Ready=False", '!= "Suspended"'),
            running=pair("Ready=True", '!= "Suspended"'),
            suspended=pair("Suspended=True", '== "Suspended"'),
            suspending=pair("Suspended=False", '== "Suspended"'),
            resuming=pair("Suspended=True", '!= "Suspended"'),
        ),
        suspension=_suspension(".spec.operatingMode", '"Suspended"', '"Running"'),
        gang=_gang("sandbox", {"agent": [owner]}),
    )


def _serving() -> Iterator[Json]:
    yield _knative_service()
    yield _inference_service()
    yield _llm_inference_service()
    yield from _nims()
    yield _milvus()
    yield _sandbox()


def documents() -> Iterator[Json]:
    """Every definition, as upstream's file for it would be read."""
    for of_kind in (_built_in, _training, _rays, _groups, _serving):
        yield from of_kind()
