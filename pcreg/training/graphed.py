"""Forward and backward pass of a network in training as two CUDA graphs.

A step launches some four hundred kernels, for which the host takes longer than the GPU. The graphs are
captured for a pyramid with room to spare, and again for a batch that finds no room.
"""

import torch
from torch import Tensor

from pcreg.kernels.padded_pyramid import PaddedPyramid
from pcreg.kernels.pyramid import Pyramid
from pcreg.models.resunet import ResUNet
from pcreg.training.optimisation import views


class GraphedNetwork:
    """The same function as `network`, with captured passes.

    A backward pass must run before the next forward pass. It replaces the gradients of the
    parameters by views of one array. `dtype` is that of autocast, or None for no autocast.
    """

    def __init__(self, network: ResUNet, dtype: torch.dtype | None):
        self.network, self.dtype = network, dtype
        self._passes: _Passes | None = None

    def __call__(self, pyramid: Pyramid) -> Tensor:
        """The descriptors (N, C) of the points of pyramid.levels[0]."""
        if self._passes is None or not self._passes.padded.has_room_for(pyramid):
            padded = PaddedPyramid(pyramid, self._passes and self._passes.padded)
            self._passes = None  # frees its memory before as much is allocated again
            self._passes = _Passes(self.network, self.dtype, padded, pyramid)
        # One parameter as input, so that autograd calls the backward pass.
        return _Replay.apply(self._passes.parameters[0], self._passes, pyramid)


class _Passes:
    """Captured passes over one padded pyramid."""

    def __init__(self, network: ResUNet, dtype: torch.dtype | None, padded: PaddedPyramid, like: Pyramid):
        self.padded = padded
        self.parameters = list(network.parameters())
        self._forward, self._backward = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        padded.load(like)
        device = like.stem.device
        stream = torch.cuda.Stream(device)
        stream.wait_stream(torch.cuda.current_stream(device))
        # Cached casts of weights would outlive the graph that makes them.
        cast = torch.autocast("cuda", dtype, enabled=dtype is not None, cache_enabled=False)
        # Other threads build pyramids during the capture.
        capture = {"stream": stream, "capture_error_mode": "thread_local"}
        with torch.cuda.device(device), torch.enable_grad(), cast:
            with torch.cuda.stream(stream):
                self._compile(network)
            with torch.cuda.graph(self._forward, **capture):
                features = network(padded.pyramid)
            self._grad = torch.zeros_like(features)
            with torch.cuda.graph(self._backward, pool=self._forward.pool(), **capture):
                gradients = torch.autograd.grad(features, self.parameters, self._grad)
                whole = torch.cat([each.flatten() for each in gradients])
        self._grads = views(whole, gradients)
        self._features = features.detach()

    def _compile(self, network: ResUNet) -> None:
        """Run both passes once, as a capture cannot compile kernels, and restore the norms' statistics."""
        buffers = list(network.buffers())
        before = [buffer.clone() for buffer in buffers]
        features = network(self.padded.pyramid)
        torch.autograd.grad(features, self.parameters, torch.zeros_like(features))
        for buffer, value in zip(buffers, before, strict=True):
            buffer.copy_(value)

    def forward(self, pyramid: Pyramid) -> Tensor:
        self.padded.load(pyramid)
        self._forward.replay()
        return self._features[: len(pyramid.levels[0])]

    def backward(self, grad: Tensor) -> None:
        self._grad[: len(grad)] = grad
        self._grad[len(grad) :] = 0
        self._backward.replay()
        for parameter, value in zip(self.parameters, self._grads, strict=True):
            parameter.grad = value


class _Replay(torch.autograd.Function):
    @staticmethod
    def forward(ctx, parameter, passes, pyramid):
        ctx.passes = passes
        return passes.forward(pyramid)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        ctx.passes.backward(grad)
        return None, None, None
