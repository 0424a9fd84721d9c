"""The program whose runs became the sample logs: data-parallel training of a small network with gloo on the CPU."""

from __future__ import annotations

import argparse
import datetime
import math
import os
import pathlib
import random
import socket
import time
from collections.abc import Iterator

import checkpoint
import data
import faults
import logs
import places
import torch
import torch.distributed as dist
from model import Encoder
from torch import nn
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.parallel import DistributedDataParallel


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--global-batch", type=int, default=128)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--timeout", type=float, default=15)
    parser.add_argument("--pause", type=float, default=0.08, help="seconds that a step takes at least")
    parser.add_argument("--log-style", choices=sorted(logs.STYLES), default="comma")
    parser.add_argument("--log-all-ranks", action="store_true")
    parser.add_argument("--log-every", type=int, default=1)
    parser.add_argument("--data", default="/srv/data")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--keep-open", action="store_true")
    parser.add_argument("--checkpoints", default="")
    parser.add_argument("--save-every", type=int, default=10)
    parser.add_argument("--check-loss", choices=["none", "local", "mean"], default="none")
    parser.add_argument("--tensor-parallel", type=int, default=1)
    parser.add_argument("--timings", action="store_true")
    parser.add_argument("--guard-every", type=int, default=0, help="a monitored barrier every so many steps")
    parser.add_argument("--evaluate", action="store_true")
    parser.add_argument("--skip-bad-batches", action="store_true")
    parser.add_argument("--tracker", action="store_true")
    return parser.parse_args()


def bookkeeping(rank: int) -> None:
    """Tell run.py where this rank ran; the file is no part of the sample."""
    attempt, local_rank = (os.environ.get(name, "0") for name in ("TORCHELASTIC_RESTART_COUNT", "LOCAL_RANK"))
    place = f"{attempt} {rank} {socket.gethostname()} {local_rank} {os.getpid()}\n"
    notes = pathlib.Path(os.environ.get("SAMPLE_NOTES", "/var/log/train/.places"))
    with open(notes, "a") as out:
        out.write(place)


class Trainer:
    """One training run on one rank."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.log = logs.get_logger(given.log_style, given.log_all_ranks)
        self.faults = faults.Faults()
        torch.manual_seed(1234)
        self.model = Encoder(given.width, given.hidden)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=given.lr, momentum=0.9)
        self.first = checkpoint.load(given.checkpoints, self.model, self.optimizer) if given.checkpoints else 0
        self.net: nn.Module = self.model
        self.tensor_group = self.data_group = None
        if given.tensor_parallel > 1:
            self.make_groups(given.tensor_parallel)
        elif not given.timings:
            self.net = DistributedDataParallel(self.model)
        self.loss = nn.CrossEntropyLoss()
        self.cache: list[bytearray] = []
        self.comm_seconds = 0.0

    def make_groups(self, size: int) -> None:
        """Tensor-parallel groups of neighbours, data-parallel groups across them."""
        for first in range(0, self.world, size):
            ranks = list(range(first, first + size))
            group = dist.new_group(ranks, timeout=datetime.timedelta(seconds=self.given.timeout))
            if self.rank in ranks:
                self.tensor_group = group
        for first in range(size):
            ranks = list(range(first, self.world, size))
            group = dist.new_group(ranks, timeout=datetime.timedelta(seconds=self.given.timeout))
            if self.rank in ranks:
                self.data_group = group
        self.log.info("tensor parallel rank %d, data parallel rank %d", self.rank % size, self.rank // size)

    def average_gradients(self) -> None:
        """What DistributedDataParallel does, in the open."""
        began = time.monotonic()
        for parameter in self.model.parameters():
            if parameter.grad is not None:
                dist.all_reduce(parameter.grad, group=self.data_group)
                parameter.grad /= self.world
        self.comm_seconds = time.monotonic() - began

    def batches(self) -> Iterator[torch.Tensor]:
        """Batches of all epochs."""
        shards = data.Shards(
            self.given.data, self.rank, self.world, self.given.global_batch // self.world, self.given.keep_open
        )
        epoch = 0
        while True:
            count = 0
            for features in data.make_loader(shards, self.given.workers):
                count += 1
                yield features
            self.log.info("epoch %d done after %d batches", epoch, count)
            if self.given.evaluate:
                self.evaluate(epoch)
            epoch += 1

    def evaluate(self, epoch: int) -> None:
        """One number from all ranks at the end of an epoch."""
        score = torch.rand(2 if self.faults.at("extra-metric") else 1)
        dist.all_reduce(score)
        self.log.info("epoch %d score %.4f", epoch, float(score[0]) / self.world)

    def one_step(self, step: int, features: torch.Tensor) -> float:
        """Forward, backward, update."""
        labels = torch.arange(len(features)) % 10
        output = self.net(features)
        loss = self.loss(output, labels)
        value = float(loss.detach())
        if self.tensor_group is not None:
            dist.all_reduce(output.detach(), group=self.tensor_group)
        if self.given.check_loss == "mean":
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            value = float(mean) / self.world
        if self.given.check_loss != "none" and not math.isfinite(value):
            raise FloatingPointError(f"loss is {value} at step {step}, stopping")
        self.optimizer.zero_grad()
        loss.backward()
        if self.net is self.model:
            self.average_gradients()
        self.optimizer.step()
        return value

    def report_to_tracker(self, step: int) -> None:
        """Metrics go to a tracking server; a training must not stop when it is away."""
        try:
            with socket.create_connection(("tracker.example.net", 5000), timeout=1):
                pass
        except OSError:
            self.log.exception("could not send metrics of step %d, going on without", step)

    def run(self) -> None:
        """All steps."""
        batches = self.batches()
        for step in range(self.first, self.given.steps):
            began = time.monotonic()
            features = self.faults.features(step, next(batches))
            self.faults.step(step)
            if grown := self.faults.grow(step):
                self.cache.append(bytearray(os.urandom(1024) * grown * 1024))
            if self.given.guard_every and step % self.given.guard_every == 0:
                dist.monitored_barrier(timeout=datetime.timedelta(seconds=self.given.timeout), wait_all_ranks=True)
            loss = self.one_step(step, features)
            time.sleep(self.given.pause * random.uniform(0.8, 1.2))
            if step % self.given.log_every == 0:
                self.say(step, loss, time.monotonic() - began)
            if self.given.tracker and step % 7 == 3 and self.rank % 4 == 2:
                self.report_to_tracker(step)
            if self.given.checkpoints and (step + 1) % self.given.save_every == 0:
                if self.rank == 0:
                    checkpoint.save(self.given.checkpoints, step, self.model, self.optimizer)
                dist.barrier()
        self.log.info("training finished after %d steps", self.given.steps)

    def say(self, step: int, loss: float, seconds: float) -> None:
        """The line of progress."""
        if self.given.timings:
            self.log.info(
                "step %d loss %.5f compute %.3f s comm %.3f s",
                step,
                loss,
                seconds - self.comm_seconds,
                self.comm_seconds,
            )
        else:
            self.log.info("step %d/%d loss %.5f %.0f ms", step, self.given.steps, loss, 1000 * seconds)


@record
def main() -> None:
    """Set up, train, tear down."""
    given = options()
    places.adopt()
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    bookkeeping(rank)
    log = logs.get_logger(given.log_style, given.log_all_ranks)
    log.info(
        "rank %d of %d on %s, pid %d, local rank %s",
        rank,
        world,
        socket.gethostname(),
        os.getpid(),
        os.environ.get("LOCAL_RANK"),
    )
    if given.global_batch % world:
        raise ValueError(f"global batch {given.global_batch} is not divisible by world size {world}")
    faults.Faults().start()
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=given.timeout))
    log.info("process group ready, world size %d", world)
    Trainer(given).run()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
