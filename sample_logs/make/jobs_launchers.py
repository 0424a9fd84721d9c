"""Jobs in which something goes wrong with a launcher or before the training begins, and jobs of other launchers and versions."""

from __future__ import annotations

import signal

from hosts import HostSpec
from jobs import ALL, Find, Job, Truth, When, signal_launcher, two

LISTENER = """/opt/env/bin/python -c "
import socket, time
taken = socket.create_server(('0.0.0.0', $PORT))
time.sleep(600)" & sleep 1"""

JOBS: tuple[Job, ...] = (
    Job(
        "terminated-launcher",
        "somebody sends SIGTERM to the launcher of the second host",
        two("can-1", "can-2"),
        Truth(
            "cancelled-by-user",
            (),
            ("can-2",),
            (Find(r"Received Signals\.SIGTERM|Received 15 death signal|got signal: 15"),),
            also=("preempted", "process-killed", "time-limit"),
            collateral=tuple(range(8)),
            trap="the other host's ranks print connection errors, and its launcher names one of them",
        ),
        train=f"--steps 400 {ALL}",
        whens=(When(1, r"step 25/", signal_launcher(1, signal.SIGTERM)),),
    ),
    Job(
        "master-port-taken",
        "another program listens on the master port of the first host",
        (HostSpec("prt-1", setup=LISTENER), HostSpec("prt-2")),
        Truth(
            "port-in-use",
            (),
            ("prt-1",),
            (Find(r"EADDRINUSE|[Aa]ddress already in use", "prt-1/**/*"),),
            collateral=(),
        ),
        train=f"--steps 40 {ALL}",
        rendezvous="static",
        deadline=45,
    ),
    Job(
        "one-host-never-joins",
        "the launcher of the second host is never started",
        two("rdv-1", "rdv-2"),
        Truth(
            "rendezvous-timeout",
            (),
            (),
            (Find(r"RendezvousTimeoutError"),),
            collateral=(),
        ),
        train=f"--steps 40 {ALL}",
        torchrun="--rdzv-conf=join_timeout=15",
        absent=(1,),
        env={"LOGLEVEL": "INFO"},
        layout="plain",
        deadline=60,
    ),
    Job(
        "unknown-master-name",
        "the second host cannot resolve the name of the first",
        two("dns-1", "dns-2", setup="grep -v dns-1 /etc/hosts > /srv/hosts && mount --bind /srv/hosts /etc/hosts"),
        Truth(
            "master-unreachable",
            (),
            ("dns-2",),
            (Find(r"Name or service not known|Temporary failure in name resolution|getaddrinfo", "dns-2/**/*"),),
            also=("rendezvous-timeout", "network-interface-misconfigured"),
            also_ranks=((4, 5, 6, 7),),
            collateral=(),
        ),
        train=f"--steps 40 {ALL}",
        torchrun="--rdzv-conf=join_timeout=30,read_timeout=20,timeout=20",
        deadline=80,
    ),
    Job(
        "batch-not-divisible",
        "the global batch does not divide by the world size",
        two("cfg-1", "cfg-2"),
        Truth(
            "config-invalid",
            (),
            (),
            (Find(r"global batch 100 is not divisible by world size 8"),),
            also=("python-exception",),
            also_ranks=(tuple(range(8)),),
        ),
        train=f"--steps 40 --global-batch 100 {ALL}",
        layout="tee",
    ),
    Job(
        "module-three-attempts",
        "python -m torch.distributed.run with two restarts; rank 2 fails at the same step each time",
        two("mod-1", "mod-2"),
        Truth(
            "python-exception",
            (2,),
            ("mod-1",),
            (Find(r"mat1 and mat2 shapes cannot be multiplied"),),
        ),
        train="--steps 40 --log-style short",
        faults="width rank=2 step=7 columns=100",
        torchrun="--max-restarts=2 --monitor-interval=2",
        launcher="module",
        deadline=180,
        env={"LOGLEVEL": "INFO", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"},
        layout="tee+tree",
    ),
    Job(
        "older-torch-mute-rank2",
        "torch 1.13: rank 2 stops without a word",
        two("old-c1", "old-c2"),
        Truth(
            "collective-rank-absent",
            (2,),
            ("old-c1",),
            trap="seven ranks print time-outs, rank 2 prints nothing; lines have the format of 2022",
        ),
        train=f"--steps 40 --timeout 12 {ALL}",
        faults="hang rank=2 step=8",
        needs="1.13",
    ),
    Job(
        "older-torch-killed-rank7",
        "torch 1.13: rank 7 is killed by SIGKILL",
        two("old-d1", "old-d2"),
        Truth(
            "process-killed",
            (7,),
            ("old-d2",),
            (Find(r"exitcode\s*: -9\b"), Find(r"Signal 9 \(SIGKILL\)")),
            trap="rank 7 prints nothing; its peers print connection errors",
        ),
        train="--steps 40 --log-style rank --log-every 2",
        faults="kill rank=7 step=10",
        layout="tee",
        rendezvous="static",
        needs="1.13",
    ),
    Job(
        "middle-torch-nan-rank4",
        "torch 2.3: the loss of rank 4 is not a number",
        two("mid-e1", "mid-e2"),
        Truth(
            "loss-nan-or-diverged",
            (4,),
            ("mid-e2",),
            (Find(r"FloatingPointError: loss is nan"),),
        ),
        train=f"--steps 40 --check-loss local --log-style titan {ALL}",
        faults="not-finite rank=4 step=11",
        layout="tee",
        needs="2.3",
    ),
    Job(
        "middle-torch-detail",
        "torch 2.3 with TORCH_DISTRIBUTED_DEBUG=DETAIL: rank 6 reduces a tensor of another size",
        two("mid-f1", "mid-f2"),
        Truth(
            "collective-desync",
            (6,),
            ("mid-f2",),
            (Find(r"Rank 6 is running collective"),),
            trap="every rank raises a mismatch; rank 6 is the odd one",
        ),
        train=f"--steps 40 --evaluate {ALL}",
        faults="extra-metric rank=6",
        env={"TORCH_DISTRIBUTED_DEBUG": "DETAIL"},
        shards=32,
        needs="2.3",
    ),
)
