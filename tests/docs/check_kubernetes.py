"""Checks examples/kubernetes: each file against what its operator's interface knows, and what drun makes of its
command in the environment that the operator gives to a pod.

usage: check_kubernetes.py ROOT BIN_DIR
The environments are those of the operators' sources: Kubernetes 1.31, JobSet v1alpha2, training operator v1, Trainer
v2, LeaderWorkerSet v1, Volcano v1alpha1.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import yaml
except ImportError:
    print("skipped: no python3-yaml")
    sys.exit(0)

ANY = object()
COUNT = int
META = {"name!": str, "labels": ANY}
PROBE = {"exec!": {"command!": [str]}, "periodSeconds": COUNT, "timeoutSeconds": COUNT, "failureThreshold": COUNT}
RESOURCES = {"limits": ANY, "requests": ANY}
CONTAINER = {"name!": str, "image!": str, "command!": [str], "env": [ANY], "livenessProbe": PROBE, "readinessProbe": PROBE,
             "resources": RESOURCES}
POD = {"spec!": {"containers!": [CONTAINER], "restartPolicy": ("Never", "OnFailure", "Always"), "subdomain": str,
                 "terminationGracePeriodSeconds": COUNT}}
JOB = {"completions!": COUNT, "parallelism!": COUNT, "completionMode": ("Indexed", "NonIndexed"), "backoffLimit": COUNT,
       "podFailurePolicy": {"rules!": [{
           "action!": ("FailJob", "Ignore", "Count", "FailIndex"),
           "onExitCodes": {"containerName": str, "operator!": ("In", "NotIn"), "values!": [COUNT]},
           "onPodConditions": [{"type!": str, "status": str}]}]},
       "template!": POD}
# (apiVersion, kind) -> spec
KINDS = {
    ("v1", "Service"): {"clusterIP!": ("None",), "publishNotReadyAddresses!": (True,), "selector!": ANY},
    ("batch/v1", "Job"): JOB,
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): {
        "failurePolicy": {"maxRestarts!": COUNT},
        "replicatedJobs!": [{"name!": str, "replicas": COUNT, "template!": {"spec!": JOB}}]},
    ("kubeflow.org/v1", "PyTorchJob"): {
        "elasticPolicy": {"minReplicas": COUNT, "maxReplicas": COUNT, "rdzvBackend": ("c10d", "etcd", "etcd-v2"),
                          "maxRestarts": COUNT},
        "pytorchReplicaSpecs!": {"Worker!": {"replicas!": COUNT, "restartPolicy": ("OnFailure", "Never", "ExitCode"),
                                             "template!": POD}}},
    ("trainer.kubeflow.org/v1alpha1", "TrainJob"): {
        "runtimeRef!": {"name!": str},
        "trainer!": {"numNodes!": COUNT, "numProcPerNode": ANY, "image": str, "command!": [str],
                     "resourcesPerNode": RESOURCES}},
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"): {
        "replicas": COUNT,
        "leaderWorkerTemplate!": {"size!": COUNT, "workerTemplate!": POD,
                                  "restartPolicy": ("RecreateGroupOnPodRestart", "None")}},
    ("batch.volcano.sh/v1alpha1", "Job"): {
        "minAvailable": COUNT, "schedulerName!": ("volcano",), "plugins!": {"env!": [ANY], "svc!": [ANY]},
        "policies": [{"event!": str, "action!": str}],
        "tasks!": [{"name!": str, "replicas!": COUNT, "template!": POD}]},
}

# What the second pod gets, and what drun is to make of it.
PODS = {
    "indexed-job.yaml": {
        "environment": {"JOB_COMPLETION_INDEX": "1"}, "host": "train-1",
        "hosts": "10.1.2.3 train-1.train.default.svc.cluster.local train-1\n",
        "wanted": ["nnodes 2", "node-rank 1", "rdzv-endpoint train-0.train.default.svc.cluster.local:29400", "rdzv-id train"]},
    "jobset.yaml": {
        "environment": {"JOB_COMPLETION_INDEX": "1"}, "host": "train-nodes-0-1",
        "hosts": "10.1.2.3 train-nodes-0-1.train.default.svc.cluster.local train-nodes-0-1\n",
        "wanted": ["nnodes 2", "node-rank 1", "rdzv-endpoint train-nodes-0-0.train.default.svc.cluster.local:29400"]},
    "pytorchjob.yaml": {
        "environment": {"PET_RDZV_BACKEND": "c10d", "PET_RDZV_ENDPOINT": "train-worker-0:23456", "PET_RDZV_ID": "train",
                        "PET_NNODES": "1:4", "PET_MAX_RESTARTS": "3", "PYTHONUNBUFFERED": "1"},
        "wanted": ["nnodes 1:4", "rdzv-endpoint train-worker-0:23456", "rdzv-id train", "max-restarts 3"]},
    "trainjob.yaml": {
        "environment": {"PET_NNODES": "2", "PET_NPROC_PER_NODE": "8", "PET_NODE_RANK": "1",
                        "PET_MASTER_ADDR": "train-node-0-0.train", "PET_MASTER_PORT": "29500"},
        "wanted": ["nnodes 2", "nproc-per-node 8", "node-rank 1", "master-addr train-node-0-0.train", "master-port 29500"]},
    "leaderworkerset.yaml": {
        "environment": {"LWS_LEADER_ADDRESS": "train-0.train.default", "LWS_GROUP_SIZE": "2", "LWS_WORKER_INDEX": "1"},
        "wanted": ["nnodes 2", "node-rank 1", "rdzv-endpoint train-0.train.default:29400"]},
    "volcano.yaml": {
        "environment": {"VC_NODE_HOSTS": "train-node-0.train,train-node-1.train", "VC_NODE_NUM": "2", "VC_TASK_INDEX": "1",
                        "VK_TASK_INDEX": "1"},
        "wanted": ["nnodes 2", "node-rank 1", "rdzv-endpoint train-node-0.train:29400"]},
}
# docs/cli.md: what another try does not help against.
HOPELESS = {2, 93, 126, 127}


def mistakes(value, schema, place):
    """Sentences on what of `value` is not as `schema` says. A key with ! must be there; a tuple lists the values."""
    if schema is ANY:
        return
    if isinstance(schema, tuple):
        if value not in schema:
            yield f"{place}: {value!r} is none of {schema}"
    elif isinstance(schema, list):
        if not isinstance(value, list):
            yield f"{place}: no list"
            return
        for number, each in enumerate(value):
            yield from mistakes(each, schema[0], f"{place}[{number}]")
    elif isinstance(schema, dict):
        if not isinstance(value, dict):
            yield f"{place}: no mapping"
            return
        known = {key.rstrip("!"): sub for key, sub in schema.items()}
        for key in schema:
            if key.endswith("!") and key[:-1] not in value:
                yield f"{place}: {key[:-1]} is missing"
        for key, each in value.items():
            if key not in known:
                yield f"{place}: there is no {key}"
            else:
                yield from mistakes(each, known[key], f"{place}.{key}")
    elif type(value) is not schema:
        yield f"{place}: {value!r} is no {schema.__name__}"


def of_document(document, place):
    kind = (document.get("apiVersion"), document.get("kind"))
    if kind not in KINDS:
        return [f"{place}: unknown kind {kind}"]
    whole = {"apiVersion!": str, "kind!": str, "metadata!": META, "spec!": KINDS[kind]}
    return list(mistakes(document, whole, place))


def found(value, key):
    """All values of `key`, however deep."""
    if isinstance(value, dict):
        for name, each in value.items():
            if name == key:
                yield each
            yield from found(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from found(each, key)


def commands(documents):
    return [each for each in found(documents, "command") if each[0] == "drun"]


def explained(bin_dir, command, pod, folder):
    """The lines of drun --explain in this pod: "nnodes 2"."""
    environment = {"PATH": f"{bin_dir}:{os.environ['PATH']}", "KUBERNETES_SERVICE_HOST": "10.96.0.1", **pod["environment"]}
    command = [f"{bin_dir}/{command[0]}", "--explain", *[word if word != "gpu" else "1" for word in command[1:]]]
    if "host" in pod:
        hosts = folder / "hosts"
        hosts.write_text("# Kubernetes-managed hosts file.\n127.0.0.1 localhost\n" + pod["hosts"])
        command = ["unshare", "--mount", "--uts", "sh", "-c", f'mount --bind "{hosts}" /etc/hosts && hostname {pod["host"]} && exec "$@"',
                   "sh", *command]
    ran = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=60)
    return [" ".join(line.split()[:2]) for line in ran.stdout.splitlines()], ran.stderr


def main():
    root, bin_dir = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    failures = []
    files = sorted((root / "examples/kubernetes").glob("*.yaml"))
    if {file.name for file in files} != set(PODS):
        failures.append("not each file has a pod here")
    for file in files:
        documents = list(yaml.safe_load_all(file.read_text()))
        for number, document in enumerate(documents):
            failures += of_document(document, f"{file.name}[{number}]")
        for values in found(documents, "values"):
            if set(values) != HOPELESS:
                failures.append(f"{file.name}: exit codes {values}")
        pod = PODS[file.name]
        if "host" in pod and os.geteuid() != 0:
            print(f"{file.name}: only root can play a pod with a name of its own")
            continue
        if not commands(documents):
            failures.append(f"{file.name}: drun is not started")
        for command in commands(documents):
            with tempfile.TemporaryDirectory() as folder:
                said, errors = explained(bin_dir, command, pod, pathlib.Path(folder))
            for wanted in pod["wanted"]:
                if wanted not in said:
                    failures.append(f"{file.name}: drun --explain says no '{wanted}': {said} {errors}")
    for failure in failures:
        print(failure)
    sys.exit(bool(failures))


main()
