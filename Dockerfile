# bridge with the embedded platform model: nothing but Debian and its packages, and Python packages.
ARG BASE=debian:bookworm-slim
FROM ${BASE} AS debian

# Further packages of Debian.
ARG MORE=
RUN apt-get update \
 && apt-get install --yes --no-install-recommends python3 python3-simgrid ${MORE} \
 && apt-get clean \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/log/apt /var/log/*.log

# What builds bridge stays in this stage: pip, its caches, the sources. pip writes into /opt/bridge, but is not in it.
FROM debian AS build
RUN apt-get update \
 && apt-get install --yes --no-install-recommends python3-venv
# Extras of pyproject.toml, such as [predict].
ARG EXTRAS=
COPY pyproject.toml README.md LICENSE /src/
COPY bridge /src/bridge
COPY clusters /src/clusters
COPY maps /src/maps
COPY policies /src/policies
COPY platforms /src/platforms
COPY workloads /src/workloads
COPY zoo /src/zoo
# Running bridge needs no tests of Python packages, no headers, no notebook's parts, and of Arrow no network.
RUN python3 -m venv /opt/tools \
 && python3 -m venv --without-pip /opt/bridge \
 && /opt/tools/bin/pip --python /opt/bridge/bin/python install --no-cache-dir "/src${EXTRAS}" \
 && find /opt/bridge/lib -type d -name tests -prune -exec rm -rf {} + \
 && cd /opt/bridge/lib/python3*/site-packages \
 && rm -rf pyarrow/include pyarrow/*_flight* pyarrow/libarrow_s3* pyarrow/_s3fs* plotly/labextension

FROM debian
COPY --from=build /opt/bridge /opt/bridge
ENV PATH=/opt/bridge/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    BRIDGE_CACHE=/opt/bridge/cache \
    BRIDGE_SIMGRID_PYTHON=/usr/bin/python3
# The scheduler is compiled on first use: here, once, for all later runs, in the fast world and on a platform. Only
# root can change the compiled files; each run has a copy of them to add to.
RUN bridge replay bundled-128 --first 10 \
 && bridge run --workload bundled-128 --on simgrid --platform exact-128 --first 10 --out /tmp/run \
 && rm -r /tmp/run \
 && chmod -R a+rX,go-w /opt/bridge/cache \
 && useradd --create-home bridge

COPY containers/entrypoint.sh /usr/local/bin/bridge-entrypoint
WORKDIR /checkout
# To write into a mounted folder, be its owner: docker run --user "$(id -u):$(id -g)" --volume "$PWD:/checkout" …
USER bridge
ENTRYPOINT ["sh", "/usr/local/bin/bridge-entrypoint"]
CMD ["--help"]
