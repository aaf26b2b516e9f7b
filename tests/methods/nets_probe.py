"""The shared network, its losses and its training loop on one backend (see backends.py)."""

from __future__ import annotations

import json
import os
import warnings

import numpy as np

from llpbench import Bags, QuietMonitor
from llpbench_methods.dllp.method import DLLP
from llpbench_methods.nets.backend import backend, keras, ops
from llpbench_methods.nets.batches import BagBatches, RowBatches
from llpbench_methods.nets.losses import (
    bag_cross_entropy,
    instance_cross_entropy,
    row_cross_entropy,
    segment_logsumexp,
    segment_mean,
)
from llpbench_methods.nets.mlp import dense, draw_weights, mlp
from llpbench_methods.nets.network import proportion_loss as dllp_loss
from llpbench_methods.nets.optimiser import Moments, adamw
from llpbench_methods.nets.params import NetworkSettings
from llpbench_methods.nets.training import Trainer, TrainingData, frozen_state
from llpbench_methods.supervised.method import Supervised

Z = [-1.0, 0.0, 0.5, 2.0]
Z3 = [[1, 0, -1], [0, 0, 0], [0.5, -0.5, 2], [2, 1, 0]]


def f32(values):
    return ops.convert_to_tensor(np.asarray(values, np.float32))


def i32(values):
    return ops.convert_to_tensor(np.asarray(values, np.int32))


def home(tensor):
    return backend().numpy(tensor).tolist()


def bag_loss(logits, bag_of, sizes, shares, weights=None):
    weights = np.ones(len(sizes)) if weights is None else weights
    shares = np.asarray(shares, np.float32).reshape(len(sizes), -1)
    return bag_cross_entropy(f32(logits), i32(bag_of), f32(sizes), f32(shares), f32(weights))


def losses():
    def of_logits(weights):
        return bag_cross_entropy(weights[0], i32([0] * 4), f32([4]), f32([[0.25]]), f32([1])), ()

    (value, _), gradient = backend().value_and_gradient(of_logits, [f32(Z)])
    rng = np.random.default_rng(0)
    z, shares = rng.normal(size=10) * 3, [0.2, 0.5, 1.0]
    bag_of, sizes = [0] * 5 + [1] * 2 + [2] * 3, [5, 2, 3]
    labels = (rng.random(10) < 0.5).astype(float)
    z3 = rng.normal(size=(10, 3))
    soft = rng.dirichlet(np.ones(3), 10)
    hard = rng.integers(0, 3, 10)
    order = rng.permutation(5)
    shuffled = np.concatenate([z[:5][order], z[5:]])
    padded = np.concatenate([z, [50.0, -50.0]])
    ones = f32(np.ones(10))
    constants = np.linspace(0.01, 0.99, 99)
    by_constant = [float(bag_loss(np.full(4, np.log(c / (1 - c))), [0] * 4, [4], [0.25])) for c in constants]
    return {
        "binary": float(value),
        "binary_gradient": home(gradient[0]),
        "multiclass": float(bag_loss(Z3, [0] * 4, [4], [0.5, 0.25, 0.25])),
        "squeezed": float(bag_loss(Z, [0] * 4, [4], [0.0])),
        "single_rows": float(bag_loss(z, range(10), np.ones(10), labels)),
        "single_rows_instance": float(instance_cross_entropy(f32(z), f32(labels), ones)),
        "single_rows_numpy": float(np.mean(np.logaddexp(0, z) - labels * z)),
        "uneven": float(bag_loss(z, bag_of, sizes, shares)),
        "uneven_apart": float(
            np.mean(
                [
                    float(bag_loss(z[a:b], [0] * (b - a), [b - a], [s]))
                    for a, b, s in [(0, 5, 0.2), (5, 7, 0.5), (7, 10, 1.0)]
                ]
            )
        ),
        "uneven_padded": float(bag_loss(padded, [*bag_of, 5, 5], [*sizes, 0, 0], [*shares, 0.7, 0.7], [1, 1, 1, 0, 0])),
        "permuted": float(bag_loss(shuffled, bag_of, sizes, shares)),
        "two_logits": float(bag_loss(np.column_stack([np.zeros(10), z]), bag_of, sizes, [[1 - s, s] for s in shares])),
        "confident": float(bag_loss([200.0, 200.0, -200.0, 300.0], [0] * 4, [4], [0.75])),
        "wrong_and_confident": float(bag_loss([-200.0, -200.0], [0] * 2, [2], [1.0])),
        "not_a_number": float(bag_loss([np.nan, 1.0], [0] * 2, [2], [1.0])),
        "best_constant": float(constants[int(np.argmin(by_constant))]),
        "soft": home(row_cross_entropy(f32(z3), f32(soft))),
        "soft_numpy": (-(soft * log_softmax(z3)).sum(1)).tolist(),
        "hard": home(row_cross_entropy(f32(z3), i32(hard))),
        "hard_numpy": (-log_softmax(z3)[np.arange(10), hard]).tolist(),
        "segment_mean": home(segment_mean(f32(z3), i32(bag_of), f32([*sizes, 0]))),
        "segment_mean_numpy": [z3[:5].mean(0).tolist(), z3[5:7].mean(0).tolist(), z3[7:].mean(0).tolist(), [0] * 3],
        "segment_logsumexp_empty": home(segment_logsumexp(f32([1.0, 2.0]), i32([0, 0]), f32([2, 0, 0]))),
    }


def log_softmax(z):
    return z - np.log(np.exp(z).sum(1, keepdims=True))


def network_gradient():
    """Loss and gradient of a network at drawn weights, by the very step that trains."""
    bags = problem(uneven=True)
    net = mlp(bags.X.shape[1], (16, 8), 1)
    weights = backend().device(draw_weights(net.trainable_variables, np.random.default_rng(0)))

    def of_weights(weights):
        mapping = list(zip(net.trainable_variables, weights, strict=True))
        with keras.StatelessScope(state_mapping=mapping):
            logits = net(f32(bags.X))
        return bag_cross_entropy(
            logits, i32(bags.bag_of), f32(bags.sizes), f32(bags.clipped_proportions), f32(np.ones(len(bags)))
        ), ()

    (value, _), gradients = backend().value_and_gradient(of_weights, weights)
    flat = np.concatenate([backend().numpy(g).ravel() for g in gradients])
    direction = np.random.default_rng(1).normal(size=flat.size).astype(np.float32)
    step, shapes = 1e-2, [tuple(w.shape) for w in weights]
    sides = []
    for sign in (1, -1):
        moved, at = [], 0
        for w, shape in zip(weights, shapes, strict=True):
            size = int(np.prod(shape))
            part = direction[at : at + size].reshape(shape)
            moved.append(w + f32(sign * step * part))
            at += size
        sides.append(float(of_weights(moved)[0]))
    return {
        "loss": float(value),
        "gradient": flat.tolist(),
        "slope": float(flat @ direction),
        "slope_by_difference": (sides[0] - sides[1]) / (2 * step),
    }


def problem(uneven=False, classes=2, n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)).astype(np.float32)
    weights = rng.normal(size=(5, classes))
    y = np.argmax(X @ weights * 2 + rng.gumbel(size=(n, classes)), axis=1)
    sizes = []
    while sum(sizes) < n:
        sizes.append(int(rng.integers(1, 16)) if uneven else 8)
    sizes[-1] -= sum(sizes) - n
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    hot = np.eye(classes)[y]
    counts = np.add.reduceat(hot, offsets[:-1], axis=0)
    X.setflags(write=False)
    bags = Bags(X, offsets, counts[:, 1:] if classes == 2 else counts, classes)
    problem.labels = y
    return bags


class Watcher(QuietMonitor):
    """Calls the given reports the best, stops after ``last``, keeps what it saw."""

    def __init__(self, X, best, last):
        self.X, self.best, self.last, self.seen, self.notes = X, best, last, [], {}

    def report(self, predict, *, stage=""):
        self.seen.append(predict(self.X))
        return len(self.seen) in self.best

    @property
    def should_stop(self):
        return len(self.seen) >= self.last

    def note(self, name, value):
        self.notes[name] = value


SMALL = {"epochs": 6, "batch_rows": 64, "lr": 0.01}


def training():
    bags = problem(uneven=True)
    labels = problem.labels
    first = DLLP(**SMALL).fit(bags, monitor=QuietMonitor(), seed=3).predict_scores(bags.X)
    second = DLLP(**SMALL).fit(bags, monitor=QuietMonitor(), seed=3).predict_scores(bags.X)
    other = DLLP(**SMALL).fit(bags, monitor=QuietMonitor(), seed=4).predict_scores(bags.X)
    watcher = Watcher(bags.X, best=(1, 2), last=4)
    stopped = DLLP(**SMALL).fit(bags, monitor=watcher, seed=3)
    quick = stopped.predict_scores(bags.X[:37])
    never = Watcher(bags.X, best=(), last=3)
    untouched = DLLP(**SMALL).fit(bags, monitor=never, seed=3).predict_scores(bags.X)
    supervised = Supervised(**SMALL).fit(bags, monitor=QuietMonitor(), seed=0, labels=labels)
    many = problem(classes=3)
    labels3 = problem.labels
    shares = DLLP(**SMALL).fit(many, monitor=QuietMonitor(), seed=0).predict_scores(many.X)
    oracle = Supervised(**SMALL).fit(many, monitor=QuietMonitor(), seed=0, labels=labels3)
    return {
        "scores": first.tolist(),
        "same_seed": bool(np.array_equal(first, second)),
        "other_seed": bool(np.array_equal(first, other)),
        "reports": len(watcher.seen),
        "restored_best": bool(np.array_equal(stopped.predict_scores(bags.X), watcher.seen[1])),
        "reports_differ": not np.array_equal(watcher.seen[1], watcher.seen[3]),
        "no_rows": list(stopped.predict_scores(bags.X[:0]).shape),
        "chunk_free": bool(np.allclose(quick, stopped.predict_scores(bags.X)[:37], atol=1e-6)),
        "never_best": bool(np.array_equal(untouched, never.seen[0])),
        "auc": auc(labels, first),
        "supervised_auc": auc(labels, supervised.predict_scores(bags.X)),
        "multiclass_shape": list(shares.shape),
        "multiclass_sums": bool(np.allclose(shares.sum(1), 1)),
        "multiclass_accuracy": float(np.mean(shares.argmax(1) == labels3)),
        "multiclass_supervised": float(np.mean(oracle.predict_scores(many.X).argmax(1) == labels3)),
        "majority": float(np.bincount(labels3).max() / len(labels3)),
        "programs": getattr(stopped.trainer_._epoch, "_cache_size", lambda: 1)(),
        "bag_of_one": finite(DLLP(**SMALL), with_sizes(bags, [1] * 20)),
        "two_bags": finite(DLLP(**SMALL), with_sizes(bags, [300, 300])),
        "one_bag": finite(DLLP(**SMALL), with_sizes(bags, [70])),
    }


def finite(method, bags):
    return bool(np.isfinite(method.fit(bags, monitor=QuietMonitor(), seed=0).predict_scores(bags.X)).all())


def with_sizes(bags, sizes):
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return Bags(bags.X[: offsets[-1]], offsets, np.asarray(sizes)[:, None] * 0.4)


def auc(y, score):
    rank = np.argsort(np.argsort(score)) + 1
    positive = y == 1
    n1, n0 = positive.sum(), (~positive).sum()
    return float((rank[positive].sum() - n1 * (n1 + 1) / 2) / (n1 * n0))


def divergence():
    bags = problem()
    data = TrainingData(bags.X, bags={"proportions": bags.clipped_proportions})
    settings = NetworkSettings(epochs=5, batch_rows=64)
    out = {}
    for name, bad in (("later", 2), ("at_once", 0)):
        watcher = Watcher(bags.X, best=range(10), last=99)
        trainer = Trainer(mlp(5, (8,), 1), dllp_loss)
        trainer.fit(
            data,
            BagBatches(bags.sizes, 64),
            settings,
            monitor=watcher,
            seed=0,
            schedule=lambda epoch, bad=bad: 1e38 if epoch == bad else 1.0,
        )
        scores = trainer.probabilities(bags.X)
        out[name] = {
            "reports": len(watcher.seen),
            "noted": watcher.notes.get("diverged", False),
            "kept": bool(np.array_equal(scores, watcher.seen[-1])),
            "finite": bool(np.isfinite(scores).all()),
        }
    return out


class TwoHeads(keras.Model):
    """A trunk with an instance head and a bag head, as a later method needs it."""

    def __init__(self, n_features):
        super().__init__()
        self.trunk = mlp(n_features, (16,), 8)
        self.instance = mlp(8, (4,), 1)
        self.bag = mlp(8, (4,), 1)

    def call(self, X):
        return self.instance(self.trunk(X))


def later_methods():
    """Losses of later methods plug into the same loop: two heads, virtual adversaries, fresh targets, blocks."""
    bags = problem()
    labels = problem.labels
    targets = np.where(labels == 1, 0.9, 0.1)

    def two_heads(net, batch):
        embedded = net.trunk(batch.X)
        own = instance_cross_entropy(net.instance(embedded), batch.rows["targets"], batch.row_mask)
        pooled = segment_mean(embedded, batch.bag_of, batch.sizes)
        share = net.bag(pooled)
        return own + 0.5 * instance_cross_entropy(share, batch.bags["share"], batch.bag_mask)

    def adversarial(net, batch):
        clean = ops.stop_gradient(ops.sigmoid(net(batch.X)))
        noise = backend().normal(batch.key, batch.X.shape)

        def distance(shift):
            logits = net(batch.X + shift)
            return ops.sum(batch.row_mask * (ops.softplus(logits) - clean * logits))

        direction = backend().input_gradient(distance, 0.1 * noise)
        size = ops.sqrt(ops.sum(direction**2, axis=1, keepdims=True)) + 1e-12
        ramp = ops.exp(-5.0 * (1.0 - ops.minimum(ops.cast(batch.step, "float32") / 20.0, 1.0)) ** 2)
        return dllp_loss(net, batch) + 0.01 * ramp * distance(0.1 * direction / size)

    def blocks(net, batch):
        shown = ops.sigmoid(net(batch.X)) * batch.row_mask
        error = segment_mean(shown, batch.bag_of, batch.sizes) - batch.bags["proportions"][:, 0]
        error = ops.reshape(error * batch.bag_mask, (-1, 4))
        spread = error - ops.mean(error, axis=1, keepdims=True)
        return 10 * ops.sum(spread**2) / ops.sum(batch.bag_mask)

    def noisy_groups(net, batch):
        shares = ops.softmax(net(batch.X), axis=-1)
        matrix = ops.take(batch.shared["matrices"], batch.rows["group"], axis=0)
        seen = ops.einsum("rij,rj->ri", matrix, shares)
        picked = ops.sum(seen * ops.one_hot(batch.rows["label"], 2), axis=1)
        return -ops.sum(batch.row_mask * ops.log(picked)) / ops.sum(batch.row_mask)

    out = {}
    settings = NetworkSettings(epochs=8, batch_rows=64, lr=0.01)
    quiet = {"monitor": QuietMonitor(), "seed": 0}
    whole = BagBatches(bags.sizes, 64)
    heads = Trainer(TwoHeads(5), two_heads)
    data = TrainingData(bags.X, rows={"targets": targets}, bags={"share": bags.clipped_proportions[:, 0]})
    heads.fit(data, whole, settings, **quiet)
    out["two_heads"] = auc(labels, heads.probabilities(bags.X))
    out["embedding"] = list(heads.predict(bags.X, head=lambda net, X: net.trunk(X)).shape)

    data = TrainingData(bags.X, bags={"proportions": bags.clipped_proportions})
    out["adversarial"] = auc(
        labels, Trainer(mlp(5, (16,), 1), adversarial).fit(data, whole, settings, **quiet).probabilities(bags.X)
    )
    out["blocks"] = auc(
        labels,
        Trainer(mlp(5, (16,), 1), blocks)
        .fit(data, BagBatches(bags.sizes, 64, block=4), settings, **quiet)
        .probabilities(bags.X),
    )

    def groups(epoch):
        if epoch % 3:
            return None
        rng = np.random.default_rng(epoch)
        chosen = np.sort(rng.choice(len(bags.X), 500, replace=False))
        flips = np.array([[[0.9, 0.1], [0.1, 0.9]], [[0.2, 0.8], [0.8, 0.2]]])
        group = rng.integers(0, 2, len(bags.X))
        values = {"group": group, "label": np.where(group == 0, labels, 1 - labels)}
        data = TrainingData(bags.X, rows=values, shared={"matrices": flips})
        return data, RowBatches(len(bags.X), 64, subset=chosen)

    forward = Trainer(mlp(5, (16,), 2), noisy_groups)
    forward.fit(*groups(0), settings, refresh=groups, **quiet)
    out["noisy_groups"] = auc(labels, forward.probabilities(bags.X)[:, 1])
    out["programs"] = getattr(forward._epoch, "_cache_size", lambda: 1)()
    forward.fit(*groups(0), NetworkSettings(epochs=1, lr=0.02, weight_decay=0.1, batch_rows=64), **quiet)
    out["programs_after_new_settings"] = getattr(forward._epoch, "_cache_size", lambda: 1)()
    before = forward.weights
    forward.fit(*groups(0), NetworkSettings(epochs=1, lr=1e-6), keep_weights=True, **quiet)
    out["kept_weights"] = bool(np.allclose(before[0], forward.weights[0], atol=1e-4))
    return out


def input_gradient():
    """Virtual adversary of a logistic model with w = (3, 4): one power step finds ±(0.6, 0.8)."""
    x = f32([[0.2, -0.1], [1.0, 0.5]])
    w = f32([[3.0], [4.0]])

    def logit(x):
        return ops.matmul(x, w)[:, 0]

    clean = ops.sigmoid(logit(x))

    def distance(shift):
        z = logit(x + shift)
        return ops.sum(ops.softplus(z) - clean * z)

    start = f32([[0.06, -0.02], [0.02, 0.05]])
    g = backend().numpy(backend().input_gradient(distance, start))
    return (g / np.linalg.norm(g, axis=1, keepdims=True)).tolist()


def optimiser():
    """Our AdamW against Keras's, biases left out of the decay."""
    rng = np.random.default_rng(0)
    start = [rng.normal(size=(3, 2)).astype(np.float32), rng.normal(size=2).astype(np.float32)]
    gradients = [[rng.normal(size=w.shape).astype(np.float32) for w in start] for _ in range(5)]
    variables = [keras.Variable(w, name=name) for w, name in zip(start, ("kernel", "bias"), strict=True)]
    theirs = keras.optimizers.AdamW(learning_rate=0.01, weight_decay=0.1)
    theirs.exclude_from_weight_decay(var_list=[variables[1]])
    theirs.build(variables)
    ours, moments = [f32(w) for w in start], Moments([f32(0 * w) for w in start], [f32(0 * w) for w in start])
    for t, g in enumerate(gradients, 1):
        theirs.apply([f32(x) for x in g], variables)
        ours, moments = adamw(ours, [f32(x) for x in g], moments, time=f32(t), rate=f32(0.01), decay=f32(0.1))
    return {
        "ours": [home(w) for w in ours],
        "keras": [home(v.value) for v in variables],
    }


def running_statistics():
    """Batch normalisation moves with the batches, and not at all inside ``frozen_state``."""
    bags = problem()
    data = TrainingData(bags.X, bags={"proportions": bags.clipped_proportions})

    def frozen(net, batch):
        with frozen_state(net):
            return dllp_loss(net, batch)

    out = {}
    for name, loss in (("moving", dllp_loss), ("frozen", frozen)):
        layers = [
            keras.Input((5,)),
            dense(8, "relu", "hidden"),
            keras.layers.BatchNormalization(),
            dense(1, None, "out"),
        ]
        net = keras.Sequential([*layers, keras.layers.Reshape(())])
        trainer = Trainer(net, loss, predict_rows=100)
        settings = NetworkSettings(epochs=3, batch_rows=64)
        trainer.fit(data, BagBatches(bags.sizes, 64), settings, monitor=QuietMonitor(), seed=0)
        out[name] = [backend().numpy(value).tolist() for value in trainer._others]
        out[name + "_finite"] = bool(np.isfinite(trainer.probabilities(bags.X)).all())
    return out


def in_a_fork():
    """A process that has imported everything forks, and the child trains; its scores."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        bags = problem(uneven=True)
        scores = DLLP(**SMALL).fit(bags, monitor=QuietMonitor(), seed=3).predict_scores(bags.X)
        os.write(write, json.dumps(scores.tolist()).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        scores = json.loads(pipe.read() or "null")
    os.waitpid(child, 0)
    return scores


def randomness():
    a, b, c = (backend().numpy(backend().normal(i32(k), (2000,))) for k in ([1, 2], [1, 2], [1, 3]))
    return {
        "same": bool(np.array_equal(a, b)),
        "differ": not np.array_equal(a, c),
        "mean": float(a.mean()),
        "sd": float(a.std()),
    }


def parts():
    """What is computed, the fork first: its parent must not have trained yet."""
    return (
        in_a_fork,
        losses,
        network_gradient,
        training,
        divergence,
        later_methods,
        running_statistics,
        input_gradient,
        optimiser,
        randomness,
    )
