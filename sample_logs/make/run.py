#!/usr/bin/env python3
"""Makes the sample jobs: real torchrun runs on hosts made of namespaces, with faults injected.

    python3 -m venv /tmp/torch-env && /tmp/torch-env/bin/pip install torch==2.13.0 numpy
    sudo /tmp/torch-env/bin/python sample_logs/make/run.py            # all jobs
    sudo /tmp/torch-env/bin/python sample_logs/make/run.py mute-rank6 # one

Needs root, Linux, iproute2 and util-linux; a C compiler for the jobs with a wrong clock.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time
import tomllib

import collect
import jobs
import jobs_hosts
import jobs_launchers
import jobs_ranks
import launchers
from hosts import Cluster, Host, clean

HERE = pathlib.Path(__file__).resolve().parent

JOBS = (*jobs_ranks.JOBS, *jobs_hosts.JOBS, *jobs_launchers.JOBS)


class Running:
    """One job while it runs."""

    def __init__(self, job: jobs.Job, scratch: pathlib.Path, env_dir: pathlib.Path) -> None:
        number = sum(job.name.encode())
        self.job = job
        self.dir = scratch / job.name
        self.env_dir = env_dir
        self.subnet = f"10.{61 + number % 40}.{(7 * number) % 200 + 3}"
        self.port = 29400 + 13 * number % 90
        self.workload = HERE / "workload"
        self.cluster: Cluster
        self.kernel_lines = 0

    def make(self) -> None:
        """Folders and data."""
        clean(self.dir)
        (self.dir / "ckpt").mkdir()
        if self.job.shared_disk:
            subprocess.run(
                ["mount", "-t", "tmpfs", "-o", f"size={self.job.shared_disk}", "none", self.dir / "ckpt"], check=True
            )
        for folder in sorted({spec.data for spec in self.job.hosts}):
            self.make_data(self.dir / folder)
        for step in self.job.prepare:
            step(self)

    def make_data(self, folder: pathlib.Path) -> None:
        """Shards of noise."""
        import numpy as np

        folder.mkdir(parents=True)
        draw = np.random.default_rng(7)
        names = [f"shard-{number:05d}.npy" for number in range(self.job.shards)]
        for name in names:
            np.save(folder / name, draw.standard_normal((self.job.samples, self.job.width), dtype=np.float32))
        (folder / "index.txt").write_text("\n".join(names) + "\n")

    def command(self, host: Host) -> list[str]:
        """What the launcher of this host is started with."""
        job = self.job
        first = job.hosts[0].name
        if job.launcher in launchers.ONE_FILE:
            return launchers.command(self, host)
        words = ["/opt/env/bin/python", "/opt/env/bin/torchrun"]
        if job.launcher == "module":
            words = ["/opt/env/bin/python", "-m", "torch.distributed.run"]
        words += [f"--nnodes={len(job.hosts)}", f"--nproc-per-node={job.nproc}"]
        if job.rendezvous == "static":
            words += [f"--node-rank={host.number}", f"--master-addr={first}", f"--master-port={self.port}"]
        else:
            words += ["--rdzv-backend=c10d", f"--rdzv-endpoint={first}:{self.port}"]
        if job.layout == "tree":
            words += ["--log-dir=/var/log/train", "--redirects=3"]
        elif job.layout == "tee+tree":
            words += ["--log-dir=/var/log/train", "--tee=3"]
        elif job.layout == "tee":
            words += ["--redirects=3", "--tee=3"]
        words += shlex.split(job.torchrun)
        if job.needs:  # older launchers know their options with underscores only
            words = [
                word.partition("=")[0].replace("-", "_").replace("__", "--", 1) + word[word.find("=") :] * ("=" in word)
                if word.startswith("--")
                else word
                for word in words
            ]
        return [*words, "/opt/train/train.py", *shlex.split(job.train)]

    def text(self, host: int) -> str:
        """All that this host has logged so far."""
        parts = [self.out(self.cluster.hosts[host])]
        parts += [p for p in self.cluster.hosts[host].logs.rglob("*.log") if p.is_file()]
        return "\n".join(p.read_text(errors="replace") for p in parts if p.exists())

    def out(self, host: Host) -> pathlib.Path:
        """Where the launcher's own output goes."""
        if self.job.launcher in launchers.ONE_FILE:
            return self.dir / "logs" / (launchers.ONE_FILE[self.job.launcher] if host.number == 0 else ".rest")
        return host.logs / "agent.log" if self.job.layout == "tree" else self.dir / "logs" / f"{host.spec.name}.log"

    def signal(self, pid: int, number: int) -> None:
        """A signal from outside."""
        os.kill(pid, number)

    def run(self) -> None:
        """Start, watch, disturb, wait."""
        with Cluster(self.job.hosts, self.subnet, self.dir) as self.cluster:
            env = {"SAMPLE_FAULTS": self.job.faults, **self.job.env}
            self.kernel_lines = len(subprocess.run(["dmesg"], capture_output=True, check=True).stdout.splitlines())
            for host in self.cluster.hosts:
                if host.number in self.job.absent:
                    continue
                host.start(self.command(host), env, self.env_dir, self.workload, self.out(host), self.port)
            began = time.monotonic()
            todo = list(self.job.whens)
            while time.monotonic() - began < self.job.deadline:
                time.sleep(0.2)
                for when in list(todo):
                    if re.search(when.pattern, self.text(when.host)):
                        todo.remove(when)
                        time.sleep(when.wait)
                        when.act(self)
                if self.job.stop_when and all(
                    re.search(self.job.stop_when, self.text(n)) for n in range(len(self.job.hosts))
                ):
                    break
                watched = self.cluster.hosts[:1] if self.job.launcher in launchers.ONE_FILE else self.cluster.hosts
                if all(host.process is None or host.process.poll() is not None for host in watched):
                    break
            else:
                sys.stderr.write(f"{self.job.name}: still running after {self.job.deadline} s, ended\n")
            for step in self.job.finish:
                step(self)
        if self.job.shared_disk:
            subprocess.run(["umount", self.dir / "ckpt"], check=True)

    def collect(self, target: pathlib.Path, torch: str, home: str) -> None:
        """Write the sample."""
        where = collect.places(self.dir)
        collect.copy_logs(self.dir / "logs", target / "logs", self.job, home)
        world = f"{len(self.job.hosts)} hosts with {self.job.nproc} ranks each"
        fault = "" if self.job.truth.failure_class == "none" and not self.job.faults else ", fault injected"
        collect.write_case(
            target,
            self.job,
            where,
            f"real {self.job.launcher} run, torch {torch}, gloo, {world}{fault}; made by sample_logs/make/run.py",
        )


def write_table(samples: pathlib.Path) -> None:
    """The table of README.md, from the truths that are there."""
    rows = ["| job | what happened | class | began on |", "| --- | --- | --- | --- |"]
    for path in sorted(samples.glob("*/case.toml")):
        case = tomllib.loads(path.read_text(encoding="utf-8"))
        truth = case["truth"]
        ranks = ", ".join(map(str, truth["initiating_ranks"]))
        place = ", ".join(filter(None, [f"rank {ranks}" if ranks else "", *truth["initiating_hosts"]]))
        kind = truth["failure_class"] if truth["determined"] else "undetermined"
        rows.append(f"| `{path.parent.name}` | {case['summary']} | `{kind}` | {place} |")
    readme = samples / "README.md"
    if readme.exists():
        head, rest = readme.read_text().split("<!-- table: made by make/run.py -->")
        tail = rest.partition("<!-- end of table -->")[2]
        table = "\n".join(rows)
        readme.write_text(f"{head}<!-- table: made by make/run.py -->\n{table}\n<!-- end of table -->{tail}")


def main() -> None:
    """Run the jobs that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="jobs to make (default: all)")
    parser.add_argument("--out", type=pathlib.Path, default=HERE.parent)
    parser.add_argument("--scratch", type=pathlib.Path, default=pathlib.Path("/tmp/ff-run"))
    parser.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="KEY=DIR",
        help="another virtual environment, e.g. old=/tmp/torch-1.13",
    )
    parser.add_argument(
        "--collect-only", action="store_true", help="run nothing, write the samples again from the scratch directory"
    )
    given = parser.parse_args()
    envs = {
        "": pathlib.Path(sys.prefix),
        **{key: pathlib.Path(value) for key, _, value in (text.partition("=") for text in given.env)},
    }
    unknown = set(given.names) - {job.name for job in JOBS}
    if unknown:
        parser.error(f"no such job: {', '.join(sorted(unknown))}")
    for job in JOBS:
        if given.names and job.name not in given.names:
            continue
        if job.needs not in envs:
            sys.stderr.write(f"{job.name}: skipped, needs --env {job.needs}=DIR\n")
            continue
        ask = "import sys, torch; print(torch.__version__.split('+')[0], sys.base_prefix)"
        asked = subprocess.run([envs[job.needs] / "bin/python", "-c", ask], capture_output=True, text=True, check=True)
        version, home = asked.stdout.split()
        running = Running(job, given.scratch, envs[job.needs])
        began = time.monotonic()
        try:
            if not given.collect_only:
                running.make()
                running.run()
            running.collect(given.out / job.name, version, home)
        except (OSError, ValueError, subprocess.CalledProcessError) as fault:
            sys.stderr.write(f"{job.name}: not made: {fault}\n")
            continue
        sys.stderr.write(f"{job.name}: {time.monotonic() - began:.0f} s\n")
    write_table(given.out)


if __name__ == "__main__":
    main()
