# Three targets: backend (API, share pages, compute worker), frontend (pages, no torch), objects (S3-compatible store).
# docker-compose.yml builds and runs them. Digests were taken from public records of the tags, not pulled and verified here.

FROM python:3.11.15-slim@sha256:90744cff8f32887f075c47d747a173ff333e9e98801667af93c357fa9f5e28ff AS base
ENV PATH=/opt/fanlight/bin:$PATH PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONUNBUFFERED=1
RUN useradd --uid 1000 --create-home fanlight \
    && python -m venv /opt/fanlight \
    && mkdir /data && chown fanlight:fanlight /data
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./

FROM base AS backend
# The address of another package index for torch, for example PyTorch's CPU index: several gigabytes less.
ARG TORCH_INDEX=
RUN pip install -c constraints.txt torch torchvision ${TORCH_INDEX:+--index-url "$TORCH_INDEX"}
COPY backend backend
COPY frontend frontend
COPY models models
ARG EXTRAS=all
RUN pip install ".[$EXTRAS]" && fanlight models install efficientnet-lite0
USER fanlight
WORKDIR /data
VOLUME /data
EXPOSE 8321
ENTRYPOINT ["fanlight"]
CMD ["serve", "--host", "0.0.0.0", "--data-dir", "/data", "--no-browser"]

FROM base AS frontend
COPY backend backend
COPY frontend frontend
COPY models models
RUN pip install '.[server,ui]'
USER fanlight
WORKDIR /home/fanlight
EXPOSE 8322
ENTRYPOINT ["fanlight"]
CMD ["pages", "--host", "0.0.0.0", "--port", "8322", "--api", "http://backend:8321"]

# A gateway over a folder: every folder in /data is a bucket.
FROM versity/versitygw:v1.8.0@sha256:30292fc2eeacc67a36993b01f7a7a5e3361a19cced0e80c1d71cfa2a4b0a2499 AS objects
USER root
RUN mkdir -p /data/fanlight && chown -R 1000:1000 /data
USER 1000:1000
VOLUME /data
EXPOSE 7070
