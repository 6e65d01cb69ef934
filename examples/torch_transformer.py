"""A PyTorch transformer trained with AdamW on eight devices, sharded as in Megatron-LM or automatically.

    python examples/torch_transformer.py
    python examples/torch_transformer.py --auto

The mesh is `data`=4 x `model`=2, of virtual CPU devices. The script prints the loss of each step and that of PyTorch,
the bytes received by a device in a step, and the largest difference of the final parameters from those of PyTorch.
"""

import argparse
import copy
import math
import os

MESH = {"data": 4, "model": 2}
VOCABULARY, WIDTH, HEADS, HIDDEN, LAYERS = 256, 64, 4, 256, 2
BATCH, SEQUENCE, STEPS = 16, 32, 3

# Must be set before jax initializes its devices.
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + (
    f" --xla_force_host_platform_device_count={math.prod(MESH.values())}"
)
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import torch  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402
from torch.nn import functional  # noqa: E402

import sdy  # noqa: E402

MEGATRON = {
    "*.[qkv]_proj.weight": P("model", None),
    "*.up.weight": P("model", None),
    "*.o_proj.weight": P(None, "model"),
    "*.down.weight": P(None, "model"),
    "*.up.bias": P("model"),
}
"""Heads and hidden units are sharded over `model`: output features of the first weight of a pair, input features of the
second. A weight of `torch.nn.Linear` has its output features in dimension 0."""


class Attention(torch.nn.Module):
    """Causal multi-head self-attention."""

    def __init__(self) -> None:
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (
            torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `x` of batch x sequence x width to the same shape."""
        batch, sequence, _ = x.shape
        queries, keys, values = (
            project(x).view(batch, sequence, HEADS, -1).transpose(1, 2)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        seen = functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        return self.o_proj(seen.transpose(1, 2).reshape(batch, sequence, WIDTH))


class Layer(torch.nn.Module):
    """A pre-norm transformer block."""

    def __init__(self) -> None:
        super().__init__()
        self.attention, self.first_norm, self.second_norm = (
            Attention(),
            torch.nn.LayerNorm(WIDTH),
            torch.nn.LayerNorm(WIDTH),
        )
        self.up, self.down = torch.nn.Linear(WIDTH, HIDDEN), torch.nn.Linear(HIDDEN, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `x` of batch x sequence x width to the same shape."""
        x = x + self.attention(self.first_norm(x))
        return x + self.down(functional.gelu(self.up(self.second_norm(x))))


class Transformer(torch.nn.Module):
    """A decoder-only language model with tied embeddings."""

    def __init__(self, layers: int = LAYERS) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, WIDTH)
        torch.nn.init.normal_(self.embedding.weight, std=0.02)
        self.layers = torch.nn.ModuleList(Layer() for _ in range(layers))
        self.head = torch.nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Map `tokens` of batch x sequence to logits of batch x sequence x vocabulary."""
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def loss(model: torch.nn.Module, tokens: torch.Tensor, following: torch.Tensor) -> torch.Tensor:
    """Return the mean cross-entropy of the `following` tokens."""
    return functional.cross_entropy(model(tokens).flatten(0, 1), following.flatten())


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a PyTorch transformer on eight devices.")
    parser.add_argument("--auto", action="store_true", help="let the compiler choose the shardings")
    shardings = sdy.AUTO if parser.parse_args().auto else MEGATRON
    torch.manual_seed(0)
    model = Transformer()
    plain = copy.deepcopy(model)
    optimizer, by_torch = (torch.optim.AdamW(each.parameters(), lr=1e-3) for each in (model, plain))
    tokens, following = (torch.randint(VOCABULARY, (BATCH, SEQUENCE)) for _ in range(2))

    batch = sdy.AUTO if shardings is sdy.AUTO else P("data")
    mesh = sdy.Mesh.of(MESH)
    step = sdy.torch.train_step(model, loss, optimizer, mesh=mesh, shardings=shardings, batch=batch)
    for number in range(STEPS):
        value = step(tokens, following)
        by_torch.zero_grad()
        expected = loss(plain, tokens, following)
        expected.backward()
        by_torch.step()
        print(f"step {number}: loss {value:.5f}, of torch {expected:.5f}")

    print(sdy.account(step, tokens, following))
    model.load_state_dict(step.state_dict())
    pairs = zip(model.parameters(), plain.parameters(), strict=True)
    difference = max((ours - theirs).abs().max().item() for ours, theirs in pairs)
    print(f"largest difference of a parameter from torch's: {difference:.1e}")


if __name__ == "__main__":
    main()
