# docker build -f docker/cpu.Dockerfile -t pcreg .
# docker run --rm -v "$PWD:/data" pcreg register source.ply target.ply
# Its steps were run on a bare Debian 12 with Python 3.11 (demo, FPFH and map work); nobody has built the image yet.
FROM python:3.12-slim
COPY . /tmp/pcreg
RUN apt-get update \
    && apt-get install -y --no-install-recommends libegl1 libgl1 libgomp1 libidn2-0 libudev1 libusb-1.0-0 libx11-6 \
    && rm -rf /var/lib/apt/lists/* \
    && pip install --no-cache-dir "/tmp/pcreg[fpfh,las,e57]" \
    && rm -rf /tmp/pcreg
WORKDIR /data
ENTRYPOINT ["pcreg"]
