"""Packed columns are compressed already; rows of groups that only age are rewritten: keep room beside them."""

from django.db import migrations

FORWARD = """
ALTER TABLE monitoring_groupwindow ALTER COLUMN data SET STORAGE EXTERNAL, ALTER COLUMN members SET STORAGE EXTERNAL;
ALTER TABLE monitoring_groupstate SET (fillfactor = 70);
"""


class Migration(migrations.Migration):
    dependencies = [("monitoring", "0001_initial")]

    operations = [migrations.RunSQL(FORWARD, migrations.RunSQL.noop)]
