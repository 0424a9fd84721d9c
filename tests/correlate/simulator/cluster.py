"""The simulated machines: hosts with ranks, processes, addresses and devices, and what their clocks show."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta

EPOCH = datetime(2026, 3, 30, 2, 0, 0)
ZONES_H = (0, 0, 0, 1, -5, 8)


@dataclass(frozen=True, slots=True)
class Host:
    """One machine. Its clock shows true time plus `skew_s`, in a zone `zone_h` hours east of UTC."""

    name: str
    number: int
    ranks: tuple[int, ...]
    agent_pid: int
    address: str
    skew_s: float
    zone_h: int
    boot_s: float

    def shown(self, at: float) -> datetime:
        """Wall time that the host prints at a true time in seconds."""
        return EPOCH + timedelta(seconds=at + self.skew_s, hours=self.zone_h)

    def iso(self, at: float) -> str:
        """`2026-03-30 02:00:00,123`."""
        when = self.shown(at)
        return f"{when:%Y-%m-%d %H:%M:%S},{when.microsecond // 1000:03d}"

    def glog(self, at: float, level: str) -> str:
        """`W0330 02:00:00.123000`, as Python loggers of torch print it."""
        when = self.shown(at)
        return f"{level}{when:%m%d %H:%M:%S}.{when.microsecond // 1000:03d}000"

    def c10(self, at: float, level: str) -> str:
        """`E330 02:00:00.123456789`, as C++ of torch prints it: the digits are those of the monotonic clock."""
        when = self.shown(at)
        return f"{level}{when.month}{when:%d %H:%M:%S}.{round((at - self.boot_s) % 1 * 1e9) % 10**9:09d}"

    def dmesg(self, at: float, style: str) -> str:
        """The stamp of a kernel line: seconds since boot, `dmesg -T`, or an ISO stamp of the journal."""
        if style == "monotonic":
            return f"[{at - self.boot_s:.6f}]"
        when = self.shown(at)
        if style == "dmesg -T":
            return f"[{when:%a %b %d %H:%M:%S %Y}]"
        sign = "+" if self.zone_h >= 0 else "-"
        return f"{when:%Y-%m-%dT%H:%M:%S},{when.microsecond:06d}{sign}{abs(self.zone_h):02d}:00"

    def table(self, at: float) -> str:
        """`2026-03-30_02:00:00`, as torchelastic's table prints it."""
        return f"{self.shown(at):%Y-%m-%d_%H:%M:%S}"


@dataclass(slots=True)
class Cluster:
    """Hosts, and who is where."""

    hosts: list[Host]
    per_host: int
    backend: str  # nccl or gloo
    pairs: bool  # tensor-parallel groups of two neighbours beside the group of all
    pids: dict[int, int] = field(default_factory=dict)

    @property
    def world(self) -> int:
        return len(self.hosts) * self.per_host

    def host(self, rank: int) -> Host:
        return self.hosts[rank // self.per_host]

    def local(self, rank: int) -> int:
        return rank % self.per_host

    def bus(self, rank: int) -> str:
        """Bus number of the rank's device, as hexadecimal digits."""
        return f"{0x1B + 0x11 * self.local(rank):02x}"

    def partner(self, rank: int) -> int:
        """The other member of the rank's pair."""
        return rank ^ 1

    def neighbours(self, rank: int) -> list[int]:
        """Ranks of other hosts that are next to this one in the ring."""
        around = [(rank + step) % self.world for step in (-1, 1)]
        near = [one for one in around if self.host(one) is not self.host(rank)]
        # channels cross hosts at several ranks: every rank has a partner on the next host
        across = (rank + self.per_host) % self.world
        return sorted({*near, across} - {rank}) if len(self.hosts) > 1 else []


def make_cluster(chance: random.Random, hosts: int, per_host: int, backend: str, skewed: bool) -> Cluster:
    """A cluster with random names, process ids and clocks."""
    prefix = chance.choice(("gpu-a", "node-", "dgx-", "trn", "worker-x"))
    first = chance.randrange(1, 60)
    made = []
    zone = chance.choice(ZONES_H)
    for number in range(hosts):
        made.append(
            Host(
                name=f"{prefix}{first + number:02d}",
                number=number,
                ranks=tuple(range(number * per_host, (number + 1) * per_host)),
                agent_pid=chance.randrange(2000, 40000),
                address=f"10.{chance.randrange(1, 200)}.{chance.randrange(0, 250)}.{10 + number}",
                skew_s=chance.uniform(-300, 300) if skewed else chance.uniform(-0.05, 0.05),
                zone_h=(chance.choice(ZONES_H) if skewed and chance.random() < 0.3 else zone),
                boot_s=-chance.uniform(86400, 3_000_000),
            )
        )
    cluster = Cluster(made, per_host, backend, backend == "nccl" and chance.random() < 0.4)
    for host in made:
        for offset, rank in enumerate(host.ranks):
            cluster.pids[rank] = host.agent_pid + 3 + offset
    return cluster
