import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("clusters", "0002_labels"),
        ("history", "0003_rates_by_hour"),
    ]

    operations = [
        migrations.CreateModel(
            name="ClusterWorkload",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("by_hour", models.JSONField(help_text="bytes in per second by hour of the week")),
                ("from_at", models.DateTimeField()),
                ("to_at", models.DateTimeField()),
                ("version", models.BigIntegerField()),
                (
                    "cluster",
                    models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, to="clusters.cluster"),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["to_at"], name="cluster_workload_age")],
            },
        ),
    ]
