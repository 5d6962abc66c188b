# The image of tricorn itself: the wheel is built from this checkout, and nothing that builds it is in the image.
#
#   docker build -t tricorn .
#   docker run --rm -p 8000:8000 -v "$PWD/examples/hello:/app:ro" tricorn app:app
#
# An application has an image of its own, which begins with `FROM tricorn` and installs what it needs, or which
# `tricorn init docker` prints.
ARG PYTHON=3.13

# The version is that of rust-toolchain.toml.
FROM rust:1.95.0-slim AS rust

FROM python:${PYTHON}-slim AS build
RUN apt-get update \
 && apt-get install -y --no-install-recommends gcc libc6-dev \
 && rm -rf /var/lib/apt/lists/*
COPY --from=rust /usr/local/rustup /usr/local/rustup
COPY --from=rust /usr/local/cargo /usr/local/cargo
# RUSTUP_TOOLCHAIN: rust-toolchain.toml also asks for what formats and lints, which is not needed here.
ENV RUSTUP_HOME=/usr/local/rustup CARGO_HOME=/usr/local/cargo RUSTUP_TOOLCHAIN=1.95.0 PATH=/usr/local/cargo/bin:$PATH
# Names of functions stay in the library, for backtraces; its line tables would be three quarters of it.
ENV CARGO_PROFILE_RELEASE_STRIP=debuginfo
WORKDIR /tricorn
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels . ./packages/tricorn-*

FROM python:${PYTHON}-slim
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-index /wheels/*.whl \
 && useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin tricorn
WORKDIR /app
USER 10001:10001
ENV PYTHONUNBUFFERED=1 TRICORN_BIND=0.0.0.0:8000
EXPOSE 8000
# The arbiter is process 1 and reaps orphans: no init is needed. TERM lets requests finish.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["tricorn", "ctl", "health"]
ENTRYPOINT ["tricorn"]
CMD ["--help"]
