"""Shards on disk, one list of shards for each rank, read in the rank's process or in data-loader workers."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset


class Shards(IterableDataset):  # type: ignore[type-arg]
    """Batches from `shard-*.npy`; shard i belongs to rank i modulo the world size."""

    def __init__(self, root: str, rank: int, world: int, batch: int, keep_open: bool) -> None:
        names = sorted(pathlib.Path(root, "index.txt").read_text().split())
        self.files = [pathlib.Path(root, name) for name in names[rank::world]]
        self.batch = batch
        self.keep_open = keep_open
        self.handles: list[object] = []

    def __iter__(self) -> Iterator[torch.Tensor]:
        for path in self.files:
            samples = self.read(path)
            for first in range(0, len(samples), self.batch):
                yield torch.from_numpy(np.array(samples[first : first + self.batch]))

    def read(self, path: pathlib.Path) -> np.ndarray:
        """One shard; with `keep_open` its file handle stays open for later epochs."""
        handle = open(path, "rb")  # noqa: SIM115
        samples = np.load(handle)
        if self.keep_open:
            self.handles.append(handle)
        else:
            handle.close()
        return samples


def make_loader(shards: Shards, workers: int) -> DataLoader:  # type: ignore[type-arg]
    """A loader over the shards of this rank."""
    more = {"prefetch_factor": 8} if workers else {}
    return DataLoader(shards, batch_size=None, num_workers=workers, **more)
