"""A network small enough for a CPU and large enough to have several gradient buckets."""

from __future__ import annotations

import ops
import torch
from torch import nn


class Encoder(nn.Module):
    """Two blocks and a head."""

    def __init__(self, width: int = 128, hidden: int = 256, classes: int = 10) -> None:
        super().__init__()
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)
        self.head = nn.Linear(width, classes)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.up(features))
        hidden = ops.fused_norm(self.down(hidden) + features)
        out: torch.Tensor = self.head(hidden)
        return out
