"""Time of training steps under `torch.distributed.pipelining`, with the layers of `bench/pipeline_layers.py`.

    python bench/pipeline_torch.py [--microbatches N ...] [--width N] [--rows N] [--steps N]

Two processes, each on one core, communicate by gloo. The weights are updated by stochastic gradient descent.
"""

import os
import sys
from time import perf_counter

import torch
from torch import nn
from torch.distributed import destroy_process_group, init_process_group
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B
from torch.multiprocessing.spawn import spawn

from pipeline_layers import LAYERS, PROCESSES, Sizes, free_port, sizes_of

SCHEDULES = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B, "interleaved": ScheduleInterleaved1F1B}


class Layers(nn.Module):
    """Dense layers of one width, each followed by a hyperbolic tangent."""

    def __init__(self, count: int, width: int):
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(torch.randn(width, width) / width**0.5) for _ in range(count)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for each in self.weights:
            x = torch.tanh(x @ each)
        return x


def mean_square(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return (output - target).square().mean()


def process(index: int, port: int, sizes: Sizes) -> None:
    """Measure as process `index`; process 0 prints the rows of the table."""
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[index]})
    torch.set_num_threads(1)
    init_process_group("gloo", f"tcp://127.0.0.1:{port}", world_size=PROCESSES, rank=index)
    for microbatches in sizes.microbatches:
        x, y = torch.randn(2, microbatches * sizes.rows, sizes.width)
        for name, kind in SCHEDULES.items():
            chunks = 2 if name == "interleaved" else 1
            modules = [Layers(LAYERS // chunks, sizes.width) for _ in range(chunks)]
            numbers = range(index, chunks * PROCESSES, PROCESSES)
            stages = [
                PipelineStage(module, number, chunks * PROCESSES, torch.device("cpu"))
                for module, number in zip(modules, numbers, strict=True)
            ]
            schedule = kind(stages if chunks > 1 else stages[0], microbatches, loss_fn=mean_square)
            optimizer = torch.optim.SGD([each for module in modules for each in module.parameters()], lr=0.1)

            inputs = [x] if index == 0 else []
            targets = {"target": y} if index == PROCESSES - 1 else {}
            for turn in range(2 + sizes.steps):
                if turn == 2:
                    begin = perf_counter()
                optimizer.zero_grad()
                schedule.step(*inputs, **targets)
                optimizer.step()
            seconds = (perf_counter() - begin) / sizes.steps
            if index == 0:
                print(f"{name:16} {microbatches:12}  {seconds * 1e3:7.1f} ms", flush=True)
    destroy_process_group()


if __name__ == "__main__":
    print("schedule         microbatches    measured", flush=True)
    spawn(process, (free_port(), sizes_of(sys.argv[1:])), nprocs=PROCESSES)
