# One image for every process of kafkadash: web, workers, beat and commands differ by what they are told to run.
# The packages are those of uv.lock; nothing secret is built in, everything comes with the environment.
FROM python:3.13.9-slim-trixie AS build
RUN pip install --no-cache-dir uv==0.13.8
WORKDIR /app
ENV UV_LINK_MODE=copy UV_COMPILE_BYTECODE=1 UV_PYTHON_DOWNLOADS=never
COPY pyproject.toml uv.lock ./
RUN uv sync --frozen --no-dev --extra pipeline

FROM python:3.13.9-slim-trixie
RUN useradd --system --uid 10001 --create-home --home-dir /var/lib/kafkadash kafkadash \
    && install --directory --mode=0700 --owner=kafkadash /var/lib/kafkadash/pipeline
WORKDIR /app
COPY --from=build /app/.venv /app/.venv
COPY manage.py LICENSE ./
COPY kafkadash kafkadash
COPY templates templates
COPY static static
COPY docs docs
ENV PATH=/app/.venv/bin:$PATH PYTHONUNBUFFERED=1 KAFKADASH_VAR=/var/lib/kafkadash
USER 10001
EXPOSE 8000
CMD ["python", "-m", "kafkadash.web", "--host", "0.0.0.0"]
