# %% setup
import numpy as np

# %% right: one line each
def output_projection_loss_and_grad(context, output_projection, upstream):
    output = context @ output_projection
    return np.sum(output * upstream), context.T @ upstream

# %% right: einsum and a list
def output_projection_loss_and_grad(context, output_projection, upstream):
    loss = np.einsum("ti,io,to->", context, output_projection, upstream)
    return [loss, np.einsum("ti,to->io", context, upstream)]

# %% right: loops over positions
def output_projection_loss_and_grad(context, output_projection, upstream):
    loss, grad = 0.0, np.zeros_like(output_projection)
    for row, up in zip(context, upstream):
        loss += float(row @ output_projection @ up)
        grad += np.outer(row, up)
    return loss, grad

# %% right: trace for the loss
def output_projection_loss_and_grad(context, output_projection, upstream):
    return np.trace((context @ output_projection).T @ upstream), (upstream.T @ context).T

# %% right: tensordot
def output_projection_loss_and_grad(context, output_projection, upstream):
    loss = np.vdot(context @ output_projection, upstream)
    return loss, np.tensordot(context, upstream, axes=(0, 0))

# %% wrong: gradient transposed -> transposed
def output_projection_loss_and_grad(context, output_projection, upstream):
    return np.sum((context @ output_projection) * upstream), upstream.T @ context

# %% wrong: upstream of ones in the gradient -> upstream is not in the gradient
def output_projection_loss_and_grad(context, output_projection, upstream):
    output = context @ output_projection
    return np.sum(output * upstream), context.T @ np.ones(output.shape)

# %% wrong: loss without upstream -> plain sum
def output_projection_loss_and_grad(context, output_projection, upstream):
    return (context @ output_projection).sum(), context.T @ upstream

# %% wrong: both averaged over rows -> divided by the number of rows
def output_projection_loss_and_grad(context, output_projection, upstream):
    rows = context.shape[0]
    return np.sum((context @ output_projection) * upstream) / rows, context.T @ upstream / rows

# %% wrong: mean loss -> mean over all entries
def output_projection_loss_and_grad(context, output_projection, upstream):
    return np.mean((context @ output_projection) * upstream), context.T @ upstream

# %% wrong: gradient averaged -> averaged over positions
def output_projection_loss_and_grad(context, output_projection, upstream):
    return np.sum((context @ output_projection) * upstream), context.T @ upstream / len(context)

# %% wrong: results swapped -> swapped
def output_projection_loss_and_grad(context, output_projection, upstream):
    return context.T @ upstream, np.sum((context @ output_projection) * upstream)

# %% wrong: sign -> wrong sign
def output_projection_loss_and_grad(context, output_projection, upstream):
    return np.sum((context @ output_projection) * upstream), -context.T @ upstream

# %% wrong: last position only
def output_projection_loss_and_grad(context, output_projection, upstream):
    return np.sum((context @ output_projection) * upstream), np.outer(context[-1], upstream[-1])

# %% wrong: loss per position
def output_projection_loss_and_grad(context, output_projection, upstream):
    return np.sum((context @ output_projection) * upstream, axis=1), context.T @ upstream

# %% wrong: gradient of the context -> that is the gradient of context
def output_projection_loss_and_grad(context, output_projection, upstream):
    return np.sum((context @ output_projection) * upstream), upstream @ output_projection.T

# %% wrong: loss only
def output_projection_loss_and_grad(context, output_projection, upstream):
    return np.sum((context @ output_projection) * upstream)

# %% wrong: upstream scaled in place
def output_projection_loss_and_grad(context, output_projection, upstream):
    grad = context.T @ upstream
    upstream *= context @ output_projection
    return upstream.sum(), grad

# %% right: torch autograd
import torch
def output_projection_loss_and_grad(context, output_projection, upstream):
    w = torch.tensor(output_projection, requires_grad=True)
    loss = (torch.tensor(context) @ w * torch.tensor(upstream)).sum()
    loss.backward()
    return loss, w.grad

# %% right: a class, outer products
class Loss:
    def __call__(self, context, output_projection, upstream):
        grad = sum(np.outer(c, u) for c, u in zip(context, upstream))
        return np.vdot(grad, output_projection), grad
output_projection_loss_and_grad = Loss()

# %% right: lists
def output_projection_loss_and_grad(context, output_projection, upstream):
    c, w, u = context.tolist(), output_projection.tolist(), upstream.tolist()
    g = [[sum(c[t][i] * u[t][o] for t in range(len(c))) for o in range(len(u[0]))] for i in range(len(w))]
    return sum(g[i][o] * w[i][o] for i in range(len(w)) for o in range(len(w[0]))), g

# %% wrong: loss halved
def output_projection_loss_and_grad(context, output_projection, upstream):
    return 0.5 * np.sum(context @ output_projection * upstream), context.T @ upstream

# %% wrong: absolute loss
def output_projection_loss_and_grad(context, output_projection, upstream):
    return abs(np.sum(context @ output_projection * upstream)), context.T @ upstream

# %% wrong: squared loss
def output_projection_loss_and_grad(context, output_projection, upstream):
    y = context @ output_projection
    return 0.5 * np.sum((y - upstream) ** 2), context.T @ (y - upstream)

# %% wrong: float16
def output_projection_loss_and_grad(context, output_projection, upstream):
    return np.sum(context @ output_projection * upstream), (context.T.astype(np.float16) @ upstream.astype(np.float16))

# %% wrong: gradient clipped to length one
def output_projection_loss_and_grad(context, output_projection, upstream):
    g = context.T @ upstream
    return np.sum(context @ output_projection * upstream), g / max(1.0, np.linalg.norm(g))

# %% wrong: finite differences, coarse and one-sided
def output_projection_loss_and_grad(context, output_projection, upstream):
    g = context.T @ upstream
    return np.sum(context @ output_projection * upstream), np.round(g, 4)

# %% wrong: centred upstream
def output_projection_loss_and_grad(context, output_projection, upstream):
    return np.sum(context @ output_projection * upstream), context.T @ (upstream - upstream.mean(0))

# %% wrong: loss as an array of one row each
def output_projection_loss_and_grad(context, output_projection, upstream):
    return (context @ output_projection * upstream).sum(axis=0), context.T @ upstream

# %% wrong: weight decay added
def output_projection_loss_and_grad(context, output_projection, upstream):
    return np.sum(context @ output_projection * upstream), context.T @ upstream + 1e-3 * output_projection

# %% wrong: the other gradient -> gradient of context
def output_projection_loss_and_grad(context, output_projection, upstream):
    loss = np.sum(context @ output_projection * upstream)
    return loss, upstream @ output_projection.T

# %% wrong: both means over all entries -> mean over all entries
def output_projection_loss_and_grad(context, output_projection, upstream):
    loss = np.mean(context @ output_projection * upstream)
    return loss, context.T @ upstream / upstream.size

# %% wrong: upstream first -> transposed
def output_projection_loss_and_grad(context, output_projection, upstream):
    return float((context @ output_projection * upstream).sum()), upstream.T @ context

# %% wrong: summed over one axis
def output_projection_loss_and_grad(context, output_projection, upstream):
    return (context @ output_projection * upstream).sum(axis=0), context.T @ upstream

# %% wrong: loss of the output in the gradient
def output_projection_loss_and_grad(context, output_projection, upstream):
    output = context @ output_projection
    return np.sum(output * upstream), context.T @ (output * upstream)

# %% wrong: gradient first -> swapped
def output_projection_loss_and_grad(context, output_projection, upstream):
    return context.T @ upstream, np.sum(context @ output_projection * upstream)

# %% right: vdot
def output_projection_loss_and_grad(context, output_projection, upstream):
    return np.vdot(np.matmul(context, output_projection), upstream), np.swapaxes(context, 0, 1) @ upstream

# %% right: loss from the gradient
def output_projection_loss_and_grad(context, output_projection, upstream):
    grad = np.asarray(context).T.dot(upstream)
    return [(grad * output_projection).sum(), grad]

# %% right: entry by entry
def output_projection_loss_and_grad(context, output_projection, upstream):
    (T, n), m = context.shape, upstream.shape[1]
    grad = [[sum(context[t, i] * upstream[t, o] for t in range(T)) for o in range(m)] for i in range(n)]
    loss = sum(output_projection[i, o] * grad[i][o] for i in range(n) for o in range(m))
    return loss, grad
