"""Runs in a process of its own with one engine and writes what the baselines computed as JSON (baselines.py)."""

from __future__ import annotations

import itertools
import json
import sys
import warnings
from pathlib import Path

import numpy as np
from nets_probe import Z3, Watcher, Z, auc, f32, home, i32, problem

from llpbench import Bags, QuietMonitor
from llpbench_methods.count_nll.loss import count_losses, exact_losses, log_count_law, log_probabilities
from llpbench_methods.count_nll.method import CountNLL
from llpbench_methods.dllp.loss import bag_squared_error
from llpbench_methods.dllp.method import DLLP
from llpbench_methods.dllp.method import loss as dllp_loss
from llpbench_methods.easyllp.loss import batch_loss, debiased_targets, one_row_of_each_bag, row_losses
from llpbench_methods.easyllp.method import EasyLLP
from llpbench_methods.genbags.loss import drawn_block_losses, drawn_weights, mean_block_losses, residuals
from llpbench_methods.genbags.method import GenBags
from llpbench_methods.llp_fc.loss import forward_loss, forward_losses
from llpbench_methods.llp_fc.method import LLPFC
from llpbench_methods.llp_vat.loss import adversarial_directions, divergences, ramp, unit_rows
from llpbench_methods.llp_vat.method import LLPVAT
from llpbench_methods.nets.batches import BagBatches
from llpbench_methods.nets.chunked import in_chunks
from llpbench_methods.nets.engine import engine, keras, ops
from llpbench_methods.nets.losses import bag_cross_entropy
from llpbench_methods.nets.mlp import dense, draw_weights, mlp
from llpbench_methods.nets.params import NetworkSettings
from llpbench_methods.nets.training import Trainer, TrainingData, frozen_state
from llpbench_methods.nets.wrn import augmented, wide_resnet
from llpbench_methods.random_labels.method import RandomLabels

ONE_BAG = (i32([0] * 4), f32([4]))


def slope(function, at):
    """Value and gradient of a function of one array."""
    (value, _), (gradient,) = engine().value_and_gradient(lambda w: (function(w[0]), ()), [f32(at)])
    return float(value), home(gradient)


def dllp():
    def error(of_counts):
        def of_logits(z):
            return bag_squared_error(z, *ONE_BAG, f32([[0.25]]), f32([1]), of_counts=of_counts)

        return slope(of_logits, Z)

    many = bag_squared_error(f32(Z3), *ONE_BAG, f32([[0.5, 0.25, 0.25]]), f32([1]), of_counts=False)
    uneven = bag_squared_error(
        f32(Z), i32([0, 1, 1, 2]), f32([1, 2, 0]), f32([[0.5], [1.5], [9]]), f32([1, 1, 0]), of_counts=True
    )
    return {"proportion": error(False), "count": error(True), "multiclass": float(many), "uneven": float(uneven)}


def easy_loss(z, count, prior, *, size=None, **more):
    size = size or len(z)
    target = debiased_targets(np.atleast_2d(count), np.array([size]), np.atleast_1d(prior))
    rows = f32(np.repeat(target, len(z), axis=0))
    square = more.pop("square", False)
    per_row = row_losses(z, rows, square=square)
    return batch_loss(per_row, i32([0] * len(z)), f32([len(z)]), f32([1]), **more)


def easyllp():
    value, gradient = slope(lambda z: easy_loss(z, 1.0, 0.3), Z)
    shifted = np.array(Z) - 20
    law, rate, logit = (0.5, 0.3, 0.2), (0.1, 0.4, 0.8), (-1.0, 0.3, 1.5)
    p = sum(a * b for a, b in zip(law, rate, strict=True))
    bags = list(itertools.product(itertools.product(range(3), (0, 1)), repeat=3))
    chance = np.array([np.prod([law[x] * (rate[x] if y else 1 - rate[x]) for x, y in bag]) for bag in bags])
    z = np.array([[logit[x] for x, _ in bag] for bag in bags])
    counts = np.array([[sum(y for _, y in bag)] for bag in bags], float)
    targets = debiased_targets(counts, np.full(len(bags), 3), np.array([p]))
    out = {}
    for name, square in (("log", False), ("square", True)):
        per_row = home(row_losses(f32(z.ravel()), f32(np.repeat(targets, 3, axis=0)), square=square))
        out[name] = float(chance @ np.asarray(per_row).reshape(-1, 3).mean(axis=1))
    bag_of, sizes = i32([0] * 5 + [1] * 2 + [2] * 3 + [3] * 2), f32([5, 2, 3])
    picks = np.array([home(one_row_of_each_bag(bag_of, 3, i32([1, t]))) for t in range(300)])
    picked = batch_loss(
        f32(np.arange(12)), bag_of, sizes, f32([1, 1, 1]), chosen=one_row_of_each_bag(bag_of, 3, i32([5, 5]))
    )
    return {
        "value": value,
        "gradient": gradient,
        "count_0": float(easy_loss(f32(Z), 0.0, 0.3)),
        "count_0_low": float(easy_loss(f32(shifted), 0.0, 0.3)),
        "count_4_high": float(easy_loss(f32(np.array(Z) + 20), 4.0, 0.3)),
        "absolute": float(easy_loss(f32(shifted), 0.0, 0.3, remedy="absolute")),
        "relu": float(easy_loss(f32(shifted), 0.0, 0.3, remedy="relu")),
        "multiclass": float(easy_loss(f32(Z3), [2.0, 1.0, 1.0], [0.2, 0.3, 0.5])),
        "square_two": float(easy_loss(f32(Z), 1.0, 0.3, square=True)),
        "square_two_softmax": float(
            easy_loss(f32(np.column_stack([np.zeros(4), Z])), [3.0, 1.0], [0.7, 0.3], square=True)
        ),
        "enumerated": out,
        "picks_per_bag": [picks[:, :5].sum(1).tolist(), picks[:, 5:7].sum(1).tolist(), picks[:, 7:10].sum(1).tolist()],
        "pick_rates": picks[:, :10].mean(0).tolist(),
        "picked": float(picked),
    }


def genbags():
    W = 1.331 * np.eye(4) - 0.33
    d = np.array([[1.5, -0.5, 0.25, 2], [1, 1, 1, 1], [1, -1, 0, 0]])[:, :, None]
    rows = np.array([[1, -1, 0, 0], [0.5, 0.5, -0.5, -0.5], [1, 1, 1, 1]])[None]
    L = np.linalg.cholesky(W)
    drawn = engine().numpy(drawn_weights(engine().normal(i32([3, 4]), (2000, 100, 4)), f32(L))).reshape(-1, 4)
    exact = np.eye(4) * 4 / 3 - 1 / 3
    first = f32(d[:1])
    p = f32([[0.5], [0.25], [1.0], [0.75], [9.0]])
    return {
        "mean": home(mean_block_losses(f32(d), f32(W)))[0:3],
        "contrast": float(mean_block_losses(first, f32(exact))[0, 0]),
        "absolute_mean": float(mean_block_losses(first, f32(W), norm="l1")[0, 0]),
        "fixed_l2": float(drawn_block_losses(first, f32(rows))[0, 0]),
        "fixed_l1": float(drawn_block_losses(first, f32(rows), norm="l1")[0, 0]),
        "covariance_error": float(np.abs(np.cov(drawn.T) - W).max()),
        "mean_error": float(np.abs(drawn.mean(0)).max()),
        "mean_absolute": float(np.abs(drawn @ d[0, :, 0]).mean()),
        "residuals": home(residuals(p, i32([0, 0, 1, 1, 2]), f32([[1.0], [2.0]]), f32([1, 0]))),
        "gradient": slope(lambda x: mean_block_losses(x, f32(W))[0, 0], d[:1]),
    }


def llp_fc():
    T = np.array([[0.1, 0.4], [0.9, 0.6]])
    z = np.log(0.7 / 0.3)
    pair = forward_losses(f32([z, z]), f32(T))
    soft = forward_losses(f32(np.log([[0.3, 0.7], [0.3, 0.7]])), f32(T))
    flat = slope(lambda z: forward_loss(z, f32(np.full((4, 2), 0.5)), f32(np.ones(4))), Z)
    pure = np.eye(3)[[0, 1, 2, 0]]
    return {
        "pair": home(pair),
        "soft": home(soft),
        "flat": flat,
        "pure": home(forward_losses(f32(Z3), f32(pure))),
        "pure_numpy": (-np.log(np.exp(Z3)[range(4), [0, 1, 2, 0]] / np.exp(Z3).sum(1))).tolist(),
        "confident": home(forward_losses(f32([200.0, -200.0]), f32([[0.1, 0.4], [0.1, 0.4]]))),
        "weighted": float(forward_loss(f32([z, z, 0.0]), f32([T[0], T[1], [0.5, 0.5]]), f32([1, 3, 0]))),
    }


def with_weights(net, seed, function):
    """Value, gradient and running statistics of a loss at drawn weights."""
    weights = engine().device(draw_weights(net.trainable_variables, np.random.default_rng(seed)))

    def of_weights(weights):
        with keras.StatelessScope(state_mapping=list(zip(net.trainable_variables, weights, strict=True))) as scope:
            value = function(net)
        return value, [scope.get_current_value(v) for v in net.non_trainable_variables]

    (value, others), gradients = engine().value_and_gradient(of_weights, weights)
    flat = np.concatenate([engine().numpy(g).ravel() for g in gradients])
    return float(value), flat, [engine().numpy(ops.convert_to_tensor(o)) for o in others]


def adversary(logits_of, x, noise, official=False, xi=1e-2, iterations=1):
    clean = logits_of(f32(x))
    mask = f32(np.ones(len(x)))
    given = {"mask": mask, "rows": float(len(x)), "xi": xi, "iterations": iterations, "official": official}
    return clean, adversarial_directions(logits_of, f32(x), clean, f32(noise), **given)


def llp_vat():
    w, x = f32([[3.0], [4.0]]), np.array([[0.2, -0.1], [1.0, 0.5]])

    def logistic(x):
        return ops.matmul(x, w)[:, 0]

    clean, d = adversary(logistic, x, [[0.3, 0.4], [1.0, -0.1]])
    kl = [home(divergences(clean, logistic(f32(x) + sign * f32([[0.6, 0.8]] * 2)))) for sign in (1, -1)]
    two = ops.stack([ops.zeros_like(clean), clean], axis=1)
    moved = logistic(f32(x) + f32([[0.6, 0.8]] * 2))
    kl_softmax = divergences(two, ops.stack([ops.zeros_like(moved), moved], axis=1))
    rng = np.random.default_rng(0)
    net = mlp(16, (32, 16), 3)
    drawn = engine().device(draw_weights(net.trainable_variables, rng))

    def network(x):
        with keras.StatelessScope(state_mapping=list(zip(net.trainable_variables, drawn, strict=True))):
            return net(x)

    X, noise = rng.normal(size=(64, 16)), rng.normal(size=(64, 16))
    base, direction = adversary(network, X, noise)
    many = engine().numpy(adversary(network, X, noise, xi=1e-3, iterations=30)[1])
    better = engine().numpy(adversary(network, X, noise, iterations=4)[1])
    length = np.linalg.norm(engine().numpy(direction), axis=1)
    official = np.linalg.norm(engine().numpy(adversary(network, X, noise, official=True, xi=1e-6)[1]), axis=1)
    _, still = adversary(lambda x: ops.sum(0.0 * x, axis=1), X, noise)
    steps = [0, 10, 25, 50, 75, 100, 150]
    return {
        "directions": home(d),
        "kl": kl,
        "kl_softmax": home(kl_softmax),
        "length_error": float(np.abs(length - 1).max()),
        "agreement": float(np.median(np.abs((better * many).sum(1)))),
        "official_length": float(np.median(official)),
        "no_shift": float(ops.sum(divergences(base, base))),
        "constant_network": home(ops.max(ops.abs(still))),
        "zero_rows": home(unit_rows(f32(np.zeros((2, 3))))),
        "ramp": [float(ramp(i32(t), f32(100.0))) for t in steps],
        "no_ramp": float(ramp(i32(0), f32(0.0))),
        **vat_training(),
    }


def vat_training():
    bags = problem(uneven=True)
    few = {"epochs": 2, "batch_rows": 64, "lr": 0.01}
    plain = DLLP(**few).fit(bags, monitor=QuietMonitor(), seed=3).predict_scores(bags.X)
    off = LLPVAT(weight=0.0, **few).fit(bags, monitor=QuietMonitor(), seed=3).predict_scores(bags.X)
    on = LLPVAT(weight=5.0, ramp=0.0, **few).fit(bags, monitor=QuietMonitor(), seed=3).predict_scores(bags.X)
    parts = LLPVAT(weight=5.0, ramp=0.0, chunk_rows=20, **few).fit(bags, monitor=QuietMonitor(), seed=3)
    return {
        "weight_0_is_dllp": bool(np.array_equal(plain, off)),
        "weight_matters": float(np.abs(plain - on).max()),
        "chunks_change": float(np.abs(on - parts.predict_scores(bags.X)).max()),
    }


def normalised_net():
    layers = [keras.Input((5,)), dense(8, "relu", "hidden"), keras.layers.BatchNormalization(), dense(1, None, "out")]
    return keras.Sequential([*layers, keras.layers.Reshape(())])


def chunks():
    """Value and gradient in chunks are those of the whole; running statistics move with clean passes only."""
    rng = np.random.default_rng(0)
    X, mask = rng.normal(size=(23, 5)), np.ones(23)
    bag_of, sizes, shares = i32([0] * 10 + [1] * 13), f32([10, 13]), f32([[0.2], [0.7]])

    def of_logits(z):
        return bag_cross_entropy(z, bag_of, sizes, shares, f32([1, 1]))

    def terms(net, parts, logits):
        return 0.1 * ops.sum(parts[1] * (net(parts[0] + 0.1, training=True) - ops.stop_gradient(logits)) ** 2)

    def loss(rows):
        def of_net(net):
            return in_chunks(net, (f32(X), f32(mask)), of_logits, rows_at_once=rows, row_terms=terms)

        return of_net

    whole, parts = (with_weights(mlp(5, (8, 4), 1), 0, loss(rows)) for rows in (23, 6))

    def frozen_terms(net, parts, logits):
        with frozen_state(net):
            return terms(net, parts, logits)

    def clean_and_frozen(net):
        return in_chunks(net, (f32(X), f32(mask)), of_logits, rows_at_once=23, row_terms=frozen_terms)

    clean = with_weights(normalised_net(), 0, lambda net: of_logits(net(f32(X), training=True)))
    frozen = with_weights(normalised_net(), 0, clean_and_frozen)
    chunked = with_weights(
        normalised_net(), 0, lambda net: in_chunks(net, (f32(X),), of_logits, rows_at_once=12)
    )
    return {
        "value": [whole[0], parts[0]],
        "gradient": [whole[1].tolist(), parts[1].tolist()],
        "statistics": [[o.tolist() for o in found[2]] for found in (clean, frozen)],
        "chunked_statistics": [o.tolist() for o in chunked[2]],
    }


def count_nll():
    log_p, log_q = log_probabilities(f32(Z))
    law = log_count_law(ops.stack([log_q[:, 0], log_p[:, 0]], axis=-1))
    rng = np.random.default_rng(0)
    z = rng.normal(size=64) * 2
    sizes, counts = [50, 1, 13], np.array([[20.0], [1.0], [0.0]])
    bag_of = np.repeat(range(3), sizes)
    position = np.concatenate([np.arange(s) for s in sizes])

    def nll(z, counts=counts, exact=50, gaussian=False, sd=0.0):
        given = (i32(bag_of), i32(position), f32(sizes), f32(counts))
        return count_losses(z, *given, exact_rows=exact, gaussian=gaussian, noise_sd=sd)

    noisy = np.array([[18.7], [-1.4], [15.2]])
    z3 = rng.normal(size=(4, 3))
    many = count_losses(
        f32(z3), i32([0] * 4), i32(range(4)), f32([4]), f32([[2, 1, 1]]), exact_rows=4, gaussian=False
    )
    one = slope(lambda z: ops.sum(exact_losses(log_count_law(pairs(z)), f32(1.0)[None], 0.0)), Z)
    extreme = slope(lambda z: ops.sum(nll(z)), np.where(bag_of == 0, 90.0, -60.0))
    return {
        "law": home(ops.exp(law)),
        "one": one,
        "z": z.tolist(),
        "hard": home(nll(f32(z))),
        "hard_gradient": slope(lambda z: ops.sum(nll(z)), z)[1],
        "noisy": home(nll(f32(z), noisy, sd=1.5)),
        "noisy_gradient": slope(lambda z: ops.sum(nll(z, noisy, sd=1.5)), z)[1],
        "mixed": home(nll(f32(z), exact=13, gaussian=True)),
        "mixed_gradient": slope(lambda z: ops.sum(nll(z, exact=13, gaussian=True)), z)[1],
        "gaussian_noisy": home(nll(f32(z), noisy, exact=0, gaussian=True, sd=1.5)),
        "extreme_finite": bool(np.isfinite([extreme[0], *extreme[1]]).all()),
        "z3": z3.tolist(),
        "multiclass": home(many),
    }


def pairs(z):
    log_p, log_q = log_probabilities(z)
    return ops.stack([log_q[:, 0], log_p[:, 0]], axis=-1)[None]


def images():
    rng = np.random.default_rng(0)
    pictures = rng.normal(size=(40, 6, 5, 2)).astype(np.float32)
    seen = engine().numpy(augmented(f32(pictures), i32([1, 2]), shift=2))
    wide = np.pad(pictures, [(0, 0), (2, 2), (2, 2), (0, 0)])
    found = []
    for i, picture in enumerate(seen):
        crops = {
            (a, b, flip): wide[i, a : a + 6, b : b + 5][:, :: -1 if flip else 1]
            for a, b, flip in itertools.product(range(5), range(5), (False, True))
        }
        found.append([key for key, crop in crops.items() if np.array_equal(crop, picture)])
    y = rng.integers(0, 2, 96)
    X = (rng.normal(size=(96, 8, 8, 3)) + 1.5 * y[:, None, None, None]).astype(np.float32)
    data = TrainingData(X, bags={"proportions": np.add.reduceat(y, range(0, 96, 4))[:, None] / 4})
    net = wide_resnet((8, 8, 3), 1, depth=10, width=1)
    trainer = Trainer(net, dllp_loss, predict_rows=64)
    settings = NetworkSettings(epochs=6, batch_rows=32, lr=0.01)
    trainer.fit(data, BagBatches(np.full(24, 4), 32), settings, monitor=QuietMonitor(), seed=0)
    return {
        "matches": [len(f) for f in found],
        "moves": [len({f[0][k] for f in found}) for k in range(3)],
        "auc": auc(y, trainer.probabilities(X)),
    }


SMALL = {"epochs": 6, "batch_rows": 64, "lr": 0.01}
METHODS = {
    "dllp-mse": lambda: DLLP(loss="count-mse", **SMALL),
    "easyllp": lambda: EasyLLP(**SMALL),
    "easyllp-one": lambda: EasyLLP(reduction="sample_one", correction=True, **{**SMALL, "epochs": 20}),
    "genbags": lambda: GenBags(**SMALL),
    "genbags-drawn": lambda: GenBags(stochastic=True, **SMALL),
    "llp-fc": lambda: LLPFC(regroup=3, **{**SMALL, "epochs": 12}),
    "llp-vat": lambda: LLPVAT(**SMALL),
    "count-nll": lambda: CountNLL(**SMALL),
}


def training():
    bags = problem(uneven=True)
    labels = problem.labels
    out = {}
    for name, make in METHODS.items():
        watcher = Watcher(bags.X, best=range(99), last=99)
        first = make().fit(bags, monitor=watcher, seed=3)
        second = make().fit(bags, monitor=Watcher(bags.X, best=range(99), last=1), seed=3)
        out[name] = {
            "auc": auc(labels, first.predict_scores(bags.X)),
            "first_epoch": watcher.seen[0].tolist(),
            "same_seed": bool(np.array_equal(watcher.seen[0], second.predict_scores(bags.X))),
            "programs": getattr(first.trainer_._epoch, "_cache_size", lambda: 1)(),
        }
    random = RandomLabels(**SMALL).fit(bags, monitor=QuietMonitor(), seed=3)
    out["random-labels"] = {"finite": bool(np.isfinite(random.predict_scores(bags.X)).all())}
    return out


def multiclass():
    bags = problem(classes=3)
    labels = problem.labels
    majority = float(np.bincount(labels).max() / len(labels))
    out = {"majority": majority}
    for name in METHODS:
        scores = METHODS[name]().fit(bags, monitor=QuietMonitor(), seed=0).predict_scores(bags.X)
        out[name] = float((scores.argmax(1) == labels).mean())
    return out


def odd_bags():
    """Bags of one row, two bags, counts of zero, counts far outside: scores stay finite."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)).astype(np.float32)
    cases = {
        "one_row": ([1] * 40, rng.integers(0, 2, 40), 0.0),
        "two_bags": ([25, 15], [10, 3], 0.0),
        "zero": ([8] * 5, [0] * 5, 0.0),
        "full": ([8] * 5, [8] * 5, 0.0),
        "outside": ([8] * 5, [-3.2, 11.5, 2.2, 9.9, 0.0], 2.0),
        "noisy_unknown": ([8] * 5, [-3.2, 11.5, 2.2, 9.9, 0.0], 0.0),
    }
    out = {}
    for case, (sizes, counts, sd) in cases.items():
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        bags = Bags(X, offsets, np.asarray(counts, float)[:, None], count_sd=sd)
        for name, make in {**METHODS, "random-labels": lambda: RandomLabels(**SMALL)}.items():
            method = make()
            if name.startswith("genbags"):
                method.block = 2
            scores = method.fit(bags, monitor=QuietMonitor(), seed=0).predict_scores(X)
            out[f"{name} {case}"] = bool(np.isfinite(scores).all())
    return out


PARTS = (dllp, easyllp, genbags, llp_fc, llp_vat, chunks, count_nll, images, training)
SLOW_TO_COMPILE = (multiclass, odd_bags)

if __name__ == "__main__":
    warnings.simplefilter("error")
    chosen = PARTS + (SLOW_TO_COMPILE if engine().name == "torch" else ())
    if len(sys.argv) > 2:
        chosen = [part for part in PARTS + SLOW_TO_COMPILE if part.__name__ in sys.argv[2:]]
    import time

    figures = {}
    for part in chosen:
        began = time.perf_counter()
        figures[part.__name__] = part()
        print(part.__name__, round(time.perf_counter() - began, 1), file=sys.stderr)
    Path(sys.argv[1]).write_text(json.dumps(figures))
