"""Commands that save evidence before a restart, chosen by the family of the failure, its hosts and who ran the job.

They read and copy; none changes anything. Names of hosts come out of logs: one that is no plain name is not put into
a command.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from firstfault.correlate.diagnosis import Diagnosis, Verdict

_PLAIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62})")
_MOST_HOSTS = 3
_HUNG = frozenset({"collective", "launcher"})
_MACHINE = frozenset({"gpu-hardware", "cuda-runtime", "host", "network", "storage"})


@dataclass(frozen=True, slots=True)
class Preserve:
    """One command: where to run it ('here' where it does not matter), and what a restart would take away."""

    where: str
    command: str
    why: str


def commands(one: Diagnosis) -> tuple[Preserve, ...]:
    """The commands for one diagnosis, the most perishable first; none for a job that completed."""
    if one.verdict is Verdict.NO_FAILURE:
        return ()
    group, cls = one.advice.group, one.failure.cls or ""
    undetermined = one.verdict is Verdict.UNDETERMINED
    found: list[Preserve] = []
    if group in _HUNG or undetermined:
        found.append(
            Preserve(
                "each host",
                "for pid in $(pgrep -f 'train.py'); do py-spy dump --pid $pid; done > stacks-$(hostname).txt",
                "what processes that still hang are doing (put in your script's name for train.py); gone when they end",
            )
        )
        found.append(
            Preserve(
                "each host",
                'cp "${TORCH_NCCL_DEBUG_INFO_TEMP_FILE:-/tmp/nccl_trace_rank_}"* '
                '"${XDG_CACHE_HOME:-$HOME/.cache}"/torch/comm_lib_trace_rank_* DIR/',
                "flight-recorder dumps, where they were enabled; the next run writes over them",
            )
        )
    if group in _MACHINE or undetermined:
        for host in _hosts(one):
            found.extend(_of_host(host, group, cls, _since(one)))
    found.extend(_of_scheduler(one))
    found.append(
        Preserve(
            "each host",
            "firstfault collect --output collected.tar.gz LOGS",
            "logs and state of the host in one go; --script prints it as a shell script for hosts without Python",
        )
    )
    found.append(
        Preserve(
            "here",
            "firstfault bundle PATH... --output incident.tar.gz --redact",
            "report, timeline and the cited logs in one file that can be passed on",
        )
    )
    return tuple(found)


def folded(command: str, width: int) -> list[str]:
    """A command over several lines that a shell reads as one: broken at blanks that no single quote holds."""
    words, word, quote = [], "", ""
    for char in command:
        if char in "'\"" and quote in ("", char):
            quote = "" if quote else char
        if char == " " and quote != "'":
            words.append(word)
            word = ""
        else:
            word += char
    lines: list[str] = []
    for one in (*words, word):
        if lines and len(lines[-1]) + len(one) + 3 <= width:
            lines[-1] += f" {one}"
        else:
            lines.append(one)
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]


def _hosts(one: Diagnosis) -> list[str]:
    named = list(one.initiating.hosts)
    if not named:
        named = [host for candidate in one.hypotheses[:2] for host in candidate.hosts]
    plain = [host for host in dict.fromkeys(named) if _PLAIN.fullmatch(host)]
    return plain[:_MOST_HOSTS] or ["HOST"]


def _since(one: Diagnosis) -> str:
    """Ten minutes before it began, as journalctl reads it; without a known zone only the last day."""
    at = one.initiating.at or one.job.ended
    if at and at.endswith("Z"):
        try:
            return f"'{datetime.fromisoformat(at) - timedelta(minutes=10):%Y-%m-%d %H:%M:%S} UTC'"
        except (ValueError, OverflowError):
            pass
    return "-1d"


def _of_host(host: str, group: str, cls: str, since: str) -> list[Preserve]:
    on = f"ssh {host} "
    kernel = f'{on}"journalctl -k -o short-iso --since {since}" > kernel-{host}.log'
    found = [Preserve(host, kernel, "the kernel's word; lost at a reboot where the journal is not kept")]
    if cls.startswith("amd"):
        found.append(Preserve(host, f"{on}rocm-smi --showallinfo > rocm-smi-{host}.txt", "counters, until a reset"))
    elif group in ("gpu-hardware", "cuda-runtime"):
        found.append(Preserve(host, f"{on}nvidia-smi -q > nvidia-smi-{host}.txt", "counters, until a GPU is reset"))
        if group == "gpu-hardware":
            found.append(
                Preserve(host, f"{on}sudo nvidia-bug-report.sh", "what the vendor asks for; writes a file over there")
            )
    if group == "network":
        found.append(
            Preserve(
                host, f"{on}'ibstat; ip -s link; sudo perfquery -x' > ports-{host}.txt", "port counters, until cleared"
            )
        )
    if group == "storage" or cls == "disk-full":
        found.append(Preserve(host, f"{on}'df -h; df -i; mount' > disks-{host}.txt", "before clean-up changes it"))
    if cls == "host-oom-kill":
        found.append(
            Preserve(host, f"{on}'free -m; ps aux --sort=-rss | head -40' > memory-{host}.txt", "who holds memory now")
        )
    return found


_KUBERNETES = (
    Preserve("here", "kubectl get events -A --sort-by=.lastTimestamp > events.txt", "events are kept for an hour"),
    Preserve("here", "kubectl describe pod POD > pod.txt; kubectl logs POD --previous > pod.log", "gone with the pod"),
)
_SLURM = (
    Preserve(
        "here",
        "sacct -j JOBID -P -o JobID,State,ExitCode,DerivedExitCode,Reason,Start,End,NodeList,MaxRSS > sacct.txt",
        "how the scheduler saw it end",
    ),
    Preserve("here", "scontrol show job JOBID > job.txt", "forgotten some minutes after the end"),
)


def _of_scheduler(one: Diagnosis) -> tuple[Preserve, ...]:
    kinds = {kind for kind, _ in one.coverage.sources_by_kind}
    words = " ".join((one.failure.entry or "", *(line.path for line in one.evidence))).lower()
    if kinds & {"kubelet", "events"} or "k8s" in words:
        return _KUBERNETES
    return _SLURM if "scheduler" in kinds or "slurm" in words else ()
