from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("monitoring", "0018_cluster_events")]

    operations = [
        migrations.AddIndex(
            model_name="reassignmentsnapshot",
            index=models.Index(fields=["cluster", "started_before"], name="reassignment_started"),
        ),
    ]
