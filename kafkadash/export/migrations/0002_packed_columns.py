"""Rows of the outbox are compressed already."""

from django.db import migrations

FORWARD = "ALTER TABLE export_segmentoutbox ALTER COLUMN data SET STORAGE EXTERNAL"
BACKWARD = "ALTER TABLE export_segmentoutbox ALTER COLUMN data SET STORAGE EXTENDED"


class Migration(migrations.Migration):
    dependencies = [("export", "0001_initial")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
