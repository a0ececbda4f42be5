"""Batch norm in training on a GPU: two launches forward, two backward, for any number of groups.

    forward     mean and squared deviations of every part of a group, then the normalised rows
    backward    the sums of gradients of every part, then the gradients

Every group is cut into PARTS parts. The programs of the second launch first add up the parts of their group,
all in the same order; one of them writes the moments. Values are float32, rounded once. Rows behind all
groups, which pad a batch, become zero.
"""

import torch

from pcreg.kernels.triton import batch_norm_kernels as kernels
from pcreg.kernels.triton.launch import aligned, launch


class BatchNorm(torch.autograd.Function):
    """pcreg.kernels.batch_norm.batch_norm on a GPU."""

    @staticmethod
    def forward(ctx, features, scale, shift, residual, groups, epsilon, running, relu):
        features = aligned(features)
        residual = None if residual is None else aligned(residual)
        G, C = len(groups), features.shape[1]
        bounds, grid = groups.bounds(features.device), _grid(G, C)
        parts = torch.empty((2, G, kernels.PARTS.value, C), dtype=torch.float32, device=features.device)
        launch(kernels.measure, grid, (features, bounds, parts, G), {"C": C})
        out, moments = torch.empty_like(features), parts.new_empty((2, G, C))
        mean, variance, count, momentum = running
        arguments = features, bounds, parts, scale, shift, residual, out, moments
        arguments = *arguments, mean, variance, count, float(momentum), float(epsilon), G, len(features)
        launch(kernels.normalize, grid, arguments, {"RELU": relu, "C": C})
        ctx.save_for_backward(features, scale, moments, bounds, out if relu else None)
        ctx.residual_dtype = None if residual is None else residual.dtype
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_out):
        features, scale, moments, bounds, out = ctx.saved_tensors
        grad_out = aligned(grad_out)
        G, C = moments.shape[1:]
        grid = _grid(G, C)
        parts = moments.new_empty((2, G, kernels.PARTS.value, C))
        arguments = features, bounds, moments, grad_out, out, parts, G
        launch(kernels.sum_gradients, grid, arguments, {"C": C})
        grad_features, grad_vectors = torch.empty_like(features), scale.new_empty((2, C))
        grad_residual = None
        if ctx.residual_dtype is not None and ctx.needs_input_grad[3]:
            grad_residual = torch.empty_like(features, dtype=ctx.residual_dtype)
        arguments = features, bounds, moments, grad_out, out, parts
        arguments = *arguments, scale, grad_features, grad_residual, grad_vectors, G, len(features)
        launch(kernels.gradients, grid, arguments, {"C": C})
        return grad_features, grad_vectors[0], grad_vectors[1], grad_residual, *[None] * 4


def _grid(G: int, C: int) -> int:
    return G * kernels.PARTS.value * -(-C // kernels.COLUMNS.value)
