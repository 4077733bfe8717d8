"""torchrun --nproc-per-node 2 ddp_uneven.py: DDP, each rank with a batch of its own size."""

import time

import apportion
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

BATCH, STEPS, PROBE = 240, 60, 5

dist.init_process_group("gloo")  # "nccl" on GPUs
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1)
torch.set_num_threads(1)
model = DistributedDataParallel(
    torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
)
optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
inputs = torch.randn(BATCH, 20)
targets = inputs.sum(dim=1, keepdim=True)

balancer = apportion.Balancer(BATCH, size, min=1)
for step in range(STEPS):
    mine = balancer.slices[rank]
    probe = step % PROBE == 0
    begin = time.perf_counter()
    # DDP averages over ranks, so the sum over this rank's samples is divided by the mean batch of a rank.
    losses = torch.nn.functional.mse_loss(model(inputs[mine]), targets[mine], reduction="sum")
    loss = losses * size / BATCH
    optimiser.zero_grad()
    if not probe:
        loss.backward()
    else:
        # A probe computes without communication, so that its time is this rank's own. On GPUs, call
        # torch.cuda.synchronize() before each look at the clock.
        with model.no_sync():
            loss.backward()
        time.sleep(1e-4 * (mine.stop - mine.start) * rank)  # This example's slower device.
        seconds = torch.tensor([time.perf_counter() - begin], dtype=torch.float64)
        times = [torch.zeros_like(seconds) for _ in range(size)]
        dist.all_gather(times, seconds)
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= size
        if balancer.observe([t.item() for t in times]) and rank == 0:
            print(f"step {step}: batches of {balancer.counts}")
    optimiser.step()

dist.all_reduce(losses)
if rank == 0:
    print(f"batches of {balancer.counts}, mean loss {losses.item() / BATCH:.4f}")
dist.destroy_process_group()
