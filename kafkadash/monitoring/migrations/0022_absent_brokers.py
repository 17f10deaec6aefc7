from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("monitoring", "0021_known_complete_reads")]
    operations = [
        migrations.AddField(
            model_name="clusterstate",
            name="absent_brokers",
            field=models.JSONField(
                help_text="by the name of a count of partitions: IDs of the brokers whose replicas these lack",
                null=True,
            ),
        ),
    ]
