# lanser with the pinned Pyright. Run it as the owner of the checkout:
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/work" lanser diag --new
FROM rust:1.95-slim-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked

FROM python:3.13-slim-bookworm
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/* \
    && pip install --no-cache-dir 'pyright[nodejs]==1.1.414'
COPY --from=build /src/target/release/lanser /usr/local/bin/lanser
# Any user may write caches here; each has a folder of its own.
ENV HOME=/tmp LANSER_OFFLINE=true CI=true
USER 1000:1000
WORKDIR /work
ENTRYPOINT ["lanser"]
