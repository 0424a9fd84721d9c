"""What the path of a file claims about its writer: rank, task, host, attempt, stream, kind.

Claims are read from names alone and may be wrong: a folder number under torchrun is a local rank, the number in
`slurm-JOB_5.out` a task or an array index, `host3.log` an index.
Lines confirm or override them in `identify`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

PATH_LIMIT = 1024


@dataclass(frozen=True, slots=True)
class PathClaims:
    """What one path says. `hosts` are candidates, the most specific first; `tree` is the run folder of an agent.

    `words` are the names of the file and its folders from the inside out; a known host may stand inside one.
    """

    rank: int | None = None
    local_rank: int | None = None
    node_rank: int | None = None
    task: int | None = None
    index: int | None = None
    attempt: int | None = None
    stream: str | None = None
    pid: int | None = None
    pod: str | None = None
    role: str | None = None
    container: str | None = None
    address: str | None = None
    jobid: str | None = None
    tree: str | None = None
    kind: str | None = None
    hosts: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


ELASTIC = re.compile(
    r"^(?P<tree>.*?)attempt_(?P<attempt>\d{1,6})/(?P<local>\d{1,6})/(?P<what>stdout|stderr|error)\b[^/]*$"
)
MKDTEMP = re.compile(r"^.+_[a-z0-9_]{8}$")
CRI = re.compile(r"(?:^|/)[^_/]+_(?P<pod>[^_/]+)_[0-9a-f-]{20,}/(?P<container>[^/]+)/(?P<restart>\d{1,6})\.log[^/]*$")
CRI_FLAT = re.compile(r"(?:^|/)(?P<pod>[a-z0-9.-]+)_[a-z0-9-]+_(?P<container>[a-z0-9-]+)-[0-9a-f]{64}\.log[^/]*$")
POD_FILE = re.compile(
    r"^(?P<pod>.+-(?:(?P<role>master|worker|launcher|node-0)-(?P<index>\d{1,6})(?:-[a-z0-9]{5})?))(?:[_.](?P<container>[a-z][a-z0-9-]*))?$"
)
SUBJECT_FIRST = re.compile(r"^(?:(?:kubectl|describe|logs?|get|events?|pod|previous)[-_.])+")
"""Words of commands in front of the name of a pod."""
POD_SUFFIX = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}$")
ADDRESS = re.compile(r"(?<![\d.])(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})(?![\d.]*\d)")

NUMBERED: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("rank", re.compile(r"global[_-]?rank[_\-.=]?0*(\d{1,7})", re.I)),
    ("local_rank", re.compile(r"local[_-]?rank[_\-.=]?0*(\d{1,5})", re.I)),
    ("node_rank", re.compile(r"node[_-]?rank[_\-.=]?0*(\d{1,6})", re.I)),
    ("rank", re.compile(r"(?:^|(?<!local)(?<!node)(?<!group)[^a-z])rank[_\-.=]?0*(\d{1,7})(?!\d)", re.I)),
    ("task", re.compile(r"(?:^|[^a-z])(?:task|proc|procid|process)[_\-.=]?0*(\d{1,7})(?!\d)", re.I)),
)
SUBMITIT = re.compile(r"^(?P<job>\d{2,12})_(?P<task>\d{1,7})_log\.(?P<stream>out|err)$")
SLURM_TASK = re.compile(r"^slurm[-_](?P<job>\d{2,12})[._-](?:(?P<attempt>\d{1,3})[._-])?t?(?P<task>\d{1,7})\.\w+$")
SLURM_JOB = re.compile(r"^slurm[-_](?P<job>\d{2,12})\.\w+$")
HOST_TASK = re.compile(
    r"^[A-Za-z][\w.]*?-(?P<job>\d{2,12})-(?P<host>[A-Za-z][\w-]*?)-(?P<task>\d{1,7})\.(?:out|err|log)$"
)
JOB_TASK = re.compile(
    r"^[A-Za-z][\w.]*?[-_.](?P<job>(?!20\d{6}[-_.])\d{4,12})[-_.](?P<task>\d{1,7})\.(?:out|err|log|txt)$"
)
JOB_NODE_TASK = re.compile(
    r"^[A-Za-z][\w.]*?[-_.](?P<job>(?!20\d{6}[-_.])\d{4,12})[-_.](?P<node>\d{1,5})[-_.](?P<task>\d{1,7})"
    r"\.(?:out|err|log|txt)$"
)
JOB_NODE = re.compile(
    r"^[A-Za-z][\w.-]*?[-_.](?P<job>(?!20\d{6}[-_.])\d{4,12})[-_.]node[-_]?(?P<node>\d{1,5})\.(?:out|err|log|txt)$"
)
"""`%x-%j-node%n.log`: Slurm puts the number of the node within the job there."""
INDEXED = re.compile(
    r"^(?:host|worker|process|trainer)[_-]?0*(?P<index>\d{1,6})(?:[-_]?of[-_]?\d{1,6})?(?:\.\w+)?$", re.I
)
SHORT_TASK = re.compile(r"^[pr][_-]?0*(?P<task>\d{1,6})\.\w+$")
NODE_DEVICE = re.compile(
    r"(?:^|[._-])n(?:ode)?[_-]?0*(?P<node>\d{1,5})[._-](?:g|gpu|dev|local|l|lr)[_-]?0*(?P<local>\d{1,3})(?=[._-]|$)",
    re.I,
)
"""`train_n2_g3.log`: the number of a node and a device on it."""
DEVICE = re.compile(r"^(?:.*[._-])?(?:gpu|dev|local|workerlog)[._-]?0*(?P<local>\d{1,3})(?:\.\w+)?$", re.I)
"""A device or a local number; PaddlePaddle calls its files so."""
DEVICE_END = re.compile(r"[._-](?:gpu|dev|local)[._-]?\d{1,3}$", re.I)
"""The same behind the name of a host."""
EPOCH_END = re.compile(r"(?<=\d)-1[4-9]\d{8}(?:\d{3})?$")
"""Seconds behind the name of a host: the streams of SageMaker are called `algo-2-1741082400`."""
DATE_END = re.compile(r"[-_.](?:19|20)\d{2}-?\d{2}-?\d{2}(?:[-_T]?\d{2}-?\d{2}(?:-?\d{2})?)?$")
"""A date behind the name of a host."""
NCCL_FILE = re.compile(r"^nccl\.(?P<host>[^.]+)\.(?P<pid>\d+)\.(?:log|txt)$")
INSPECTOR_FILE = re.compile(r"^(?P<host>.+)-pid(?P<pid>\d+)\.log$")
RAY_WORKER = re.compile(
    r"^(?:worker|python-core-worker)-[0-9a-f]{40,60}[-_](?:[0-9a-f]{8}-)?(?P<pid>\d+)\.(?P<ext>out|err|log)$"
)

KIND_WORDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("gpu-state", re.compile(r"(?:^|[/._-])(?:(?:nvidia|rocm|amd|npu|xpu)[-_]?smi|nvsmi|dcgmi)(?:$|[._-])", re.I)),
    ("kubelet", re.compile(r"(?:^|[/._-])kubelet(?:$|[._-])", re.I)),
    ("events", re.compile(r"(?:^|[/._-])(?:k8s-|kubectl-|get-){0,3}events?(?:$|[._-])", re.I)),
    ("scheduler", re.compile(
        r"(?:^|[/._-])(?:slurmctld|slurmd|slurmdbd|sacct|scontrol|pbs_server|pbs_mom|lsf|kube-scheduler|kueue|volcano)"
        r"(?:$|[._-])", re.I)),
    ("kernel", re.compile(
        r"(?:^|[/._-])(?:dmesg|kern|kernel|kmsg|syslog|messages|journal|journalctl)"
        r"(?:$|[._-]|\d)", re.I)),
    ("raylet", re.compile(r"(?:^|[/._-])(?:raylet|gcs_server|gcs)(?:$|[._-])", re.I)),
    ("launcher", re.compile(
        r"(?:^|[/._-])(?:torchrun|launcher|launch|agent|elastic|mpirun|mpiexec|deepspeed|accelerate|srun)"
        r"(?:$|[._-])", re.I)),
)  # fmt: skip

SUBJECT = frozenset({
    "acc", "accelerate", "after", "all", "attempt", "audit", "batch", "before", "bmc", "boot", "bootlog", "chrony",
    "chronyc", "chronyd", "collect", "console", "container", "counters", "current", "data", "date", "dcgm", "dcgmi",
    "debug", "describe", "df", "diag", "dmesg", "dmidecode", "driver", "du", "dump", "err", "error", "errors",
    "ethtool", "event", "events", "excerpt", "fabricmanager", "file", "fm", "fr", "free", "gdb", "get", "gids", "hca",
    "health", "healthcheck", "hostengine", "hostinfo", "ibdev2netdev", "ibdiagnet", "iblinkinfo", "ibstat", "info",
    "instance", "instances", "iostat", "ipmi", "ipmitool", "job", "jobs", "journal", "journalctl", "json", "kern",
    "kernel", "kmsg", "kubectl", "kubelet", "last", "launch", "launcher", "lctl", "lfs", "limits", "list", "log",
    "logs", "ls", "lscpu", "lsmod", "lsof", "lspci", "main", "mem", "memory", "messages", "mmfs", "mount", "mounts",
    "mpirun", "mpstat", "nccl", "net", "nfs", "nohup", "npu", "ntp", "ntpd", "ntpq", "numactl", "nv", "nvidia",
    "nvlink", "nvme", "nvsm", "opensm", "out", "output", "perfquery", "previous", "process", "ps", "pyspy", "quota",
    "rank", "rdzv", "rendezvous",
    "ranks", "ras", "raylet", "report", "resume", "rocm", "rocminfo", "run", "sacct", "sar", "scheduler",
    "scontrol", "script", "sel", "session", "sh", "show", "slurm", "slurmctld", "slurmd", "smi", "squeue", "srun",
    "stack", "stacks", "state", "stats", "status", "stderr", "stdout", "strace", "sysctl", "syslog", "tail", "task",
    "tasks", "tegrastats", "tensorboard", "text", "time", "timedatectl", "tmp", "top", "torchrun", "tracking", "train",
    "trainer", "training", "txt", "ufm", "ulimit", "uptime", "version", "versions", "vllm", "vmstat", "wide", "wrapper",
    "xid", "xpu",
})  # fmt: skip
"""Words of file names that say what a file is about; what stands between them may be a host (`sg-15-dmesg-T`)."""

GENERIC = SUBJECT | frozenset({
    "agent", "app", "args", "aws", "base", "build", "cluster", "config", "containers", "core", "default", "demo",
    "device", "dist", "elastic", "etc", "exp", "experiment", "experiments", "export", "finetune", "full", "gpu", "gpus",
    "head", "home", "host", "hosts", "init", "ip", "lib", "link", "local", "merged", "mnt", "network", "node", "nodes",
    "opt", "outputs", "pod", "pods", "pool", "pretrain", "proc", "python", "ray", "runs", "scratch", "server", "sft",
    "submit", "sys", "system", "tb", "test", "tlog", "topo", "torch", "user", "users", "usr", "var", "work", "worker",
    "workers", "workspace", "world",
})  # fmt: skip
"""Words that are never a host by themselves."""

NOT_A_HOST = re.compile(
    r"^(?:\d+|attempt[_-]?\d+|rank[_.-]?\d+|gpu[_-]?\d|task[_-]?\d+|step[_-]?\d+|epoch[_-]?\d+|ckpt.*|checkpoint.*|v\d+|run[_-]?\d+"
    r"|.*\d[-_]?of[-_]?\d+|(?:.*[._-])?n(?:ode)?[_-]?\d+[._-](?:g|gpu|dev|local|l|lr)[_-]?\d+"
    r"|(?:exp|job|stage|phase|fold|seed|trial|part|split|iter|r|w)[_-]?\d+|(?:eth|eno|ens|enp|bond|mlx\d_|hsn|docker)\d\w*|ib\d|lo|\d{4}[-_]\d\d[-_]\d\d.*|slurm[-_]\d+.*|version[_-]\d+|restart[_-]?\d+|part[_-]?\d+|session_.*)$",
    re.I,
)
JOBSET = re.compile(r"^[a-z][a-z0-9-]{0,60}-\d{1,4}-\d{1,4}(?:-[a-z0-9]{5})?$")
"""Job, its index, the index of the pod: `train-slice-job-0-2`."""
HOST_LIKE = re.compile(r"^(?:host|trainer|machine|server)[-_]?\d{1,6}$", re.I)
"""Names that only say that this is one of several machines."""
EXTENSIONS = re.compile(r"\.(?:log|txt|out|err|json|csv|gz|zst|xz|bz2|stdout|stderr|dump|\d{1,3}|\d{8}-\d{6})$", re.I)


def stem_of(name: str) -> str:
    """A file name without its endings."""
    while True:
        short = EXTENSIONS.sub("", name)
        if short == name or not short:
            return name
        name = short


def claims_of(path: str) -> PathClaims:
    """The claims of one path."""
    path = path[-PATH_LIMIT:].replace("!/", "/").replace("\\", "/")
    parts = [part for part in path.split("/") if part not in ("", ".", "..")]
    if not parts:
        return PathClaims()
    base = parts[-1]
    found: dict[str, int] = {}
    text: dict[str, str] = {}
    hosts: list[str] = []

    if match := ELASTIC.match("/".join(parts)):
        found["attempt"] = int(match["attempt"])
        found["local_rank"] = int(match["local"])
        text["tree"] = match["tree"].rstrip("/")
        if match["what"] != "error":
            text["stream"] = match["what"]
    elif match := CRI.search(path):
        text["pod"], text["container"] = match["pod"], match["container"]
        found["attempt"] = int(match["restart"])
    elif match := CRI_FLAT.search(path):
        text["pod"], text["container"] = match["pod"], match["container"]
    elif match := POD_FILE.match(SUBJECT_FIRST.sub("", stem_of(base))):
        text["pod"] = match["pod"]
        if match["container"]:
            text["container"] = match["container"]
        text["role"] = match["role"]
        if match["role"] != "launcher":
            found["index"] = int(match["index"])
    if "stream" not in text:
        lower = base.lower()
        if "stderr" in lower or lower.endswith((".err", ".err.gz")):
            text["stream"] = "stderr"
        elif "stdout" in lower or lower.endswith((".out", ".out.gz")):
            text["stream"] = "stdout"

    _numbers(parts, base, found, text, hosts)
    if match := ADDRESS.search(base):
        text["address"] = match[1]
    for kind, word in KIND_WORDS:
        if word.search(base) and not (kind == "kernel" and "rank" in found):
            text["kind"] = kind
            break
    hosts.extend(_host_candidates(parts, base, "pod" in text, bool(found.keys() & {"rank", "task", "local_rank"})))
    return PathClaims(
        rank=found.get("rank"),
        local_rank=found.get("local_rank"),
        node_rank=found.get("node_rank"),
        task=found.get("task"),
        index=found.get("index"),
        attempt=found.get("attempt"),
        stream=text.get("stream"),
        pid=found.get("pid"),
        pod=text.get("pod"),
        role=text.get("role"),
        container=text.get("container"),
        address=text.get("address"),
        jobid=text.get("jobid"),
        tree=text.get("tree"),
        kind=text.get("kind"),
        hosts=tuple(dict.fromkeys(hosts)),
        words=(stem_of(base), *reversed(parts[:-1])),
    )


def _numbers(parts: list[str], base: str, found: dict[str, int], text: dict[str, str], hosts: list[str]) -> None:
    if match := SUBMITIT.match(base):
        text["jobid"] = match["job"]
        found["task"] = int(match["task"])
        return
    if "pod" not in text and (match := HOST_TASK.match(base) or JOB_TASK.match(base)):
        text["jobid"] = match["job"]
        found["task"] = int(match["task"])
        hosts.extend(name for name in (match.groupdict().get("host"),) if name)
        return
    if "pod" not in text and (match := JOB_NODE_TASK.match(base)):
        text["jobid"] = match["job"]
        found["node_rank"], found["task"] = int(match["node"]), int(match["task"])
        return
    if "pod" not in text and (match := JOB_NODE.match(base)):
        text["jobid"] = match["job"]
        found["node_rank"] = int(match["node"])
        return
    if match := NCCL_FILE.match(base) or INSPECTOR_FILE.match(base):
        hosts.append(match["host"])
        found["pid"] = int(match["pid"])
        return
    if match := RAY_WORKER.match(base):
        found["pid"] = int(match["pid"])
        return
    if match := SLURM_JOB.match(base):
        text["jobid"] = match["job"]
        return
    if "pod" not in text and (match := NODE_DEVICE.search(stem_of(base))):
        found["node_rank"], found["local_rank"] = int(match["node"]), int(match["local"])
        return
    if match := SHORT_TASK.match(base):
        found["task"] = int(match["task"])
        return
    if "tree" not in text:
        where = [base] if any(pattern.search(base) for _, pattern in NUMBERED) else parts[-2:-1]
        for name in where:
            for field, pattern in NUMBERED:
                if field not in found and (match := pattern.search(name)):
                    found[field] = int(match[1])
    if "rank" in found or "task" in found:
        return
    if match := SLURM_TASK.match(base):
        text["jobid"] = match["job"]
        found["task"] = int(match["task"])
    elif match := INDEXED.match(base):
        found.setdefault("index", int(match["index"]))
    elif "local_rank" not in found and (match := DEVICE.match(base)):
        found["local_rank"] = int(match["local"])


def _host_candidates(parts: list[str], base: str, pod: bool, ranked: bool) -> Iterable[str]:
    """Names in the path that may be hosts: what the stem of the file leaves, then the folders from the inside out."""
    plain = not any(one.match(base) for one in (SLURM_JOB, SUBMITIT, SLURM_TASK, JOB_TASK, JOB_NODE_TASK, JOB_NODE))
    if not pod and plain:
        stem = ADDRESS.sub("", stem_of(base))
        for _, pattern in NUMBERED if ranked else ():
            stem = pattern.sub("_", stem)
        stem = DEVICE_END.sub("", stem) or stem
        for name in _name_parts(stem):
            yield from _without_numbers(name)
    if not pod and plain and JOBSET.match(stem_of(base)):
        yield stem_of(base)
    if not pod and HOST_LIKE.match(stem_of(base)):
        yield stem_of(base)
    for part in reversed(parts[:-1]):
        if NOT_A_HOST.match(part) or part.lower() in GENERIC or MKDTEMP.match(part):
            continue
        address = ADDRESS.search(part)
        first, *rest = part.split("_")
        if len(rest) == 2 and any(letter.isdigit() for letter in first):
            yield first  # pod, namespace and container: no name of Kubernetes holds an underscore
            continue
        yield address[1] if address else re.sub(r"(?<=\w)[-_.](?:logs?|out|output|outputs)$", "", part)


def _name_parts(stem: str) -> list[str]:
    """What a stem leaves when the words about its subject are taken out, names with a digit first."""
    found: list[str] = []
    words = re.split(r"([-_.@=])", stem.replace("dmesg-T", "dmesg").replace("dmesg_T", "dmesg"))
    current: list[str] = []
    for word in [*words, "log"]:
        if word.lower() not in SUBJECT:
            current.append(word)
            continue
        name = "".join(current).strip("-_.@=")
        current = []
        if name and name.lower() not in GENERIC and re.search(r"[A-Za-z]", name) and not NOT_A_HOST.match(name):
            found.append(name)
    return sorted(found, key=lambda name: not any(letter.isdigit() for letter in name))


def _without_numbers(name: str) -> list[str]:
    """A name whose first label is a number or another word that no host has goes on at its next label."""
    labels = name.split(".")
    while len(labels) > 1 and (labels[0].isdigit() or NOT_A_HOST.match(labels[0]) or labels[0].lower() in GENERIC):
        labels = labels[1:]
    name = EPOCH_END.sub("", name)
    labels = [EPOCH_END.sub("", label) for label in labels]
    rest = DATE_END.sub("", re.sub(r"^\d+[-_](?=[A-Za-z])", "", ".".join(labels)))
    rest = re.sub(r"^(?:node|host|logs?|rank|worker)_(?=[A-Za-z])", "", rest)
    rest = re.sub(r"(?<=\w)[-_.](?:logs?|out|output|outputs)$", "", rest)
    found = [rest]
    found.extend(label for label in labels[1:] if any(letter.isdigit() for letter in label))
    return [one for one in found if one.lower() not in GENERIC and not NOT_A_HOST.match(one)]


def shape_of(name: str) -> str:
    """The name with runs of letters and digits folded, so that `gpu-a01` and `gpu-b02` look alike.

    What Kubernetes appends to a pod by chance counts as one run.
    """
    name = POD_SUFFIX.sub("-a", name)
    return re.sub(r"\d+", "0", re.sub(r"[A-Za-z]+", "a", name))
