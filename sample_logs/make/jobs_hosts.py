"""Jobs in which something goes wrong with a host or with what hosts share."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from hosts import HostSpec
from jobs import ALL, Find, Job, Truth, When, cut, inside, kernel_log, remove, two, vanish

if TYPE_CHECKING:
    from run import Running

WIDE = """
import sys; sys.path.insert(0, sys.argv[1])
import checkpoint, model, torch
net = model.Encoder(128, 192)
checkpoint.save(sys.argv[2], 9, net, torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9))
"""


def foreign_checkpoint(running: Running) -> None:
    """A checkpoint of a narrower model."""
    workload = str(running.workload)
    subprocess.run([sys.executable, "-c", WIDE, workload, str(running.dir / "ckpt")], check=True)


# acts when 3.5 GB less memory is available than now; it sees the processes of its own host only
WATCHDOG = """free=$(sed -n 's/^MemAvailable: *\\([0-9]*\\) kB/\\1/p' /proc/meminfo)
earlyoom -r 2 -M $((free - 3500000)) > /var/log/train/earlyoom.log 2>&1 &"""

JOBS: tuple[Job, ...] = (
    Job(
        "host-gone-dark",
        "the second host loses its network and all its processes at once",
        two("rack4-n1", "rack4-n2"),
        Truth(
            "host-down",
            (4, 5, 6, 7),
            ("rack4-n2",),
            also=("process-killed", "collective-rank-absent"),
            trap="only the surviving host prints errors",
        ),
        train=f"--steps 400 --timeout 15 --log-style pipe {ALL}",
        whens=(When(1, r"step 20/", vanish(1)),),
        layout="plain",
        deadline=80,
    ),
    Job(
        "seven-minutes-behind",
        "rank 1 stops on a loss that is not finite; the second host's clock is seven minutes behind",
        two("clk-east", "clk-west", clock=-420),
        Truth(
            "loss-nan-or-diverged",
            (1,),
            ("clk-east",),
            (Find(r"FloatingPointError: loss is nan"),),
            trap="by their stamps the errors of the second host come seven minutes before the cause",
        ),
        train=f"--steps 40 --check-loss local {ALL}",
        faults="not-finite rank=1 step=18",
        rendezvous="static",
        deadline=120,
    ),
    Job(
        "zone-apart",
        "rank 6 gets a batch with too few columns; the second host logs in another time zone",
        two("lon-g1", "den-g2", zone="America/Denver"),
        Truth(
            "python-exception",
            (6,),
            ("den-g2",),
            (Find(r"mat1 and mat2 shapes cannot be multiplied"),),
            trap="the first host's stamps are seven hours ahead",
        ),
        train=f"--steps 40 {ALL}",
        faults="width rank=6 step=16 columns=64",
        rendezvous="static",
        layout="plain",
    ),
    Job(
        "kernel-oom-second-host",
        "rank 5's cache grows until the memory limit of its host's control group; the kernel kills it",
        (HostSpec("oom-h1"), HostSpec("oom-h2", cgroup_memory=2600, own_pids=False)),
        Truth(
            "host-oom-kill",
            (5,),
            ("oom-h2",),
            (Find(r"Memory cgroup out of memory: Killed process"), Find(r"oom-kill:constraint=")),
            trap="the launcher only says SIGKILL; the reason stands in the kernel's log",
        ),
        train=f"--steps 60 {ALL}",
        faults="grow rank=5 mb=200 step=4",
        finish=(kernel_log(1, "dmesg.log", "--time-format", "iso"),),
    ),
    Job(
        "earlyoom-rank7",
        "rank 7's memory grows and a memory watchdog of the host ends it",
        two("eo-1", "eo-2", setup=WATCHDOG),
        Truth(
            "host-oom-kill",
            (7,),
            ("eo-2",),
            (Find(r"sending SIG(TERM|KILL) to process"),),
            also=("process-killed",),
            trap="no kernel OOM line and no cgroup: only the watchdog's own log says why rank 7 got a signal",
        ),
        train=f"--steps 60 --log-style rank {ALL}",
        faults="grow rank=7 mb=250 step=6",
    ),
    Job(
        "checkpoint-disk-full",
        "the checkpoint does not fit on its small disk; after the restart rank 0 reads what is left of it",
        (HostSpec("ck-01"), HostSpec("ck-02")),
        Truth(
            "disk-full",
            (0,),
            ("ck-01",),
            (Find(r"No space left on device"), Find(r"unexpected pos \d+ vs")),
            also=("checkpoint-save-failed",),
            also_ranks=((),),
            trap="the launcher's last word is the second attempt: a corrupt checkpoint on every rank",
        ),
        train=f"--steps 40 --hidden 4096 --checkpoints /srv/ckpt --save-every 8 --pause 0.05 {ALL}",
        torchrun="--max-restarts=1 --monitor-interval=2",
        env={"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"},
        shared_disk="6M",
        deadline=150,
    ),
    Job(
        "checkpoints-read-only",
        "the checkpoint file system turns read-only while the job runs",
        two("ro-n1", "ro-n2"),
        Truth(
            "checkpoint-save-failed",
            (0,),
            ("ro-n1",),
            (Find(r"Read-only file system"),),
            also=("filesystem-io-error",),
            also_ranks=((),),
        ),
        train=f"--steps 60 --checkpoints /srv/ckpt --save-every 10 --log-style titan {ALL}",
        whens=(When(0, r"saved checkpoint .*step_000019", inside(0, "mount -o remount,bind,ro /srv/ckpt")),),
        layout="tee",
    ),
    Job(
        "absent-shard-one-host",
        "a shard is missing on the disk of the second host only",
        (HostSpec("scr-1"), HostSpec("scr-2", data="data-2")),
        Truth(
            "data-missing",
            (6,),
            ("scr-2",),
            (Find(r"FileNotFoundError: .*shard-00014"),),
        ),
        train=f"--steps 40 {ALL}",
        prepare=(remove("data-2", 14),),
        layout="tee",
        compress=True,
    ),
    Job(
        "module-lacks-one-host",
        "a module of the program is missing on the second host",
        two("img-a", "img-b", missing=("checkpoint.py",)),
        Truth(
            "import-or-dependency",
            (4, 5, 6, 7),
            ("img-b",),
            (Find(r"ModuleNotFoundError: No module named 'checkpoint'"),),
            trap="the first host's ranks wait for the others and fail in the rendezvous or are never heard of again",
        ),
        train=f"--steps 40 --timeout 15 {ALL}",
        deadline=70,
    ),
    Job(
        "narrow-checkpoint",
        "all ranks resume from a checkpoint of a narrower model",
        two("res-1", "res-2"),
        Truth(
            "checkpoint-mismatch",
            (),
            (),
            (Find(r"size mismatch for up\.weight"), Find(r"Error\(s\) in loading state_dict")),
            also_ranks=(tuple(range(8)),),
            trap="all ranks fail alike; no rank began it",
        ),
        train=f"--steps 40 --checkpoints /srv/ckpt {ALL}",
        prepare=(foreign_checkpoint,),
        layout="plain",
    ),
    Job(
        "three-hosts-kill-rank9",
        "three hosts, twelve ranks; rank 9 is killed",
        (HostSpec("tri-1.hpc.example.net"), HostSpec("tri-2.hpc.example.net"), HostSpec("tri-3.hpc.example.net")),
        Truth(
            "process-killed",
            (9,),
            ("tri-3",),
            (Find(r"exitcode\s*: -9\b"), Find(r"Signal 9 \(SIGKILL\)")),
            trap="eleven ranks print connection errors, each launcher names one of its own",
        ),
        train=f"--steps 40 --global-batch 96 {ALL}",
        faults="kill rank=9 step=17",
        shards=96,
    ),
    Job(
        "logs-of-one-host",
        "rank 6 gets a batch with too few columns, but only the logs of the other host were kept",
        two("half-1", "half-2"),
        Truth(
            "unknown",
            (),
            (),
            (),
            determined=False,
            collateral=(0, 1, 2, 3),
            trap="the launcher names one of the four ranks whose connections were closed",
            missing_fact="the logs of the other host, with the ranks 4 to 7: they closed the connections",
        ),
        train=f"--steps 40 {ALL}",
        faults="width rank=6 step=16 columns=64",
        keep_hosts=(0,),
    ),
    Job(
        "thread-limit-second-host",
        "the second host allows too few processes and threads",
        two("pid-1", "pid-2", cgroup_pids=44),
        Truth(
            "thread-or-process-limit",
            (4, 5, 6, 7),
            ("pid-2",),
            (Find(r"can't start new thread"),),
            also=("dataloader-worker-died",),
            also_ranks=((7,),),
            trap="three ranks end with 'DataLoader worker exited unexpectedly'; why the workers exited stands above it",
        ),
        train=f"--steps 40 --workers 3 {ALL}",
    ),
    Job(
        "partitioned-hosts",
        "the network between the two hosts is cut; all processes live on",
        two("prt-east", "prt-west"),
        Truth(
            "unknown",
            (),
            (),
            determined=False,
            collateral=tuple(range(8)),
            trap="every rank of both hosts waits for a rank of the other host and times out; nobody is missing",
            missing_fact="the state of the network between the hosts (links, switch) at the last step",
        ),
        train=f"--steps 400 --timeout 12 {ALL}",
        whens=(When(0, r"step 22/", cut(1)),),
        deadline=70,
    ),
)
