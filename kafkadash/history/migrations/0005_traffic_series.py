from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("history", "0004_cluster_workload"),
    ]

    operations = [
        migrations.AlterField(
            model_name="series",
            name="kind",
            field=models.CharField(
                choices=[
                    ("lag_rollup", "lag of a group in a topic"),
                    ("topic_rollup", "lag of all groups of a topic"),
                    ("broker_rollup", "bytes of replicas on a broker"),
                    ("cluster_rollup", "lag of all groups of a cluster"),
                    ("quorum_rollup", "lag of a node of the quorum"),
                    ("bytes_in", "bytes in per second, estimated"),
                    ("records_in", "thousandths of a record in per second"),
                ],
                max_length=16,
            ),
        ),
    ]
