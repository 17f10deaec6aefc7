import django.contrib.postgres.indexes
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("short_runs", "0001_initial"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="shortitem",
            index=django.contrib.postgres.indexes.GinIndex(
                fields=["content"], name="short_item_content", opclasses=["jsonb_path_ops"]
            ),
        ),
    ]
