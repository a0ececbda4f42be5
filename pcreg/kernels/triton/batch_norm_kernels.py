"""Kernels of batch norm in training: sums over the parts of groups, then results and gradients."""

import triton
import triton.language as tl

# Parameters and buffers of a module need not be aligned.
ANYWHERE = ["bounds", "scale", "shift", "running_mean", "running_variance", "count"]
PARTS = tl.constexpr(64)  # of a group, a power of two
ROWS, COLUMNS = tl.constexpr(64), tl.constexpr(32)  # of a program at a time


@triton.jit
def _place(C: tl.constexpr):
    """The group and part of this program, and its columns (COLUMNS,)."""
    BLOCKS: tl.constexpr = (C + COLUMNS - 1) // COLUMNS
    of_columns = tl.program_id(0) // BLOCKS
    return (
        of_columns // PARTS,
        of_columns % PARTS,
        tl.program_id(0) % BLOCKS * COLUMNS + tl.arange(0, COLUMNS),
    )


@triton.jit
def _rows_of(bounds, group, part):
    """Rows [first, last) int64 of parts of a group; none for some parts of a small group."""
    begin, end = tl.load(bounds + group), tl.load(bounds + group + 1)
    size = (end - begin + PARTS - 1) // PARTS
    first = tl.minimum(begin + part * size, end)
    return first, tl.minimum(first + size, end)


@triton.jit
def _clear_padding(out, bounds, n_groups, N, group, part, column, C: tl.constexpr):
    """Write zeros into the columns of a share of the rows behind all groups."""
    behind = tl.load(bounds + n_groups)
    size = tl.cdiv(N - behind, n_groups * PARTS)
    first = behind + (group * PARTS + part) * size
    last = tl.minimum(first + size, N)
    for low in tl.range(first, last, ROWS):
        row = low + tl.arange(0, ROWS)
        mask = (row < last)[:, None] & (column < C)[None, :]
        nothing = tl.zeros((ROWS, COLUMNS), out.dtype.element_ty)
        tl.store(out + row[:, None] * C + column[None, :], nothing, mask=mask)


@triton.jit(do_not_specialize=["n_groups"], do_not_specialize_on_alignment=ANYWHERE)
def measure(
    features,  # (N, C)
    bounds,  # (G + 1,) int64
    parts,  # (2, G, PARTS, C) float32, out: means, and sums of squared deviations from them
    n_groups,
    C: tl.constexpr,
):
    group, part, column = _place(C)
    first, last = _rows_of(bounds, group, part)
    within = column < C
    count = tl.full((), 0.0, tl.float32)
    mean, deviations = tl.zeros((COLUMNS,), tl.float32), tl.zeros((COLUMNS,), tl.float32)
    for low in tl.range(first, last, ROWS):
        row = low + tl.arange(0, ROWS)
        mask = (row < last)[:, None] & within[None, :]
        x = tl.load(features + row[:, None] * C + column[None, :], mask=mask, other=0.0).to(tl.float32)
        more = tl.minimum(last - low, ROWS).to(tl.float32)
        # Chan et al. (1983): squaring deviations from the mean avoids cancellation.
        own = tl.sum(x, 0) / more
        away = tl.where(mask, x - own[None, :], 0.0)
        difference = own - mean
        mean += difference * (more / (count + more))
        deviations += tl.sum(away * away, 0) + difference * difference * (count * more / (count + more))
        count += more
    at = (group * PARTS + part) * C + column
    tl.store(parts + at, mean, mask=within)
    tl.store(parts + n_groups * (PARTS * C) + at, deviations, mask=within)


@triton.jit
def _moments_of(parts, bounds, group, n_groups, column, C: tl.constexpr):
    """The number of rows of a group, and the mean and variance (COLUMNS,) of its columns."""
    part = tl.arange(0, PARTS)
    first, last = _rows_of(bounds, group, part)
    count = (last - first).to(tl.float32)[:, None]
    at = (part + group * PARTS)[:, None] * C + column[None, :]
    means = tl.load(parts + at, mask=(column < C)[None, :], other=0.0)
    deviations = tl.load(parts + n_groups * (PARTS * C) + at, mask=(column < C)[None, :], other=0.0)
    n = tl.sum(last - first).to(tl.float32)
    mean = tl.sum(means * count, 0) / n
    away = means - mean[None, :]
    return n, mean, tl.sum(deviations + away * away * count, 0) / n


@triton.jit(do_not_specialize=["n_groups", "N"], do_not_specialize_on_alignment=ANYWHERE)
def normalize(
    features,  # (N, C)
    bounds,  # (G + 1,) int64
    parts,  # of measure
    scale,  # (C,)
    shift,  # (C,)
    residual,  # (N, C) or None
    out,  # (N, C)
    moments,  # (2, G, C) float32, out: means, and 1 / sqrt(variance + epsilon)
    running_mean,  # (C,), updated like the next two
    running_variance,
    count,  # ()
    momentum,
    epsilon,
    n_groups,
    N,
    RELU: tl.constexpr,
    C: tl.constexpr,
):
    group, part, column = _place(C)
    within = column < C
    _, mean, variance = _moments_of(parts, bounds, group, n_groups, column, C)
    factor = 1.0 / tl.sqrt(variance + epsilon)
    if part == 0:
        tl.store(moments + group * C + column, mean, mask=within)
        tl.store(moments + (n_groups + group) * C + column, factor, mask=within)
    if tl.program_id(0) * COLUMNS < C:  # the first group's first part
        average = tl.load(running_mean + column, mask=within, other=0.0)
        average_variance = tl.load(running_variance + column, mask=within, other=0.0)
        for each in range(n_groups):
            n, new_mean, new_variance = _moments_of(parts, bounds, each, n_groups, column, C)
            average = average * (1.0 - momentum) + new_mean * momentum
            average_variance = average_variance * (1.0 - momentum) + new_variance * (n / (n - 1.0)) * momentum
        tl.store(running_mean + column, average, mask=within)
        tl.store(running_variance + column, average_variance, mask=within)
        if tl.program_id(0) == 0:
            tl.store(count, tl.load(count) + n_groups)
    slope = factor * tl.load(scale + column, mask=within, other=0.0)
    offset = tl.load(shift + column, mask=within, other=0.0)
    first, last = _rows_of(bounds, group, part)
    for low in tl.range(first, last, ROWS):
        row = low + tl.arange(0, ROWS)
        mask = (row < last)[:, None] & within[None, :]
        at = row[:, None] * C + column[None, :]
        y = tl.load(features + at, mask=mask, other=0.0).to(tl.float32)
        y = (y - mean[None, :]) * slope[None, :] + offset[None, :]
        if residual is not None:
            y += tl.load(residual + at, mask=mask, other=0.0).to(tl.float32)
        if RELU:
            y = tl.maximum(y, 0.0, propagate_nan=tl.PropagateNan.ALL)
        tl.store(out + at, y.to(out.dtype.element_ty), mask=mask)
    _clear_padding(out, bounds, n_groups, N, group, part, column, C)


@triton.jit
def _gradient_and_place(features, grad_out, out, at, mask, mean, factor):
    """Gradient before the relu and normalised features of a block, float32."""
    gradient = tl.load(grad_out + at, mask=mask, other=0.0).to(tl.float32)
    if out is not None:
        gradient = tl.where(tl.load(out + at, mask=mask, other=0.0).to(tl.float32) <= 0.0, 0.0, gradient)
    x = tl.load(features + at, mask=mask, other=0.0).to(tl.float32)
    return gradient, (x - mean[None, :]) * factor[None, :]


@triton.jit(do_not_specialize=["n_groups"], do_not_specialize_on_alignment=ANYWHERE)
def sum_gradients(
    features,  # (N, C), like the next but two
    bounds,  # (G + 1,) int64
    moments,  # (2, G, C) float32
    grad_out,
    out,  # (N, C) of a relu, or None
    parts,  # (2, G, PARTS, C) float32, out: sums of gradients, and of these times normalised features
    n_groups,
    C: tl.constexpr,
):
    group, part, column = _place(C)
    within = column < C
    mean = tl.load(moments + group * C + column, mask=within, other=0.0)
    factor = tl.load(moments + (n_groups + group) * C + column, mask=within, other=0.0)
    first, last = _rows_of(bounds, group, part)
    total, products = tl.zeros((COLUMNS,), tl.float32), tl.zeros((COLUMNS,), tl.float32)
    for low in tl.range(first, last, ROWS):
        row = low + tl.arange(0, ROWS)
        mask = (row < last)[:, None] & within[None, :]
        at = row[:, None] * C + column[None, :]
        gradient, normalized = _gradient_and_place(features, grad_out, out, at, mask, mean, factor)
        total += tl.sum(gradient, 0)
        products += tl.sum(gradient * normalized, 0)
    at = (group * PARTS + part) * C + column
    tl.store(parts + at, total, mask=within)
    tl.store(parts + n_groups * (PARTS * C) + at, products, mask=within)


@triton.jit
def _sums_of(parts, group, n_groups, column, C: tl.constexpr):
    """Both sums (COLUMNS,) of sum_gradients over a group."""
    at = (tl.arange(0, PARTS) + group * PARTS)[:, None] * C + column[None, :]
    total = tl.load(parts + at, mask=(column < C)[None, :], other=0.0)
    products = tl.load(parts + n_groups * (PARTS * C) + at, mask=(column < C)[None, :], other=0.0)
    return tl.sum(total, 0), tl.sum(products, 0)


@triton.jit(do_not_specialize=["n_groups", "N"], do_not_specialize_on_alignment=ANYWHERE)
def gradients(
    features,  # (N, C)
    bounds,  # (G + 1,) int64
    moments,  # (2, G, C) float32
    grad_out,  # (N, C)
    out,  # (N, C) of a relu, or None
    parts,  # of sum_gradients
    scale,  # (C,)
    grad_features,  # (N, C)
    grad_residual,  # (N, C) or None
    grad_vectors,  # (2, C): of scale and shift
    n_groups,
    N,
    C: tl.constexpr,
):
    group, part, column = _place(C)
    within = column < C
    if tl.program_id(0) * COLUMNS < C:  # the first group's first part
        grad_scale, grad_shift = tl.zeros((COLUMNS,), tl.float32), tl.zeros((COLUMNS,), tl.float32)
        for each in range(n_groups):
            total, products = _sums_of(parts, each, n_groups, column, C)
            grad_scale += products
            grad_shift += total
        tl.store(grad_vectors + column, grad_scale.to(grad_vectors.dtype.element_ty), mask=within)
        tl.store(grad_vectors + C + column, grad_shift.to(grad_vectors.dtype.element_ty), mask=within)
    mean = tl.load(moments + group * C + column, mask=within, other=0.0)
    factor = tl.load(moments + (n_groups + group) * C + column, mask=within, other=0.0)
    slope = factor * tl.load(scale + column, mask=within, other=0.0)
    n = (tl.load(bounds + group + 1) - tl.load(bounds + group)).to(tl.float32)
    group_total, group_products = _sums_of(parts, group, n_groups, column, C)
    first, last = _rows_of(bounds, group, part)
    for low in tl.range(first, last, ROWS):
        row = low + tl.arange(0, ROWS)
        mask = (row < last)[:, None] & within[None, :]
        at = row[:, None] * C + column[None, :]
        gradient, normalized = _gradient_and_place(features, grad_out, out, at, mask, mean, factor)
        if grad_residual is not None:
            tl.store(grad_residual + at, gradient.to(grad_residual.dtype.element_ty), mask=mask)
        away = gradient - (group_total / n)[None, :] - normalized * (group_products / n)[None, :]
        tl.store(grad_features + at, (slope[None, :] * away).to(grad_features.dtype.element_ty), mask=mask)
    _clear_padding(grad_features, bounds, n_groups, N, group, part, column, C)
    if grad_residual is not None:
        _clear_padding(grad_residual, bounds, n_groups, N, group, part, column, C)
