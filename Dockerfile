# bridge with the embedded platform model: nothing but Debian and its packages, and Python packages.
ARG BASE=debian:bookworm-slim
FROM ${BASE}

# Further packages of Debian, and extras of pyproject.toml, such as [predict].
ARG MORE=
ARG EXTRAS=

RUN apt-get update \
 && apt-get install --yes --no-install-recommends python3 python3-venv python3-simgrid ${MORE} \
 && rm -rf /var/lib/apt/lists/*

COPY pyproject.toml README.md LICENSE /src/
COPY bridge /src/bridge
COPY clusters /src/clusters
COPY maps /src/maps
COPY policies /src/policies
COPY platforms /src/platforms
COPY workloads /src/workloads
COPY zoo /src/zoo
ENV PATH=/opt/bridge/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    BRIDGE_CACHE=/opt/bridge/cache \
    BRIDGE_SIMGRID_PYTHON=/usr/bin/python3
# The scheduler is compiled on first use: here, once, for whoever runs the image later. Nobody but root can
# change what was compiled; who runs bridge has a copy of it to add to.
RUN python3 -m venv /opt/bridge \
 && pip install --no-cache-dir "/src${EXTRAS}" \
 && bridge replay bundled-128 --first 10 \
 && chmod -R a+rX,go-w /opt/bridge/cache \
 && useradd --create-home bridge

COPY containers/entrypoint.sh /usr/local/bin/bridge-entrypoint
WORKDIR /checkout
# To write into a mounted folder, be its owner: docker run --user "$(id -u):$(id -g)" --volume "$PWD:/checkout" …
USER bridge
ENTRYPOINT ["sh", "/usr/local/bin/bridge-entrypoint"]
CMD ["--help"]
