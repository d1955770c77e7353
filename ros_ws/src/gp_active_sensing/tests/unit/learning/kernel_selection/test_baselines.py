"""What VBKS is compared with: exact Gaussian processes, GPyTorch's SVGP, one kernel, a constant."""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gp_active_sensing.errors import BeliefError, ConfigError, ReadingError
from gp_active_sensing.kernel_model.model import History, KernelFit, KernelModel, Scaling
from gp_active_sensing.kernel_model.posterior import kernel_belief
from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.kernels.grammar import MATERN, parse, sentences
from gp_active_sensing.learning.data.dataset import Dataset
from gp_active_sensing.learning.kernel_selection.config import VbksConfig
from tests.reference import direct_vbks as direct
from tests.reference.direct_vbks import Task

FOLDER = Path(__file__).resolve().parents[4] / "benchmarks"

if not FOLDER.is_dir():
    pytest.skip("the benchmarks are not installed", allow_module_level=True)

needs_torch = pytest.mark.heavy("learn")


@pytest.fixture(autouse=True)
def fixture_benchmarks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Import from the benchmarks' folder while a test runs."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "kernel_selection"]:
        del sys.modules[name]


def wave(n: int = 80, *, seed: int = 0, shift: float = 40.0, unit: float = 5.0) -> Dataset:
    """Return noisy readings of a smooth field in some unit, away from zero."""
    rng = np.random.default_rng([5, seed])
    X = rng.uniform(100.0, 130.0, size=(n, 1))
    y = np.sin(X[:, 0] / 3.0) + 0.1 * rng.normal(size=n)
    return Dataset(X, shift + unit * y, ("x",), "temperature", "a wave")


def truth(X: np.ndarray) -> np.ndarray:
    return 40.0 + 5.0 * np.sin(X[:, 0] / 3.0)


# -- exact Gaussian processes -------------------------------------------------------------------


def task(name: str, n: int = 12, seed: int = 0) -> Task:
    rng = np.random.default_rng([6, seed])
    composite = Composite(parse(name), 2)
    X = rng.normal(size=(n, 2))
    return Task(composite, X, rng.normal(size=n), X[:3], floor=0.02)


@needs_torch
@pytest.mark.parametrize("name", ["SE", "PER×LIN", "RQ+LIN", "(MAT12+PER)×RQ", "MAT52"])
def test_the_log_posterior_and_its_derivatives(name: str) -> None:
    from kernel_selection.exact import Posterior

    of = task(name)
    posterior = Posterior(of.composite, of.X, of.y, of.floor)
    mean, std = of.composite.prior
    theta = mean + 0.5 * std * np.random.default_rng(1).normal(size=len(mean))
    assert posterior.log_likelihood(theta) == pytest.approx(direct.log_marginal(of, theta))
    value, gradient = posterior.negative(theta)
    stated = direct.log_marginal(of, theta) + direct.log_prior(of.composite, theta)
    assert value == pytest.approx(-stated)
    hessian = posterior.hessian(theta)
    np.testing.assert_allclose(hessian, hessian.T, atol=1e-8)
    for i, step in enumerate(1e-5 * np.eye(len(theta))):
        up, down = posterior.negative(theta + step), posterior.negative(theta - step)
        assert gradient[i] == pytest.approx((up[0] - down[0]) / 2e-5, rel=1e-5, abs=1e-6)
        np.testing.assert_allclose(
            hessian[i], (up[1] - down[1]) / 2e-5, rtol=1e-4, atol=1e-4, err_msg=name
        )


@needs_torch
def test_laplace_is_near_the_evidence_by_quadrature() -> None:
    """With many rows log p(θ|y) is nearly a parabola."""
    from kernel_selection.exact import fit_exact

    rng = np.random.default_rng(3)
    X = np.sort(rng.uniform(-2.0, 2.0, size=(60, 1)), axis=0)
    y = np.sin(4.0 * X[:, 0]) + 0.3 * rng.normal(size=60)
    of = Task(Composite(parse("SE"), 1), X, y / y.std(), X[:1], floor=1e-3)
    found = fit_exact(of.composite, of.X, of.y, floor=of.floor)
    exact = direct.log_evidence(of, 121)
    assert exact == pytest.approx(direct.log_evidence(of, 101), abs=2e-3), "fine enough"
    assert found.laplace == pytest.approx(exact, abs=0.3)
    assert found.bic == pytest.approx(found.log_likelihood - 1.5 * math.log(60))


@needs_torch
def test_the_most_probable_parameters_are_found() -> None:
    from kernel_selection.exact import Posterior, fit_exact

    of = task("PER+SE", n=30, seed=2)
    found = fit_exact(of.composite, of.X, of.y, floor=of.floor)
    posterior = Posterior(of.composite, of.X, of.y, of.floor)
    least, gradient = posterior.negative(found.theta)
    assert np.abs(gradient).max() < 0.2
    rng = np.random.default_rng(0)
    for _ in range(30):
        away = found.theta + 0.3 * rng.normal(size=len(found.theta))
        assert posterior.negative(away)[0] > least - 1e-3
    again = fit_exact(of.composite, of.X, of.y, floor=of.floor)
    np.testing.assert_array_equal(again.theta, found.theta)


@needs_torch
def test_a_choice_is_the_kernel_that_made_the_rows() -> None:
    from kernel_selection.baselines import (
        bic_choice,
        exact_choice,
        laplace_choice,
    )

    rng = np.random.default_rng(8)
    X = rng.uniform(-3.0, 3.0, size=(60, 1))
    rows = Dataset(X, 2.0 * X[:, 0] + 0.2 * rng.normal(size=60), ("x",), "v", "a line")
    kernels = sentences(1)
    for choose, criterion in ((laplace_choice, "laplace"), (bic_choice, "bic")):
        choice = choose(rows, kernels, 50, 1)
        assert str(choice) == choice.names[0] == "LIN"
        assert sorted(choice.names) == sorted(str(k) for k in kernels)
        assert (np.diff(choice.scores) <= 0.0).all()
        assert choice.criterion == criterion
        assert len(choice.y) == 50
    other = exact_choice(rows, kernels, 50, 1, criterion="bic").by("laplace")
    np.testing.assert_array_equal(other.scores, laplace_choice(rows, kernels, 50, 1).scores)


@needs_torch
def test_an_exact_prediction_is_that_of_the_textbook() -> None:
    """In given units, with the inverse of the whole matrix. [Rasmussen2006, Eqs. 2.25-2.26]."""
    from kernel_selection.baselines import exact_choice

    rows = wave()
    choice = exact_choice(rows, [parse("SE")], 60, 4)
    X = np.linspace(98.0, 132.0, 25)[:, None]
    mean, variance = choice.predict(X)
    _, noisy = choice.predict(X, noisy=True)
    theta, scaling = choice.fits[0].theta, choice.scaling
    noise = choice.floor**2 + math.exp(2.0 * theta[0])
    kernel = Composite(parse("SE"), 1)
    Z = (X - scaling.input_shift) / scaling.input_scale
    K = np.linalg.inv(kernel.covariance(theta, choice.X, choice.X) + noise * np.eye(60))
    across = kernel.covariance(theta, Z, choice.X)
    unit = scaling.output_scale
    np.testing.assert_allclose(mean, scaling.output_shift + unit * across @ K @ choice.y, rtol=1e-6)
    prior = kernel.covariance(theta, Z, Z)
    stated = unit**2 * (prior - across @ K @ across.T).diagonal()
    np.testing.assert_allclose(variance, stated, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(noisy - variance, unit**2 * noise)
    inside = (X[:, 0] > 100.0) & (X[:, 0] < 130.0)
    assert np.abs(mean - truth(X))[inside].max() < 1.0


@needs_torch
def test_kernels_without_a_covariance_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from kernel_selection import exact
    from kernel_selection.baselines import exact_choice

    kind = exact.fit_exact

    def fails(composite: Composite, *args: object, **options: object) -> object:
        if composite.name == "LIN":
            msg = "kernel LIN: its covariance is not positive definite at any start"
            raise BeliefError(msg)
        return kind(composite, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(exact, "fit_exact", fails)
    choice = exact_choice(wave(), [parse("LIN"), parse("SE")], 30)
    assert choice.names == ("SE",)
    assert choice.dropped[0][0] == "LIN"
    with pytest.raises(BeliefError, match="none of 1 kernels could be fitted"):
        exact_choice(wave(), [parse("LIN")], 30)


# -- GPyTorch's SVGP ----------------------------------------------------------------------------

SMALL = VbksConfig(inducing=12, batch=80, iterations=120, restarts=1)


@needs_torch
def test_the_svgp_learns_and_its_bound_is_below_ours_at_the_same_place() -> None:
    """For one θ and one U: with q(u) at its best ours is theirs, or a little more."""
    import torch
    from kernel_selection.baselines import svgp_se

    rows = wave()
    found = svgp_se(rows, SMALL)
    assert found.losses[-20:].mean() < found.losses[:20].mean()
    X = np.linspace(101.0, 129.0, 40)[:, None]
    mean, variance = found.predict(X)
    assert np.sqrt(np.mean((mean - truth(X)) ** 2)) < 0.5
    assert (variance > 0.0).all()
    _, noisy = found.predict(X, noisy=True)
    noise = SMALL.noise_floor**2 + math.exp(2.0 * found.theta[0])
    np.testing.assert_allclose(noisy - variance, found.scaling.output_scale**2 * noise, rtol=1e-6)
    Z = found.model.variational_strategy.inducing_points.detach().numpy()
    X, y = found.scaling.inputs(rows.inputs), found.scaling.outputs(rows.outputs)
    of = Task(found.composite, X, y, Z, floor=SMALL.noise_floor)
    with torch.no_grad():
        latent = found.model(torch.from_numpy(X))
        data = found.likelihood.expected_log_prob(torch.from_numpy(y), latent).sum().item()
        theirs = data - found.model.variational_strategy.kl_divergence().item()
    ours, _ = direct.collapsed_bound(of, found.theta)
    assert theirs < ours + 0.05, "their jitter is another one"
    assert theirs > ours - 1.0


@needs_torch
def test_the_svgp_is_reproducible_and_starts_again() -> None:
    from kernel_selection.baselines import svgp_se

    rows = wave(40)
    config = VbksConfig(inducing=6, batch=16, iterations=30, restarts=2)
    one, other = svgp_se(rows, config), svgp_se(rows, config)
    np.testing.assert_array_equal(one.losses, other.losses)
    assert len(one.losses) == 30
    with pytest.raises(ConfigError, match="float64, got float32"):
        svgp_se(rows, VbksConfig(dtype="float32", hyperparameters="point"))
    flat = Dataset(rows.inputs, np.full(40, 3.0), ("x",), "v", "a flat field")
    with pytest.raises(ReadingError, match="a flat field"):
        svgp_se(flat, config)


# -- one kernel of a model ----------------------------------------------------------------------


def model() -> KernelModel:
    """Return a model of three kernels, made by hand."""
    fits = []
    for k, name in enumerate(("SE", "LIN", "PER")):
        composite = Composite(parse(name), 1)
        P, M = composite.size, 3
        rng = np.random.default_rng(k)
        fit = KernelFit(
            composite,
            -10.0 - k,
            composite.prior[0],
            np.zeros((P, P)),
            np.linspace(-1.0, 1.0, M)[:, None],
            rng.normal(size=M),
            0.3 * np.eye(M),
            True,
            1e-3,
            10,
            "made",
            np.zeros((0, 3)),
        )
        fits.append(fit)
    belief = kernel_belief([fit.bound for fit in fits])
    nothing = np.zeros((0, 3))
    history = History(np.zeros(0), ("SE", "LIN", "PER"), nothing, nothing, nothing)
    scaling = Scaling(np.array([5.0]), np.array([2.0]), 40.0, 3.0)
    return KernelModel(tuple(fits), belief, (), scaling, ("x",), "v", 20, "hand", history)


def test_one_kernel_of_a_model() -> None:
    from kernel_selection.baselines import (
        best_kernel,
        only,
        random_kernel,
    )

    whole = model()
    X = np.linspace(0.0, 10.0, 7)[:, None]
    best = best_kernel(whole)
    assert best.names == ("SE",)
    np.testing.assert_allclose(best.belief.probabilities, [1.0])
    for k, name in enumerate(whole.names):
        alone = only(whole, name)
        assert alone.names == (name,)
        for noisy in (False, True):
            found = alone.predict(X, noisy=noisy)
            np.testing.assert_allclose(found, whole.predict(X, noisy=noisy, kernels=[k]))
    rng = np.random.default_rng(0)
    drawn = [random_kernel(whole, rng).names[0] for _ in range(300)]
    for name in whole.names:
        assert abs(drawn.count(name) - 100) < 5.0 * math.sqrt(300 * 2 / 9)
    with pytest.raises(ConfigError, match="no kernel 'RQ'; it has SE, LIN, PER"):
        only(whole, "RQ")


def test_a_constant(tmp_path: Path) -> None:
    """Far from zero and on disk: nothing cancels, nothing is copied."""
    from kernel_selection.baselines import constant

    values = 1e6 + np.random.default_rng(0).normal(size=70_000)
    np.save(tmp_path / "y.npy", values)
    stored = np.load(tmp_path / "y.npy", mmap_mode="r")
    rows = Dataset(np.zeros((70_000, 1)), stored, ("x",), "v", "a file")
    mean, variance = constant(rows).predict(np.zeros((3, 1)), noisy=True)
    np.testing.assert_allclose(mean, values.mean(), rtol=1e-12)
    np.testing.assert_allclose(variance, values.var(ddof=1), rtol=1e-6)
    assert mean.shape == variance.shape == (3,)


pytestmark = pytest.mark.heavy("learn")

LEVEL3 = sentences(3)
OTHERS = (
    *sentences(2, (*MATERN, "SE")),
    parse("(SE+PER)×(LIN+RQ)"),
    parse("((SE+PER)×LIN+RQ)×MAT32"),
    parse("(SE×PER+LIN)×SE"),
    parse("(SE+PER)×(LIN+RQ)×SE"),
)


def drawn(composite: Composite, seed: int) -> np.ndarray:
    """Return θ drawn from its prior."""
    mean, std = composite.prior
    return mean + std * np.random.default_rng([7, seed]).normal(size=composite.size)


def worst(found: np.ndarray, wanted: np.ndarray) -> float:
    """Return the largest difference, relative to the largest entry where that is above one."""
    return float(np.abs(found - wanted).max() / max(1.0, np.abs(wanted).max()))


@pytest.mark.parametrize("d", [1, 3])
def test_the_covariance_is_that_of_the_composite(d: int) -> None:
    import torch
    from kernel_selection.gpytorch_kernels import as_gpytorch, theta_of

    rng = np.random.default_rng(d)
    X, Z = rng.normal(size=(7, d)), rng.normal(size=(5, d))
    for seed, expression in enumerate((*LEVEL3, *OTHERS)):
        composite = Composite(expression, d)
        theta = drawn(composite, seed)
        kernel = as_gpytorch(composite, theta)
        with torch.no_grad():
            between = kernel(torch.from_numpy(X), torch.from_numpy(Z)).to_dense().numpy()
            gram = kernel(torch.from_numpy(X)).to_dense().numpy()
            diagonal = kernel(torch.from_numpy(X), diag=True).numpy()
        assert worst(between, composite.covariance(theta, X, Z)) < 1e-10, expression
        assert worst(diagonal, composite.variance(theta, X)) < 1e-10, expression
        # At one place the square of a distance is rounded, and MAT12 has its root.
        loose = 2e-7 if "MAT12" in composite.leaves else 1e-10
        assert worst(gram, composite.covariance(theta, X, X)) < loose, expression
        np.testing.assert_allclose(theta_of(composite, kernel, math.exp(theta[0])), theta)


def test_sums_and_products_are_exact_where_gpytorch_s_own_are_not() -> None:
    """Matrices of rank 1: factors with jitter would not give their product."""
    import torch
    from kernel_selection.gpytorch_kernels import as_gpytorch

    composite = Composite(parse("LIN×LIN×LIN"), 1)
    theta = np.array([0.0, 1.0, -0.5, 0.2, -0.4])
    X = np.linspace(-1.0, 2.0, 9)[:, None]
    with torch.no_grad():
        gram = as_gpytorch(composite, theta)(torch.from_numpy(X)).to_dense().numpy()
    stated = math.exp(2.0 * theta[1] - 2.0 * theta[2:].sum()) * (X @ X.T) ** 3
    np.testing.assert_allclose(gram, stated, rtol=1e-12, atol=1e-13)


def test_every_parameter_has_one_place() -> None:
    from kernel_selection.gpytorch_kernels import as_gpytorch, bindings

    for expression in (*LEVEL3, *OTHERS):
        composite = Composite(expression, 2)
        bound = bindings(composite)
        where = np.sort(np.concatenate([b.indices for b in bound]))
        np.testing.assert_array_equal(where, np.arange(1, composite.size))
        names = [name for name, _ in as_gpytorch(composite).named_parameters()]
        assert sorted(names) == sorted(b.name for b in bound), expression


def log_prior(composite: Composite, theta: np.ndarray) -> float:
    """Return log p(θ) without the noise."""
    mean, std = (v[1:] for v in composite.prior)
    z = (theta[1:] - mean) / std
    return float((-0.5 * z**2 - np.log(std) - 0.5 * math.log(2.0 * math.pi)).sum())


@pytest.mark.parametrize("name", ["(PER+RQ)×LIN", "PER×LIN×SE", "MAT32", "LIN"])
def test_priors_are_those_of_the_composite(name: str) -> None:
    from kernel_selection.gpytorch_kernels import as_gpytorch, likelihood

    composite = Composite(parse(name), 3)
    theta = drawn(composite, 5)
    kernel = as_gpytorch(composite, theta)
    found = sum(
        prior.log_prob(closure(module)).sum().item()
        for _, module, prior, closure, _ in kernel.named_priors()
    )
    assert found == pytest.approx(log_prior(composite, theta), abs=1e-10)
    noise = likelihood(composite, theta, floor=0.25)
    assert noise.noise.item() == pytest.approx(0.0625 + math.exp(2.0 * theta[0]))
    ((_, module, prior, closure, _),) = noise.named_priors()
    mean, std = (float(v[0]) for v in composite.prior)
    stated = -0.5 * ((theta[0] - mean) / std) ** 2 - math.log(std) - 0.5 * math.log(2 * math.pi)
    assert prior.log_prob(closure(module)).item() == pytest.approx(stated, abs=1e-10)


def test_hyper_parameters_can_be_drawn_from_their_priors() -> None:
    import torch
    from kernel_selection.gpytorch_kernels import as_gpytorch, theta_of

    composite = Composite(parse("PER×LIN×RQ"), 2)
    kernel = as_gpytorch(composite)
    np.testing.assert_allclose(theta_of(composite, kernel), composite.prior[0])
    found = []
    with torch.random.fork_rng():
        torch.manual_seed(3)
        for _ in range(400):
            for name, module, *_ in list(kernel.named_priors()):
                module.sample_from_prior(name.rsplit(".", 1)[-1])
            found.append(theta_of(composite, kernel)[1:])
    mean, std = (v[1:] for v in composite.prior)
    z = (np.array(found) - mean) / std
    assert np.abs(z.mean(axis=0)).max() < 5.0 / math.sqrt(400)
    assert np.abs(z.std(axis=0) - 1.0).max() < 5.0 / math.sqrt(800)


def test_a_kernel_can_be_copied_and_has_slopes() -> None:
    import torch
    from kernel_selection.gpytorch_kernels import as_gpytorch, bindings

    composite = Composite(parse("(PER+RQ)×LIN"), 2)
    theta = drawn(composite, 2)
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(6, 2)), rng.normal(size=(6, 6))

    def value(at: np.ndarray) -> float:
        return float((weights * composite.covariance(at, X, X)).sum())

    kernel = copy.deepcopy(as_gpytorch(composite, theta))
    (torch.from_numpy(weights) * kernel(torch.from_numpy(X)).to_dense()).sum().backward()
    slopes = np.zeros(composite.size)
    parameters = dict(kernel.named_parameters())
    for bound in bindings(composite):
        slopes[bound.indices] = bound.factor * parameters[bound.name].grad.numpy().ravel()
    for i, step in enumerate(1e-6 * np.eye(composite.size)):
        difference = (value(theta + step) - value(theta - step)) / 2e-6
        assert slopes[i] == pytest.approx(difference, rel=1e-6, abs=1e-6)
