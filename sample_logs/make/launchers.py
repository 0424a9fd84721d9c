"""Launchers other than torchrun: mpirun with a remote shell made of namespaces, and a small Slurm of our own.

The first host starts the job; the others only wait (for the remote shell, or as nodes of Slurm).
"""

from __future__ import annotations

import shlex
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hosts import Host
    from run import Running

ONE_FILE = {"mpirun": "mpirun.log", "srun": "slurm-1.out"}  # launchers that gather what all ranks print

REMOTE_SHELL = """#!/bin/sh
# called as: rsh HOST COMMAND...
pid=$(cat /srv/ckpt/.shell-$1); shift
exec nsenter -t $pid -m -n -u -w sh -c "$*"
"""

KNOWS_SHELL = "echo $$ > /srv/ckpt/.shell-$(hostname)"

SLURM_CONF = """ClusterName=lab
SlurmctldHost={first}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
StateSaveLocation=/run/slurmctld
SlurmdSpoolDir=/run/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/train/.slurmctld.log
SlurmdLogFile=/var/log/train/.slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/cgroup
SelectType=select/linear
SelectTypeParameters=CR_Memory
JobAcctGatherType=jobacct_gather/none
DefMemPerNode=12000
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
KillWait=3
SlurmdParameters=config_overrides
NodeName={names} CPUs=4 RealMemory=12000 State=UNKNOWN
PartitionName=train Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""

JOINS_SLURM = """mount -t tmpfs cgroup /sys/fs/cgroup
for name in cpuset cpuacct memory devices freezer; do
  mkdir /sys/fs/cgroup/$name && mount -t cgroup -o $name $name /sys/fs/cgroup/$name
done
mount -t tmpfs none /run && mkdir -p /run/munge /run/slurmctld /run/slurmd
mount -t tmpfs none /etc/slurm && cp /srv/ckpt/.slurm.conf /etc/slurm/slurm.conf
printf 'CgroupPlugin=cgroup/v1\\nConstrainRAMSpace=yes\\n' > /etc/slurm/cgroup.conf
cp /etc/munge/munge.key /run/munge.key && chown root:root /run/munge.key && chmod 400 /run/munge.key
munged --force --key-file=/run/munge.key --socket=/run/munge/munge.socket.2 \\
  --pid-file=/run/munged.pid --log-file=/run/munged.log --seed-file=/run/munged.seed
"""


def shell(running: Running) -> None:
    """The remote shell of mpirun, on the disk that the hosts share."""
    path = running.dir / "ckpt" / ".rsh"
    path.write_text(REMOTE_SHELL)
    path.chmod(0o755)


def slurm(running: Running) -> None:
    """Slurm's configuration, on the disk that the hosts share."""
    names = [spec.name for spec in running.job.hosts]
    (running.dir / "ckpt" / ".slurm.conf").write_text(SLURM_CONF.format(first=names[0], names=",".join(names)))


def controller_log(running: Running) -> None:
    """What the controller of Slurm wrote, beside the job's output."""
    shutil.copyfile(running.cluster.hosts[0].logs / ".slurmctld.log", running.dir / "logs" / "slurmctld.log")


def command(running: Running, host: Host) -> list[str]:
    """What the first host runs to start the job, and what the others run to be there for it."""
    job = running.job
    first = job.hosts[0].name
    world = job.nproc * len(job.hosts)
    program = ["/opt/env/bin/python", "/opt/train/train.py", *shlex.split(job.train)]
    if job.launcher == "mpirun":
        if host.number:
            return ["sleep", str(job.deadline)]
        places = ",".join(f"{spec.name}:{job.nproc}" for spec in job.hosts)
        words = ["mpirun", "--allow-run-as-root", "-np", str(world), "--host", places]
        words += ["--mca", "plm_rsh_agent", "/srv/ckpt/.rsh", "--mca", "oob_tcp_if_include", "eth0"]
        for name in ("MASTER_ADDR", "MASTER_PORT", "SAMPLE_FAULTS", "PYTHONDONTWRITEBYTECODE", "TZ", *job.env):
            words += ["-x", name]
        return [
            "env",
            f"MASTER_ADDR={first}",
            f"MASTER_PORT={running.port}",
            *words,
            *shlex.split(job.torchrun),
            *program,
        ]
    if host.number:
        return ["slurmd", "-D"]
    words = [
        "srun",
        "-N",
        str(len(job.hosts)),
        "-n",
        str(world),
        f"--ntasks-per-node={job.nproc}",
        *shlex.split(job.torchrun),
    ]
    step = f"MASTER_ADDR={first} MASTER_PORT={running.port} exec {shlex.join([*words, *program])}"
    return ["sh", "-c", f"slurmctld; slurmd; sleep 3; {step}"]
