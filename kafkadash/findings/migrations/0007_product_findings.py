import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("clusters", "0004_zookeeper_login"),
        ("findings", "0006_run_trouble"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterField(
            model_name="finding",
            name="cluster",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.CASCADE, related_name="findings", to="clusters.cluster"
            ),
        ),
        migrations.AlterField(
            model_name="finding",
            name="kind",
            field=models.CharField(
                choices=[
                    ("offline-partitions", "Offline partitions"),
                    ("quorum-lost", "Controller quorum lost"),
                    ("quorum-margin", "Controller quorum at minimum"),
                    ("under-min-isr", "Partitions under min-ISR"),
                    ("broker-down", "Broker down"),
                    ("canary-fails", "Broker fails its canary"),
                    ("failed-log-directory", "Failed log directory"),
                    ("at-min-isr", "Partitions at min-ISR"),
                    ("under-replicated", "Under-replicated partitions"),
                    ("canary-slow", "Broker is slow for clients"),
                    ("disk-full-soon", "Log directory full within a day"),
                    ("disk-full", "Log directory nearly full"),
                    ("quorum-flapping", "Frequent controller elections"),
                    ("consumer-data-loss", "Unread records deleted"),
                    ("consumer-lag", "Consumer group stuck"),
                    ("hanging-transaction", "Hanging transaction"),
                    ("run-needs-attention", "Run needs attention"),
                    ("orphan-throttle", "Orphan throttle"),
                    ("zombie-reassignment", "Stuck reassignment"),
                    ("rack-violation", "Rack violation"),
                    ("leader-skew", "Leader skew"),
                    ("mixed-versions", "Mixed Kafka versions"),
                    ("config-drift", "Broker configs differ"),
                    ("broker-away", "Empty broker offline"),
                    ("segment-set-aside", "Quarantined segments"),
                    ("pipeline-stands-still", "Pipeline stalled"),
                    ("own-task-overdue", "kafkadash task overdue"),
                    ("receiver-fails", "Receiver of notifications fails"),
                    ("never-read-completely", "Never read completely"),
                    ("topics-hidden", "Hidden topics"),
                    ("another-cluster", "Cluster ID mismatch"),
                    ("registered-twice", "Duplicate registration"),
                    ("unreachable", "Cluster unreachable"),
                    ("stale-data", "Stale data"),
                    ("zookeeper-mode", "ZooKeeper mode"),
                    ("collection-off", "Collection disabled"),
                ],
                max_length=32,
            ),
        ),
        migrations.AddConstraint(
            model_name="finding",
            constraint=models.UniqueConstraint(
                condition=models.Q(("closed_at__isnull", True), ("cluster__isnull", True)),
                fields=("kind", "scope"),
                name="one_open_product_finding",
            ),
        ),
    ]
