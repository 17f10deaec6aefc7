from django.db import migrations, models

import kafkadash.observe.models.collection


class Migration(migrations.Migration):
    dependencies = [
        ("observe", "0016_unjudged_groups"),
    ]

    operations = [
        # What was stored are names of classes; the next refresh stores the kind.
        migrations.RemoveField("collectorrun", "last_failure"),
        migrations.AddField(
            "collectorrun",
            "last_failure",
            models.CharField(
                blank=True,
                choices=kafkadash.observe.models.collection.failure_kind_choices,
                default="",
                help_text="empty after a good refresh",
                max_length=32,
            ),
            preserve_default=False,
        ),
    ]
