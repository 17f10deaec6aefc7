"""Django's PostgreSQL backend with a pool that outlives its server, and what it means that the database is away."""
