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

# %% wrong: gradient of the context
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
