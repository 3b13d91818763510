# One image, from the package that `npm pack` makes: docs/containers.md.
FROM docker.io/library/node:22-bookworm-slim AS build
WORKDIR /src
COPY . .
RUN npm ci --no-audit --no-fund \
  && npm run -s build \
  && npm pack --silent --pack-destination /tmp
WORKDIR /opt/parley
RUN npm init -y > /dev/null \
  && npm install --ignore-scripts --no-audit --no-fund /tmp/parley-*.tgz \
  && npx parley trim

FROM docker.io/library/debian:bookworm-slim
COPY --from=build /opt/parley /opt/parley
RUN useradd --uid 10001 --home-dir /data --no-create-home --shell /usr/sbin/nologin parley \
  && install -d -o parley -g parley -m 700 /data
# Node comes with the package.
ENV PATH=/opt/parley/node_modules/.bin:$PATH \
  PARLEY_HOST=0.0.0.0 PARLEY_PORT=8080 PARLEY_DATA_DIR=/data
USER parley
WORKDIR /data
VOLUME /data
EXPOSE 8080
# Ready or not, one that answers is not to be started again.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["node", "-e", \
  "const { PARLEY_PORT: port, PARLEY_TLS_CERT_FILE: tls } = process.env; require(tls ? 'https' : 'http').get({ host: '127.0.0.1', port, path: '/livez', rejectUnauthorized: false }, ({ statusCode }) => process.exit(statusCode === 200 ? 0 : 1)).on('error', () => process.exit(1))"]
ENTRYPOINT ["node", "--single-threaded-gc", "/opt/parley/node_modules/parley/dist/cli.js"]
CMD ["serve"]
