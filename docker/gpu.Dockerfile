# docker build -f docker/gpu.Dockerfile -t pcreg-gpu .
# docker run --rm --gpus all -v "$PWD:/data" pcreg-gpu register source.ply target.ply --device cuda
# The driver of the host is needed, and the NVIDIA Container Toolkit; CUDA comes with PyTorch. Nobody has built it yet.
FROM python:3.12-slim
COPY . /tmp/pcreg
# Triton compiles its launcher with gcc.
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev libegl1 libgl1 libgomp1 libidn2-0 libudev1 libusb-1.0-0 libx11-6 \
    && rm -rf /var/lib/apt/lists/* \
    && pip install --no-cache-dir "/tmp/pcreg[all]" \
    && rm -rf /tmp/pcreg
WORKDIR /data
ENTRYPOINT ["pcreg"]
