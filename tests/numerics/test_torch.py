"""torch models trained by `sdy.torch.train_step` on eight devices, compared with training by torch."""

import copy
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import sdy

pytest.importorskip("torchax", reason="torch and torchax are not installed: pip install 'sdy[torch]'")

import torch
from torch.nn import functional

from samples import covering, large, sample
from torch_transformer import MEGATRON, Transformer, loss

EXAMPLE = Path(__file__).parents[2] / "examples/torch_transformer.py"
MESH = sdy.Mesh.of({"data": 4, "model": 2})

LAYOUTS: dict[str, dict[str, Any]] = {
    "megatron": {"shardings": MEGATRON, "batch": P("data")},
    "chosen": {"shardings": sdy.AUTO, "batch": sdy.AUTO},
}

OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, dampening=0.5, weight_decay=0.01),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=1e-3, eps=1e-4),
    "nesterov": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, nesterov=True),
    "plain": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    "amsgrad": lambda parameters: torch.optim.Adam(parameters, amsgrad=True, eps=1e-4),
    "nadam": lambda parameters: torch.optim.NAdam(parameters, eps=1e-4),
    "adagrad": lambda parameters: torch.optim.Adagrad(parameters, eps=1e-4),
    "rmsprop": lambda parameters: torch.optim.RMSprop(parameters, momentum=0.9, eps=1e-4),
    "adadelta": lambda parameters: torch.optim.Adadelta(parameters),
}


class Perceptron(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = torch.nn.Linear(8, 32), torch.nn.Linear(32, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(functional.gelu(self.up(x)))


COLUMNS = {"up.*": P("model"), "down.weight": P(None, "model")}
EVERYWHERE = P(("data", "model"))


def squared(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    return (model(x) - x).square().mean()


def rows(seed: int = 1) -> torch.Tensor:
    return torch.randn((16, 8), generator=torch.Generator().manual_seed(seed))


def seeded(make: Callable[[], torch.nn.Module]) -> torch.nn.Module:
    torch.manual_seed(0)
    return make()


def assert_as_torch(
    model: torch.nn.Module,
    computed: Callable[..., torch.Tensor],
    make_optimizer: Callable[[Any], torch.optim.Optimizer],
    inputs: tuple[torch.Tensor, ...],
    steps: int = 3,
    **given: Any,
) -> Any:
    """Compare the losses and the model's state with torch's, and return the step."""
    plain = copy.deepcopy(model)
    optimizer, by_torch = make_optimizer([*model.parameters()]), make_optimizer([*plain.parameters()])
    step = sdy.torch.train_step(model, computed, optimizer, mesh=MESH, **given)
    for _ in range(steps):
        by_torch.zero_grad()
        expected = computed(plain, *inputs)
        expected.backward()
        by_torch.step()
        np.testing.assert_allclose(step(*inputs), expected.detach(), rtol=1e-5)
    kept = plain.state_dict()
    assert step.state_dict().keys() == kept.keys()
    for name, tensor in step.state_dict().items():
        assert tensor.dtype == kept[name].dtype
        np.testing.assert_allclose(tensor, kept[name], rtol=1e-4, atol=1e-5, err_msg=name)
    return step


@pytest.mark.parametrize(
    ("layout", "optimizer"), [("megatron", "adamw"), pytest.param("chosen", "momentum", marks=large)]
)
def test_a_transformer_is_trained_as_by_torch(layout: str, optimizer: str) -> None:
    tokens = torch.arange(8 * 16).reshape(8, 16) * 37 % 256
    model = seeded(lambda: Transformer(layers=1))
    batch = tokens, tokens.roll(-1, 1)
    step = assert_as_torch(model, loss, OPTIMIZERS[optimizer], batch, **LAYOUTS[layout])
    if layout == "megatron":
        array = step.arrays["layers.0.attention.q_proj.weight"]
        assert array.sharding.shard_shape(array.shape) == (32, 64)


@pytest.mark.parametrize("optimizer", sample(OPTIMIZERS, one_in=2))
def test_optimizers_do_what_they_do_in_torch(optimizer: str) -> None:
    assert_as_torch(seeded(Perceptron), squared, OPTIMIZERS[optimizer], (rows(),), shardings=COLUMNS, batch=P("data"))


@covering
@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({"shardings": COLUMNS, "batch": P("data")}, 2),
        ({"batch": EVERYWHERE}, 1),
        ({"shardings": {"*": EVERYWHERE}, "batch": EVERYWHERE}, 8),
        ({"shardings": {"up.weight": P("model"), "*": sdy.AUTO}}, 2),
    ],
)
@pytest.mark.parametrize("optimizer", ["momentum", "adamw"])
def test_all_layouts_train_alike(given: dict[str, Any], part: int, optimizer: str) -> None:
    step = assert_as_torch(seeded(Perceptron), squared, OPTIMIZERS[optimizer], (rows(),), **given)
    for array in (step.arrays["up.weight"], *step.optimizer_state["up.weight"].values()):
        assert array.ndim == 0 or array.addressable_shards[0].data.size * part == array.size


def test_weights_that_are_split_are_not_gathered() -> None:
    tokens = torch.zeros((8, 16), dtype=torch.int64)
    model = Transformer(layers=1)
    step = sdy.torch.train_step(
        model, loss, torch.optim.AdamW(model.parameters()), mesh=MESH, shardings=MEGATRON, batch=P("data")
    )
    account = sdy.account(step, tokens, tokens)
    by_kind = {
        kind: sum(each.bytes for each in account.received if each.collective == kind)
        for kind in ("all-reduce", "all-gather")
    }
    assert account.bytes_received == pytest.approx(account.compiled.bytes_received)
    assert by_kind["all-gather"] < 0.02 * by_kind["all-reduce"]
    assert {Path(each.where.filename).name for each in account.received if each.where} == {"torch_transformer.py"}
    assert "torch_transformer.py" in str(sdy.report(step, tokens, tokens).headline)


class Peculiar(torch.nn.Module):
    """A model with unused and frozen parameters, buffers that change, and detached values."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down, self.unused = torch.nn.Linear(8, 32), torch.nn.Linear(32, 8), torch.nn.Linear(8, 8)
        self.frozen = torch.nn.Parameter(torch.ones(8), requires_grad=False)
        self.register_buffer("mean", torch.zeros(8))
        self.register_buffer("calls", torch.tensor(0))
        self.register_buffer("mask", torch.ones(8), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.down(torch.tanh(self.up(x)))
        with torch.no_grad():
            self.mean.mul_(0.9).add_(y.mean(0), alpha=0.1)
            self.calls += 1
            target = 2 * y
        return y * torch.detach(y) + y * y.detach() + target * self.frozen * self.mask - y + self.mean


def test_gradients_are_cut_where_torch_cuts_them_and_buffers_change() -> None:
    step = assert_as_torch(
        seeded(Peculiar), squared, OPTIMIZERS["adamw"], (rows(),), shardings={**COLUMNS, "mean": P("model")}
    )
    assert int(step.arrays["calls"]) == 3
    assert "unused.weight" not in step.optimizer_state
    assert step.arrays["mean"].sharding.shard_shape((8,)) == (4,)


def test_what_was_trained_goes_on_in_torch_and_back() -> None:
    model, plain, x = seeded(Perceptron), seeded(Perceptron), rows()
    optimizer, by_torch = OPTIMIZERS["adamw"](model.parameters()), OPTIMIZERS["adamw"](plain.parameters())
    for number in range(3):
        if number != 1:
            step = sdy.torch.train_step(model, squared, optimizer, mesh=MESH, shardings=COLUMNS)
            step(x)
            model.load_state_dict(step.state_dict())
            optimizer.load_state_dict(step.optimizer_state_dict())
        else:
            optimizer.zero_grad()
            squared(model, x).backward()
            optimizer.step()
        by_torch.zero_grad()
        squared(plain, x).backward()
        by_torch.step()
    for name, tensor in plain.state_dict().items():
        np.testing.assert_allclose(model.state_dict()[name], tensor, rtol=1e-4, atol=1e-6)


def test_a_scheduler_changes_the_rate_without_compiling_anew(recwarn: pytest.WarningsRecorder) -> None:
    model, plain, x = seeded(Perceptron), seeded(Perceptron), rows()
    optimizers = [OPTIMIZERS["momentum"](each.parameters()) for each in (model, plain)]
    schedulers = [torch.optim.lr_scheduler.ExponentialLR(each, 0.5) for each in optimizers]
    step = sdy.torch.train_step(model, squared, optimizers[0], mesh=MESH, shardings=COLUMNS, batch=P("data"))
    for _ in range(4):
        optimizers[1].zero_grad()
        squared(plain, x).backward()
        optimizers[1].step()
        step(x)
        for each in schedulers:
            each.step()
    assert len(step._programs) == 2
    np.testing.assert_allclose(step.state_dict()["up.weight"], plain.up.weight.detach(), rtol=1e-4, atol=1e-6)
    assert not [each for each in recwarn if "scheduler" in str(each.message)]


def test_dropout_differs_between_steps_and_repeats_with_the_seed() -> None:
    def losses(seed: int) -> list[float]:
        model = torch.nn.Sequential(seeded(Perceptron), torch.nn.Dropout(0.5))
        step = sdy.torch.train_step(model, squared, torch.optim.SGD(model.parameters(), lr=0.0), mesh=MESH, seed=seed)
        return [float(step(rows())) for _ in range(2)]

    first = losses(0)
    assert len({*first, *losses(1)}) == 4
    assert losses(0) == first


def test_narrow_parameters_stay_narrow() -> None:
    model = seeded(Perceptron).to(torch.bfloat16)
    step = sdy.torch.train_step(model, squared, torch.optim.AdamW(model.parameters(), lr=0.1), mesh=MESH)
    before = model.up.weight.detach().clone()
    for _ in range(2):
        step(rows().to(torch.bfloat16))
    after = step.state_dict()["up.weight"]
    assert after.dtype == torch.bfloat16
    assert 0.1 < (after - before).abs().max() < 0.3
    assert {str(kept["exp_avg"].dtype) for kept in step.optimizer_state.values()} == {"bfloat16"}


def test_meta_model_is_reported_for_more_devices_than_exist() -> None:
    with torch.device("meta"):
        model = Transformer(layers=1)
    mesh = sdy.Mesh.of({"data": 64, "model": 4})
    optimizer = torch.optim.AdamW(model.parameters())
    step = sdy.torch.train_step(model, loss, optimizer, mesh=mesh, shardings=MEGATRON, batch=P("data"))
    tokens = torch.empty((1024, 16), dtype=torch.int64, device="meta")
    account = sdy.account(step, tokens, tokens)
    assert 0 < account.bytes_received < 1e9
    with pytest.raises(ValueError, match="abstract mesh of 256 devices"):
        step(tokens, tokens)


def test_a_model_computes_what_it_does_in_torch() -> None:
    model = seeded(Perceptron).eval()
    computed = sdy.torch.forward(model, mesh=MESH, shardings=COLUMNS, batch=P("data"))
    result = computed(rows())
    np.testing.assert_allclose(result, model(rows()).detach(), rtol=1e-5, atol=1e-6)
    assert [each.collective for each in sdy.account(computed, rows()).received] == ["all-reduce"]
    with pytest.raises(NotImplementedError, match="in training"):
        sdy.torch.forward(model.train(), mesh=MESH)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient * 3


class WithTensor(Perceptron):
    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.ones(8)


def adamw(model: torch.nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters())


def hooked(model: torch.nn.Module) -> torch.optim.Optimizer:
    optimizer = adamw(model)
    optimizer.register_step_post_hook(lambda *_: None)
    return optimizer


def changing(model: Any, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        model.up.weight.mul_(0.5)
    return squared(model, x)


def branching(model: Any, x: torch.Tensor) -> torch.Tensor:
    y = squared(model, x)
    return y if y > 0 else -y


STRAY = torch.ones(8)


@pytest.mark.parametrize(
    ("make", "computed", "optimizer", "problem"),
    [
        (
            Perceptron,
            lambda model, x: Doubled.apply(model(x)).sum(),
            adamw,
            "Function has a custom gradient",
        ),
        (Perceptron, lambda model, x: model(x), adamw, r"the loss must be a scalar .* shape \(16, 8\)"),
        (Perceptron, lambda model, x: 1.0, adamw, "the loss must be a scalar .* not float"),
        (
            Perceptron,
            lambda model, x: squared(model, x * STRAY),
            adamw,
            "neither .* model nor part of the batch",
        ),
        (Perceptron, changing, adamw, "up.weight is changed while the loss is computed"),
        (Perceptron, branching, adamw, "depends on the values of tensors"),
        (Perceptron, squared, lambda model: torch.optim.Adafactor(model.parameters()), "torch.optim.Adafactor depends"),
        (
            Perceptron,
            squared,
            lambda model: torch.optim.LBFGS(model.parameters()),
            "LBFGS evaluates the loss",
        ),
        (Perceptron, squared, hooked, "hooks around its step"),
        (Perceptron, squared, lambda _: adamw(Perceptron()), r"parameter of shape \(32, 8\) that the model does not"),
        (lambda: torch.nn.BatchNorm1d(8), squared, adamw, "BatchNorm1d .* running statistics .*GroupNorm"),
        (WithTensor, squared, adamw, "WithTensor.scale .*register_buffer"),
        (lambda: Perceptron().double(), squared, adamw, "JAX would round torch.float64 .*jax_enable_x64"),
    ],
)
def test_what_would_not_be_as_in_torch_is_refused(make: Any, computed: Any, optimizer: Any, problem: str) -> None:
    model = make()
    with pytest.raises((NotImplementedError, TypeError, ValueError), match=problem):
        sdy.torch.train_step(model, computed, optimizer(model), mesh=MESH)(rows())


def test_what_was_chosen_is_told() -> None:
    model = Perceptron()
    step = sdy.torch.train_step(model, squared, adamw(model), mesh=MESH, shardings={"up.*": P("model"), "*": sdy.AUTO})
    told = str(step.plan(rows()))
    assert "down.weight" in told
    assert step.arrays["up.weight"].shape == (32, 8)
    given = sdy.torch.train_step(model, squared, adamw(model), mesh=MESH)
    with pytest.raises(ValueError, match=r"shardings=sdy\.AUTO lets"):
        given.plan(rows())


def test_the_example_trains_as_torch_does() -> None:
    run = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=True)
    pairs = re.findall(r"step \d: loss ([\d.]+), of torch ([\d.]+)", run.stdout)
    assert len(pairs) == 3
    np.testing.assert_allclose(*np.array(pairs, dtype=float).T, rtol=1e-4)
    (difference,) = re.findall(r"from torch's: (\S+)", run.stdout)
    assert float(difference) < 1e-4
