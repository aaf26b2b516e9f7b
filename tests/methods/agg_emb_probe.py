"""The network of bp and its loss on one backend (see backends.py)."""

from __future__ import annotations

import numpy as np
from nets_probe import f32, home, i32, problem

from llpbench import QuietMonitor
from llpbench_methods.bp.agg_emb import AggEmb, agg_emb_loss, bag_losses, combine, embedding, segment_softmax
from llpbench_methods.bp.method import BP
from llpbench_methods.nets.backend import backend, keras
from llpbench_methods.nets.losses import row_cross_entropy
from llpbench_methods.nets.mlp import draw_weights
from llpbench_methods.nets.training import Batch


def batch(X, bag_of, sizes, targets, weights, proportions, lambda_a=10.0):
    n_bags = len(sizes)
    bag_of = np.asarray(bag_of)
    return Batch(
        X=f32(X),
        row_mask=f32(bag_of < n_bags),
        bag_of=i32(bag_of),
        bag_mask=f32(np.asarray(sizes) > 0),
        sizes=f32(sizes),
        rows={"targets": f32(targets), "weights": f32(weights)},
        bags={"proportions": f32(proportions)},
        shared={"lambda_a": f32([lambda_a])},
        step=i32(0),
        key=i32([0, 0]),
    )


def logit(p):
    p = np.asarray(p)
    return np.log(p / (1 - p))


def acceptance():
    one = batch(np.zeros((2, 1)), [0, 0], [2], [1, 0], [1, 1], [[0.5]])
    rows = row_cross_entropy(f32(logit([0.8, 0.3])), one.rows["targets"])
    bags = bag_losses(f32(logit([0.6])), one.bags["proportions"])
    return {r: float(combine(rows, bags, one, f32(10.0), r)) for r in ("sum", "mean")}


def data(classes=2, n=40, seed=0):
    rng = np.random.default_rng(seed)
    sizes = np.array([7, 1, 12, 20])
    shares = rng.random((4, 1)) if classes == 2 else rng.dirichlet(np.ones(classes), 4)
    targets = rng.integers(0, 2, n) if classes == 2 else np.eye(classes)[rng.integers(0, classes, n)]
    return {
        "X": rng.normal(size=(n, 5)),
        "bag_of": np.repeat(np.arange(4), sizes),
        "sizes": sizes,
        "targets": targets,
        "weights": rng.random(n) * 2,
        "proportions": shares,
    }


def permuted_inside_bags(values):
    order = np.lexsort((np.random.default_rng(5).random(len(values["X"])), values["bag_of"]))
    return {**values, **{name: values[name][order] for name in ("X", "targets", "weights")}}


def padded(values):
    """Rows and bags of padding, with wild contents."""
    rows, bags = 6, 2
    targets, shares = values["targets"], values["proportions"]
    return {
        "X": np.concatenate([values["X"], np.full((rows, 5), 40.0)]),
        "bag_of": np.concatenate([values["bag_of"], np.full(rows, 4 + bags)]),
        "sizes": np.concatenate([values["sizes"], np.zeros(bags)]),
        "targets": np.concatenate([targets, np.ones((rows, *targets.shape[1:]))]),
        "weights": np.concatenate([values["weights"], np.full(rows, 9.0)]),
        "proportions": np.concatenate([shares, np.full((bags, *shares.shape[1:]), 0.7)]),
    }


def at_drawn_weights(net, reduction, values):
    """Loss, and its gradient along a fixed direction, at drawn weights."""
    weights = backend().device(draw_weights(net.trainable_variables, np.random.default_rng(0)))
    loss = agg_emb_loss(reduction)

    def of_weights(weights):
        with keras.StatelessScope(state_mapping=list(zip(net.trainable_variables, weights, strict=True))):
            return loss(net, batch(**values)), ()

    (value, _), gradients = backend().compile(lambda w: backend().value_and_gradient(of_weights, w))(weights)
    rng = np.random.default_rng(1)
    slope = sum(float((backend().numpy(g) * rng.normal(size=g.shape)).sum()) for g in gradients)
    return {"loss": float(value), "slope": slope}


def networks():
    out = {}
    for classes, pooling, reduction in ((2, "mean", "mean"), (3, "attention", "sum")):
        net = AggEmb(5, 1 if classes == 2 else classes, size="small", pooling=pooling)
        values = data(classes)
        out[f"{classes} {pooling} {reduction}"] = {
            "plain": at_drawn_weights(net, reduction, values),
            "permuted": at_drawn_weights(net, reduction, permuted_inside_bags(values)),
            "padded": at_drawn_weights(net, reduction, padded(values)),
        }
    return out


def pooled():
    """Attention over one row, equal rows, and the shares of a softmax."""
    scores = np.random.default_rng(0).normal(size=(6, 2)) * 5
    share = segment_softmax(f32(scores), i32([0, 0, 0, 1, 3, 3]), f32([3, 1, 0]))
    first = np.exp(scores[:3]) / np.exp(scores[:3]).sum(axis=0)
    return {"share": home(share), "first": first.tolist()}


def training():
    out = {}
    for classes, pooling in ((2, "mean"), (3, "attention")):
        bags = problem(classes=classes, uneven=True)
        method = BP(epochs=25, iterations=1, pooling=pooling, lr=1e-3, k=3, lambda_s=1.0)
        fitted = method.fit(bags, monitor=QuietMonitor(), seed=3)
        scores = fitted.predict_scores(bags.X)
        right = (scores > 0.5) if classes == 2 else scores.argmax(axis=1)
        out[f"{classes} {pooling}"] = {
            "scores": scores[:20].tolist(),
            "accuracy": float((right == problem.labels).mean()),
            "embedding": list(fitted.trainer_.predict(bags.X, embedding).shape),
        }
    return out


def parts():
    return acceptance, networks, pooled, training
