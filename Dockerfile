# Two images from one file:
#   docker build --target train -t scena .          docker run -v "$PWD/runs:/workspace/runs" scena train examples.tutorial.min
#   docker build --target serve -t scena-serve .    docker run -p 8501:8501 -v "$PWD/runs/digits/best:/model:ro" scena-serve
# To serve exports with a converted model without loading TensorFlow (docs/prediction.md) add: --build-arg EXTRAS=onnx.
# For NVIDIA GPUs add: --build-arg EXTRAS=gpu, and run with --gpus all.
FROM python:3.12-slim AS build
ARG EXTRAS=""
WORKDIR /src
COPY requirements/installer.txt requirements/core.txt requirements/test.txt requirements/trackers.txt requirements/
RUN pip install --no-cache-dir --no-deps --requirement requirements/installer.txt \
    && python -m venv --without-pip /venv \
    && uv pip install --no-cache --compile-bytecode --no-deps --python /venv/bin/python --requirement requirements/core.txt
COPY pyproject.toml README.md LICENSE ./
COPY scena scena
COPY examples examples
# The locks of tests and trackers hold every extra, in the versions that were tested; the pinned core is already there.
RUN uv pip install --no-cache --compile-bytecode --python /venv/bin/python --constraints requirements/test.txt --constraints requirements/trackers.txt ".[serve${EXTRAS:+,$EXTRAS}]"

FROM python:3.12-slim AS base
COPY --from=build /venv /venv
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 TF_CPP_MIN_LOG_LEVEL=3
RUN useradd --uid 1000 --create-home scena && mkdir /workspace && chown scena /workspace
USER 1000
WORKDIR /workspace

FROM base AS serve
EXPOSE 8501
ENTRYPOINT ["scena", "serve"]
CMD ["/model", "--host", "0.0.0.0"]

FROM base AS train
ENTRYPOINT ["scena"]
CMD ["--help"]
