from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("clusters", "0001_initial"),
        ("observe", "0002_what_a_cluster_tells"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="quorumsnapshot",
            index=models.Index(fields=["cluster", "leader_epoch", "taken_at"], name="quorum_epoch"),
        ),
    ]
