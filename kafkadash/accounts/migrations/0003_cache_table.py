"""The table of Django's database cache, where sign-in attempts are counted; in a migration so that one command is enough.

The columns are those of ``manage.py createcachetable``.
"""

from django.db import migrations

FORWARD = """
CREATE TABLE cache (
    cache_key varchar(255) NOT NULL PRIMARY KEY,
    value text NOT NULL,
    expires timestamp with time zone NOT NULL
);
CREATE INDEX cache_expires ON cache (expires);
"""


class Migration(migrations.Migration):
    dependencies = [("accounts", "0002_audit_append_only")]

    operations = [migrations.RunSQL(FORWARD, "DROP TABLE cache")]
